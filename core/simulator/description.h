// Description of a world: the mechanism, which is constant during a simulation, and the options of its steps.
#pragma once

#include <array>
#include <vector>

#include "constraints/compiled.h"
#include "simulator/step_options.h"

namespace delassus {

// Ends of a joint's range.
struct JointLimit {
  int coordinate = 0, velocity = 0;
  double lower = 0, upper = 0;  // [m or rad]
  double margin = 0;            // how far before its ends of the file these are
};

// A number x(q) with a range, dry friction, inertia or a value to keep, and its rate ẋ = Σ c_k(q) ν_k: the length of a
// tendon, a relation between the lengths of two, the angle by which a ball joint is turned.
struct Span {
  enum Kind : int { ball, tendon, relation };
  int kind = tendon;
  int coordinate = 0;  // ball: where its quaternion starts
  std::array<int, 2> tendon_id{-1, -1};
  std::array<double, 2> rest{};            // relation: lengths from which both are measured
  std::array<double, 5> polynomial{};      // relation: x = ℓ₁ − p(ℓ₂)
  std::vector<int> velocities;             // of its rate
  std::array<std::vector<int>, 2> places;  // per velocity: where MuJoCo's tendon Jacobian has its number, −1: zero
  double lower = 0, upper = 0;             // of x; without an end ±infinity; relation: none
  double friction_loss = 0;                // [N or N m]
  double armature = 0;                     // a of the kinetic energy ½ a ẋ² [kg or kg m²]
};

// A motor on a joint. With u its control in its range, ℓ and ℓ̇ its length and speed, gear times those of the joint:
//
//   force on the joint = gear · clamp(gain u + bias₀ + bias₁ ℓ + bias₂ ℓ̇)
struct Motor {
  int control = 0;                    // which of the controls
  int coordinate = -1, velocity = 0;  // −1: of a joint without a coordinate of its own, ℓ = 0
  double gear = 1, gain = 1;
  std::array<double, 3> bias{};
  std::array<double, 2> control_range{}, force_range{};
};

// A shape that may go through others.
struct CollisionShape {
  int body = 0;
  double half_width = 0;  // half of its least extent [m]
  double radius = 0;      // of a ball around it [m]
  double lever = 0;       // from its centre to the farthest point that turning moves [m]
  Vec3<double> center;    // in its body
  int geom = 0;           // by MuJoCo's numbers
};

// A body that is fixed to one that a user moves (mocap.h), or is that one.
struct MocapBody {
  int body = 0, mocap = 0;
  Pose<double> relative{};  // in that one
};

struct WorldDescription {
  Model<double> model;  // its armature holds that of M̂, springs, dampers and servos included
  std::vector<ConstraintDescription> loops, friction;
  std::vector<double> friction_loss;       // per row of `friction` [N or N m]
  std::vector<double> stiffness, damping;  // per velocity
  std::vector<double> spring_rest;         // per coordinate
  std::vector<int> spring_coordinate;      // per velocity: the coordinate of its spring, else −1
  std::vector<JointLimit> limits;
  std::vector<Span> spans;
  std::vector<MocapBody> mocap_bodies;
  std::vector<Motor> motors;
  std::vector<std::array<double, 2>> motor_ranges;  // per velocity: bounds of all its motors together; empty: none
  std::vector<CollisionShape> shapes;               // but planes, through which nothing passes unseen
  double contact_reach = 0;                         // gap below which a contact is seen [m]
  StepOptions options;
};

}  // namespace delassus
