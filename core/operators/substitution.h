// Solutions with a factor (elimination.h): one backward and one forward sweep, O(n) plus the cost of couplings.
//
//   backward   u = τ + Sᵀ f_i,   f_j −= W_j D⁻¹ u for j ∈ N ∪ {i},   f_p += f_i
//   forward    ν̇ = D⁻¹ u − Σ_j (W_j D⁻¹)ᵀ a_j,   a_i = a_p + S ν̇
//
// A free link, H = L D Lᵀ: u = L⁻¹ f_i;  back a_i = L⁻ᵀ D⁻¹ (u − Σ_j W_jᵀ a_j).
//
// A right-hand side is one column, C = T, or a pack of columns of T: the sweeps are the same. One column of one state
// takes links side by side (strip_substitution.h). Both sweeps begin by copying pointers into locals: otherwise the
// compiler would reload them from the structs after every store.
#pragma once

#include "operators/strip_substitution.h"

namespace delassus {

// f_j −= W_j y of the neighbours of a step
template <class T, class C>
[[gnu::always_inline]] inline void push_neighbours(const EliminationPlan::Neighbour* N, int count, const Column<T>* W,
                                                   const C& y, Vec6<C>* m) {
  for (int j = 0; j < count; ++j) m[N[j].link] -= vector(W[j]) * y;
}
// x −= Σ W_jᵀ a_j
template <class T, class C>
[[gnu::always_inline]] inline void follow_neighbours(const EliminationPlan::Neighbour* N, int count, const Column<T>* W,
                                                     C& x, const Vec6<C>* m) {
  for (int j = 0; j < count; ++j) x -= dot(vector(W[j]), m[N[j].link]);
}

// A free link on the way back: D⁻¹ L⁻¹ f to its m, f_j −= W_j D⁻¹ L⁻¹ f of its neighbours.
template <class T, class C>
[[gnu::always_inline]] inline void collect_free(const EliminationPlan::Neighbour* N,
                                                const EliminationPlan::StepStorage& at, const Factor<T>& F, Vec6<C> g,
                                                int link, Vec6<C>* __restrict m) {
  const Ldl6<T>& LD = F.free[at.factor];
  solve_lower(LD, &g.lin.x);
  Vec6<C> x;
  for (int k = 0; k < 6; ++k) entry(x, k) = entry(g, k) * LD.Dinv[k];
  for (int j = 0; j < at.neighbours; ++j) {
    const Column<T>* W = &F.W[at.W + 6 * j];
    Vec6<C> f = m[N[j].link];
    for (int k = 0; k < 6; ++k) f -= vector(W[k]) * entry(x, k);
    m[N[j].link] = f;
  }
  m[link] = x;
}
// And forward: its acceleration.
template <class T, class C>
[[gnu::always_inline]] inline Vec6<C> spread_free(const EliminationPlan::Neighbour* N,
                                                  const EliminationPlan::StepStorage& at, const Factor<T>& F,
                                                  bool coupled, int link, const Vec6<C>* m) {
  const Ldl6<T>& LD = F.free[at.factor];
  Vec6<C> a = m[link];
  if (coupled) {
    Vec6<C> y{};
    for (int j = 0; j < at.neighbours; ++j) {
      const Column<T>* W = &F.W[at.W + 6 * j];
      const Vec6<C> b = m[N[j].link];
      for (int k = 0; k < 6; ++k) entry(y, k) += dot(vector(W[k]), b);
    }
    for (int k = 0; k < 6; ++k) entry(a, k) -= entry(y, k) * LD.Dinv[k];
  }
  solve_upper(LD, &a.lin.x);
  return a;
}

// Backward, steps first … last − 1: forces m on links that hold some and u on joints on entry; what waits for `spread`
// on exit. Without `driven` u is taken for zero. With forces on all links there are also −f of the loads.
template <bool driven, Load load, class T, class C>
void collect(const Substitution<T, C>& x, int first, int last) {
  const EliminationPlan::Step* steps = x.plan.steps.data();
  const EliminationPlan::StepStorage* storage = x.plan.storage.data();
  const EliminationPlan::Neighbour* neighbours = x.plan.neighbours.data();
  const Factor<T>& F = x.there;
  const Column<T>* W_at = F.W.data();
  const Vec6<T>*S = x.placement.S.data(), *V = F.V.data();
  Vec6<C>* __restrict m = x.m;
  C* __restrict u = x.u;
  Vec6<C> g{};  // force on the link of this step
  const auto take = [&](int k) __attribute__((always_inline)) {
    C y = dot(S[k], g);
    if constexpr (driven) y += u[k];
    u[k] = y;
    g -= V[k] * y;
    return y;
  };
  for (int s = first; s < last; ++s) {
    const auto& step = steps[s];
    if constexpr (takes_strips<load, T, C>)
      if (goes_in_strip<load>(step)) {
        s = collect_side_by_side<driven, load>(x, step);
        continue;
      }
    if (step.holds_force) g += m[step.link];
    if constexpr (load == Load::all) g -= x.loads->links.f[step.link];
    if (step.nv == 1) {
      const C y = take(step.iv);
      if (step.coupled) {
        const auto& at = storage[s];
        push_neighbours(neighbours + at.neighbour, at.neighbours, W_at + at.W, y, m);
      }
    } else if (step.free) {
      const auto& at = storage[s];
      if (driven && (load != Load::rows || step.pushed)) g += free_force(x.placement.pose[step.link].R, u + step.iv);
      collect_free(neighbours + at.neighbour, at, F, g, step.link, m);
      g = Vec6<C>{};
      continue;
    } else {
      const auto& at = storage[s];
      for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
        const C y = take(k);
        push_neighbours(neighbours + at.neighbour, at.neighbours, W_at + at.W + (k - step.iv) * at.neighbours, y, m);
      }
    }
    if (step.hands_over) continue;
    if (step.parent >= 0) m[step.parent] += g;
    g = Vec6<C>{};
  }
}

