#include "simulator/free_motion.h"

#include <cmath>

#include "dynamics/rnea.h"

namespace delassus {

namespace {

constexpr double sticking_speed = 1e-3;  // dry friction may hold what is slower [m/s or rad/s]

}  // namespace

FreeMotion::FreeMotion(const WorldDescription& world, LoopMidpoint& loops, const FreeBodies& bodies)
    : world_(world), loops_(loops), bodies_(bodies), motions_(link_slots<double>(world.model)) {
  for (auto* x : {&tau_, &acceleration_, &first_, &half_, &free_}) x->assign(std::size_t(world.model.nv), 0.0);
}

const std::vector<double>& FreeMotion::find(RowSystem& s, const ActiveRows& rows, const IslandState& state,
                                            const std::vector<double>& error, ImpulseResponse& response,
                                            SpanInertia& inertia) {
  const double dt = world_.options.timestep;
  const std::vector<double>& v = state.v;
  const bool has_loops = loops_.rows() > 0;
  const auto first_order = [&] {
    for (std::size_t k = 0; k < v.size(); ++k) free_[k] = v[k] + dt * acceleration_[k];
  };
  const bool bends = world_.options.midpoint && !bodies_.all();
  held_ = bends && may_be_held(s, rows, error, v.data());
  // h at v; that of free bodies of one link is their weight alone
  for (std::size_t k = 0; k < v.size(); ++k) half_[k] = bodies_.owns(k) ? 0.0 : v[k];
  accelerate(s, state, half_.data(), held_ ? Forces::inertial : Forces::all);
  inertia.resist(acceleration_);
  if (has_loops) loops_.begin(s, state.q.data(), v.data(), motions_);
  first_ = acceleration_;
  // h at half of the step's velocity
  if (bends) {
    for (std::size_t k = 0; k < v.size(); ++k)
      if (!bodies_.owns(k)) half_[k] += 0.5 * dt * acceleration_[k];
    if (has_loops) {
      first_order();
      loops_.bend(s, response, free_, half_);
    }
    accelerate(s, state, half_.data(), Forces::all);
    inertia.resist(acceleration_);
    if (has_loops) loops_.revise(s, state.q.data(), half_.data(), motions_);
  }
  first_order();
  return free_;
}

// Something touches, is at the end of its range, or has dry friction and stands still.
bool FreeMotion::may_be_held(RowSystem& s, const ActiveRows& rows, const std::vector<double>& error, const double* v) {
  bool held = false;
  for_each_push(s, rows, [&](std::size_t r) { held = held || error[r] <= 2 * world_.options.slop; });
  const auto rubs = [&](int row) {
    return row < s.first_limit || span_row_kind(rows.span_rows[std::size_t(row - s.first_span)]) == span_friction;
  };
  rates_.clear();
  for (int r = loops_.rows(); r < s.first_contact && !held; ++r) {
    if ((r >= s.first_limit && r < s.first_span) || !rubs(r)) continue;
    if (rates_.empty()) rates_.resize(s.rows()), s.G->jacobian(v, 1, rates_.data());
    held = std::abs(rates_[std::size_t(r)]) <= sticking_speed;
  }
  return held;
}

// M̂⁻¹ (τ − h(q, v)), or M̂⁻¹ (h(q, 0) − h(q, v)).
void FreeMotion::accelerate(RowSystem& s, const IslandState& state, const double* v, Forces forces) {
  const auto& m = world_.model;
  const auto& w = s.G->placement();
  motions(m, w, motions_, v, static_cast<const double*>(nullptr), Vec3<double>{});
  const bool all = forces == Forces::all;
  inertial_forces(w, motions_, all ? m.gravity * -1.0 : Vec3<double>{});
  if (all && state.has_external) subtract_external(m, w, motions_, state.external.data());
  joint_forces(m, w, motions_, static_cast<const double*>(nullptr), tau_.data());
  for (std::size_t k = 0; k < tau_.size(); ++k) tau_[k] = (all ? state.forces[k] : 0.0) - tau_[k];
  s.G->mass_inverse(tau_.data(), 1, acceleration_.data());
}

}  // namespace delassus
