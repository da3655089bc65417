// The one elimination rule: it eliminates all joints of a mechanism whose links are coupled by constraints, in O(n)
// plus the cost of couplings.
//
// Link i has the neighbours N after all its children are eliminated; its parent p may be one of them. For each of its
// velocities, last first,
//
//   pivot      U = H_ii S,   W_j = H_ji S for j ∈ N,   D = Sᵀ U + armature + joint rows
//   downdate   H_jk −= W_j D⁻¹ W_kᵀ for j, k ∈ N ∪ {i}  (W_i = U)
//
// and then, once,
//
//   merge      H_pp += H_ii (+ H_ip + H_pi if p ∈ N),   H_jp += H_ji for j ∈ N \ {p}
//
// A free link is eliminated at once, since its S are the world's axes: H_ii = L D Lᵀ, W_j = H_ji L⁻ᵀ. The factor is V =
// U D⁻¹, W and D⁻¹; substitution.h solves with it.
//
// No couplings: articulated bodies. Ground contacts only: constrainedABA. Loops: LCABA. Algorithm 4 of "Matrix-Free
// Delassus Operations", derived anew from Gauss' principle. The ground has a = 0 and is never a neighbour. Several
// links in one register: strip_elimination.h. The order of links, and their neighbours at elimination: plan.h.
#pragma once

#include "dynamics/aba.h"
#include "operators/strip_elimination.h"

namespace delassus {

// One velocity and the neighbours: W_j = H_ji S,   H_ji −= W_j D⁻¹ Uᵀ,   H_jk −= W_j D⁻¹ W_kᵀ.  W D⁻¹ is kept.
template <class T>
inline void eliminate_couplings(const Elimination<T>& e, const EliminationPlan::StepStorage& at, const Vec6<T>& S,
                                const Vec6<T>& U, T Dinv, Column<T>* W) {
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  const Vec6<T> minus_U = Vec6<T>{} - U;
  for (int j = 0; j < at.neighbours; ++j) {
    Mat6<T>& H_ji = e.coupling[N[j].block];
    const Column<T> W_j = H_ji * S;
    W[j] = scaled(W_j, Dinv);
    add_outer(H_ji, W[j], minus_U);
    downdate(e.H[N[j].link], W_j, Dinv);
  }
  if (at.pairs == 0) return;
  const auto* pairs = e.plan.pairs.data() + at.pair;
  const T minus_D = real_of<T>(-1) / Dinv;
  for (int p = 0; p < at.pairs; ++p) {
    const int j = pairs[p].flipped ? pairs[p].second : pairs[p].first,
              k = pairs[p].flipped ? pairs[p].first : pairs[p].second;
    add_outer(e.coupling[pairs[p].block], scaled(W[j], minus_D), W[k]);
  }
}

// The couplings of a link become its parent's: H += H_ip + H_pi if p ∈ N,   H_jp += H_ji for the others.
template <class T>
inline void merge_couplings(const Elimination<T>& e, const EliminationPlan::StepStorage& at, int parent, Sym6<T>& H) {
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  for (int j = 0; j < at.neighbours; ++j) {
    const Mat6<T>& H_ji = e.coupling[N[j].block];
    if (N[j].link == parent)
      add_symmetric(H, H_ji);
    else if (N[j].merged < 0)
      continue;  // H_jp is the same memory
    else if (N[j].flipped)
      add_transposed(e.coupling[N[j].merged], H_ji);
    else
      add(e.coupling[N[j].merged], H_ji);
  }
}

// A free link: H = L D Lᵀ,   W_j = H_ji L⁻ᵀ,   H_jk −= W_j D⁻¹ W_kᵀ. Of H nothing is left.
template <class T>
[[gnu::noinline]] void eliminate_free(const Elimination<T>& e, int s, Sym6<T>& H) {
  const auto& step = e.plan.steps[s];
  const auto& at = e.plan.storage[s];
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  const auto* pairs = e.plan.pairs.data() + at.pair;
  Factor<T>& F = e.factor;
  const Mat3<T> R = e.placement.pose[step.link].R;
  add_free(H, R, &e.model.armature[step.iv]);
  if (e.joint_stiffness) add_free(H, R, e.joint_stiffness + step.iv);
  Ldl6<T>& LD = F.free[at.factor];
  factor(H, LD);
  for (int k = 0; k < 6; ++k) F.Dinv[step.iv + k] = LD.Dinv[k];
  for (int j = 0; j < at.neighbours; ++j) solve_columns(LD, e.coupling[N[j].block], &F.W[at.W + 6 * j]);
  for (int j = 0, p = 0; j < at.neighbours; ++j) {
    // −W_j D⁻¹, with its own transpose and with those of the neighbours after it
    Column<T> scaled_W[6];
    for (int k = 0; k < 6; ++k) scaled_W[k] = scaled(F.W[at.W + 6 * j + k], T(-LD.Dinv[k]));
    add_product(e.H[N[j].link], scaled_W, &F.W[at.W + 6 * j]);
    for (; p < at.pairs && pairs[p].first == j; ++p) {
      const Column<T>* other = &F.W[at.W + 6 * pairs[p].second];
      if (pairs[p].flipped)
        add_product(e.coupling[pairs[p].block], other, scaled_W);
      else
        add_product(e.coupling[pairs[p].block], scaled_W, other);
    }
  }
}

// Steps from s on, as long as they have several velocities or neighbours: returns the last of them. H is what was
// merged into the first one's link, then what the last one hands over. It stays in memory, where neighbours are too.
template <class T>
[[gnu::noinline]] int eliminate_links(const Elimination<T>& e, int s, int last, Sym6<T>& H) {
  const T* stiffness = e.joint_stiffness;
  Factor<T>& F = e.factor;
  for (;; ++s) {
    const auto& step = e.plan.steps[s];
    const auto& at = e.plan.storage[s];
    add(H, e.placement.inertia[step.link]);
    if (step.holds_inertia) H += e.H[step.link];
    if (step.free) {
      eliminate_free(e, s, H);
    } else {
      for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
        const Vec6<T> S = e.placement.S[k];
        const Vec6<T> U = H * S;
        const T D = dot(S, U) + e.model.armature[k], Dinv = real_of<T>(1) / (stiffness ? T(D + stiffness[k]) : D);
        F.V[k] = U * Dinv;
        F.Dinv[k] = Dinv;
        if (step.coupled) eliminate_couplings(e, at, S, U, Dinv, F.W.data() + at.W + (k - step.iv) * at.neighbours);
        downdate(H, U, Dinv);
      }
      if (step.coupled && step.parent >= 0) merge_couplings(e, at, step.parent, H);
    }
    if (!step.hands_over) {
      if (step.parent >= 0) e.H[step.parent] += H;
      H = Sym6<T>{};
    }
    if (s + 1 == last || e.plan.steps[s + 1].plain || e.plan.steps[s + 1].strip >= 0) return s;
  }
}

