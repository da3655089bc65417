// Parameters in which worlds of one mechanism may differ, and how an engine loads those of a world. A world with these
// parameters moves bit for bit like one built from a model that has them: the source file is compiled without fused
// multiply-add, since the model's numbers are computed without it too.
#pragma once

#include <array>
#include <vector>

#include "simulator/sensing.h"
#include "simulator/step_linearization.h"

namespace delassus {

enum Parameter : int {
  body_mass,            // (nbody,) [kg]
  body_com,             // (nbody, 3) centres of mass in body axes [m]
  body_inertia,         // (nbody, 9) about these, in body axes [kg m²]
  gravity,              // (3,) [m/s²]
  joint_damping,        // (njoint,)
  joint_stiffness,      // (njoint,)
  joint_armature,       // (njoint,)
  joint_friction_loss,  // (njoint,) [N or N m]
  actuator_gain,        // (actuators,)
  actuator_bias,        // (actuators, 3)
  geom_friction,        // (ngeom, 3) MuJoCo's: sliding, torsional, rolling
  restitution,          // (ngeom,)
  geom_size,            // (ngeom, 3) MuJoCo's: radius, half lengths [m]
  parameter_count
};

// Shapes whose bounds follow from their size; `other` keeps its own.
enum class ShapeKind : int { other, sphere, capsule, ellipsoid, cylinder, box };

// The radius of a ball around a shape, and half widths of a box, as MuJoCo's compiler has them.
struct ShapeBounds {
  double radius;
  std::array<double, 3> half_widths;
};
ShapeBounds shape_bounds(ShapeKind kind, const double* size);

// One world's; in the order of Parameter.
using ParameterRow = std::array<const double*, parameter_count>;

// The model's own, and which number is whose.
struct ParameterSource {
  std::array<std::vector<double>, parameter_count> values;
  std::vector<int> dof_joint;        // per velocity
  std::vector<int> motor_actuator;   // per motor of the description
  std::vector<int> mujoco_bodies;    // per body of MuJoCo's: its number here
  std::vector<int> mujoco_parents;   // per body of MuJoCo's: its parent there
  std::vector<ShapeKind> shapes;     // per geom
  std::vector<double> radii, boxes;  // per geom, (ngeom,) and (ngeom, 6): MuJoCo's bounds
};

// An engine, and the description that it looks at.
class Engine {
 public:
  Engine(const WorldDescription& description, const CollisionSource& collisions, const MirrorSource& mirror)
      : description_(std::make_shared<WorldDescription>(description)),
        world(description_, collisions, mirror, 1, {.all = 256, .unproven = 128}) {}

 private:
  std::shared_ptr<WorldDescription> description_;

 public:
  World world;

  // From now on it has these numbers.
  void take(const ParameterSource& source, const ParameterRow& row);
  std::size_t numbers = 0;  // which ones it has; 0: the model's

  std::unique_ptr<Sensing> sensing;  // null: nobody asked for sensors
  StepRecord record;                 // of the world whose sensors are read

  std::unique_ptr<StepLinearization> linearization;  // null: nobody asked for derivatives
  std::vector<double> friction_bar;                  // per contact: adjoints that nobody asks for

 private:
  void take_joints(const ParameterSource& source, const ParameterRow& row);
  void take_weights(const ParameterSource& source, const ParameterRow& row);
  void take_sizes(const ParameterSource& source, const double* sizes);

  std::vector<double> masses_, subtrees_, centers_;  // by MuJoCo's numbers of bodies
  std::vector<double> sizes_, radii_, boxes_;        // by its numbers of geoms; empty: always the model's
};

}  // namespace delassus
