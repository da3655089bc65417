// Centre of mass and energies of the moving links.
//
//   kinetic  ½ Σ (m |v_c|² + ωᵀ I_c ω) + ½ Σ armature ν²      gravitational  −Σ m gᵀ c
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

template <class T>
T kinetic_energy(const Model<real_of<T>>& model, Workspace<T>& w, const T* v) {
  motions(model, w, v, static_cast<const T*>(nullptr), Vec3<T>{});
  T twice{};
  for (std::size_t i = 0; i < model.links.size(); ++i) {
    const auto& link = model.links[i];
    const Vec3<T> vc = w.v[i].lin + cross(w.v[i].ang, w.pose[i] * link.center);
    const Vec3<T> omega = transpose_times(w.pose[i].R, w.v[i].ang);
    twice += dot(vc, vc) * link.mass + dot(omega, link.inertia * omega);
  }
  for (int k = 0; k < model.nv; ++k) twice += v[k] * v[k] * model.armature[k];
  return twice * real_of<T>(0.5);
}

// Σ m c and Σ m over the moving links
template <class T>
Vec3<T> first_moment(const Model<real_of<T>>& model, const Workspace<T>& w, real_of<T>& mass) {
  Vec3<T> h{};
  mass = 0;
  for (std::size_t i = 0; i < model.links.size(); ++i) {
    const auto& link = model.links[i];
    h += (w.pose[i] * link.center + w.origin[link.tree]) * link.mass;
    mass += link.mass;
  }
  return h;
}

template <class T>
T gravitational_energy(const Model<real_of<T>>& model, const Workspace<T>& w) {
  real_of<T> mass;
  return -dot(first_moment(model, w, mass), model.gravity);
}

}  // namespace delassus
