// Derivatives of the centre of mass, of its motion, and of energies. O(n).
//
// With inertia I, momentum h and force f of the subtree of velocity j, total mass m and gravity left out of f,
//
//   m ∂c/∂q_j = (I S_j)_lin,      m ∂ċ/∂q_j = (S_j ×* h + I Ψ_j)_lin
//
//   m ∂c̈/∂q_j = (∂f/∂q_j)_lin,    m ∂c̈/∂ν_j = (∂f/∂ν_j)_lin
//
//   ∂T/∂q_j = hᵀ Ψ_j,             ∂T/∂ν_j = hᵀ S_j + armature ν_j,      ∂V/∂q_j = −gᵀ (I S_j)_lin
//
// where V is the potential of gravity only.
#pragma once

#include "derivatives/rnea_derivatives.h"

namespace delassus {

// A vector to column k of a 3 × nv matrix, row-major.
template <class T>
inline void set_column(T* matrix, std::size_t nv, int k, const Vec3<T>& x) {
  matrix[k] = x.x, matrix[nv + k] = x.y, matrix[2 * nv + k] = x.z;
}

// After `kinematics`. velocity, acceleration: 3; the others 3 × nv, row-major; vdot may be null (zero). Mass must not
// be zero.
template <class T>
void center_of_mass_derivatives(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, const T* vdot,
                                T* velocity, T* acceleration, T* jacobian, T* velocity_q, T* acceleration_q,
                                T* acceleration_v) {
  const std::size_t nv = std::size_t(model.nv);
  real_of<T> mass = 0;
  for (const auto& link : model.links) mass += link.inertial.mass;
  const real_of<T> per_mass = 1 / mass;
  Vec3<T> total_momentum{}, total_force{};
  link_forces(model, w, v, vdot, static_cast<const T*>(nullptr), Vec3<T>{});
  subtree_sums(model, w, false, [&](const auto& link, const auto& I, const auto& f, const auto& B, const auto&) {
    const Vec3<T> p = B.b * real_of<T>(0.5);  // momentum
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      const Vec6<T> S = w.S[k];
      const auto [by_q, by_v] = force_rates(w, k, I, f, B);
      set_column(jacobian, nv, k, (I * S).lin * per_mass);
      set_column(velocity_q, nv, k, (cross(S.ang, p) + (I * w.rates.Psi[k]).lin) * per_mass);
      set_column(acceleration_q, nv, k, by_q.lin * per_mass);
      set_column(acceleration_v, nv, k, by_v.lin * per_mass);
    }
    if (link.parent < 0) total_momentum += p, total_force += f.lin;
  });
  set_column(velocity, 1, 0, total_momentum * per_mass);
  set_column(acceleration, 1, 0, total_force * per_mass);
}

// After `kinematics`. All nv.
template <class T>
void energy_derivatives(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, T* kinetic_q,
                        T* kinetic_v, T* gravitational_q) {
  subspace_rates(model, w, w, w.rates, v, static_cast<const T*>(nullptr), Vec3<T>{});
  world_inertias(w);
  for (int b = 0; b < w.momentum.blocks(); ++b) w.momentum.block(b) = w.inertia.block(b) * w.v.block(b);
  for (int i = int(model.links.size()) - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    const Inertia<T> I = w.inertia[i];
    const Vec6<T> h = w.momentum[i];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      kinetic_q[k] = dot(h, w.rates.Psi[k]);
      kinetic_v[k] = dot(h, w.S[k]) + v[k] * model.armature[k];
      gravitational_q[k] = -dot((I * w.S[k]).lin, model.gravity);
    }
    if (link.parent >= 0) {
      w.inertia.add(link.parent, I);
      w.momentum.add(link.parent, h);
    }
  }
}

}  // namespace delassus
