#include "simulator/actuation.h"

#include <algorithm>

namespace delassus {

namespace {

// Of each velocity, all its motors together, within their bounds.
void find_motor_forces(const WorldDescription& world, double dt, const double* q, const double* v,
                       const double* control, std::vector<double>& forces) {
  std::fill(forces.begin(), forces.end(), 0.0);
  for (const Motor& a : world.motors) {
    const double u = std::clamp(control ? control[a.control] : 0.0, a.control_range[0], a.control_range[1]);
    const double speed = v[a.velocity];
    const double length = a.coordinate < 0 ? 0 : a.gear * (q[a.coordinate] + dt * speed);
    forces[std::size_t(a.velocity)] +=
        a.gear * std::clamp(a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * a.gear * speed, a.force_range[0],
                            a.force_range[1]);
  }
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

}  // namespace delassus
