#include "worlds/parameters.h"

#include <algorithm>
#include <cmath>

namespace delassus {

ShapeBounds shape_bounds(ShapeKind kind, const double* size) {
  const double a = size[0], b = size[1], c = size[2];
  switch (kind) {
    case ShapeKind::sphere:
      return {a, {a, a, a}};
    case ShapeKind::capsule:
      return {a + b, {a, a, a + b}};
    case ShapeKind::cylinder:
      return {std::sqrt(a * a + b * b), {a, a, b}};
    case ShapeKind::ellipsoid:
      return {std::max(std::max(a, b), c), {a, b, c}};
    default:
      return {std::sqrt(a * a + b * b + c * c), {a, b, c}};
  }
}

void Engine::take(const ParameterSource& source, const ParameterRow& row) {
  WorldDescription& d = *description_;
  set_inertias(d.model, row[body_mass], row[body_com], row[body_inertia]);
  d.model.gravity = {row[gravity][0], row[gravity][1], row[gravity][2]};
  take_joints(source, row);
  d.options.restitution = 0;
  for (std::size_t g = 0; g < source.values[restitution].size(); ++g)
    d.options.restitution = std::max(d.options.restitution, row[restitution][g]);
  take_sizes(source, row[geom_size]);
  world.read_numbers();
  world.collider().set_surfaces(row[geom_friction], row[restitution]);
  if (world.mirror() != nullptr) take_weights(source, row);
}

// Springs, dampers, motors and dry friction, and their part of M̂ = M + dt D + dt² K.
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

// Sizes of shapes, and bounds as MuJoCo's compiler finds them: the radius of a ball around each, and half widths of a
// box. The latter tell how far a shape may move unseen.
void Engine::take_sizes(const ParameterSource& source, const double* sizes) {
  const auto& own = source.values[geom_size];
  if (sizes_.empty() && std::equal(own.begin(), own.end(), sizes)) return;
  const std::size_t n = source.shapes.size();
  sizes_.assign(sizes, sizes + 3 * n), radii_ = source.radii, boxes_ = source.boxes;
  for (std::size_t g = 0; g < n; ++g) {
    const double* const s = sizes + 3 * g;
    if (source.shapes[g] == ShapeKind::other || std::equal(s, s + 3, own.data() + 3 * g)) continue;
    const ShapeBounds bounds = shape_bounds(source.shapes[g], s);
    radii_[g] = bounds.radius;
    std::copy_n(bounds.half_widths.begin(), 3, boxes_.begin() + std::ptrdiff_t(6 * g + 3));
  }
  for (CollisionShape& shape : description_->shapes) {
    const std::size_t g = std::size_t(shape.geom);
    if (source.shapes[g] == ShapeKind::other) continue;
    shape.radius = radii_[g];
    shape.half_width = *std::min_element(boxes_.data() + 6 * g + 3, boxes_.data() + 6 * g + 6);
    shape.lever = source.shapes[g] == ShapeKind::sphere ? 0 : shape.radius;
  }
  const mujoco::ShapeSizes shapes{sizes_.data(), radii_.data(), boxes_.data()};
  world.collider().set_sizes(shapes);
  if (world.mirror() != nullptr) world.mirror()->set_sizes(shapes);
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
