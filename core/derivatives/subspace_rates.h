// Rates of the motion subspace of every velocity, from which all derivatives of kinematics and dynamics are built.
// O(n).
//
// Moving the joint of velocity j by dq_j moves its subtree by S_j dq_j. The carrier of the joint stays: its parent and,
// for a free joint, whose linear axes are the world's, also its linear motion. With v̂_j, â_j the velocity and
// acceleration of that carrier,
//
//   Ψ_j = v̂_j × S_j,   Χ_j = â_j × S_j + v̂_j × Ψ_j,   Φ_j = Ψ_j + Ṡ_j
//
// give, for every link l that j moves, in world axes about a fixed point,
//
//   ∂v_l/∂q_j = S_j × v_l + Ψ_j,   ∂a_l/∂q_j = S_j × a_l + Ψ_j × v_l + Χ_j
//   ∂v_l/∂ν_j = S_j,               ∂a_l/∂ν_j = S_j × v_l + Φ_j,               ∂a_l/∂ν̇_j = S_j
//
// q_j is changed in the tangent space, q ⊕ e_j dq, so that ball and free joints turn about axes of the body. Without
// the free joint's mixed axes this is Singh, Russell, Wensing, "Efficient analytical derivatives of rigid-body dynamics
// using spatial vector algebra", 2022, where Ψ̇, Ψ̈ stand for Ψ, Χ.
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

// One motion a velocity each.
template <class T>
struct SubspaceRates {
  std::vector<Vec6<T>> Psi, Chi, Phi;

  explicit SubspaceRates(int nv) : Psi(nv), Chi(nv), Phi(nv) {}
};

// The rates, together with velocities and accelerations of all links as in `motions`. vdot may be null (zero).
template <class T>
void subspace_rates(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m, SubspaceRates<T>& r,
                    const T* v, const T* vdot, const Vec3<T>& ground) {
  const int nl = int(model.links.size());
  Vec6<T> vi{}, ai{};  // of the link before
  for (int i = 0; i < nl; ++i) {
    const auto& link = model.links[i];
    if (link.parent < 0) {
      vi = Vec6<T>{};
      ai = Vec6<T>{ground, Vec3<T>{}};
    } else if (link.parent != i - 1) {
      vi = m.v[link.parent];
      ai = m.a[link.parent];
    }
    if (link.nv == 1) {
      // Ṡ = v_i × S = v_p × S
      const int k = link.iv;
      const Vec6<T> S = w.S[k], Psi = cross_motion(vi, S);
      r.Psi[k] = Psi;
      r.Chi[k] = cross_motion(ai, S) + cross_motion(vi, Psi);
      r.Phi[k] = Psi + Psi;
      vi += S * v[k];
      ai += Psi * v[k];
      if (vdot) ai += S * vdot[k];
    } else {
      // linear axes of a free joint only carry
      const bool free = link.type == Joint::free;
      const int turning = link.iv + (free ? 3 : 0), end = link.iv + link.nv;
      if (free) {
        const T* n = v + link.iv;
        vi.lin += Vec3<T>{n[0], n[1], n[2]};
        if (vdot) ai.lin += Vec3<T>{vdot[link.iv], vdot[link.iv + 1], vdot[link.iv + 2]};
        for (int k = link.iv; k < turning; ++k) r.Psi[k] = r.Chi[k] = r.Phi[k] = Vec6<T>{};
      }
      Vec6<T> joint{}, rate{};
      for (int k = turning; k < end; ++k) {
        r.Psi[k] = cross_motion(vi, w.S[k]);
        r.Chi[k] = cross_motion(ai, w.S[k]) + cross_motion(vi, r.Psi[k]);
        joint += w.S[k] * v[k];
        if (vdot) rate += w.S[k] * vdot[k];
      }
      vi += joint;
      ai += cross_motion(vi, joint) + rate;
      for (int k = turning; k < end; ++k) r.Phi[k] = r.Psi[k] + cross_motion(vi, w.S[k]);
    }
    m.v.set(i, vi);
    m.a.set(i, ai);
  }
}

}  // namespace delassus
