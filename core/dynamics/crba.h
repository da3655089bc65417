// Mass matrix M(q) by composite rigid bodies, O(n d) for depth d.
//
//   I^c_p += I^c_i,   F_k = I^c S_k,   M_jk = S_jᵀ F_k for every velocity j between k and the ground,
//       M_kk += armature
//
// Featherstone, Rigid Body Dynamics Algorithms, table 6.2.
#pragma once

#include "dynamics/ancestors.h"
#include "dynamics/inertia.h"

namespace delassus {

// A symmetric matrix that is written entry by entry: row and column of a velocity.
template <class T>
struct SymmetricColumn {
  T *row, *column;
  std::ptrdiff_t n;
  [[gnu::always_inline]] void set(int j, const T& x) const { row[j] = column[j * n] = x; }
};
template <class T>
struct Symmetric {
  T* M;
  std::ptrdiff_t n;
  [[gnu::always_inline]] SymmetricColumn<T> operator[](int k) const { return {M + k * n, M + k, n}; }
};

// A run of ranks, the leaves first.
template <class T>
inline void mass_of_ranks(const Model<real_of<T>>& model, Workspace<T>& w, int begin, int end, Symmetric<T> M) {
  using P = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  const auto& ranks = w.ranks.ranks;
  Inertia<P> handed{};
  for (int r = end - 1; r >= begin; --r) {
    const auto& rank = ranks[r];
    const Inertia<P> Ic = w.inertia.block(rank.block) + handed;
    const Vec6<P> F = Ic * w.rank_S[r];
    const P own = dot(w.rank_S[r], F) + gather_lanes(model.armature.data(), rank.armature);
    for (int l = 0; l < width; ++l)
      if (rank.has(l)) M[rank.iv[l]].set(rank.iv[l], own[l]);
    columns_of_rank(model, w, r, F, M);

    handed = Ic;
    if (rank.joined) continue;
    for (int l = 0; l < width; ++l)
      if (rank.leaves(l)) w.inertia.add(rank.parent[l], get_lane(Ic, l));
    handed = rank.kept(Ic);
  }
}

// A free root's own block. About its place, with h and I of all that it carries: along the world's axes [m, −[h]×;
// [h]×, I], angular numbers turned into those of the root.
template <class T>
inline void mass_of_free(const Inertia<T>& Ic, const Mat3<T>& R, const real_of<T>* armature, int iv, Symmetric<T> M) {
  const Vec3<T> axes[3] = {R.x, R.y, R.z};
  const Sym3<T> I = congruence(transpose(R), Ic.I);
  const T turning[3][3] = {{I.xx}, {I.xy, I.yy}, {I.xz, I.yz, I.zz}};
  for (int k = 0; k < 3; ++k) {
    for (int j = 0; j < k; ++j) M[iv + k].set(iv + j, T{});
    M[iv + k].set(iv + k, Ic.m + armature[k]);
  }
  for (int k = 0; k < 3; ++k) {
    const SymmetricColumn<T> column = M[iv + 3 + k];
    const Vec3<T> f = cross(axes[k], Ic.h);
    column.set(iv, f.x), column.set(iv + 1, f.y), column.set(iv + 2, f.z);
    for (int j = 0; j < k; ++j) column.set(iv + 3 + j, turning[k][j]);
    column.set(iv + 3 + k, turning[k][k] + armature[3 + k]);
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
    if (link.type == Joint::free) {
      mass_of_free(Ic, w.pose[i].R, &model.armature[link.iv], link.iv, M);
      continue;
    }
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
