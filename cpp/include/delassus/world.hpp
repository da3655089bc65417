// A world of rigid bodies that touch, stepped in time as the Simulator of the Python package: loops, friction, limits,
// springs and contacts are solved for at the level of velocities, by Coulomb's law and without compliance.
//
// Collision detection is the caller's: a function that lists the points where shapes touch. With MuJoCo that is
// mj_kinematics, mj_collision and a copy of mjData's contacts; Python's Simulator does the same.
#pragma once

#include <functional>

#include "delassus/contacts.hpp"

namespace delassus {
inline namespace v0 {

/// Something that touches: contacts name it, so that points are recognized from step to step.
struct Shape {
  std::string body = "world";
  double restitution = 0;  ///< e from 0 to 1; a contact has the larger of its two
};

/// A point where two shapes touch, or are about to. Points of one pair of shapes come one after another; of more than
/// four, the four that span the patch are used.
struct WorldContact {
  int shape = 0, other = 0;       ///< by their numbers in WorldOptions::shapes
  Vec3 position{};                ///< in the world, halfway between the surfaces [m]
  Vec3 normal{0, 0, 1};           ///< unit vector from other to shape, world axes
  double gap = 0;                 ///< between the surfaces; negative: penetration [m]
  double friction = 0.8;          ///< µ
  double torsional_friction = 0;  ///< torque about the normal over normal force [m]
  double rolling_friction = 0;    ///< torque about the tangents over normal force [m]
};

/// Where a contact finder puts what it finds: room for WorldOptions::max_contacts.
class DELASSUS_API ContactList {
 public:
  explicit ContactList(std::span<WorldContact> room) noexcept;
  /// False: there is no room for it, and the step will report Status::capacity.
  bool add(const WorldContact& contact) noexcept;
  [[nodiscard]] std::span<const WorldContact> contacts() const noexcept;
  [[nodiscard]] bool overflowed() const noexcept;

 private:
  std::span<WorldContact> room_;
  std::size_t count_ = 0;
  bool overflowed_ = false;
};

/// Lists contacts for placements X (nbody, 4, 4) of the bodies in the world, row-major. If it throws, the step fails
/// and the state stays.
using ContactFinder = std::function<void(std::span<const double> X, ContactList& contacts)>;

/// What is wrong after a step although its velocities were solved for; the later ones are worse.
enum class StepFlaw : int { none, penetrating, limit_violated, open_loops, tunnelling };
[[nodiscard]] DELASSUS_API const char* describe(StepFlaw flaw) noexcept;

/// True in a condition if velocities were solved for and nothing is wrong with positions.
struct StepReport {
  Status status = Status::failed;  ///< ok: the step was made; else the state stays as it was
  ContactOutcome outcome = ContactOutcome::stalled;
  StepFlaw flaw = StepFlaw::none;
  int iterations = 0;      ///< of the contact solver, the most of any island
  int islands = 0;         ///< problems that were solved
  int contacts = 0;        ///< points that were there
  double residual = 0;     ///< natural residual [m/s]
  double penetration = 0;  ///< before the step [m]
  double loop_error = 0;   ///< after the step [m or rad]
  explicit operator bool() const noexcept {
    return status == Status::ok && outcome == ContactOutcome::solved && flaw == StepFlaw::none;
  }
};

/// What a contact bore in the last step.
struct ContactForce {
  int shape, other;
  Vec3 position;  ///< world [m]
  Vec3 force;     ///< on `shape`, world axes [N]; the opposite one is on `other`
};

struct WorldOptions {
  double timestep = 1e-3;  ///< [s]
  std::vector<Shape> shapes{};
  int max_contacts = 1000;
  double tolerance = 1e-6;     ///< of the contact solver [m/s]
  int max_iterations = 2000;   ///< of the contact solver
  double time_limit = 0;       ///< of the contact solver on an island [s]; 0: none
  double bounce_speed = 0.05;  ///< contacts that approach more slowly do not bounce [m/s]
  double slop = 1e-5;          ///< gap, and penetration, that is taken for touching [m]
};

/// A world. Joint ranges, friction losses, damping and springs of the model act by themselves. One thread at a time.
///
/// A step is noexcept. It takes memory only where bodies touch in a combination that is not among the latest ones: a
/// new elimination is planned then.
class DELASSUS_API World {
 public:
  /// @param loops constraints that always hold; those of points that touch and of joint limits are refused, since the
  ///     contact finder and the model's joint ranges give these
  /// @throws ArgumentError
  explicit World(const Constraints& loops, ContactFinder find_contacts = {}, const WorldOptions& options = {});
  explicit World(const Model& model, ContactFinder find_contacts = {}, const WorldOptions& options = {});
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] const Model& model() const noexcept;
  [[nodiscard]] std::span<const double> q() const noexcept;  ///< (nq,), at first neutral
  [[nodiscard]] std::span<const double> v() const noexcept;  ///< (nv,), at first zero
  [[nodiscard]] double time() const noexcept;                ///< [s]
  /// Goes to another state at time 0; what contacts bore is forgotten.
  Status set_state(std::span<const double> q, std::span<const double> v) noexcept;

  /// One time step with forces on joints tau (nv,) [N m or N] and on bodies external (nbody, 6), force and torque at
  /// centres of mass, world axes; empty spans are none.
  StepReport step(std::span<const double> tau = {}, std::span<const double> external = {}) noexcept;

  /// Contacts of the last step, written from the first place on; returns how many there are, also where `out` has room
  /// for fewer.
  int contact_forces(std::span<ContactForce> out) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace delassus
