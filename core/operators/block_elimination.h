// The elimination rule (elimination.h) where blocks are not symmetric, as M + Jᵀ B J with friction in B: H_ij and H_ji
// apart. For each velocity of link i, last first, with N its neighbours at that time,
//
//   pivot      U = H_ii S,   V = H_iiᵀ S,   W_j = H_ji S,   Z_j = H_ijᵀ S,   D = Sᵀ U + armature + joint rows
//   downdate   H_jk −= W_j D⁻¹ Z_kᵀ for j, k ∈ N ∪ {i}   (W_i = U, Z_i = V)
//   merge      as there
//
// A free link is eliminated at once: H_ii = L D Uᵀ, W_j = H_ji U⁻ᵀ, Z_j = H_ijᵀ L⁻ᵀ. Twice the arithmetic of the
// symmetric rule; but neighbours whose coupling is zero, because all contacts between them are open, are skipped.
//
// The result is two factors in the form of that rule: U, W, L for forces on their way to the root, V, Z, U for
// accelerations on their way back, so that substitution.h solves with the two; exchanged, they solve with the
// transposed matrix. Pivots are taken in the plan's order, whatever their size, so solutions have to be refined by the
// caller.
#pragma once

#include "dynamics/aba.h"
#include "operators/factor.h"
#include "operators/twins.h"

namespace delassus {

template <class T>
struct BlockFactor {
  Factor<T> left, right;

