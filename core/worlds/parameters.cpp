#include "worlds/parameters.h"

#include <algorithm>

namespace delassus {

void Engine::take(const ParameterSource& source, const ParameterRow& row) {
  WorldDescription& d = *description_;
  set_inertias(d.model, row[body_mass], row[body_com], row[body_inertia]);
  d.model.gravity = {row[gravity][0], row[gravity][1], row[gravity][2]};
  take_joints(source, row);
  d.options.restitution = 0;
  for (std::size_t g = 0; g < source.values[restitution].size(); ++g)
    d.options.restitution = std::max(d.options.restitution, row[restitution][g]);
  world.read_numbers();
  world.collider().set_surfaces(row[geom_friction], row[restitution]);
  if (world.mirror() != nullptr) take_weights(source, row);
}

// Springs, dampers, motors and dry friction, and what they add to M̂ = M + dt D + dt² K.
void Engine::take_joints(const ParameterSource& source, const ParameterRow& row) {
  WorldDescription& d = *description_;
  const double dt = d.options.timestep;
  for (std::size_t k = 0; k < d.model.armature.size(); ++k) {
    const std::size_t j = std::size_t(source.dof_joint[k]);
    d.damping[k] = row[joint_damping][j], d.stiffness[k] = row[joint_stiffness][j];
    d.model.armature[k] = row[joint_armature][j] + dt * d.damping[k] + dt * dt * d.stiffness[k];
  }
  for (std::size_t i = 0; i < d.motors.size(); ++i) {
    Motor& motor = d.motors[i];
    const std::size_t a = std::size_t(source.motor_actuator[i]);
    motor.gain = row[actuator_gain][a];
    std::copy_n(row[actuator_bias] + 3 * a, 3, motor.bias.begin());
    d.model.armature[std::size_t(motor.velocity)] -=
        motor.gear * motor.gear * (dt * std::min(motor.bias[2], 0.0) + dt * dt * std::min(motor.bias[1], 0.0));
  }
  std::size_t r = 0;
  for (const auto& friction : d.friction)
    for (const int velocity : friction.joints)
      d.friction_loss[r++] = row[joint_friction_loss][std::size_t(source.dof_joint[std::size_t(velocity)])];
}

// What MuJoCo's gravity compensation acts on.
void Engine::take_weights(const ParameterSource& source, const ParameterRow& row) {
  const std::size_t n = source.mujoco_bodies.size();
  masses_.resize(n), subtrees_.resize(n), centers_.resize(3 * n);
  for (std::size_t b = 0; b < n; ++b) {
    const std::size_t own = std::size_t(source.mujoco_bodies[b]);
    masses_[b] = subtrees_[b] = row[body_mass][own];
    std::copy_n(row[body_com] + 3 * own, 3, centers_.data() + 3 * b);
  }
  for (std::size_t b = n; b-- > 1;) subtrees_[std::size_t(source.mujoco_parents[b])] += subtrees_[b];
  const auto& own = source.values[body_com];
  const bool moved = !std::equal(own.begin(), own.end(), row[body_com]);
  world.mirror()->set_weights(row[gravity], masses_.data(), subtrees_.data(), centers_.data(), moved);
}

}  // namespace delassus
