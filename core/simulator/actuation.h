// Joint forces: those that the user gives, springs, dampers and motors.
//
//   forces = τ − K (q + dt v − q₀) − D v + motors
//
// Springs, dampers and servos are implicit, at the end of the step: the part of their forces that is linear in v⁺ is in
// M̂. The part computed here is at the start of the step, with springs and motor lengths at q + dt v.
#pragma once

#include <vector>

#include "simulator/description.h"

namespace delassus {

// tau: (nv,) forces on joints, control: of actuators; null for none. dt: 0 for the forces at q and v themselves.
// motor_forces: room for a number per velocity.
void find_joint_forces(const WorldDescription& world, double dt, const double* q, const double* v, const double* tau,
                       const double* control, std::vector<double>& motor_forces, std::vector<double>& forces);

// The same to first order, while no motor reaches or leaves a bound: every force follows the coordinate and the
// velocity of its own joint, and controls.
struct ForceRates {
  std::vector<double> by_q, by_v;  // per velocity
  struct ByControl {
    int velocity, control;
    double rate;
  };
  std::vector<ByControl> by_control;
};
void find_force_rates(const WorldDescription& world, double dt, const double* q, const double* v, const double* control,
                      std::vector<double>& motor_forces, ForceRates& rates);

}  // namespace delassus
