// Derivatives of inverse dynamics τ(q, ν, ν̇) = M ν̇ + c(q, ν) − Jᵀf, together with τ and M, O(n d) for depth d.
//
// With the rates Ψ, Χ, Φ of the motion subspaces (subspace_rates.h), inertia I, force f and the maps B, E of turns
// (turn_force.h) summed over the subtree of each link, for velocities j that carry k or are of the same joint,
//
//   ∂τ_k/∂q_j = (I_k S_k)ᵀ Χ_j + (B_kᵀ S_k)ᵀ ω(Ψ_j) + (E_kᵀ S_k)ᵀ ω(S_j)
//   ∂τ_k/∂ν_j = (I_k S_k)ᵀ Φ_j + (B_kᵀ S_k)ᵀ ω(S_j),       M_kj = (I_k S_k)ᵀ S_j
//
// and for velocities j in the subtree of k, which do not change S_k,
//
//   ∂τ_k/∂q_j = S_kᵀ (S_j ×* f_j + I_j Χ_j + B_j ω(Ψ_j) + E_j ω(S_j)),   ∂τ_k/∂ν_j = S_kᵀ (I_j Φ_j + B_j ω(S_j))
//
// ω() is the angular part. Everything else is zero. The linear axes of a free joint are the world's and do not turn
// with it, which leaves e_kᵀ (ω_j × f) in its own block.
//
// Carpentier, Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018; Singh, Russell, Wensing, 2022;
// here in world axes, with external forces that keep their direction.
#pragma once

#include <algorithm>

#include "derivatives/workspace.h"
#include "dynamics/inertia.h"

