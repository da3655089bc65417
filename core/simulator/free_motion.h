// Velocities at the end of the step without constraint forces:
//
//   v_f = v + dt M̂⁻¹ (τ − h(q, v½))          τ: forces on joints, of springs, dampers and motors too
//
// with h at half of the step's velocity: if h were taken at v, spinning bodies would gain energy.
//
//   v½ = v + ½ dt M̂⁻¹ (τ − h(q, v))            where nothing touches
//   v½ = v + ½ dt M̂⁻¹ (h(q, 0) − h(q, v))      where contacts, ends of limits or dry friction may hold the mechanism
//
// In the second case gravity and joint forces are left to those that hold them. The free acceleration of a leg on the
// floor is that of a leg that is driven through the floor: with it, robots at rest would feel Coriolis forces.
//
// Both velocities include the inertia of tendons (span_inertia.h); v½ of trees with loops includes the loop impulses
// (loop_midpoint.h). Free single-link bodies rotate after the impulses, by a rule of their own (free_bodies.h), so that
// for them h is only the weight.
#pragma once

#include <vector>

#include "simulator/free_bodies.h"
#include "simulator/loop_midpoint.h"
#include "simulator/span_inertia.h"

namespace delassus {

// State of an island and what acts on it.
struct IslandState {
  std::vector<double> q, v;      // of trees in loops q is that of the middle
  std::vector<double> forces;    // per velocity: τ
  std::vector<double> external;  // (nbody, 6) [force; torque] in world axes at its centre of mass
  bool has_external = false;
};

class FreeMotion {
 public:
  FreeMotion(const WorldDescription& world, LoopMidpoint& loops, const FreeBodies& bodies);

  // v_f, after G was updated at the state's q; stays until the next call. error: per row, as `find_row_errors` has it.
  const std::vector<double>& find(RowSystem& s, const ActiveRows& rows, const IslandState& state,
                                  const std::vector<double>& error, ImpulseResponse& response, SpanInertia& inertia);
  const std::vector<double>& velocity() const { return free_; }
  // The velocity at which h was taken, v½, and the acceleration that led to it, without impulses of loops; of free
  // bodies of one link zero, and whatever it may be. Where there was no middle, v and nothing.
  const std::vector<double>& middle() const { return half_; }
  bool is_held() const { return held_; }  // the second rule was used
  const std::vector<double>& first_acceleration() const { return first_; }

 private:
  bool may_be_held(RowSystem& s, const ActiveRows& rows, const std::vector<double>& error, const double* v);
  enum class Forces { all, inertial };
  void accelerate(RowSystem& s, const IslandState& state, const double* v, Forces forces);

  const WorldDescription& world_;
  LoopMidpoint& loops_;
  const FreeBodies& bodies_;
  bool held_ = false;
  Motions<double> motions_;
  std::vector<double> tau_, acceleration_, first_, half_, free_;  // per velocity
  std::vector<double> rates_;                                     // per row: J v, where there is dry friction
};

}  // namespace delassus
