// M⁻¹(q) directly, without M: O(n²) numbers, each in constant time.
//
// Carpentier, "Analytical inverse of the joint space inertia matrix", 2018, algorithm 1, with line 14 replaced by its
// correction F_p += F + U M⁻¹[i, subtree]: what a subtree transmits includes what its own subtrees transmitted.
// In world axes one array F serves all links, because the columns of disjoint subtrees are disjoint, and the accelerations P
// of a parent are overwritten by its last child.
//
//   backward  row_k = D⁻¹ (e_k − S_kᵀ F),   F += U_k row_k                on the columns of k's subtree
//   forward   row_k −= D⁻¹ U_kᵀ P_p,   P_k = P_p + S_k row_k              on the columns from k to the end of its tree
#pragma once

#include "dynamics/aba.h"

namespace delassus {

// Minv: nv × nv, both triangles.
template <class T>
void mass_matrix_inverse(const Model<real_of<T>>& model, Workspace<T>& w, T* __restrict Minv) {
  factorize(model, w);
  const int nv = model.nv;
  const std::size_t stride = w.stride;
  T* __restrict F = w.F.data();
  T *F0 = F, *F1 = F + stride, *F2 = F + 2 * stride, *F3 = F + 3 * stride, *F4 = F + 4 * stride, *F5 = F + 5 * stride;

  // backward: the response of k to torques in its subtree, the ground of k held fixed
  for (int k = nv - 1; k >= 0; --k) {
    const int end = model.links[model.dof_link[k]].end_v;
    const Vec6<T> S = w.S[k], U = w.U[k];
    const T d = w.Dinv[k];
    T* __restrict row = Minv + std::size_t(k) * nv;
    row[k] = d;
    F0[k] = U.lin.x * d, F1[k] = U.lin.y * d, F2[k] = U.lin.z * d;
    F3[k] = U.ang.x * d, F4[k] = U.ang.y * d, F5[k] = U.ang.z * d;
    const Vec6<T> s = S * -d;
#pragma GCC ivdep
    for (int j = k + 1; j < end; ++j) {
      const T r = (s.lin.x * F0[j] + s.lin.y * F1[j] + s.lin.z * F2[j]) + (s.ang.x * F3[j] + s.ang.y * F4[j] + s.ang.z * F5[j]);
      row[j] = r;
      F0[j] += U.lin.x * r, F1[j] += U.lin.y * r, F2[j] += U.lin.z * r;
      F3[j] += U.ang.x * r, F4[j] += U.ang.y * r, F5[j] += U.ang.z * r;
    }
  }

  // forward: add the motion of what carries k
  for (int k = 0; k < nv; ++k) {
    const int parent = model.dof_parent[k], sub = model.links[model.dof_link[k]].end_v;
    const int end = model.links[model.roots[model.links[model.dof_link[k]].tree]].end_v;
    const Vec6<T> S = w.S[k], u = w.U[k] * -w.Dinv[k];
    T* __restrict row = Minv + std::size_t(k) * nv;
    for (int j = sub; j < nv; ++j) row[j] = T{};
    T* Q = w.P.data() + 6 * stride * w.slot[k];
    if (parent < 0) {
      for (int j = k; j < end; ++j) {
        const T r = row[j];
        Q[j] = S.lin.x * r, Q[j + stride] = S.lin.y * r, Q[j + 2 * stride] = S.lin.z * r;
        Q[j + 3 * stride] = S.ang.x * r, Q[j + 4 * stride] = S.ang.y * r, Q[j + 5 * stride] = S.ang.z * r;
      }
      continue;
    }
    const T* P = w.P.data() + 6 * stride * w.slot[parent];
    const bool leaf = w.last[k];
#pragma GCC ivdep
    for (int j = k; j < end; ++j) {
      const T p0 = P[j], p1 = P[j + stride], p2 = P[j + 2 * stride], p3 = P[j + 3 * stride], p4 = P[j + 4 * stride], p5 = P[j + 5 * stride];
      const T r = row[j] + ((u.lin.x * p0 + u.lin.y * p1 + u.lin.z * p2) + (u.ang.x * p3 + u.ang.y * p4 + u.ang.z * p5));
      row[j] = r;
      if (!leaf) {
        Q[j] = p0 + S.lin.x * r, Q[j + stride] = p1 + S.lin.y * r, Q[j + 2 * stride] = p2 + S.lin.z * r;
        Q[j + 3 * stride] = p3 + S.ang.x * r, Q[j + 4 * stride] = p4 + S.ang.y * r, Q[j + 5 * stride] = p5 + S.ang.z * r;
      }
    }
  }

  // the other triangle
  for (int k = 0; k < nv; ++k)
    for (int j = k + 1; j < nv; ++j) Minv[std::size_t(j) * nv + k] = Minv[std::size_t(k) * nv + j];
}

}  // namespace delassus
