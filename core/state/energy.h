// Centre of mass and energies of the moving links.
//
//   kinetic  ½ Σ (m |v_c|² + ωᵀ I_c ω) + ½ Σ armature ν²      gravitational  −Σ m gᵀ c
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

template <class T>
T kinetic_energy(const Model<real_of<T>>& model, Workspace<T>& w, const T* v) {
  motions(model, w, w, v, static_cast<const T*>(nullptr), Vec3<T>{});
  T twice{};
  for (std::size_t i = 0; i < model.links.size(); ++i) {
    const auto& link = model.links[i];
    const Vec6<T> m = w.v[i];
    const Pose<T> X = w.pose[i];
    const Vec3<T> vc = m.lin + cross(m.ang, X * link.inertial.center);
    const Vec3<T> omega = transpose_times(X.R, m.ang);
    twice += dot(vc, vc) * link.inertial.mass + dot(omega, link.inertial.inertia * omega);
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
    h += (w.pose[i] * link.inertial.center + w.origin[link.tree]) * link.inertial.mass;
    mass += link.inertial.mass;
  }
  return h;
}

template <class T>
T gravitational_energy(const Model<real_of<T>>& model, const Workspace<T>& w) {
  real_of<T> mass;
  return -dot(first_moment(model, w, mass), model.gravity);
}

}  // namespace delassus
