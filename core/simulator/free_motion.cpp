#include "simulator/free_motion.h"

#include "dynamics/rnea.h"

namespace delassus {

FreeMotion::FreeMotion(const WorldDescription& world, LoopMidpoint& loops, const FreeBodies& bodies)
    : world_(world), loops_(loops), bodies_(bodies), motions_(link_slots<double>(world.model)) {
  for (auto* x : {&tau_, &acceleration_, &first_, &half_, &free_}) x->assign(std::size_t(world.model.nv), 0.0);
}

const std::vector<double>& FreeMotion::find(RowSystem& s, const IslandState& state, ImpulseResponse& response,
                                            SpanInertia& inertia) {
  const double dt = world_.options.timestep;
  const std::vector<double>& v = state.v;
  const bool has_loops = loops_.rows() > 0;
  const auto first_order = [&] {
    for (std::size_t k = 0; k < v.size(); ++k) free_[k] = v[k] + dt * acceleration_[k];
  };
  // h at v; that of free bodies of one link is their weight alone
  for (std::size_t k = 0; k < v.size(); ++k) half_[k] = bodies_.owns(k) ? 0.0 : v[k];
  accelerate(s, state, half_.data());
  inertia.resist(acceleration_);
  if (has_loops) loops_.begin(s, state.q.data(), v.data(), motions_);
  first_ = acceleration_;
  // h at half of the step's velocity
  if (world_.options.midpoint && !bodies_.all()) {
    for (std::size_t k = 0; k < v.size(); ++k)
      if (!bodies_.owns(k)) half_[k] += 0.5 * dt * acceleration_[k];
    if (has_loops) {
      first_order();
      loops_.bend(s, response, free_, half_);
    }
    accelerate(s, state, half_.data());
    inertia.resist(acceleration_);
    if (has_loops) loops_.revise(s, state.q.data(), half_.data(), motions_);
  }
  first_order();
  return free_;
}

// M̂⁻¹ (τ − h(q, v))
void FreeMotion::accelerate(RowSystem& s, const IslandState& state, const double* v) {
  const auto& m = world_.model;
  const auto& w = s.G->placement();
  motions(m, w, motions_, v, static_cast<const double*>(nullptr), Vec3<double>{});
  inertial_forces(w, motions_, m.gravity * -1.0);
  if (state.has_external) subtract_external(m, w, motions_, state.external.data());
  joint_forces(m, w, motions_, static_cast<const double*>(nullptr), tau_.data());
  for (std::size_t k = 0; k < tau_.size(); ++k) tau_[k] = state.forces[k] - tau_[k];
  s.G->mass_inverse(tau_.data(), 1, acceleration_.data());
}

}  // namespace delassus
