// Forward dynamics ν̇ = M⁻¹ (τ − c(q, ν) + Jᵀf) by articulated bodies, O(n); and the same elimination kept as a factor of M.
//
//   U = H S,   D = Sᵀ U + armature,   u = τ − Sᵀ f,   H −= U D⁻¹ Uᵀ,   f += U D⁻¹ u,   H_p += H,   f_p += f
//   ν̇ = D⁻¹ (u − Uᵀ a_p),   a_i = a_p + S ν̇
//
// Featherstone, table 7.1, with the velocity-dependent accelerations taken out beforehand: f starts as the force of the
// motion with ν̇ = 0, a is what ν̇ adds to it, and no product H c is needed. Velocities of one joint are eliminated one by
// one, which is the LDLᵀ of its block.
#pragma once

#include "dynamics/inertia.h"
#include "dynamics/rnea.h"

namespace delassus {

// Eliminates velocity k from H: keeps U and D⁻¹.
template <class T>
inline void eliminate(Sym6<T>& H, const Vec6<T>& S, real_of<T> armature, Vec6<T>& U, T& Dinv) {
  U = H * S;
  Dinv = real_of<T>(1) / (dot(S, U) + armature);
  downdate(H, U, Dinv);
}

// Factor of M at the present kinematics: U, D⁻¹ of every velocity.
template <class T>
void factorize(const Model<real_of<T>>& model, Workspace<T>& w) {
  const int nl = int(model.links.size());
  for (int i = 0; i < nl; ++i) w.H[i] = articulated(world_inertia(model.links[i], w.pose[i]));
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    Sym6<T> H = w.H[i];
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) eliminate(H, w.S[k], model.armature[k], w.U[k], w.Dinv[k]);
    if (link.parent >= 0) w.H[link.parent] += H;
  }
}

// Forward sweep shared by all solutions: u on entry, ν̇ on exit.
template <class T>
inline void accelerations(const Model<real_of<T>>& model, Workspace<T>& w, const T* u, T* vdot) {
  const int nl = int(model.links.size());
  for (int i = 0; i < nl; ++i) {
    const auto& link = model.links[i];
    Vec6<T> a = link.parent < 0 ? Vec6<T>{} : w.a[link.parent];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      vdot[k] = w.Dinv[k] * (u[k] - dot(w.U[k], a));
      a += w.S[k] * vdot[k];
    }
    w.a[i] = a;
  }
}

// tau may be null (zero), external may be null (none).
template <class T>
void aba(const Model<real_of<T>>& model, Workspace<T>& w, const T* v, const T* tau, const T* external, T* __restrict vdot) {
  const int nl = int(model.links.size());

  // forward: force of the motion without joint accelerations
  const Vec3<T> up{constant<T>(-model.gravity.x), constant<T>(-model.gravity.y), constant<T>(-model.gravity.z)};
  motions(model, w, v, static_cast<const T*>(nullptr), up);
  for (int i = 0; i < nl; ++i) {
    w.f[i] = inertial_force(model.links[i], w.pose[i], w.v[i], w.a[i]);
    w.H[i] = articulated(world_inertia(model.links[i], w.pose[i]));
  }
  if (external) subtract_external(model, w, external);

  // backward: eliminate every joint
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    Sym6<T> H = w.H[i];
    Vec6<T> f = w.f[i];
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      w.u[k] = (tau ? tau[k] : T{}) - dot(w.S[k], f);
      eliminate(H, w.S[k], model.armature[k], w.U[k], w.Dinv[k]);
      f += w.U[k] * (w.Dinv[k] * w.u[k]);
    }
    if (link.parent >= 0) {
      w.H[link.parent] += H;
      w.f[link.parent] += f;
    }
  }

  accelerations(model, w, w.u.data(), vdot);
}

}  // namespace delassus