namespace delassus {

// v ×* f: change of the force f carried along with the motion v
template <class T>
inline Vec6<T> cross_force(const Vec6<T>& v, const Vec6<T>& f) {
  return {cross(v.ang, f.lin), cross(v.lin, f.lin) + cross(v.ang, f.ang)};
}

// Backward: inertia, force and maps of turns of the subtree of every link, given to each(link, I, f, B, E). With the
// inertias of `world_inertias`, forces f, B and, if `external`, E of all links; leaves sums in the places of links that
// branch.
template <class T, class F>
[[gnu::always_inline]] inline void subtree_sums(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w,
                                                bool external, F&& each) {
  Inertia<T> I{};  // of the next link, if it hangs on this one
  Vec6<T> f{};
  TurnForce<T> B{}, E{};
  for (int i = int(model.links.size()) - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    I += w.inertia[i];
    f += w.f[i];
    B += w.B[i];
    if (external) E += w.E[i];
    each(link, I, f, B, E);
    if (link.parent >= 0 && link.parent == i - 1) continue;
    if (link.parent >= 0) {
      w.inertia.add(link.parent, I);
      w.f.add(link.parent, f);
      w.B.add(link.parent, B);
      if (external) w.E.add(link.parent, E);
    }
    I = Inertia<T>{};
    f = Vec6<T>{};
    B = E = TurnForce<T>{};
  }
}

// Change of the total force on the subtree of velocity k with q_k and ν_k.
template <class T>
struct ForceRates {
  Vec6<T> by_q, by_v;
};
template <class T>
[[gnu::always_inline]] inline ForceRates<T> force_rates(const DerivativeWorkspace<T>& w, int k, const Inertia<T>& I,
                                                        const Vec6<T>& f, const TurnForce<T>& B) {
  const Vec6<T> S = w.S[k];
  return {cross_force(S, f) + I * w.rates.Chi[k] + B * w.rates.Psi[k].ang, I * w.rates.Phi[k] + B * S.ang};
}

// What a pair of velocities needs of the outer one. vdot may be null.
template <class T>
void subtree_forces(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* vdot, bool external, T* tau) {
  subtree_sums(
      model, w, external,
      [&](const auto& link, const auto& I, const auto& f, const auto& B, const auto& E) __attribute__((always_inline)) {
        for (int k = link.iv; k < link.iv + link.nv; ++k) {
          const Vec6<T> S = w.S[k];
          auto [by_q, by_v] = force_rates(w, k, I, f, B);
          if (external) {
            by_q += E * S.ang;
            w.turn_q.set(k, transpose_times(E, S));
          }
          w.force_q.set(k, by_q);
          w.force_v.set(k, by_v);
          w.U_strips.set(k, I * S);
          w.turn_v.set(k, transpose_times(B, S));
          if (tau) tau[k] = vdot ? dot(S, f) + vdot[k] * model.armature[k] : dot(S, f);
        }
        if (link.parent < 0) w.root_force[link.tree] = f.lin;
      });
}

// Writes the first `count` numbers of a strip to a column of a matrix, one per row.
template <class T>
[[gnu::always_inline]] inline void store_column(T* to, std::size_t stride, const LinkPack<T>& x, int count) {
  if constexpr (link_lanes<T> == 1) {
    *to = x;
  } else {
    for (int k = 0; k < count; ++k) to[k * stride] = x[k];
  }
}
// The same to a row, from a column on; a whole strip is one instruction.
template <class T>
[[gnu::always_inline]] inline void store_row(T* to, const LinkPack<T>& x, int count) {
  if (count >= link_lanes<T>) {
    __builtin_memcpy(to, &x, sizeof(x));
  } else if constexpr (link_lanes<T> > 1) {
    for (int k = 0; k < count; ++k) to[k] = x[k];
  }
}

// Rows and columns of a free root, a strip of carried velocities at a time. Its linear axes are the world's, its
// angular ones those of R, all about its own place, so that little of the general products is left: with û, ω the
// root's linear and angular velocity and â the linear acceleration of what carries its turning axes,
//
//   by linear q or ν: 0,   ∂τ/∂q = Rᵀ (U_lin × â + E ᵀS),   ∂τ/∂ν = Rᵀ (2 U_lin × û + U_ang × ω + BᵀS)
template <class T>
void free_root_derivatives(const Model<real_of<T>>& model, const DerivativeWorkspace<T>& w, int root, bool external,
                           const T* v, const T* vdot, const Vec3<T>& ground, T* __restrict tau_q, T* __restrict tau_v,
                           T* __restrict M) {
  constexpr int width = link_lanes<T>;
  using C = LinkPack<T>;
  const std::size_t nv = std::size_t(model.nv);
  const auto& link = model.links[root];
  const int base = link.iv;
  const Mat3<T> R = w.pose[root].R;
  const Vec3<T> u{v[base], v[base + 1], v[base + 2]}, omega = w.v[root].ang;
  Vec3<T> a = ground;
  if (vdot) a += Vec3<T>{vdot[base], vdot[base + 1], vdot[base + 2]};
  for (int d = base + 6; d < link.end_v; d += width) {
    const int count = link.end_v - d;
    const auto rows = [&](T* matrix, const Vec6<C>& f) {
      T* to = matrix + std::size_t(base) * nv + d;
      const Vec3<C> turned = transpose_times(R, f.ang);
      store_row<T>(to, f.lin.x, count), store_row<T>(to + nv, f.lin.y, count),
          store_row<T>(to + 2 * nv, f.lin.z, count);
      to += 3 * nv;
      store_row<T>(to, turned.x, count), store_row<T>(to + nv, turned.y, count),
          store_row<T>(to + 2 * nv, turned.z, count);
    };
    const auto columns = [&](T* matrix, int column, const Vec3<C>& x) {
      T* to = matrix + std::size_t(d) * nv + base + column;
      const int n = count < width ? count : width;
      store_column<T>(to, nv, x.x, n), store_column<T>(to + 1, nv, x.y, n), store_column<T>(to + 2, nv, x.z, n);
    };
    const auto U = w.U_strips[d];
    Vec3<C> by_q = cross(U.lin, a);
    if (external) by_q += w.turn_q[d];
    rows(tau_q, w.force_q[d]);
    columns(tau_q, 0, Vec3<C>{});
    columns(tau_q, 3, transpose_times(R, by_q));
    rows(tau_v, w.force_v[d]);
    columns(tau_v, 0, Vec3<C>{});
    columns(tau_v, 3, transpose_times(R, cross(U.lin, u) * real_of<T>(2) + cross(U.ang, omega) + w.turn_v[d]));
    if (!M) continue;
    rows(M, U);
    columns(M, 0, U.lin);
    columns(M, 3, transpose_times(R, U.ang));
  }
}

// All pairs of velocities: for each, the strips of those that it carries. Matrices nv × nv, row-major; M may be null.
// Entries that the tree's branches make zero are not written.
template <class T>
void pair_derivatives(const Model<real_of<T>>& model, const DerivativeWorkspace<T>& w, bool external, const T* v,
                      const T* vdot, const Vec3<T>& ground, T* __restrict tau_q, T* __restrict tau_v, T* __restrict M) {
  constexpr int width = link_lanes<T>;
  const std::size_t nv = std::size_t(model.nv);
  for (int i = int(model.links.size()) - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    const bool free = link.type == Joint::free;
    const int first = link.iv, beyond = link.iv + link.nv, end = link.end_v;
    for (int a = beyond - 1; a >= first; --a) {
      const std::size_t row = std::size_t(a) * nv;
      // row a: it carries d
      const Vec6<T> S = w.S[a], Psi = w.rates.Psi[a], Chi = w.rates.Chi[a], Phi = w.rates.Phi[a];
      const int last = free ? beyond : end;
      for (int d = beyond; d < last; d += width) {
        const int count = end - d;
        store_row<T>(tau_q + row + d, dot(w.force_q[d], S), count);
        store_row<T>(tau_v + row + d, dot(w.force_v[d], S), count);
      }
      // column a
      for (int d = first; d < last; d += width) {
        const int count = last - d < width ? last - d : width;
        const std::size_t at = std::size_t(d) * nv + a;
        const auto U = w.U_strips[d];
        const auto turn = w.turn_v[d];
        LinkPack<T> by_q = dot(U, Chi) + dot(turn, Psi.ang);
        if (external) by_q += dot(w.turn_q[d], S.ang);
        store_column<T>(tau_q + at, nv, by_q, count);
        store_column<T>(tau_v + at, nv, dot(U, Phi) + dot(turn, S.ang), count);
        if (!M) continue;
        const LinkPack<T> mass = dot(U, S);
        store_column<T>(M + at, nv, mass, count);
        store_row<T>(M + row + d, mass, last - d);
      }
      if (M) M[row + a] += model.armature[a];
    }
    if (!free) continue;
    free_root_derivatives(model, w, i, external, v, vdot, ground, tau_q, tau_v, M);
    // axes of the world do not turn
    for (int a = first + 3; a < beyond; ++a) {
      const Vec3<T> turned = cross(w.S[a].ang, w.root_force[link.tree]);
      T* column = tau_q + std::size_t(first) * nv + a;
      column[0] += turned.x, column[nv] += turned.y, column[2 * nv] += turned.z;
    }
  }
}

// Motions, forces, inertias and maps of turns of all links: what the backward sweep sums up. vdot and external may be
// null.
template <class T>
void link_forces(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, const T* vdot,
                 const T* external, const Vec3<T>& ground) {
  subspace_rates(model, w, w, w.rates, v, vdot, ground);
  inertial_forces(w, w);
  world_inertias(w);
  velocity_turn_forces(w, w, w.B);
  if (!external) return;
  subtract_external(model, w, w, external);
  external_turn_forces(model, w, external, w.E);
}

// After `kinematics`. vdot may be null (zero), external may be null (none). tau: nv; tau_q, tau_v, M: nv × nv,
// row-major. tau and M may be null. Entries that the tree's branches make zero are written only if `clear`.
template <class T>
void rnea_derivatives(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, const T* vdot,
                      const T* external, T* tau, T* tau_q, T* tau_v, T* M, bool clear = true) {
  if (clear)
    for (T* matrix : {tau_q, tau_v, M})
      if (matrix) std::fill_n(matrix, std::size_t(model.nv) * std::size_t(model.nv), T{});
  const Vec3<T> up{constant<T>(-model.gravity.x), constant<T>(-model.gravity.y), constant<T>(-model.gravity.z)};
  link_forces(model, w, v, vdot, external, up);
  subtree_forces(model, w, vdot, external != nullptr, tau);
  pair_derivatives(model, w, external != nullptr, v, vdot, up, tau_q, tau_v, M);
}

}  // namespace delassus
