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

// A symmetric matrix that is written entry by entry: row and column of a velocity.
template <class T>
struct SymmetricColumn {
  T *row, *column;
  std::ptrdiff_t n;
  [[gnu::always_inline]] void set(int j, const T& x) { row[j] = column[j * n] = x; }
};
template <class T>
struct Symmetric {
  T* M;
  std::ptrdiff_t n;
  [[gnu::always_inline]] SymmetricColumn<T> operator[](int k) const { return {M + k * n, M + k, n}; }
};

// M_jk of a column k, for all j from a velocity on towards the ground, none less than `past`.
template <class T>
[[gnu::always_inline]] inline void column_above(const Model<real_of<T>>& model, const Workspace<T>& w, int j, int past,
                                                const Vec6<T>& F, SymmetricColumn<T> M) {
  for (; j >= past; j = model.dof_parent[j]) M.set(j, dot(w.S[j], F));
}
// The same of the six velocities of a free root, whose linear axes are the world's; `base` is F with angular numbers in
// the axes of the root.
template <class T>
[[gnu::always_inline]] inline void column_of_root(int iv, const Vec6<T>& base, SymmetricColumn<T> M) {
  M.set(iv, base.lin.x), M.set(iv + 1, base.lin.y), M.set(iv + 2, base.lin.z);
  M.set(iv + 3, base.ang.x), M.set(iv + 4, base.ang.y), M.set(iv + 5, base.ang.z);
}

// All that stands above k in its column.
template <class T>
[[gnu::always_inline]] inline void whole_column(const Model<real_of<T>>& model, const Workspace<T>& w, int j, int k,
                                                const Vec6<T>& F, Symmetric<T> M) {
  const int root = model.roots[model.links[model.dof_link[k]].tree], iv = model.links[root].iv;
  if (model.links[root].type == Joint::free && k >= iv + 6) {
    column_above(model, w, j, iv + 6, F, M[k]);
    column_of_root(iv, {F.lin, transpose_times(w.pose[root].R, F.ang)}, M[k]);
  } else {
    column_above(model, w, j, 0, F, M[k]);
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
    SymmetricColumn<T> column[width];
    for (int l = 0; l < width; ++l) column[l] = M[rank.iv[l]];
    const P own = dot(w.rank_S[r], F) + gather_lanes(model.armature.data(), rank.armature);
    for (int l = 0; l < width; ++l)
      if (rank.has(l)) column[l].set(rank.iv[l], own[l]);

    // towards the root in lanes that go on, above them limb by limb
    unsigned lanes = rank.lanes;
    for (int a = r;; --a) {
      if (const unsigned leaving = lanes & ~ranks[a].joins) {
        for (int l = 0; l < width; ++l)
          if (leaving >> l & 1) {
            const int j = model.dof_parent[ranks[a].iv[l]];
            if (rank.root < 0)
              whole_column(model, w, j, rank.iv[l], get_lane(F, l), M);
            else if (const int past = model.links[rank.root].iv + 6; j >= past)
              column_above(model, w, j, past, get_lane(F, l), column[l]);
          }
        lanes &= ~leaving;
        if (!lanes) break;
      }
      const P x = dot(w.rank_S[a - 1], F);
      for (int l = 0; l < width; ++l)
        if (lanes >> l & 1) column[l].set(ranks[a - 1].iv[l], x[l]);
    }
    if (rank.root >= 0) {
      const Vec6<P> base{F.lin, transpose_times(w.pose[rank.root].R, F.ang)};
      for (int l = 0; l < width; ++l)
        if (rank.has(l)) column_of_root(model.links[rank.root].iv, get_lane(base, l), column[l]);
    }

    handed = Ic;
    if (rank.joined) continue;
    for (int l = 0; l < width; ++l)
      if (rank.leaves(l)) w.inertia.add(rank.parent[l], get_lane(Ic, l));
    handed = rank.kept(Ic);
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
      M[k].set(k, dot(w.S[k], F) + model.armature[k]);
      whole_column(model, w, model.dof_parent[k], k, F, M);
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
