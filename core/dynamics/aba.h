// Forward dynamics ν̇ = M⁻¹ (τ − c(q, ν) + Jᵀf) by articulated bodies, O(n); and the same elimination kept as a factor
// of M.
//
//   U = H S,   D = Sᵀ U + armature,   u = τ − Sᵀ f,   H −= U D⁻¹ Uᵀ,   f += U D⁻¹ u,   H_p += H,   f_p += f
//   ν̇ = D⁻¹ (u − Uᵀ a_p),   a_i = a_p + S ν̇
//
// Featherstone, table 7.1, with the velocity-dependent accelerations removed beforehand: f starts as the force of the
// motion with ν̇ = 0, a is the acceleration that ν̇ adds, and no product H c is needed. Velocities of one joint are
// eliminated one at a time, which gives the LDLᵀ factors of its block; a free joint, whose S is square, gives a = H⁻¹
// (S⁻ᵀ τ − f) at once.
#pragma once

#include <algorithm>
#include <limits>

#include "dynamics/inertia.h"
#include "dynamics/pivot.h"
#include "dynamics/rnea.h"

namespace delassus {

// Adds what sits on the axes of a free joint, such as armature: linear in world axes, angular in the link's.
template <class T, class A>
inline void add_free(Sym6<T>& H, const Mat3<T>& R, const A* armature) {
  H.A.xx += armature[0];
  H.A.yy += armature[1];
  H.A.zz += armature[2];
  add_outer(H.C, R.x, R.x * armature[3]);
  add_outer(H.C, R.y, R.y * armature[4]);
  add_outer(H.C, R.z, R.z * armature[5]);
}

// Inverse of a free link's articulated inertia with its armature.
template <class T>
inline Sym6<T> invert_free(Sym6<T> H, const Mat3<T>& R, const real_of<T>* armature) {
  add_free(H, R, armature);
  return inverse(H);
}

// Nothing handed down yet to the links that wait for it.
template <class T>
inline void clear_waiting(Workspace<T>& w) {
  for (const int i : w.ranks.waiting) w.H[i] = Sym6<T>{};
}

// The forces that an elimination carries along: none, or those that joint torques tau (null: zero) exert on the links.
template <class T>
struct NoForces {};
template <class T>
struct LinkForces {
  const T* tau;
  T* vdot;
};
template <class Forces>
inline constexpr bool has_forces = requires(Forces f) { f.vdot; };

// A run of ranks, the leaves first.
template <class T, class Forces>
[[gnu::always_inline]] inline void eliminate_ranks(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end,
                                                   const Forces& forces) {
  using P = LinkPack<T>;
  Sym6<P> H{};
  Vec6<P> f{};
  for (int r = end - 1; r >= begin; --r) {
    const auto& rank = w.ranks.ranks[r];
    add(H, w.inertia.block(rank.block));
    if (rank.waits) H += gather(w.H.data(), rank.link);
    const Vec6<P> S = w.rank_S[r];
    auto& factor = w.rank_factor[r];
    P u{};
    if constexpr (has_forces<Forces>) {
      f += w.f.block(rank.block);
      u = (forces.tau ? gather_lanes(forces.tau, rank.armature) : P{}) - dot(S, f);
    }
    Vec6<P> U;
    P D;
    eliminate_pivot(
        H, S, gather_lanes(model.armature.data(), rank.armature), U,
        [&](P& pivot) { pivot = rank.full > 0 ? pivot : constant<P>(1); }, [&](const P& d) { D = d; });
    factor = {U, D, u};
    scatter(w.U.data(), rank.iv, U);
    scatter_lanes(w.Dinv.data(), rank.iv, D);
    if constexpr (has_forces<Forces>) f += U * (D * u);
    if (rank.joined) continue;
    for (int l = 0; l < link_lanes<T>; ++l)
      if (rank.leaves(l)) {
        w.H[rank.parent[l]] += get_lane(H, l);
        if constexpr (has_forces<Forces>) w.f.add(rank.parent[l], get_lane(f, l));
      }
    H = rank.kept(H);
    f = rank.kept(f);
  }
}

// A run of single links, the leaves first. A free root moves at once.
template <class T, class Forces>
[[gnu::always_inline]] inline void eliminate_links(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end,
                                                   const Forces& forces) {
  const int* single = w.ranks.single.data();
  Sym6<T> handed{};  // by the next link, if it hangs on this one
  Vec6<T> handed_force{};
  for (int n = end - 1; n >= begin; --n) {
    const int i = single[n];
    const auto& link = model.links[i];
    Sym6<T> H = articulated(w.inertia[i]);
    H += handed;
    if (w.ranks.waits[i]) H += w.H[i];
    handed = Sym6<T>{};
    Vec6<T> f{};
    if constexpr (has_forces<Forces>) f = w.f[i] + handed_force;
    handed_force = Vec6<T>{};
    if (link.type == Joint::free) {
      const Mat3<T> R = w.pose[i].R;
      w.Hinv[link.tree] = invert_free(H, R, &model.armature[link.iv]);
      if constexpr (has_forces<Forces>) {
        const Vec6<T> force = forces.tau ? free_force(R, forces.tau + link.iv) - f : Vec6<T>{} - f;
        const Vec6<T> a = w.Hinv[link.tree] * force;
        free_velocities(R, a, forces.vdot + link.iv);
        w.a.set(i, a);
      }
      continue;
    }
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      if constexpr (has_forces<Forces>) w.u[k] = (forces.tau ? forces.tau[k] : T{}) - dot(w.S[k], f);
      eliminate_pivot(H, w.S[k], model.armature[k], w.U[k], w.Dinv[k]);
      if constexpr (has_forces<Forces>) f += w.U[k] * (w.Dinv[k] * w.u[k]);
    }
    if (link.parent < 0) continue;
    if (n > begin && link.parent == single[n - 1]) {
      handed = H;
      handed_force = f;
    } else {
      w.H[link.parent] += H;
      if constexpr (has_forces<Forces>) w.f.add(link.parent, f);
    }
  }
}

