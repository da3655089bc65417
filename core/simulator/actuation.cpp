#include "simulator/actuation.h"

#include <algorithm>

namespace delassus {

void find_joint_forces(const WorldDescription& world, const double* q, const double* v, const double* tau,
                       const double* control, std::vector<double>& forces) {
  const double dt = world.options.timestep;
  for (std::size_t k = 0; k < forces.size(); ++k) {
    const int at = world.spring_coordinate[k];
    const double spring = at < 0 ? 0 : world.stiffness[k] * (q[at] + dt * v[k] - world.spring_rest[std::size_t(at)]);
    forces[k] = (tau ? tau[k] : 0.0) - spring - world.damping[k] * v[k];
  }
  for (std::size_t k = 0; k < world.motors.size(); ++k) {
    const Motor& a = world.motors[k];
    const double u = std::clamp(control ? control[k] : 0.0, a.control_range[0], a.control_range[1]);
    const double speed = v[a.velocity];
    const double length = a.coordinate < 0 ? 0 : a.gear * (q[a.coordinate] + dt * speed);
    forces[std::size_t(a.velocity)] +=
        a.gear * std::clamp(a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * a.gear * speed, a.force_range[0],
                            a.force_range[1]);
  }
}

}  // namespace delassus
