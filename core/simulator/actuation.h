// Forces on joints: what the user gives, springs, dampers and motors.
//
//   forces = τ − K (q + dt v − q₀) − D v + motors
//
// Springs, dampers and servos act at the end of the step: what of their forces grows with v⁺ is in M̂, and what is here
// is at the start of the step, springs and lengths of motors at q + dt v.
#pragma once

#include <vector>

#include "simulator/description.h"

namespace delassus {

// tau: (nv,) forces on joints, control: of actuators; null for none. dt: 0 for the forces at q and v themselves.
// motor_forces: room for a number per velocity.
void find_joint_forces(const WorldDescription& world, double dt, const double* q, const double* v, const double* tau,
                       const double* control, std::vector<double>& motor_forces, std::vector<double>& forces);

}  // namespace delassus
