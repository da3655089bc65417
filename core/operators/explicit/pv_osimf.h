// The damped inverse by branches of the base and the matrix inversion lemma (PV-OSIMf): O(n + m² d + Σ b³) for branches
// of b rows.
//
//   G + ε = A + Yᵀ D⁻¹ Y,   A = L₁ + C + ε by blocks, one a branch,   Y = L⁻¹ K₁ᵀ of the free base, H₁ = L D Lᵀ
//   (G + ε)⁻¹ = A⁻¹ − T (D + Y T)⁻¹ Tᵀ,   T = A⁻¹ Yᵀ
//
// Sathya et al., "Efficient constrained dynamics algorithms based on an equivalent LQR formulation using Gauss'
// principle of least constraint", 2024. A tree without a free base is one block.
#pragma once

#include "operators/explicit/dense.h"
#include "operators/explicit/pv_osim.h"

namespace delassus {

template <class T>
struct PvOsimfWork {
  DenseWork<T> dense;
  std::vector<T> inverse;  // of a block, both triangles
  std::vector<T> T6, Q;    // 6: T, and (Lᵀ of D + Y T)⁻¹ T

  void resize(const RowWork<T>& w) {
    int max_rows = 0;
    for (const auto& limb : w.tree.limbs) max_rows = std::max(max_rows, limb.rows());
    dense.resize(max_rows);
    inverse.assign(std::size_t(max_rows) * dense.room, T{});
    T6.assign(6 * w.room, T{});
    Q.assign(6 * w.room, T{});
  }
  std::size_t bytes() const { return dense.bytes() + (inverse.size() + T6.size() + Q.size()) * sizeof(T); }
};

// A block of w.G becomes its inverse, and T = A⁻¹ Yᵀ of its rows. Y: 6, or null. Returns whether rounding has left its
// pivots positive.
template <class T>
inline bool invert_block(RowWork<T>& w, PvOsimfWork<T>& e, int first, int past, const T* shift, real_of<T> least,
                         const T* Y) {
  constexpr int lanes = row_lanes<T>;
  const int n = past - first;
  const std::size_t room = e.dense.room;
  T* A = w.G.data() + std::size_t(first) * w.room + first;
  for (int r = 0; r < n; ++r) A[std::size_t(r) * w.room + r] += shift[w.tree.row[first + r]];
  factor_dense(A, n, w.room, e.dense);
  const bool positive = keeps_positive(e.dense, n, least);
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < n; c += lanes) store_rows(&e.inverse[i * room + std::size_t(c)], RowPack<T>{});
  add_inverse(e.dense, n, e.inverse.data(), room);
  for (int i = 0; i < n; ++i)
    for (int c = i; c < n; c += lanes) {
      T* a = A + std::size_t(i) * w.room + c;
      store_rows(a, joined_rows<T>(load_rows(&e.inverse[i * room + std::size_t(c)]), load_rows(a), n - c));
    }
  if (Y == nullptr) return positive;
  for (int i = 1; i < n; ++i)
    for (int j = 0; j < i; ++j) e.inverse[i * room + std::size_t(j)] = e.inverse[j * room + std::size_t(i)];
  for (int c = 0; c < 6; ++c)
    for (int i = 0; i < n; i += lanes) {
      RowPack<T> sum{};
      for (int j = 0; j < n; ++j) sum += load_rows(&e.inverse[j * room + std::size_t(i)]) * Y[c * w.room + first + j];
      T* t = &e.T6[c * w.room + first + i];
      store_rows(t, joined_rows<T>(sum, load_rows(t), n - i));
    }
  return positive;
}

