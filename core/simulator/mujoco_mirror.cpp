#include "simulator/mujoco_mirror.h"

#include <algorithm>
#include <cstring>

namespace delassus {

MujocoMirror::MujocoMirror(const MirrorSource& source)
    : source_(source),
      model_(static_cast<const char*>(source.model),
             static_cast<const char*>(source.model) + source.library.model.size),
      data_(source_.library) {
  if (!data_.renew(model_.data())) failure_ = data_.error();
  if (source.tendon_inertia) tendon_bias_.resize(std::size_t(source.nv));
}

void MujocoMirror::set_weights(const double* gravity, const double* masses, const double* subtrees,
                               const double* centers, bool moved) {
  const auto& at = source_.library.model;
  std::memcpy(model_.data() + at.gravity, gravity, 3 * sizeof(double));
  mujoco::put(model_.data(), at.body_mass, masses);
  mujoco::put(model_.data(), at.body_subtreemass, subtrees);
  mujoco::put(model_.data(), at.body_ipos, centers);
  // MuJoCo knows which bodies have their centre of mass at their origin, and does not look then
  const auto* known = mujoco::at<const unsigned char*>(source_.model, at.body_sameframe);
  if (moved) general_.assign(std::size_t(source_.bodies), 0);
  mujoco::put(model_.data(), at.body_sameframe, moved ? static_cast<const unsigned char*>(general_.data()) : known);
}

bool MujocoMirror::add_forces(const State& now, std::vector<double>& forces, std::vector<double>& next) {
  if (data_.get() == nullptr) return false;
  write(now);
  if (!forward()) return false;
  const auto& offsets = source_.library.data;
  const double *passive = data_.at<const double*>(offsets.qfrc_passive),
               *actuation = data_.at<const double*>(offsets.qfrc_actuator);
  for (std::size_t k = 0; k < forces.size(); ++k) forces[k] += passive[k] + actuation[k];
  for (std::size_t k = 0; k < tendon_bias_.size(); ++k) forces[k] -= tendon_bias_[k];
  return !source_.advances || advance(next);
}

// State and controls into MuJoCo's data; the rest of it is found anew from these.
void MujocoMirror::write(const State& now) {
  const auto& l = source_.library;
  std::copy_n(now.q, source_.nq, data_.at<double*>(l.data.qpos));
  std::copy_n(now.v, source_.nv, data_.at<double*>(l.data.qvel));
  double* const control = data_.at<double*>(l.data.ctrl);
  if (now.control != nullptr)
    std::copy_n(now.control, source_.nu, control);
  else
    std::fill_n(control, source_.nu, 0.0);
  mujoco::put(data_.get(), l.data.time, now.time);
  if (source_.state_size > 0) l.set_state(model_.data(), data_.get(), now.rest, source_.signature);
  if (source_.mocap_signature != 0) l.set_state(model_.data(), data_.get(), now.mocap, source_.mocap_signature);
}

// The stages of MuJoCo's computation from a state to forces.
bool MujocoMirror::forward() {
  return call([&] {
    const auto& l = source_.library;
    const void* const model = model_.data();
    void* const data = data_.get();
    if (source_.needs_contacts) {
      l.forward_position(model, data);
    } else {
      l.kinematics(model, data);
      l.com_pos(model, data);
      l.tendon(model, data);
      l.transmission(model, data);
    }
    l.forward_velocity(model, data);
    l.forward_actuation(model, data);
    if (tendon_bias_.empty()) return;
    std::fill(tendon_bias_.begin(), tendon_bias_.end(), 0.0);
    l.tendon_bias(model, data, tendon_bias_.data());
  });
}

// Activations, states of plugins and delays after a step of MuJoCo's; that of q and v is not used.
bool MujocoMirror::advance(std::vector<double>& next) {
  std::fill_n(data_.at<double*>(source_.library.data.qacc), source_.nv, 0.0);
  if (!call([&] { source_.library.euler(model_.data(), data_.get()); })) return false;
  next.resize(std::size_t(source_.state_size));
  source_.library.get_state(model_.data(), data_.get(), next.data(), source_.signature);
  return true;
}

// Work on the data, which is made anew where MuJoCo could not go on.
template <class Work>
bool MujocoMirror::call(Work&& work) {
  failure_.clear();
  if (data_.call(work)) return true;
  failure_ = data_.error();
  data_.renew(model_.data());
  return false;
}

}  // namespace delassus
