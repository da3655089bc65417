#include "simulator/actuation.h"

#include <algorithm>

namespace delassus {

namespace {

// Of a motor, before its own bounds.
double motor_force(const Motor& a, double dt, const double* q, const double* v, const double* control) {
  const double u = std::clamp(control ? control[a.control] : 0.0, a.control_range[0], a.control_range[1]);
  const double speed = v[a.velocity];
  const double length = a.coordinate < 0 ? 0 : a.gear * (q[a.coordinate] + dt * speed);
  return a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * a.gear * speed;
}

// Of each velocity, all its motors together, without bounds of these together.
void find_unbounded_forces(const WorldDescription& world, double dt, const double* q, const double* v,
                           const double* control, std::vector<double>& forces) {
  std::fill(forces.begin(), forces.end(), 0.0);
  for (const Motor& a : world.motors)
    forces[std::size_t(a.velocity)] +=
        a.gear * std::clamp(motor_force(a, dt, q, v, control), a.force_range[0], a.force_range[1]);
}

// Of each velocity, all its motors together, within their bounds.
void find_motor_forces(const WorldDescription& world, double dt, const double* q, const double* v,
                       const double* control, std::vector<double>& forces) {
  find_unbounded_forces(world, dt, q, v, control, forces);
  for (std::size_t k = 0; k < world.motor_ranges.size(); ++k)
    forces[k] = std::clamp(forces[k], world.motor_ranges[k][0], world.motor_ranges[k][1]);
}

}  // namespace

void find_joint_forces(const WorldDescription& world, double dt, const double* q, const double* v, const double* tau,
                       const double* control, std::vector<double>& motor_forces, std::vector<double>& forces) {
  find_motor_forces(world, dt, q, v, control, motor_forces);
  for (std::size_t k = 0; k < forces.size(); ++k) {
    // of a ball's spring MuJoCo computes the force at q (mujoco_mirror.h)
    const int at = world.spring_coordinate[k];
    const double stretch = at < 0 ? 0 : q[at] - world.spring_rest[std::size_t(at)];
    const double spring = world.stiffness[k] * (stretch + dt * v[k]);
    forces[k] = (tau ? tau[k] : 0.0) - spring - world.damping[k] * v[k] + motor_forces[k];
  }
}

void find_force_rates(const WorldDescription& world, double dt, const double* q, const double* v, const double* control,
                      std::vector<double>& motor_forces, ForceRates& rates) {
  const std::size_t n = motor_forces.size();
  rates.by_q.assign(n, 0.0);
  rates.by_v.assign(n, 0.0);
  rates.by_control.clear();
  for (std::size_t k = 0; k < n; ++k) {
    if (world.spring_coordinate[k] >= 0) rates.by_q[k] -= world.stiffness[k];
    rates.by_v[k] -= dt * world.stiffness[k] + world.damping[k];
  }
  find_unbounded_forces(world, dt, q, v, control, motor_forces);
  const auto within = [](double x, const std::array<double, 2>& range) { return x > range[0] && x < range[1]; };
  for (const Motor& a : world.motors) {
    const std::size_t k = std::size_t(a.velocity);
    if (!within(motor_force(a, dt, q, v, control), a.force_range)) continue;
    if (!world.motor_ranges.empty() && !within(motor_forces[k], world.motor_ranges[k])) continue;
    const double along = a.coordinate < 0 ? 0 : a.gear * a.gear * a.bias[1];
    rates.by_q[k] += along;
    rates.by_v[k] += dt * along + a.gear * a.gear * a.bias[2];
    if (within(control ? control[a.control] : 0.0, a.control_range))
      rates.by_control.push_back({a.velocity, a.control, a.gear * a.gain});
  }
}

}  // namespace delassus
