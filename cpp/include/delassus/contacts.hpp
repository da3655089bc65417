// Contact forces with friction:
//
//   K ∋ λ ⊥ σ + Γ(σ) ∈ K*,   σ = G λ + g,   Γ(σ) = µ ‖σ_T‖ n on every contact
//
// K is the product of the constraints' sets: cones of contacts, [0, ∞) of limits, boxes of dry friction, all of ℝ for
// loops. With g a velocity, λ is an impulse [N s]; with g an acceleration, a force [N].
#pragma once

#include "delassus/operator.hpp"

namespace delassus {
inline namespace v0 {

/// Status of a solution, recomputed from the definition above.
enum class ContactOutcome : int {
  solved,           ///< within the tolerance
  iteration_limit,  ///< not yet within the tolerance
  stalled,          ///< the residual no longer decreases
  infeasible,       ///< no forces satisfy these constraints
  approximate,      ///< forces are in their sets and create no energy, but miss Coulomb's law by the residuals
};
[[nodiscard]] DELASSUS_API const char* describe(ContactOutcome outcome) noexcept;

/// True in a condition if the problem is solved.
struct ContactReport {
  Status status = Status::failed;  ///< ok: forces were written, whatever the outcome
  ContactOutcome outcome = ContactOutcome::stalled;
  int iterations = 0;
  int factorizations = 0;
  double primal = 0;           ///< distance of forces to their sets, as a velocity [unit of g]
  double dual = 0;             ///< velocity into contacts and limits, and of loops [unit of g]
  double complementarity = 0;  ///< power of forces, as a velocity [unit of g]
  double natural = 0;          ///< combines all of these [unit of g]
  double tolerance = 0;        ///< tolerance used for primal and dual; ten times as large for natural
  explicit operator bool() const noexcept { return status == Status::ok && outcome == ContactOutcome::solved; }
};

struct ContactOptions {
  double tolerance = 1e-6;    ///< tolerance of the residuals [unit of g]
  int max_iterations = 2000;  ///< maximum number of factorizations
  double time_limit = 0;      ///< [s]; 0: none. After it, the result is the best forces so far, `approximate`
};

/// Solver of contact problems of one operator by Python's method "auto": Newton's method first, then a smooth path,
/// then ADMM. One thread at a time, while none uses the operator.
class DELASSUS_API ContactSolver {
 public:
  /// Allocates all memory, by solving a problem that no method solves: some milliseconds. It shares the operator with
  /// G, which may be moved or destroyed first; an operator that was not updated stays so.
  /// @param timestep with g a velocity: bounds of dry friction are forces times it [s]; 1 if g is an acceleration
  /// @throws ArgumentError
  explicit ContactSolver(DelassusOperator& G, const ContactOptions& options = {}, double timestep = 1.0);
  ContactSolver(ContactSolver&&) noexcept;
  ContactSolver& operator=(ContactSolver&&) noexcept;
  ~ContactSolver();

  /// forces (m,) ← λ and velocities (m,) ← σ for g (m,), at the q of the operator's last update. The operator's
  /// damping is unchanged. With `warm_start`, forces holds the initial forces.
  ContactReport solve(std::span<const double> g, std::span<double> forces, std::span<double> velocities,
                      bool warm_start = false) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
