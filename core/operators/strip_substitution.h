// Substitution (substitution.h) of one column with links side by side in a register: strips of links with one velocity
// and no neighbours, and strips of free links. The arithmetic is that of one link, with a pack for T. Both sweeps begin
// with the same local pointers, for the reason given in substitution.h.
#pragma once

#include <type_traits>

#include "dynamics/aba.h"
#include "operators/factor.h"

namespace delassus {

// What a right-hand side is: forces on links that hold some, joints being pushed only where the plan says so; the same
// and on all joints; on all links and joints.
enum class Load { rows, joints, all };

// One right-hand side and the factors it is solved with, on its way to the root and back: the same one, or of a matrix
// that is not symmetric two. C is T or a pack of columns of T.
template <class T, class C>
struct Substitution {
  const EliminationPlan& plan;
  const Placement<T>& placement;
  const StripPlacement<T>& strips;
  const Factor<T>&there, &back;
  Vec6<C>* m;                       // a link: forces on entry, accelerations on exit
  C* u;                             // a velocity: forces, then u, then accelerations
  StripPack<T>* strip_u;            // a strip: u between both sweeps
  const Loads<T>* loads = nullptr;  // forces on all links; read with Load::all only
};

// One column takes strips whole, if forces on links are not to be left out; of rows their numbers are kept in
// `strip_u`, else in u.
template <Load load, class T, class C>
inline constexpr bool takes_strips = load != Load::joints && strip_lanes<T> > 1 && std::is_same_v<T, C>;
// But not those of free joints where they are pushed.
template <Load load>
inline bool goes_in_strip(const EliminationPlan::Step& step) {
  return step.strip >= 0 && (load == Load::rows || !step.free);
}

// Backward along a run of strips, each joined to the next: returns the last one.
template <bool driven, Load load, class T>
[[gnu::noinline]] int collect_strips(const Substitution<T, T>& x, int index) {
  using P = StripPack<T>;
  const auto& plan = x.plan;
  Vec6<T>* __restrict m = x.m;
  T* u = x.u;
  P* __restrict strip_u = x.strip_u;
  Vec6<P> g{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    if (strip.holds_force) g += gathered<Vec6, P>(m, strip.force);
    if constexpr (load == Load::all) g -= x.loads->strips.f[index];
    P y = dot(x.strips.S[index], g);
    if constexpr (driven) y += P{u[strip.iv[0]], u[strip.iv[1]], u[strip.iv[2]], u[strip.iv[3]]};
    if constexpr (load == Load::all)
      for (int l = 0; l < strip.count; ++l) u[strip.iv[l]] = y[l];
    else
      strip_u[index] = y;
    g -= x.there.strip_V[index] * y;
    if (!strip.joined) break;
  }

  // f_p += f_i of every lane
  const auto& strip = plan.strips[index];
  const Vec6<P> last = g;  // a copy, so that g itself may live in registers
  if (strip.meets) {
    P packs[8]{};
    T sums[8];
    __builtin_memcpy(packs, &last, sizeof(last));
    sum_lanes<T>(packs, sums);
    m[strip.parent[0]] += Vec6<T>{{sums[0], sums[1], sums[2]}, {sums[3], sums[4], sums[5]}};
  } else {
    for (int l = 0; l < strip.count; ++l)
      if (const int p = plan.steps[strip.step + l].parent; p >= 0) m[p] += get_lane(last, l);
  }
  return index;
}

// Forward along the same run, from its last strip, with the accelerations m of its parents: returns the first one.
template <bool driven, Load load, class T>
[[gnu::noinline]] int spread_strips(const Substitution<T, T>& x, int index) {
  using P = StripPack<T>;
  const auto& plan = x.plan;
  Vec6<T>* __restrict m = x.m;
  T* u = x.u;
  const P* strip_u = x.strip_u;
  Vec6<P> a;
  if (plan.strips[index].meets) {
    const Vec6<T>& one = m[plan.strips[index].parent[0]];
    a = {{constant<P>(one.lin.x), constant<P>(one.lin.y), constant<P>(one.lin.z)},
         {constant<P>(one.ang.x), constant<P>(one.ang.y), constant<P>(one.ang.z)}};
  } else {
    a = gathered<Vec6, P>(m, plan.strips[index].parent);
  }
  for (;; --index) {
    const auto& strip = plan.strips[index];
    P nu;
    if constexpr (load == Load::all)
      nu = P{u[strip.iv[0]], u[strip.iv[1]], u[strip.iv[2]], u[strip.iv[3]]};
    else
      nu = strip_u[index];
    nu = nu * x.back.strip_Dinv[index] - dot(x.back.strip_V[index], a);
    a += x.strips.S[index] * nu;
    if constexpr (load == Load::all) x.loads->strips.a[index] = a;
    if constexpr (driven)
      for (int l = 0; l < strip.count; ++l) u[strip.iv[l]] = nu[l];
    if (strip.shows) {
      const Vec6<P> now = a;
      for (int l = 0; l < strip.count; ++l)
        if (const auto& step = plan.steps[strip.step + l]; step.lane_shows) m[step.link] = get_lane(now, l);
    }
    if (index == 0 || !plan.strips[index - 1].joined) return index;
  }
}

// Forces on free links without neighbours become their accelerations at once.
template <class T, class P>
inline void solve_free_strip(const EliminationPlan::FreeStrip& strip, const Ldl6<P>& LD, const Ldl6<P>& upper,
                             Vec6<T>* m) {
  Vec6<P> a = gathered<Vec6, P>(m, strip.force);
  solve_lower(LD, &a.lin.x);
  for (int k = 0; k < 6; ++k) entry(a, k) *= LD.Dinv[k];
  solve_upper(upper, &a.lin.x);
  for (int l = 0; l < strip.count; ++l) m[strip.link[l]] = get_lane(a, l);
}

// The strips that begin with this step, or the free links beside it: returns their last step.
template <bool driven, Load load, class T>
inline int collect_side_by_side(const Substitution<T, T>& x, const EliminationPlan::Step& step) {
  if (step.free) {
    const auto& strip = x.plan.free_strips[step.strip];
    solve_free_strip(strip, x.there.strip_free[step.strip], x.back.strip_free[step.strip], x.m);
    return strip.step + strip.count - 1;
  }
  const auto& end = x.plan.strips[collect_strips<driven, load>(x, step.strip)];
  return end.step + end.count - 1;
}
// Those that end with it: returns their first step.
template <bool driven, Load load, class T>
inline int spread_side_by_side(const Substitution<T, T>& x, const EliminationPlan::Step& step) {
  if (step.free) return x.plan.free_strips[step.strip].step;
  return x.plan.strips[spread_strips<driven, load>(x, step.strip)].step;
}

}  // namespace delassus
