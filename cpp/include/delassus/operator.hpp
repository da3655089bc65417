// The Delassus operator G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹, no matrix formed, O(n + m).
#pragma once

#include "delassus/constraints.hpp"

namespace delassus {
inline namespace v0 {

/// Refinement of a solution.
enum class Refinement : int {
  none,      ///< unrefined: fastest, loses digits when damping is small
  products,  ///< up to 8 corrections with G itself: bounded time
  full,      ///< then Krylov iterations and, up to 1,024 rows, a dense factor, as Python's `G.solve`
};

struct SolveOptions {
  Refinement refinement = Refinement::full;
  double tolerance = 0;  ///< tolerance of the backward error; 0: 1e-12, or 4 roundings per velocity if that is more
};

/// Result of a solve; true in a condition if the solution is within the tolerance.
struct SolveReport {
  Status status = Status::failed;
  double backward_error = 0;  ///< ‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖), or its goal 2e-13 if it is below that; with
                              ///< Refinement::none it is not computed and zero
  explicit operator bool() const noexcept { return status == Status::ok; }
};

struct OperatorOptions {
  double damping = -1;    ///< ε of all rows; negative: not set, so there is no inverse yet
  double compliance = 0;  ///< C of all rows
  /// Allocate the memory of Refinement::full now: 8 m² bytes for up to 1,024 rows, and 65 m numbers. Without it,
  /// Refinement::full does the same as Refinement::products.
  bool reserve_full = true;
};

/// G of one model and its constraints. One thread at a time.
///
/// Vectors over rows have m numbers, in the order and the axes of the constraints. With `columns` k > 1 an argument
/// holds k columns, (m, k) row-major.
class DELASSUS_API DelassusOperator {
 public:
  /// Does the symbolic work: elimination order, memory. @throws ArgumentError
  explicit DelassusOperator(const Constraints& constraints, const OperatorOptions& options = {});
  DelassusOperator(DelassusOperator&&) noexcept;
  DelassusOperator& operator=(DelassusOperator&&) noexcept;
  ~DelassusOperator();

  [[nodiscard]] int rows() const noexcept;  ///< m
  [[nodiscard]] const Model& model() const noexcept;
  [[nodiscard]] const Constraints& constraints() const noexcept;

  /// Numeric work at q (nq,): kinematics, rows, factors. The only call that reads q; any status other than ok leaves
  /// the operator stale.
  Status update(std::span<const double> q) noexcept;
  /// Damping ε ≥ 0, one number for all rows or one per row (m,); refactors what depends on it.
  Status set_damping(double damping) noexcept;
  Status set_damping(std::span<const double> damping) noexcept;
  /// Compliance C ≥ 0, part of G itself [1/kg], likewise.
  Status set_compliance(double compliance) noexcept;
  Status set_compliance(std::span<const double> compliance) noexcept;

  /// y ← G x.
  Status apply(std::span<const double> x, std::span<double> y, int columns = 1) noexcept;
  /// x ← (G + ε)⁻¹ y.
  SolveReport solve(std::span<const double> y, std::span<double> x, const SolveOptions& options = {},
                    int columns = 1) noexcept;
  /// error ← backward error of any x as a solution for y, both (m,).
  Status backward_error(std::span<const double> x, std::span<const double> y, double& error) noexcept;
  /// G (m, m) row-major: m products.
  Status to_matrix(std::span<double> G) noexcept;
  /// d (m,) ← diagonal of G; for a row that acts on two links of one tree, without the coupling between these.
  Status diagonal(std::span<double> d) noexcept;

  /// y ← J x, x (nv, k), y (m, k).
  Status jacobian(std::span<const double> x, std::span<double> y, int columns = 1) noexcept;
  /// y ← Jᵀ x, x (m, k), y (nv, k).
  Status jacobian_transpose(std::span<const double> x, std::span<double> y, int columns = 1) noexcept;
  /// y ← M⁻¹ x, x, y (nv, k).
  Status mass_inverse(std::span<const double> x, std::span<double> y, int columns = 1) noexcept;

  struct Impl;
  [[nodiscard]] const std::shared_ptr<Impl>& shared() const noexcept { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
