// A number for every velocity k and every velocity j between k and the ground: S_jᵀ F_k, in O(n d) for depth d. With
// F_k = Iᶜ S_k these are the entries of M (crba.h), with F_k = D⁻¹ U_k those of its factor (triangle.h).
//
// `Matrix` takes them: matrix[k] is column k, column.set(j, x) an entry of it.
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

// Column k, for all j from a velocity on towards the ground, none less than `past`.
template <class T, class Column>
[[gnu::always_inline]] inline void column_above(const Model<real_of<T>>& model, const Workspace<T>& w, int j, int past,
                                                const Vec6<T>& F, Column column) {
  for (; j >= past; j = model.dof_parent[j]) column.set(j, dot(w.S[j], F));
}
// The same of the six velocities of a free root, whose linear axes are the world's; `base` is F with angular numbers in
// the axes of the root.
template <class T, class Column>
[[gnu::always_inline]] inline void column_of_root(int iv, const Vec6<T>& base, Column column) {
  column.set(iv, base.lin.x), column.set(iv + 1, base.lin.y), column.set(iv + 2, base.lin.z);
  column.set(iv + 3, base.ang.x), column.set(iv + 4, base.ang.y), column.set(iv + 5, base.ang.z);
}

// Column k from j on.
template <class T, class Matrix>
[[gnu::always_inline]] inline void whole_column(const Model<real_of<T>>& model, const Workspace<T>& w, int j, int k,
                                                const Vec6<T>& F, const Matrix& matrix) {
  const int root = model.roots[model.links[model.dof_link[k]].tree], iv = model.links[root].iv;
  if (model.links[root].type == Joint::free && k >= iv + 6) {
    column_above(model, w, j, iv + 6, F, matrix[k]);
    column_of_root(iv, Vec6<T>{F.lin, transpose_times(w.pose[root].R, F.ang)}, matrix[k]);
  } else {
    column_above(model, w, j, 0, F, matrix[k]);
  }
}

// Columns of a rank, all above the velocities of the rank itself: side by side while j and k stay in one run of ranks.
template <class T, class Matrix>
[[gnu::always_inline]] inline void columns_of_rank(const Model<real_of<T>>& model, const Workspace<T>& w, int r,
                                                   const Vec6<LinkPack<T>>& F, const Matrix& matrix) {
  using P = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  const auto& rank = w.ranks.ranks[r];
  const int iv = rank.root < 0 ? 0 : model.links[rank.root].iv, past = rank.root < 0 ? 0 : iv + 6;
  decltype(matrix[0]) column[width];
  for (int l = 0; l < width; ++l) column[l] = matrix[rank.iv[l]];

  // towards the root in lanes that go on, above them limb by limb
  unsigned lanes = rank.lanes;
  const auto* at = &rank;
  for (const Vec6<P>* S = &w.rank_S[r];; --at) {
    if (const unsigned leaving = lanes & ~at->joins) {
      for (int l = 0; l < width; ++l)
        if (leaving >> l & 1) {
          const int j = model.dof_parent[at->iv[l]];
          if (rank.root < 0)
            whole_column(model, w, j, rank.iv[l], get_lane(F, l), matrix);
          else if (j >= past)
            column_above(model, w, j, past, get_lane(F, l), column[l]);
        }
      lanes &= ~leaving;
      if (!lanes) break;
    }
    const P x = dot(*--S, F);
    const int* const j = at[-1].iv;
    if (lanes == rank.all)
      for (int l = 0; l < width; ++l) column[l].set(j[l], x[l]);
    else
      for (int l = 0; l < width; ++l)
        if (lanes >> l & 1) column[l].set(j[l], x[l]);
  }
  if (rank.root < 0) return;
  const Vec6<P> base{F.lin, transpose_times(w.pose[rank.root].R, F.ang)};
  if (rank.lanes == rank.all)
    for (int l = 0; l < width; ++l) column_of_root(iv, get_lane(base, l), column[l]);
  else
    for (int l = 0; l < width; ++l)
      if (rank.has(l)) column_of_root(iv, get_lane(base, l), column[l]);
}

}  // namespace delassus
