// A world of rigid bodies in contact, stepped in time like Python's Simulator: loops, friction, limits,
// springs and contacts are solved at the velocity level, with Coulomb's law and without compliance.
//
// Collision detection is provided by the caller: a function that lists the contact points. With MuJoCo that is
// mj_kinematics, mj_collision and a copy of mjData's contacts; Python's Simulator does the same.
#pragma once

#include <functional>

#include "delassus/contacts.hpp"

namespace delassus {
inline namespace v0 {

/// A collision shape: contacts refer to it, so that points are recognized from step to step.
struct Shape {
  std::string body = "world";
  double restitution = 0;  ///< e from 0 to 1; a contact has the larger of its two
};

/// A point where two shapes touch, or are about to. Points of one pair of shapes must be consecutive; of more than
/// four, the four that span the patch are used.
struct WorldContact {
  int shape = 0, other = 0;       ///< indices in WorldOptions::shapes
  Vec3 position{};                ///< position in the world, halfway between the surfaces [m]
  Vec3 normal{0, 0, 1};           ///< unit vector from other to shape, world axes
  double gap = 0;                 ///< distance between the surfaces; negative: penetration [m]
  double friction = 0.8;          ///< sliding coefficient µ
  double torsional_friction = 0;  ///< torque about the normal over normal force [m]
  double rolling_friction = 0;    ///< torque about the tangents over normal force [m]
};

/// Output of a contact finder: room for WorldOptions::max_contacts.
class DELASSUS_API ContactList {
 public:
  explicit ContactList(std::span<WorldContact> room) noexcept;
  /// False if there is no room, and the step will report Status::capacity.
  bool add(const WorldContact& contact) noexcept;
  [[nodiscard]] std::span<const WorldContact> contacts() const noexcept;
  [[nodiscard]] bool overflowed() const noexcept;

 private:
  std::span<WorldContact> room_;
  std::size_t count_ = 0;
  bool overflowed_ = false;
};

/// Lists contacts for placements X (nbody, 4, 4) of the bodies in the world, row-major. If it throws, the step fails
/// and the state does not change.
using ContactFinder = std::function<void(std::span<const double> X, ContactList& contacts)>;

/// Flaws after a step whose velocities were solved, in order of severity.
enum class StepFlaw : int { none, penetrating, limit_violated, open_loops, tunnelling };
[[nodiscard]] DELASSUS_API const char* describe(StepFlaw flaw) noexcept;

/// True in a condition if velocities were solved and positions have no flaw.
struct StepReport {
  Status status = Status::failed;  ///< ok: the step was made; else the state is unchanged
  ContactOutcome outcome = ContactOutcome::stalled;
  StepFlaw flaw = StepFlaw::none;
  int iterations = 0;      ///< iterations of the contact solver, maximum over the islands
  int islands = 0;         ///< number of problems solved
  int contacts = 0;        ///< number of contact points
  double residual = 0;     ///< natural residual [m/s]
  double penetration = 0;  ///< maximum before the step [m]
  double loop_error = 0;   ///< maximum after the step [m or rad]
  explicit operator bool() const noexcept {
    return status == Status::ok && outcome == ContactOutcome::solved && flaw == StepFlaw::none;
  }
};

/// Force of a contact in the last step.
struct ContactForce {
  int shape, other;
  Vec3 position;  ///< world [m]
  Vec3 force;     ///< on `shape`, world axes [N]; the opposite one is on `other`
};

struct WorldOptions {
  double timestep = 1e-3;  ///< [s]
  std::vector<Shape> shapes{};
  int max_contacts = 1000;
  double tolerance = 1e-6;     ///< tolerance of the contact solver [m/s]
  int max_iterations = 2000;   ///< maximum for the contact solver
  double time_limit = 0;       ///< time limit of the contact solver per island [s]; 0: none
  double bounce_speed = 0.05;  ///< contacts that approach more slowly do not bounce [m/s]
  double slop = 1e-5;          ///< gap or penetration up to which bodies count as touching [m]
};

/// A world. Joint ranges, friction losses, damping and springs of the model apply automatically. One thread at a time.
///
/// A step is noexcept. It allocates memory only if bodies touch in a combination that did not occur recently: a
/// new elimination is then planned.
class DELASSUS_API World {
 public:
  /// @param loops constraints that always hold; point contacts and joint limits are refused, since the
  ///     contact finder and the model's joint ranges provide these
  /// @throws ArgumentError
  explicit World(const Constraints& loops, ContactFinder find_contacts = {}, const WorldOptions& options = {});
  explicit World(const Model& model, ContactFinder find_contacts = {}, const WorldOptions& options = {});
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] const Model& model() const noexcept;
  [[nodiscard]] std::span<const double> q() const noexcept;  ///< (nq,), initially neutral
  [[nodiscard]] std::span<const double> v() const noexcept;  ///< (nv,), initially zero
  [[nodiscard]] double time() const noexcept;                ///< [s]
  /// Sets the state, at time 0, and discards contact forces.
  Status set_state(std::span<const double> q, std::span<const double> v) noexcept;

  /// One time step with joint forces tau (nv,) [N m or N] and wrenches on bodies external (nbody, 6), force and torque
  /// at centres of mass, world axes; empty spans are none.
  StepReport step(std::span<const double> tau = {}, std::span<const double> external = {}) noexcept;

  /// Contacts of the last step, written from index 0 on; returns their number, even if `out` has room
  /// for fewer.
  int contact_forces(std::span<ContactForce> out) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
