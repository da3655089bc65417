// Dynamics of the tree, and of the tree with constraints.
//
//   M v̇ + h = τ + Jᵀ λ,   J v̇ + C λ + γ = 0
#pragma once

#include "delassus/constraints.hpp"

namespace delassus {
inline namespace v0 {

/// Recursive algorithms of the tree, without constraints: O(n). One thread at a time.
///
/// q (nq,), v and a (nv,), joint forces tau (nv,) [N m or N]. `external` is (nbody, 6) row-major, force and torque
/// on each body at its centre of mass, world axes; an empty span is none.
class DELASSUS_API TreeDynamics {
 public:
  explicit TreeDynamics(const Model& model);
  TreeDynamics(TreeDynamics&&) noexcept;
  TreeDynamics& operator=(TreeDynamics&&) noexcept;
  ~TreeDynamics();

  [[nodiscard]] const Model& model() const noexcept;

  /// M (nv, nv), row-major.
  Status mass_matrix(std::span<const double> q, std::span<double> M) noexcept;
  /// M⁻¹ (nv, nv), row-major.
  Status mass_matrix_inverse(std::span<const double> q, std::span<double> inverse) noexcept;
  /// x ← M⁻¹ y, both (nv, columns).
  Status solve_mass_matrix(std::span<const double> q, std::span<const double> y, std::span<double> x,
                           int columns = 1) noexcept;
  /// tau ← M a + h − external.
  Status inverse_dynamics(std::span<const double> q, std::span<const double> v, std::span<const double> a,
                          std::span<double> tau, std::span<const double> external = {}) noexcept;
  /// a ← M⁻¹ (tau − h + external).
  Status forward_dynamics(std::span<const double> q, std::span<const double> v, std::span<const double> tau,
                          std::span<double> a, std::span<const double> external = {}) noexcept;
  /// h ← gravity, Coriolis and centrifugal forces: inverse dynamics at zero acceleration.
  Status bias_forces(std::span<const double> q, std::span<const double> v, std::span<double> h) noexcept;
  /// X (nbody, 4, 4) row-major ← placements of all bodies in the world.
  Status body_placements(std::span<const double> q, std::span<double> X) noexcept;
  /// J (6, nv) row-major: [velocity of a point of a body; angular velocity], world axes; point in body coordinates.
  Status point_jacobian(std::span<const double> q, int body, const Vec3& point, std::span<double> J) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Method of constrained dynamics.
enum class DynamicsMethod : int {
  automatic,  ///< lcaba; if its certificate reports a failure, kkt
  lcaba,      ///< loop-constrained articulated bodies: O(n + m) per iteration
  kkt,        ///< one dense factor of both equations: O((n + m)³), the most robust
};

/// Status of a solution, recomputed from the two equations for every method.
enum class DynamicsOutcome : int {
  solved,                    ///< both equations hold
  infeasible_least_squares,  ///< rows contradict each other: the least-squares solution
  iteration_limit,           ///< not yet within the tolerance
  stalled,                   ///< rounding errors keep the residual from decreasing
  redundant,                 ///< rows depend on each other up to the accuracy of the model, and hold up to that
};
[[nodiscard]] DELASSUS_API const char* describe(DynamicsOutcome outcome) noexcept;

/// True in a condition if both equations hold.
struct DynamicsReport {
  Status status = Status::failed;  ///< ok: accelerations and forces were written, whatever the outcome
  DynamicsOutcome outcome = DynamicsOutcome::stalled;
  int iterations = 0;        ///< number of proximal iterations
  double constraints = 0;    ///< largest |J v̇ + C λ + γ|, each row over the scale of its equation
  double dynamics = 0;       ///< largest |M v̇ + h − τ − Jᵀ λ|, each joint's over the scale of its equation
  double primal = 0;         ///< largest |J v̇ + C λ + γ| [m/s² or rad/s²]
  double dual = 0;           ///< largest change of J v̇ in the last iteration [m/s² or rad/s²]
  double least_squares = 0;  ///< largest gradient of the least-squares problem [1 / mu]
  bool repaired = false;     ///< the solution is that of kkt
  explicit operator bool() const noexcept { return status == Status::ok && outcome == DynamicsOutcome::solved; }
};

struct DynamicsOptions {
  DynamicsMethod method = DynamicsMethod::automatic;
  double tolerance = 1e-12;  ///< tolerance of `constraints` and `dynamics` in the report
  int max_iterations = 20;   ///< maximum number of proximal iterations
  double compliance = 0;     ///< C of all rows
  /// 1 / ε of the proximal iterations, one number per row (m,). Empty: ε is a small fraction of G's own diagonal; saved
  /// constraints include Python's value, so that results are the same bits.
  std::vector<double> mu{};
};

/// A state and its inputs; an empty span other than q and v means none.
struct DynamicsInput {
  std::span<const double> q;           ///< (nq,)
  std::span<const double> v;           ///< (nv,)
  std::span<const double> tau{};       ///< (nv,) joint forces [N m or N]
  std::span<const double> external{};  ///< (nbody, 6) force and torque at centres of mass, world axes
  std::span<const double> bias{};      ///< (m,) γ instead of the constraints' own [m/s² or rad/s²]
};

/// Accelerations and constraint forces. Forces are not restricted to cones or boxes: contacts also pull; with friction
/// use a ContactSolver. One thread at a time.
class DELASSUS_API ConstrainedDynamics {
 public:
  /// Allocates all memory, also for kkt (8 (n + m)² bytes for up to 2,000 velocities and rows). @throws ArgumentError
  explicit ConstrainedDynamics(const Constraints& constraints, const DynamicsOptions& options = {});
  ConstrainedDynamics(ConstrainedDynamics&&) noexcept;
  ConstrainedDynamics& operator=(ConstrainedDynamics&&) noexcept;
  ~ConstrainedDynamics();

  [[nodiscard]] int rows() const noexcept;
  [[nodiscard]] const Model& model() const noexcept;

  /// acceleration (nv,) ← v̇, forces (m,) ← λ. With `warm_start`, forces holds the initial forces.
  DynamicsReport solve(const DynamicsInput& input, std::span<double> acceleration, std::span<double> forces,
                       bool warm_start = false) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
