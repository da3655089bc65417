// Dynamics of the tree, and of the tree with constraints.
//
//   M v̇ + h = τ + Jᵀ λ,   J v̇ + C λ + γ = 0
#pragma once

#include "delassus/constraints.hpp"

namespace delassus {
inline namespace v0 {

/// Recursive algorithms of a tree, constraints left out: O(n). One thread at a time.
///
/// q (nq,), v and a (nv,), forces on joints tau (nv,) [N m or N]. `external` is (nbody, 6) row-major, force and torque
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
  /// h ← forces of gravity, Coriolis and centrifugal: inverse dynamics without acceleration.
  Status bias_forces(std::span<const double> q, std::span<const double> v, std::span<double> h) noexcept;
  /// X (nbody, 4, 4) row-major ← placements of all bodies in the world.
  Status body_placements(std::span<const double> q, std::span<double> X) noexcept;
  /// J (6, nv) row-major: [velocity of a point of a body; angular velocity], world axes; point in body coordinates.
  Status point_jacobian(std::span<const double> q, int body, const Vec3& point, std::span<double> J) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How constrained dynamics are solved.
enum class DynamicsMethod : int {
  automatic,  ///< lcaba; where its certificate says that it failed, kkt
  lcaba,      ///< loop-constrained articulated bodies: O(n + m) an iteration
  kkt,        ///< one dense factor of both equations: O((n + m)³), the most robust
};

/// What an answer is, computed from the two equations by whatever method it was found.
enum class DynamicsOutcome : int {
  solved,                    ///< both equations hold
  infeasible_least_squares,  ///< rows contradict each other: the least-squares answer
  iteration_limit,           ///< not yet
  stalled,                   ///< rounding keeps the residual from decreasing
  redundant,                 ///< rows depend on each other but for how exactly the mechanism is drawn, and hold to that
};
[[nodiscard]] DELASSUS_API const char* describe(DynamicsOutcome outcome) noexcept;

/// True in a condition if both equations hold.
struct DynamicsReport {
  Status status = Status::failed;  ///< ok: there are accelerations and forces, whatever the outcome
  DynamicsOutcome outcome = DynamicsOutcome::stalled;
  int iterations = 0;        ///< proximal iterations
  double constraints = 0;    ///< largest |J v̇ + C λ + γ|, each row's over the scale of its equation
  double dynamics = 0;       ///< largest |M v̇ + h − τ − Jᵀ λ|, each joint's over the scale of its equation
  double primal = 0;         ///< largest |J v̇ + C λ + γ| [m/s² or rad/s²]
  double dual = 0;           ///< largest change of J v̇ in the last iteration [m/s² or rad/s²]
  double least_squares = 0;  ///< largest gradient of the least-squares problem [1 / mu]
  bool repaired = false;     ///< the answer is kkt's
  explicit operator bool() const noexcept { return status == Status::ok && outcome == DynamicsOutcome::solved; }
};

struct DynamicsOptions {
  DynamicsMethod method = DynamicsMethod::automatic;
  double tolerance = 1e-12;  ///< of `constraints` and `dynamics` in the report
  int max_iterations = 20;   ///< proximal iterations
  double compliance = 0;     ///< C of all rows
  /// 1 / ε of the proximal iterations, one number per row (m,). Empty: ε is a small part of G's own diagonal; saved
  /// constraints bring it along from Python, so that results are the same bits.
  std::vector<double> mu{};
};

/// A state and what acts in it; empty spans but those of q and v are none.
struct DynamicsInput {
  std::span<const double> q;           ///< (nq,)
  std::span<const double> v;           ///< (nv,)
  std::span<const double> tau{};       ///< (nv,) forces on joints [N m or N]
  std::span<const double> external{};  ///< (nbody, 6) force and torque at centres of mass, world axes
  std::span<const double> bias{};      ///< (m,) γ instead of that of the constraints [m/s² or rad/s²]
};

/// Accelerations and constraint forces. Forces are not restricted to cones or boxes: contacts also pull; with friction
/// use a ContactSolver. One thread at a time.
class DELASSUS_API ConstrainedDynamics {
 public:
  /// Takes all memory, also that of kkt (8 (n + m)² bytes for up to 2,000 velocities and rows). @throws ArgumentError
  explicit ConstrainedDynamics(const Constraints& constraints, const DynamicsOptions& options = {});
  ConstrainedDynamics(ConstrainedDynamics&&) noexcept;
  ConstrainedDynamics& operator=(ConstrainedDynamics&&) noexcept;
  ~ConstrainedDynamics();

  [[nodiscard]] int rows() const noexcept;
  [[nodiscard]] const Model& model() const noexcept;

  /// acceleration (nv,) ← v̇, forces (m,) ← λ. With `warm_start`, forces are what the iterations start from.
  DynamicsReport solve(const DynamicsInput& input, std::span<double> acceleration, std::span<double> forces,
                       bool warm_start = false) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