// Backward: eliminate every joint.
template <class T, class Forces>
inline void eliminate(const Model<real_of<T>>& model, Workspace<T>& w, const Forces& forces) {
  world_inertias(w);
  clear_waiting(w);
  for (auto part = w.ranks.parts.rbegin(); part != w.ranks.parts.rend(); ++part) {
    if constexpr (link_lanes<T> > 1)
      if (part->abreast) {
        eliminate_ranks(model, w, part->begin, part->end, forces);
        continue;
      }
    eliminate_links(model, w, part->begin, part->end, forces);
  }
}

// Factor of M at the present kinematics: U, D⁻¹ of every velocity, H⁻¹ of every free root.
template <class T>
void factorize(const Model<real_of<T>>& model, Workspace<T>& w) {
  eliminate(model, w, NoForces<T>{});
}

// Whether every pivot stands so far out of rounding that there is no need to ask is_regular: `bound` is at least SᵀIᶜS,
// whatever q. Both have one number per velocity, Dinv of a free joint along the world's axes.
template <class T>
bool is_surely_regular(const std::vector<real_of<T>>& bound, const T* Dinv) {
  constexpr real_of<T> least = 64 * std::numeric_limits<real_of<T>>::epsilon();
  T smallest = constant<T>(std::numeric_limits<real_of<T>>::max()), largest{}, sum{};
  for (std::size_t k = 0; k < bound.size(); ++k) {
    const T d = Dinv[k], x = d * bound[k];
    smallest = smallest < d ? smallest : d;
    largest = largest > x ? largest : x;
    sum += x;
  }
  bool sure = true;
  for (int l = 0; l < lanes_of<T>; ++l)
    sure = sure && lane(smallest, l) > 0 && lane(largest, l) * least < 1 && std::isfinite(lane(sum, l));
  return sure;
}

