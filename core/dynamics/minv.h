// M⁻¹(q) directly, without M: O(n²) numbers, each in constant time.
//
// Carpentier, "Analytical inverse of the joint space inertia matrix", 2018, algorithm 1, with line 14 replaced by its
// correction F_p += F + U M⁻¹[i, subtree]: what a subtree transmits includes what its own subtrees transmitted. Columns
// are processed in blocks of a register's width. In world axes one F serves all links, because the columns of disjoint
// subtrees are disjoint, and a parent's P is overwritten by its last child.
//
//   backward  row_k = D⁻¹ (e_k − S_kᵀ F),   F += U_k row_k          on the columns of k's subtree
//   forward   row_k −= D⁻¹ U_kᵀ P_p,   P_k = P_p + S_k row_k        on the columns from k on; the rest by symmetry
#pragma once

#include "dense/square.h"
#include "dynamics/aba.h"
#include "dynamics/columns.h"

namespace delassus {

// Blocks of a matrix's rows, where it stands; the last columns, if they fill no block, wait in `tail`.
template <class T>
struct RowBlocks {
  using C = LinkPack<T>;
  T* matrix;
  C* tail;
  int n, whole;

  RowBlocks(T* m, C* t, int size) : matrix(m), tail(t), n(size), whole(size / link_lanes<T>) {}
  C get(int k, int b) const {
    C x;
    __builtin_memcpy(&x,
                     b < whole ? matrix + std::size_t(k) * n + b * link_lanes<T> : reinterpret_cast<const T*>(tail + k),
                     sizeof(x));
    return x;
  }
  void set(int k, int b, const C& x) {
    __builtin_memcpy(b < whole ? matrix + std::size_t(k) * n + b * link_lanes<T> : reinterpret_cast<T*>(tail + k), &x,
                     sizeof(x));
  }
};

// From the factor of M made by `factorize` or `aba`. Minv: nv × nv, both triangles.
template <class T>
void inverse_of_factor(const Model<real_of<T>>& model, Workspace<T>& w, T* __restrict Minv) {
  using C = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  w.prepare_inverse(model);
  const int nl = int(model.links.size()), nv = model.nv, blocks = w.column_blocks;
  RowBlocks<T> rows(Minv, w.column.data(), nv);

  // backward: the response of k to torques in its subtree, the ground of k held fixed; a torque on a free root is a
  // force
  for (int b = 0; b < blocks; ++b) w.F.block(b) = Vec6<C>{};
  for (int k = nv - 1; k >= 0; --k) {
    const auto& link = model.links[model.dof_link[k]];
    const int end = link.end_v;
    if (link.type == Joint::free) {
      w.F.block(k / width) -= w.S[k] * within<T>(C{} + real_of<T>(1), k / width * width, k, k + 1);
      continue;
    }
    const Vec6<T> S = w.S[k] * w.Dinv[k], U = w.U[k];
    for (int b = k / width; b * width < end; ++b) {
      const C unit = within<T>(C{} + w.Dinv[k], b * width, k, k + 1);
      const C row = within<T>(unit - dot(S, w.F.block(b)), b * width, k, end);
      w.F.block(b) += U * row;
      rows.set(k, b, row);
    }
  }

  // forward: a free root moves at once; elsewhere add the motion of what carries k
  for (int i = 0; i < nl; ++i) {
    const auto& link = model.links[i];
    const int end = model.links[model.roots[link.tree]].end_v;
    Vec6<C>* Q = w.P.data() + std::size_t(w.slot[i]) * blocks;
    if (link.type == Joint::free) {
      const Mat3<T> R = w.pose[i].R;
      for (int b = link.iv / width; b * width < end; ++b) {
        const Vec6<C> f = w.F.block(b);
        auto own = [&](const C& x) { return within<T>(C{} - x, b * width, link.iv, end); };
        Q[b] = w.Hinv[link.tree] *
               Vec6<C>{{own(f.lin.x), own(f.lin.y), own(f.lin.z)}, {own(f.ang.x), own(f.ang.y), own(f.ang.z)}};
        C base[6];
        free_velocities(R, Q[b], base);
        for (int k = 0; k < 6; ++k) rows.set(link.iv + k, b, base[k]);
      }
      continue;
    }
    const Vec6<C>* P = link.parent < 0 ? nullptr : w.P.data() + std::size_t(w.slot[link.parent]) * blocks;
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      const Vec6<T> S = w.S[k], U = w.U[k] * w.Dinv[k];
      const bool read = !w.leaf[i] || k + 1 < link.iv + link.nv;
      for (int b = k / width; b * width < end; ++b) {
        C row = b * width < link.end_v ? rows.get(k, b) : C{};
        Vec6<C> a{};
        if (P) a = P[b];
        row -= dot(U, a);
        rows.set(k, b, row);
        if (read) Q[b] = a + S * row;
      }
      P = Q;
    }
  }

  // the last columns, other trees' columns, the other triangle
  for (int k = 0; k < nv; ++k) {
    T* row = Minv + std::size_t(k) * nv;
    const int end = model.links[model.roots[model.links[model.dof_link[k]].tree]].end_v;
    if constexpr (width > 1)
      for (int j = rows.whole * width; j < end; ++j) row[j] = lane(rows.tail[k], j - rows.whole * width);
    for (int j = end; j < nv; ++j) row[j] = T{};
    if constexpr (width == 1)
      for (int j = 0; j < k; ++j) row[j] = Minv[std::size_t(j) * nv + k];
  }
  if constexpr (width > 1) dense::mirror_upper(nv, Minv, nv);
}

template <class T>
void mass_matrix_inverse(const Model<real_of<T>>& model, Workspace<T>& w, T* Minv) {
  factorize(model, w);
  inverse_of_factor(model, w, Minv);
}

}  // namespace delassus