// Forward, steps last − 1 … first: accelerations of joints in u, of links that show in m; with forces on all links
// those of all links in the loads.
template <bool driven, Load load, class T, class C>
void spread(const Substitution<T, C>& x, int first, int last) {
  const EliminationPlan::Step* steps = x.plan.steps.data();
  const EliminationPlan::StepStorage* storage = x.plan.storage.data();
  const EliminationPlan::Neighbour* neighbours = x.plan.neighbours.data();
  const Factor<T>& F = x.back;
  const Column<T>* W_at = F.W.data();
  const Vec6<T>*S = x.placement.S.data(), *V = F.V.data();
  const T* Dinv = F.Dinv.data();
  Vec6<C>* __restrict m = x.m;
  C* __restrict u = x.u;
  Vec6<C> a{};  // acceleration of the parent, then of the link of this step
  const auto move = [&](int k, C nu) __attribute__((always_inline)) {
    nu -= dot(V[k], a);
    u[k] = nu;
    a += S[k] * nu;
  };
  for (int s = last - 1; s >= first; --s) {
    const auto& step = steps[s];
    if constexpr (takes_strips<load, T, C>)
      if (goes_in_strip<load>(step)) {
        s = spread_side_by_side<driven, load>(x, step);
        continue;
      }
    if (step.free) {
      const auto& at = storage[s];
      a = spread_free(neighbours + at.neighbour, at, F, step.coupled, step.link, m);
      if (driven && (load != Load::rows || step.pushed)) free_velocities(x.placement.pose[step.link].R, a, u + step.iv);
      m[step.link] = a;
      if constexpr (load == Load::all) x.loads->links.a.set(step.link, a);
      continue;
    }
    if (!step.hands_over) {
      if (step.parent >= 0)
        a = m[step.parent];
      else
        a = Vec6<C>{};
    }
    if (step.nv == 1) {
      const int k = step.iv;
      C nu = u[k] * Dinv[k];
      if (step.coupled) {
        const auto& at = storage[s];
        follow_neighbours(neighbours + at.neighbour, at.neighbours, W_at + at.W, nu, m);
      }
      move(k, nu);
    } else {
      const auto& at = storage[s];
      for (int k = step.iv; k < step.iv + step.nv; ++k) {
        C nu = u[k] * Dinv[k];
        follow_neighbours(neighbours + at.neighbour, at.neighbours, W_at + at.W + (k - step.iv) * at.neighbours, nu, m);
        move(k, nu);
      }
    }
    if (step.shows) m[step.link] = a;
    if constexpr (load == Load::all) x.loads->links.a.set(step.link, a);
  }
}

template <bool driven, Load load, class T, class C>
void substitute(const Substitution<T, C>& x, int first, int last) {
  collect<driven, load>(x, first, last);
  spread<driven, load>(x, first, last);
}

}  // namespace delassus