// Whether the least damping is not too small against the largest number on the diagonal of G = L₁ + Yᵀ D⁻¹ Y.
template <class T>
inline bool keeps_digits(const RowWork<T>& w, const Limb& limb, const Ldl6<T>& LD, const T* Y, real_of<T> least) {
  constexpr real_of<T> share = sizeof(real_of<T>) == 8 ? real_of<T>(1e-7) : real_of<T>(1e-3);
  T largest{};
  for (int r = limb.first; r < limb.past; ++r) {
    T g = w.G[std::size_t(r) * (w.room + 1)];
    for (int c = 0; c < 6; ++c) g += Y[c * w.room + std::size_t(r)] * Y[c * w.room + std::size_t(r)] * LD.Dinv[c];
    largest = largest > g ? largest : g;
  }
  bool kept = true;
  for (int l = 0; l < lanes_of<T>; ++l) kept = kept && lane(largest, l) * share <= least;
  return kept;
}

// (G + ε)⁻¹ in the upper triangle of w.G: K has been placed, A is the factor of M, shift C + ε in the user's order,
// `least` the least of it. Returns whether rounding has left all pivots positive, and the lemma its digits: it has none
// to spare where ε is small against G.
template <class T>
bool pv_osimf(RowWork<T>& w, PvOsimfWork<T>& e, const Articulated<T>& A, const T* shift, real_of<T> least) {
  using P = RowPack<T>;
  constexpr int lanes = row_lanes<T>;
  const auto& tree = w.tree;
  bool positive = true;
  w.clear();
  for (const auto& limb : tree.limbs) {
    climb_down(w, limb, A);
    add_limb(w, limb, limb.dof, limb.dofs);
    if (limb.parent >= 0) continue;

    // the tree is done but for its free base
    const T* Y = limb.free < 0 ? nullptr : w.Y.data() + std::size_t(limb.base()) * w.room;
    if (Y != nullptr && !keeps_digits(w, limb, A.free[limb.free], Y, least)) return false;
    if (limb.dofs > 0 || Y == nullptr) {
      positive = invert_block(w, e, limb.first, limb.past, shift, least, Y) && positive;
    } else {
      if (limb.own < limb.own_past) positive = invert_block(w, e, limb.own, limb.own_past, shift, least, Y) && positive;
      for (int c = limb.child; c < limb.child + limb.children; ++c) {
        const auto& child = tree.limbs[tree.children[c]];
        positive = invert_block(w, e, child.first, child.past, shift, least, Y) && positive;
      }
    }
    if (Y == nullptr) continue;

    // D + Y T = L D Lᵀ,   Q = L⁻¹ Tᵀ
    T C[6][6];
    for (int a = 0; a < 6; ++a)
      for (int b = 0; b <= a; ++b) {
        P sum{};
        for (int r = limb.first; r < limb.past; r += lanes)
          sum += first_rows<T>(P(load_rows(Y + a * w.room + r) * load_rows(&e.T6[b * w.room + std::size_t(r)])),
                               limb.past - r);
        C[a][b] = sum_rows<T>(sum);
        if (a == b) C[a][a] += real_of<T>(1) / A.free[limb.free].Dinv[a];
      }
    const Ldl6<T> LD =
        factor(Sym6<T>{{C[0][0], C[1][0], C[2][0], C[1][1], C[2][1], C[2][2]},
                       {{C[3][0], C[3][1], C[3][2]}, {C[4][0], C[4][1], C[4][2]}, {C[5][0], C[5][1], C[5][2]}},
                       {C[3][3], C[4][3], C[5][3], C[4][4], C[5][4], C[5][5]}});
    for (int r = limb.first; r < limb.past; r += lanes) {
      P q[6];
      for (int c = 0; c < 6; ++c) q[c] = first_rows<T>(load_rows(&e.T6[c * w.room + std::size_t(r)]), limb.past - r);
      solve_lower(LD, q);
      for (int c = 0; c < 6; ++c) {
        store_rows(&e.T6[c * w.room + std::size_t(r)], P(q[c] * -LD.Dinv[c]));
        store_rows(&e.Q[c * w.room + std::size_t(r)], q[c]);
      }
    }
    add_products(e.T6.data(), e.Q.data(), w.room, 6, limb.first, limb.past, limb.first, limb.past, true, w.G.data(),
                 w.room);
  }
  return positive;
}

}  // namespace delassus
