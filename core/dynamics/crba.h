// Mass matrix M(q) by composite rigid bodies, O(n d) for depth d.
//
//   I^c_p += I^c_i,   F_k = I^c S_k,   M_jk = S_jᵀ F_k for every velocity j between k and the ground,
//       M_kk += armature
//
// Featherstone, Rigid Body Dynamics Algorithms, table 6.2.
#pragma once

#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"

namespace delassus {

// A symmetric matrix that is written entry by entry.
template <class T>
struct Symmetric {
  T* M;
  int n;
  void set(int j, int k, const T& x) { M[std::size_t(j) * n + k] = M[std::size_t(k) * n + j] = x; }
};

// M_jk for velocity k and all j from a velocity on to the ground.
template <class T>
[[gnu::always_inline]] inline void column_above(const Model<real_of<T>>& model, const Workspace<T>& w, int j, int k,
                                                const Vec6<T>& F, Symmetric<T> M) {
  if (j < 0) return;
  const int root = model.roots[model.links[model.dof_link[k]].tree];
  const int iv = model.links[root].iv;
  const bool floating = model.links[root].type == Joint::free && k >= iv + 6;
  for (const int last = floating ? iv + 5 : -1; j > last; j = model.dof_parent[j]) M.set(j, k, dot(w.S[j], F));
  if (floating) {
    T base[6];
    free_velocities(w.pose[root].R, F, base);
    for (int c = 0; c < 6; ++c) M.set(iv + c, k, base[c]);
  }
}

// A run of ranks, the leaves first: M_jk of as many k as there are lanes while j and k stay in the run.
template <class T>
inline void mass_of_ranks(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end, Symmetric<T> M) {
  using P = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  const auto& ranks = w.ranks.ranks;
  Inertia<P> handed{};
  for (int r = end - 1; r >= begin; --r) {
    const auto& rank = ranks[r];
    const Inertia<P> Ic = w.inertia.gather(rank.link) + handed;
    const Vec6<P> F = Ic * w.rank_S[r];
    const P own = dot(w.rank_S[r], F);
    for (int l = 0; l < width; ++l)
      if (rank.full[l] > 0) M.set(rank.iv[l], rank.iv[l], own[l] + model.armature[rank.iv[l]]);
    int a = r;
    for (; ranks[a].joined; --a) {
      const P x = dot(w.rank_S[a - 1], F);
      for (int l = 0; l < width; ++l)
        if (rank.full[l] > 0) M.set(ranks[a - 1].iv[l], rank.iv[l], x[l]);
    }
    for (int l = 0; l < width; ++l)
      if (rank.full[l] > 0) column_above(model, w, model.dof_parent[ranks[a].iv[l]], rank.iv[l], get_lane(F, l), M);
    handed = Ic;
    if (rank.joined) continue;
    for (int l = 0; l < width; ++l)
      if (rank.full[l] > 0) w.inertia.add(rank.parent[l], get_lane(Ic, l));
    handed = Inertia<P>{};
  }
}

// A run of single links, the leaves first.
template <class T>
inline void mass_of_links(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end, Symmetric<T> M) {
  const int* single = w.ranks.single.data();
  Inertia<T> handed{};  // by the next link, if it hangs on this one
  for (int n = end - 1; n >= begin; --n) {
    const int i = single[n];
    const auto& link = model.links[i];
    const Inertia<T> Ic = w.inertia[i] + handed;
    handed = Inertia<T>{};
    if (link.parent >= 0 && n > begin && link.parent == single[n - 1])
      handed = Ic;
    else if (link.parent >= 0)
      w.inertia.add(link.parent, Ic);
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const Vec6<T> F = Ic * w.S[k];
      M.set(k, k, dot(w.S[k], F) + model.armature[k]);
      column_above(model, w, model.dof_parent[k], k, F, M);
    }
  }
}

// M: nv × nv, both triangles. Entries that the tree's branches make zero are written only if `clear`.
template <class T>
void crba(const Model<real_of<T>>& model, Workspace<T>& w, T* __restrict M, bool clear = true) {
  const int nv = model.nv;
  if (clear)
    for (std::size_t e = 0; e < std::size_t(nv) * nv; ++e) M[e] = T{};
  world_inertias(w);
  for (auto part = w.ranks.parts.rbegin(); part != w.ranks.parts.rend(); ++part) {
    if constexpr (link_lanes<T> > 1)
      if (part->abreast) {
        mass_of_ranks(model, w, part->begin, part->end, Symmetric<T>{M, nv});
        continue;
      }
    mass_of_links(model, w, part->begin, part->end, Symmetric<T>{M, nv});
  }
}

}  // namespace delassus