  void resize(std::size_t velocities, const EliminationPlan& plan) {
    for (auto* F : {&left, &right}) {
      F->resize(velocities, plan);
      // lanes of strips that stay empty
      for (auto& d : F->strip_Dinv) d = constant<StripPack<T>>(1);
    }
  }
  std::size_t bytes() const { return left.bytes() + right.bytes(); }
};

template <class T>
struct BlockElimination {
  const Model<real_of<T>>& model;
  const EliminationPlan& plan;
  const Placement<T>& placement;
  const T* joint_stiffness;  // a velocity: what joint rows add to its pivot; null for nothing
  Twin6<T>* H;               // a link: H_ii, of a free link with its armature
  Couplings<T> coupling;     // two links
  BlockFactor<T>& factor;
};

// One velocity and the neighbours.
template <class T>
inline void eliminate_couplings(const BlockElimination<T>& e, const EliminationPlan::StepStorage& at, const Vec6<T>& S,
                                const Column<T>& minus_U, const Column<T>& minus_V, T Dinv, Column<T>* W,
                                Column<T>* Z) {
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  const auto* pairs = e.plan.pairs.data() + at.pair;
  for (int j = 0; j < at.neighbours; ++j) {
    // W_j, Z_j;  H_ji −= W_j D⁻¹ Vᵀ,  H_ij −= U D⁻¹ Z_jᵀ,  H_jj −= W_j D⁻¹ Z_jᵀ
    if (e.coupling.is_zero(N[j].block)) {
      W[j] = Z[j] = Column<T>{};
      continue;
    }
    Twin6<T>& C = e.coupling.open(N[j].block);
    W[j] = C.down * S;
    Z[j] = C.up * S;
    add_outer(C.down, W[j], minus_V);
    add_outer(C.up, Z[j], minus_U);
    Twin6<T>& H = e.H[N[j].link];
    add_outer(H.down, scaled(W[j], T(-Dinv)), Z[j]);
    add_outer(H.up, scaled(Z[j], T(-Dinv)), W[j]);
  }
  for (int p = 0; p < at.pairs; ++p) {
    // H_jk −= W_j D⁻¹ Z_kᵀ,  H_kj −= W_k D⁻¹ Z_jᵀ
    const int j = pairs[p].flipped ? pairs[p].second : pairs[p].first,
              k = pairs[p].flipped ? pairs[p].first : pairs[p].second;
    if (e.coupling.is_zero(N[j].block) || e.coupling.is_zero(N[k].block)) continue;
    Twin6<T>& C = e.coupling.open(pairs[p].block);
    add_outer(C.down, scaled(W[j], T(-Dinv)), Z[k]);
    add_outer(C.up, scaled(Z[j], T(-Dinv)), W[k]);
  }
  for (int j = 0; j < at.neighbours; ++j) W[j] = scaled(W[j], Dinv), Z[j] = scaled(Z[j], Dinv);
}

template <class T>
inline void merge_couplings(const BlockElimination<T>& e, const EliminationPlan::StepStorage& at, int parent,
                            Twin6<T>& H) {
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  for (int j = 0; j < at.neighbours; ++j) {
    if (e.coupling.is_zero(N[j].block)) continue;
    const Twin6<T>& C = e.coupling[N[j].block];
    if (N[j].link == parent)
      add_both(H, C);
    else if (N[j].merged < 0)
      continue;  // the same memory
    else if (N[j].flipped)
      add_transposed(e.coupling.open(N[j].merged), C);
    else
      add(e.coupling.open(N[j].merged), C);
  }
}

// A free link: L, U, D⁻¹ of H_ii, and W_j, Z_j of its neighbours.
template <class T>
inline void factor_free(const BlockElimination<T>& e, int s, Twin6<T>& H) {
  const auto& step = e.plan.steps[s];
  const auto& at = e.plan.storage[s];
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  Factor<T>&left = e.factor.left, &right = e.factor.right;
  if (step.pushed) {
    Sym6<T> joint{};
    add_free(joint, e.placement.pose[step.link].R, e.joint_stiffness + step.iv);
    add(H.down, joint);
  }
  Ldl6<T>&L = left.free[at.factor], &U = right.free[at.factor];
  factor(H.down, L, U);
  for (int k = 0; k < 6; ++k) left.Dinv[step.iv + k] = right.Dinv[step.iv + k] = L.Dinv[k];
  for (int j = 0; j < at.neighbours; ++j) {
    Column<T>*W = &left.W[at.W + 6 * j], *Z = &right.W[at.W + 6 * j];
    if (e.coupling.is_zero(N[j].block)) {
      for (int k = 0; k < 6; ++k) W[k] = Z[k] = Column<T>{};
      continue;
    }
    const Twin6<T>& C = e.coupling[N[j].block];
    solve_columns(U, C.down, W);
    solve_columns(L, C.up, Z);
  }
}

// And H_jk −= W_j D⁻¹ Z_kᵀ of all its neighbours.
template <class T>
[[gnu::noinline]] void eliminate_free(const BlockElimination<T>& e, int s, Twin6<T>& H) {
  factor_free(e, s, H);
  const auto& at = e.plan.storage[s];
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  const auto* pairs = e.plan.pairs.data() + at.pair;
  const Factor<T>&left = e.factor.left, &right = e.factor.right;
  const Ldl6<T>& L = left.free[at.factor];
  for (int j = 0, p = 0; j < at.neighbours; ++j) {
    // −W_j D⁻¹ and −Z_j D⁻¹ with those of the neighbours after it
    if (e.coupling.is_zero(N[j].block)) {
      while (p < at.pairs && pairs[p].first == j) ++p;
      continue;
    }
    const Column<T>*W = &left.W[at.W + 6 * j], *Z = &right.W[at.W + 6 * j];
    Column<T> scaled_W[6], scaled_Z[6];
    for (int k = 0; k < 6; ++k) scaled_W[k] = scaled(W[k], T(-L.Dinv[k])), scaled_Z[k] = scaled(Z[k], T(-L.Dinv[k]));
    Twin6<T>& H_jj = e.H[N[j].link];
    add_product(H_jj.down, scaled_W, Z);
    if (e.model.links[N[j].link].type != Joint::free) add_product(H_jj.up, scaled_Z, W);  // a free link needs it not
    for (; p < at.pairs && pairs[p].first == j; ++p) {
      if (e.coupling.is_zero(N[pairs[p].second].block)) continue;
      const Column<T>*other_W = &left.W[at.W + 6 * pairs[p].second], *other_Z = &right.W[at.W + 6 * pairs[p].second];
      Twin6<T>& C = e.coupling.open(pairs[p].block);
      if (pairs[p].flipped) {
        add_product(C.down, other_W, scaled_Z);
        add_product(C.up, other_Z, scaled_W);
      } else {
        add_product(C.down, scaled_W, other_Z);
        add_product(C.up, scaled_Z, other_W);
      }
    }
  }
}

// The numbers of a link that substitutions take side by side with others, in its lane. Lanes beyond the last link of a
// free strip repeat its first.
template <class T>
inline void fill_lane(const EliminationPlan& plan, int s, Factor<T>& F) {
  if constexpr (strip_lanes<T> > 1) {
    const auto& step = plan.steps[s];
    if (step.strip < 0) return;
    if (!step.free) {
      const int l = s - plan.strips[step.strip].step;
      set_lane(F.strip_V[step.strip], l, F.V[step.iv]);
      lane(F.strip_Dinv[step.strip], l) = F.Dinv[step.iv];
      return;
    }
    const auto& strip = plan.free_strips[step.strip];
    const int l = s - strip.step, last = l == 0 ? strip_lanes<T> - 1 : l;
    for (int k = l; k <= last; ++k) set_lane(F.strip_free[step.strip], k, F.free[plan.storage[s].factor]);
  }
}

// One velocity k of a joint: D, U, V, and H_ii −= U D⁻¹ Vᵀ. What its couplings need of it.
template <class T>
struct VelocityPivot {
  Vec6<T> S;
  Column<T> minus_U, minus_V;  // −U D⁻¹, −V D⁻¹
  T Dinv;
};
template <class T>
[[gnu::always_inline]] inline VelocityPivot<T> factor_velocity(const BlockElimination<T>& e, int k, Twin6<T>& H) {
  const Vec6<T> S = e.placement.S[k];
  const Column<T> U = H.down * S, V = H.up * S;
  T D = dot(S, vector(U)) + e.model.armature[k];
  if (e.joint_stiffness) D += e.joint_stiffness[k];
  const T Dinv = real_of<T>(1) / D;
  const VelocityPivot<T> pivot{S, scaled(U, T(-Dinv)), scaled(V, T(-Dinv)), Dinv};
  Factor<T>&left = e.factor.left, &right = e.factor.right;
  left.V[k] = vector(U) * Dinv;
  right.V[k] = vector(V) * Dinv;
  left.Dinv[k] = right.Dinv[k] = Dinv;
  add_outer(H.down, pivot.minus_U, V);
  add_outer(H.up, pivot.minus_V, U);
  return pivot;
}

// Steps first … last − 1.
template <class T>
void eliminate(const BlockElimination<T>& e, int first, int last) {
  const auto& plan = e.plan;
  Factor<T>&left = e.factor.left, &right = e.factor.right;
  for (int s = first; s < last; ++s) {
    const auto& step = plan.steps[s];
    const auto& at = plan.storage[s];
    Twin6<T>& H = e.H[step.link];
    if (step.free) {
      eliminate_free(e, s, H);
    } else {
      for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
        const VelocityPivot<T> pivot = factor_velocity(e, k, H);
        if (step.coupled) {
          const int W = at.W + (k - step.iv) * at.neighbours;
          eliminate_couplings(e, at, pivot.S, pivot.minus_U, pivot.minus_V, pivot.Dinv, left.W.data() + W,
                              right.W.data() + W);
        }
      }
      if (step.parent >= 0) {
        if (step.coupled) merge_couplings(e, at, step.parent, H);
        add(e.H[step.parent], H);
      }
    }
    fill_lane(plan, s, left);
    fill_lane(plan, s, right);
  }
}

// The sign of the determinant of what was eliminated.
template <class T>
int determinant_sign(const EliminationPlan& plan, const BlockFactor<T>& F) {
  int negative = 0;
  for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s)
    for (int k = plan.steps[s].iv; k < plan.steps[s].iv + plan.steps[s].nv; ++k) negative += F.left.Dinv[k] < 0;
  return negative % 2 ? -1 : 1;
}

}  // namespace delassus