// Steps first … last − 1. Most links have one velocity and no neighbours, and most merge into the link of the next
// step: their H stays in registers from tip to base.
template <class T>
void eliminate(const Elimination<T>& e, int first, int last) {
  const auto& plan = e.plan;
  const auto& w = e.placement;
  const auto* armature = e.model.armature.data();
  const T* stiffness = e.joint_stiffness;
  const Vec6<T>* S_at = w.S.data();
  Sym6<T>* __restrict H_at = e.H;
  Vec6<T>* __restrict V = e.factor.V.data();
  T* __restrict Dinv = e.factor.Dinv.data();
  Sym6<T> H{};  // what the step before merged into this one's link
  for (int s = first; s < last; ++s) {
    const auto& step = plan.steps[s];
    if constexpr (strip_lanes<T> > 1)
      if (step.strip >= 0) {
        s = eliminate_side_by_side(e, step);
        continue;
      }
    if (!step.plain) {
      Sym6<T> merged = H;  // a copy, so that H itself may live in registers
      s = eliminate_links(e, s, last, merged);
      H = merged;
      continue;
    }
    add(H, w.inertia[step.link]);
    if (step.holds_inertia) H += H_at[step.link];
    const int k = step.iv;
    const Vec6<T> S = S_at[k];
    Vec6<T> U;
    eliminate_pivot(
        H, S, armature[k], U, [&](T& D) { D = stiffness ? T(D + stiffness[k]) : D; },
        [&](const T& d) { V[k] = U * d, Dinv[k] = d; });
    if (step.hands_over) continue;
    if (step.parent >= 0) H_at[step.parent] += H;
    H = Sym6<T>{};
  }
}

}  // namespace delassus
