// Contact forces with friction:
//
//   K ∋ λ ⊥ σ + Γ(σ) ∈ K*,   σ = G λ + g,   Γ(σ) = µ ‖σ_T‖ n on every contact
//
// K is made of the sets of the constraints: cones of contacts, [0, ∞) of limits, boxes of dry friction, all of ℝ for
// loops. With g a velocity, λ is an impulse [N s]; with g an acceleration, a force [N].
#pragma once

#include "delassus/operator.hpp"

namespace delassus {
inline namespace v0 {

/// What an answer is, computed from the definition above.
enum class ContactOutcome : int {
  solved,           ///< within the tolerance
  iteration_limit,  ///< not yet
  stalled,          ///< the residual no longer decreases
  infeasible,       ///< no forces meet these constraints
  approximate,      ///< forces are in their sets and create no energy, but miss Coulomb's law by the residuals
};
[[nodiscard]] DELASSUS_API const char* describe(ContactOutcome outcome) noexcept;

/// True in a condition if the problem is solved.
struct ContactReport {
  Status status = Status::failed;  ///< ok: there are forces, whatever the outcome
  ContactOutcome outcome = ContactOutcome::stalled;
  int iterations = 0;
  int factorizations = 0;
  double primal = 0;           ///< distance of forces to their sets, as a velocity [unit of g]
  double dual = 0;             ///< velocity where no force can stop it [unit of g]
  double complementarity = 0;  ///< forces along velocities [unit of g]
  double natural = 0;          ///< all of these in one [unit of g]
  double tolerance = 0;        ///< that primal and dual were held to; natural to ten times as much
  explicit operator bool() const noexcept { return status == Status::ok && outcome == ContactOutcome::solved; }
};

struct ContactOptions {
  double tolerance = 1e-6;    ///< of the residuals [unit of g]
  int max_iterations = 2000;  ///< allowed
  double time_limit = 0;      ///< [s]; 0: none. Beyond it, the best forces so far are the answer, `approximate`
};

/// Solver of contact problems of one operator by Python's method "auto": Newton's method first, then a smooth path,
/// then ADMM. One thread at a time, and none that uses the operator.
class DELASSUS_API ContactSolver {
 public:
  /// Takes all memory, by solving a problem that no method solves: some milliseconds. It shares the operator with G,
  /// which may be moved or end before it; an operator without numbers has none afterwards either.
  /// @param timestep with g a velocity: bounds of dry friction are forces times it [s]; 1 if g is an acceleration
  /// @throws ArgumentError
  explicit ContactSolver(DelassusOperator& G, const ContactOptions& options = {}, double timestep = 1.0);
  ContactSolver(ContactSolver&&) noexcept;
  ContactSolver& operator=(ContactSolver&&) noexcept;
  ~ContactSolver();

  /// forces (m,) ← λ and velocities (m,) ← σ for g (m,), at the q of the operator's last update. The operator's
  /// damping stays as it is. With `warm_start`, forces are what it starts from.
  ContactReport solve(std::span<const double> g, std::span<double> forces, std::span<double> velocities,
                      bool warm_start = false) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
