// Links of one state side by side in a register: four at a time, as the plan has lined them up.
#pragma once

#include <algorithm>

#include "dynamics/workspace.h"
#include "operators/plan.h"

namespace delassus {

// Links, or points, side by side in one state; of a pack of states one.
template <class T>
inline constexpr int strip_lanes = lanes_of<T> == 1 ? 4 : 1;
template <class T>
using StripPack = typename std::conditional_t<strip_lanes<T> == 1, std::type_identity<T>,
                                              pack_of<T, strip_lanes<T> == 1 ? 2 : strip_lanes<T>>>::type;

// Numbers of four links side by side: n components, `stride` apart, from p₀ … p₃.
template <class P, class T>
inline void gather(P* packs, std::size_t n, const T* p0, const T* p1, const T* p2, const T* p3,
                   std::size_t stride = 1) {
  for (std::size_t k = 0; k < n; ++k) packs[k] = P{p0[k * stride], p1[k * stride], p2[k * stride], p3[k * stride]};
}
// The same as a value, which never had an address and so may live in registers.
template <class V, class P, class T, std::size_t... k>
[[gnu::always_inline]] inline V gathered(const T* p0, const T* p1, const T* p2, const T* p3,
                                         std::index_sequence<k...>) {
  struct Flat {
    P c[sizeof...(k)];
  };
  return std::bit_cast<V>(Flat{{P{p0[k], p1[k], p2[k], p3[k]}...}});
}
template <template <class> class V, class P, class T = real_of<P>>
[[gnu::always_inline]] inline V<P> gathered(const V<T>* from, const int* at) {
  auto p = [&](int l) { return reinterpret_cast<const T*>(from + at[l]); };
  return gathered<V<P>, P>(p(0), p(1), p(2), p(3), std::make_index_sequence<sizeof(V<T>) / sizeof(T)>());
}
// Sums over the lanes of n packs, n a multiple of four.
template <class T, std::size_t n>
inline void sum_lanes(const StripPack<T> (&packs)[n], T (&sums)[n]) {
  static_assert(n % 4 == 0);
  if constexpr (strip_lanes<T> == 1) {
    for (std::size_t k = 0; k < n; ++k) sums[k] = packs[k];
  } else {
    using P = StripPack<T>;
    const auto paired = [](const P& a, const P& b) { return shuffle<0, 4, 2, 6>(a, b) + shuffle<1, 5, 3, 7>(a, b); };
    for (std::size_t k = 0; k < n; k += 4) {
      const P a = paired(packs[k], packs[k + 1]), b = paired(packs[k + 2], packs[k + 3]);
      const P all = shuffle<0, 1, 4, 5>(a, b) + shuffle<2, 3, 6, 7>(a, b);
      __builtin_memcpy(sums + k, &all, sizeof(all));
    }
  }
}

// What strips have of a configuration: a strip each.
template <class T>
struct StripPlacement {
  using P = StripPack<T>;
  std::vector<Vec6<P>> S;
  std::vector<Inertia<P>> inertia;
  std::vector<P> armature;  // one in empty lanes
  std::vector<P> full;      // one in lanes that are not empty

  void resize(const Model<real_of<T>>& model, const EliminationPlan& plan) {
    const std::size_t n = plan.strips.size();
    S.resize(n);
    inertia.resize(n);
    armature.assign(n, constant<P>(1));
    full.assign(n, P{});
    for (std::size_t i = 0; i < n; ++i)
      for (int l = 0; l < plan.strips[i].count; ++l) lane(full[i], l) = 1;
    read_armature(model, plan);
  }
  void read_armature(const Model<real_of<T>>& model, const EliminationPlan& plan) {
    for (std::size_t i = 0; i < armature.size(); ++i)
      for (int l = 0; l < plan.strips[i].count; ++l) lane(armature[i], l) = model.armature[plan.strips[i].iv[l]];
  }
  void take_motions(const EliminationPlan& plan, const Placement<T>& w) {
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < S.size(); ++i) S[i] = gathered<Vec6, P>(w.S.data(), plan.strips[i].iv) * full[i];
  }
  void take_inertias(const EliminationPlan& plan, const Placement<T>& w) {
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < inertia.size(); ++i) {
        const auto& strip = plan.strips[i];
        auto p = [&](int l) { return w.inertia.lane(plan.steps[strip.step + (l < strip.count ? l : 0)].link); };
        gather(reinterpret_cast<P*>(&inertia[i]), sizeof(Inertia<T>) / sizeof(T), p(0), p(1), p(2), p(3),
               w.inertia.width);
      }
  }
  std::size_t bytes() const { return S.size() * (sizeof(Vec6<P>) + sizeof(Inertia<P>) + 2 * sizeof(P)); }
};

// Accelerations and forces of links in strips, a strip each.
template <class T>
struct StripMotions {
  using P = StripPack<T>;
  std::vector<Vec6<P>> a, f;

  explicit StripMotions(const EliminationPlan& plan) : a(plan.strips.size()), f(plan.strips.size()) {}
  std::size_t bytes() const { return 2 * f.size() * sizeof(Vec6<P>); }
};

// Forces −f on all links and the accelerations a that they end in. Links in strips have them there alone, once the
// strips have taken their forces.
template <class T>
struct Loads {
  using P = StripPack<T>;
  Motions<T>& links;
  StripMotions<T>& strips;

  void take_forces(const EliminationPlan& plan) {
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < strips.f.size(); ++i) {
        auto p = [&](int l) { return std::as_const(links.f).lane(plan.strips[i].link[l]); };
        gather(reinterpret_cast<P*>(&strips.f[i]), 6, p(0), p(1), p(2), p(3), links.f.width);
      }
  }
  // f ← 0
  void clear_forces() {
    for (int b = 0; b < links.f.blocks(); ++b) links.f.block(b) = typename PerLink<Vec6, T>::Block{};
    std::fill(strips.f.begin(), strips.f.end(), Vec6<P>{});
  }
  // f += I a
  void add_inertial(const Placement<T>& w, const StripPlacement<T>& placed) {
    for (int b = 0; b < links.f.blocks(); ++b) links.f.block(b) += w.inertia.block(b) * links.a.block(b);
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < strips.f.size(); ++i) strips.f[i] += placed.inertia[i] * strips.a[i];
  }
  // a ← 0 in a lane of states
  void forget(int l) {
    const auto clear = [&](auto* x, std::size_t n) {
      for (std::size_t k = 0; k < n; ++k)
        if constexpr (lanes_of<T> == 1)
          x[k] = std::remove_cvref_t<decltype(*x)>{};
        else
          lane(x[k], l) = 0;
    };
    for (int b = 0; b < links.a.blocks(); ++b) clear(reinterpret_cast<LinkPack<T>*>(&links.a.block(b)), 6);
    clear(reinterpret_cast<P*>(strips.a.data()), 6 * strips.a.size());
  }
};

}  // namespace delassus
