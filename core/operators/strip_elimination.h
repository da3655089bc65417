// The elimination rule (elimination.h) for links side by side in a register: strips of links with one velocity and no
// neighbours, and strips of free links. The arithmetic is that of one link, with a pack for T.
#pragma once

#include "dynamics/aba.h"
#include "operators/factor.h"

namespace delassus {

// H_pp += H_ii of every lane. `last` is taken by value, so that the sweep's own H may live in registers.
template <class T>
[[gnu::always_inline]] inline void merge_strip(const EliminationPlan& plan, const EliminationPlan::Strip& strip,
                                               const Sym6<StripPack<T>> last, Sym6<T>* __restrict H_at) {
  if (strip.meets) {
    StripPack<T> packs[24]{};
    T sums[24];
    __builtin_memcpy(packs, &last, sizeof(last));
    sum_lanes<T>(packs, sums);
    Sym6<T> all;
    __builtin_memcpy(&all, sums, sizeof(all));
    H_at[strip.parent[0]] += all;
  } else {
    const auto* steps = plan.steps.data() + strip.step;
    for (int l = 0; l < strip.count; ++l)
      if (steps[l].parent >= 0) H_at[steps[l].parent] += get_lane(last, l);
  }
}

// A run of strips, each joined to the next: returns the last one.
template <class T>
[[gnu::noinline]] int eliminate_strips(const Elimination<T>& e, int index) {
  using P = StripPack<T>;
  const auto& plan = e.plan;
  const T* stiffness = e.joint_stiffness;
  Sym6<T>* __restrict H_at = e.H;
  Factor<T>& F = e.factor;
  Sym6<P> H{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    add(H, e.strips.inertia[index]);
    if (strip.holds_inertia) H += gathered<Sym6, P>(H_at, strip.inertia);
    const Vec6<P> S = e.strips.S[index];
    Vec6<P> U;
    eliminate_pivot(
        H, S, e.strips.armature[index], U,
        [&](P& D) {
          if (stiffness)
            D += P{stiffness[strip.iv[0]], stiffness[strip.iv[1]], stiffness[strip.iv[2]], stiffness[strip.iv[3]]};
        },
        [&](const P& Dinv) {
          F.strip_V[index] = U * Dinv;
          F.strip_Dinv[index] = Dinv;
          for (int l = 0; l < strip.count; ++l) {
            F.V[strip.iv[l]] = get_lane(F.strip_V[index], l);
            F.Dinv[strip.iv[l]] = Dinv[l];
          }
        });
    if (!strip.joined) break;
  }
  merge_strip<T>(plan, plan.strips[index], H, H_at);
  return index;
}

// Free links without neighbours: H = L D Lᵀ.
template <class T>
[[gnu::noinline]] void eliminate_free_strip(const Elimination<T>& e, int index) {
  using P = StripPack<T>;
  const auto& w = e.placement;
  const auto& strip = e.plan.free_strips[index];
  Factor<T>& F = e.factor;
  Inertia<P> own;
  auto p = [&](int l) { return w.inertia.lane(strip.link[l]); };
  gather(reinterpret_cast<P*>(&own), sizeof(Inertia<T>) / sizeof(T), p(0), p(1), p(2), p(3), w.inertia.width);
  Sym6<P> H = articulated(own);
  if (strip.holds_inertia) H += gathered<Sym6, P>(e.H, strip.inertia);
  F.strip_free[index] = factor(H);
  for (int l = 0; l < strip.count; ++l) {
    const int factor = e.plan.storage[strip.step + l].factor, iv = e.plan.steps[strip.step + l].iv;
    F.free[factor] = get_lane(F.strip_free[index], l);
    for (int k = 0; k < 6; ++k) F.Dinv[iv + k] = F.free[factor].Dinv[k];
  }
}

// The strips that begin with this step, or the free links beside it: returns their last step.
template <class T>
inline int eliminate_side_by_side(const Elimination<T>& e, const EliminationPlan::Step& step) {
  if (step.free) {
    eliminate_free_strip(e, step.strip);
    const auto& strip = e.plan.free_strips[step.strip];
    return strip.step + strip.count - 1;
  }
  const auto& strip = e.plan.strips[eliminate_strips(e, step.strip)];
  return strip.step + strip.count - 1;
}

}  // namespace delassus
