// Models: a tree of bodies and joints, constant and shared by all computations.
//
// SI units. Coordinates q (nq,) and velocities v (nv,) are MuJoCo's qpos and qvel:
//
//   hinge, slide   q 1, v 1    angle [rad] or displacement [m]
//   ball           q 4, v 3    unit quaternion (w, x, y, z); angular velocity in body axes [rad/s]
//   free           q 7, v 6    position in the world, then unit quaternion; linear velocity of the body's origin in
//                              world axes, then angular velocity in body axes
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "delassus/status.hpp"

namespace delassus {
inline namespace v0 {

struct ModelData;  // the content of a Model
class Constraints;

enum class JointType : int { hinge, slide, ball, free };

/// A rigid body.
struct Body {
  std::string name;
  std::string parent = "world";
  Vec3 position{};                  ///< position of its frame in its parent's, joints at their reference [m]
  Quat quaternion{1, 0, 0, 0};      ///< orientation of its frame in its parent's
  double mass = 0;                  ///< [kg]
  Vec3 com{};                       ///< centre of mass, body coordinates [m]
  std::array<double, 6> inertia{};  ///< xx, yy, zz, xy, xz, yz about the centre of mass, body axes [kg m²]
};

/// A joint between a body and its parent; several on one body act in the order given; a body without any is fixed.
struct JointDescription {
  std::string name;
  JointType type = JointType::hinge;
  std::string body;
  Vec3 axis{0, 0, 1};    ///< axis of a hinge or slide, body axes; any nonzero length
  Vec3 position{};       ///< anchor, body coordinates [m]
  double reference = 0;  ///< coordinate of a hinge [rad] or slide [m] at which the body has its described pose
  std::array<double, 2> range{-std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::infinity()};  ///< bounds of the coordinate [rad or m]
  double armature = 0;                       ///< added to the diagonal of the mass matrix [kg m² or kg]
  double friction_loss = 0;                  ///< dry friction [N m or N], the default of JointFriction
  double damping = 0;                        ///< damping in a World [N m s/rad or N s/m]
  double stiffness = 0;                      ///< spring of a hinge or slide in a World [N m/rad or N/m]
  std::optional<double> spring_reference{};  ///< coordinate at which it is relaxed [rad or m]; by default `reference`
};

/// A named state.
struct Keyframe {
  std::string name;
  std::vector<double> q;  ///< (nq,)
  std::vector<double> v;  ///< (nv,)
};

/// Description of a model. Bodies and joints in any order.
struct ModelDescription {
  std::string name = "model";
  std::vector<Body> bodies;  ///< bodies without the world
  std::vector<JointDescription> joints;
  Vec3 gravity{0, 0, -9.81};  ///< [m/s²], world axes
};

/// A mechanism. Immutable; copies share their content, and any number of threads may use it.
class DELASSUS_API Model {
 public:
  /// Checks the description. Bodies are numbered depth first: parents before children, siblings in the order given.
  /// @throws ModelError, ArgumentError
  explicit Model(const ModelDescription& description);

  /// Reads a file written by `delassus.save_model(path, model)` of the Python package, for example from a URDF or MJCF.
  /// Numbers are exactly those in Python.
  /// @throws LoadError, ModelError
  static Model load(const std::string& path);

  [[nodiscard]] int nq() const noexcept;     ///< number of coordinates
  [[nodiscard]] int nv() const noexcept;     ///< number of velocities
  [[nodiscard]] int nbody() const noexcept;  ///< number of bodies, including the world as number 0
  [[nodiscard]] int njoint() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;

  /// Number of a body; "world" is 0. @throws ArgumentError naming the available bodies
  [[nodiscard]] int body_index(std::string_view name) const;
  /// Number of a joint. @throws ArgumentError naming the available joints
  [[nodiscard]] int joint_index(std::string_view name) const;
  /// @throws ArgumentError for a number that no body has
  [[nodiscard]] const std::string& body_name(int body) const;
  /// A body as described, by its number, not 0. @throws ArgumentError
  [[nodiscard]] const Body& body(int body) const;
  /// @throws ArgumentError for a number that no joint has
  [[nodiscard]] const JointDescription& joint(int joint) const;
  /// Index in q of a joint's first coordinate. @throws ArgumentError
  [[nodiscard]] int joint_q(int joint) const;
  /// Index in v of a joint's first velocity. @throws ArgumentError
  [[nodiscard]] int joint_v(int joint) const;

  /// (nq,) the configuration of the description.
  [[nodiscard]] std::vector<double> neutral() const;
  /// Keyframes of the file that the model was loaded from.
  [[nodiscard]] const std::vector<Keyframe>& keyframes() const noexcept;
  /// @throws ArgumentError naming the available keyframes
  [[nodiscard]] const Keyframe& keyframe(std::string_view name) const;
  /// Constraints saved with the model; none for a model made from a description.
  [[nodiscard]] Constraints saved_constraints() const;

  /// out ← q ⊕ dt v. q, out (nq,), v (nv,); out may be q. Quaternions are normalized.
  Status integrate(std::span<const double> q, std::span<const double> v, double dt,
                   std::span<double> out) const noexcept;
  /// out (nv,) ← to ⊖ from: the shortest velocity that carries `from` to `to`, both (nq,), in one second.
  Status difference(std::span<const double> from, std::span<const double> to, std::span<double> out) const noexcept;

  [[nodiscard]] const ModelData& data() const noexcept { return *data_; }
  [[nodiscard]] const std::shared_ptr<const ModelData>& shared() const noexcept { return data_; }

 private:
  explicit Model(std::shared_ptr<const ModelData> data);
  std::shared_ptr<const ModelData> data_;
};

}  // namespace v0
}  // namespace delassus