// Whether every pivot stands out of rounding: D against SᵀIᶜS, what the joint moves when all joints beyond it are
// locked. If not, M is singular to working precision and what was computed with the factor means nothing. After
// world_inertias and a factor: Dinv(k) is D⁻¹ of velocity k, free_Dinv(tree, k) the same of a free root along the
// world's axes. `composite` is memory for one inertia a link.
template <class T, class F, class G>
bool is_regular(const Model<real_of<T>>& model, const Placement<T>& w, Inertia<T>* composite, F&& Dinv, G&& free_Dinv) {
  constexpr real_of<T> least = 8 * std::numeric_limits<real_of<T>>::epsilon();
  const int nl = int(model.links.size());
  T smallest = constant<T>(std::numeric_limits<real_of<T>>::max()), largest{}, sum{};
  auto judge = [&](const T& d, const T& locked) {
    const T x = d * locked;
    smallest = smallest < d ? smallest : d;
    largest = largest > x ? largest : x;
    sum += d;
  };
  for (int i = 0; i < nl; ++i)
    if (model.links[i].branches) composite[i] = Inertia<T>{};
  Inertia<T> handed{};
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    Inertia<T> all = w.inertia[i] + handed;
    if (link.branches) all = all + composite[i];
    handed = Inertia<T>{};
    if (link.parent >= 0 && link.parent == i - 1)
      handed = all;
    else if (link.parent >= 0)
      composite[link.parent] = composite[link.parent] + all;
    const auto* armature = &model.armature[link.iv];
    if (link.type == Joint::free) {
      const T turning = constant<T>(std::max({armature[3], armature[4], armature[5]}));
      for (int k = 0; k < 3; ++k) judge(free_Dinv(link.tree, k), all.m + armature[k]);
      judge(free_Dinv(link.tree, 3), all.I.xx + turning);
      judge(free_Dinv(link.tree, 4), all.I.yy + turning);
      judge(free_Dinv(link.tree, 5), all.I.zz + turning);
      continue;
    }
    for (int k = 0; k < link.nv; ++k) {
      const Vec6<T> S = w.S[link.iv + k];
      judge(Dinv(link.iv + k), dot(S, all * S) + armature[k]);
    }
  }
  bool regular = true;
  for (int l = 0; l < lanes_of<T>; ++l)
    regular = regular && lane(smallest, l) > 0 && lane(largest, l) * least < 1 && std::isfinite(lane(sum, l));
  return regular;
}
template <class T>
bool is_regular(const Model<real_of<T>>& model, Workspace<T>& w) {
  return is_regular(
      model, w, w.composite.data(), [&](int k) { return w.Dinv[k]; },
      [&](int tree, int k) {
        // of a root that is inverted at once: (H⁻¹)_kk
        const Sym6<T>& X = w.Hinv[tree];
        return k < 3 ? (k == 0 ? X.A.xx : k == 1 ? X.A.yy : X.A.zz) : k == 3 ? X.C.xx : k == 4 ? X.C.yy : X.C.zz;
      });
}

// A run of ranks: accelerations of joints and links. Those of links are in memory for who reads them there.
template <class T>
[[gnu::always_inline]] inline void accelerate_ranks(Workspace<T>& w, int begin, int end, T* vdot) {
  using P = LinkPack<T>;
  Vec6<P> a{};
  for (int r = begin; r < end; ++r) {
    const auto& rank = w.ranks.ranks[r];
    if (!rank.joined) a = w.a.gather(rank.parent);
    const auto& factor = w.rank_factor[r];
    const P x = factor.Dinv * (factor.u - dot(factor.U, a));
    for (int l = 0; l < link_lanes<T>; ++l)
      if (rank.has(l)) vdot[rank.iv[l]] = x[l];
    a += w.rank_S[r] * x;
    if (rank.shows) w.a.block(rank.block) = a;
  }
}

// A run of single links.
template <class T>
[[gnu::always_inline]] inline void accelerate_links(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end,
                                                    T* vdot) {
  const int* single = w.ranks.single.data();
  Vec6<T> a{};
  for (int n = begin, before = -1; n < end; before = single[n++]) {
    const int i = single[n];
    const auto& link = model.links[i];
    if (link.type == Joint::free) {
      a = w.a[i];
      continue;
    }
    if (link.parent < 0)
      a = Vec6<T>{};
    else if (link.parent != before)
      a = w.a[link.parent];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      vdot[k] = w.Dinv[k] * (w.u[k] - dot(w.U[k], a));
      a += w.S[k] * vdot[k];
    }
    if (w.ranks.shows[i]) w.a.set(i, a);
  }
}

// tau may be null (zero), external may be null (none); vdot may be tau or v.
template <class T>
void aba(const Model<real_of<T>>& model, Workspace<T>& w, const T* v, const T* tau, const T* external, T* vdot) {
  // forward: force of the motion without joint accelerations
  const Vec3<T> up{constant<T>(-model.gravity.x), constant<T>(-model.gravity.y), constant<T>(-model.gravity.z)};
  motions(model, w, w, v, static_cast<const T*>(nullptr), up);
  inertial_forces(w, w);
  if (external) subtract_external(model, w, w, external);

  // backward: eliminate every joint
  eliminate(model, w, LinkForces<T>{tau, vdot});

  // forward: accelerations of joints and links
  for (const auto& part : w.ranks.parts) {
    if constexpr (link_lanes<T> > 1)
      if (part.abreast) {
        accelerate_ranks(w, part.begin, part.end, vdot);
        continue;
      }
    accelerate_links(model, w, part.begin, part.end, vdot);
  }
}

}  // namespace delassus
