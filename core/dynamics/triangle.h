// M = Lᵀ D L with the tree's own zeros: L has ones on its diagonal, and beside them in row k the velocities j between k
// and the ground alone,
//
//   L_kj = S_jᵀ U_k D_k⁻¹,
//
// U and D of the elimination by articulated bodies (aba.h), O(n d). A free root stays one block, D⁻¹ = P H⁻¹ Pᵀ with P
// from the motion of its link to its velocities.
//
//   X ← M⁻¹ Y   u_j = y_j − Σ_k L_kj u_k over all k that hang on j,   x_k = D⁻¹ u_k − Σ_j L_kj x_j
//
// Two products a pair (k, j) instead of 25 a velocity (solve.h): taken while a velocity hangs on a dozen others at most
// on average. Sums stay in registers. Featherstone, Rigid Body Dynamics Algorithms, section 6.5, finds L from M.
#pragma once

#include "dense/vectors.h"
#include "dynamics/ancestors.h"

namespace delassus {

// Column k of Lᵀ, written entry by entry.
template <class T>
struct TriangleColumn {
  T* L;
  const int* at;
  [[gnu::always_inline]] void set(int j, const T& x) const { L[at[j]] = x; }
};
template <class T>
struct TriangleColumns {
  T* L;
  const int* at;
  [[gnu::always_inline]] TriangleColumn<T> operator[](int k) const { return {L + k, at}; }
};

// L and the blocks of free roots from the factor of M that `factorize` or `aba` left.
template <class T>
inline void find_triangle(const Model<real_of<T>>& model, Workspace<T>& w) {
  const TriangleColumns<T> L{w.triangle.L.data(), w.triangle.at.data()};
  const int* single = w.ranks.single.data();
  for (const auto& part : w.ranks.parts) {
    if (part.abreast) {
      for (int r = part.begin; r < part.end; ++r)
        columns_of_rank(model, w, r, w.rank_factor[r].U * w.rank_factor[r].Dinv, L);
      continue;
    }
    for (int n = part.begin; n < part.end; ++n) {
      const auto& link = model.links[single[n]];
      if (link.type != Joint::free) {
        for (int k = link.iv; k < link.iv + link.nv; ++k)
          whole_column(model, w, model.dof_parent[k], k, w.U[k] * w.Dinv[k], L);
        continue;
      }
      // P H⁻¹ Pᵀ: linear in the world's axes, angular in the link's
      const Mat3<T> R = w.pose[single[n]].R;
      const Sym6<T>& X = w.Hinv[link.tree];
      w.triangle.root[link.tree] = {X.A, X.B * R, congruence(transpose(R), X.C)};
    }
  }
}

// Registers side by side.
template <int count, class C>
struct WideRow {
  C part[count];
};
// Rows of a matrix, `count` registers of T wide; `at` is the first of row 0.
template <int count, class T>
struct WideRows {
  using C = LinkPack<std::remove_const_t<T>>;
  using Row = WideRow<count, C>;
  static constexpr int width = link_lanes<std::remove_const_t<T>>;
  T* at;
  std::ptrdiff_t stride;

  [[gnu::always_inline]] Row get(int k) const {
    Row x;
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) x.part[i] = dense::load<C>(at + k * stride + i * width);
    return x;
  }
  [[gnu::always_inline]] void set(int k, const Row& x) const {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) dense::store(at + k * stride + i * width, x.part[i]);
  }
  // x −= l times row j
  [[gnu::always_inline]] void subtract(Row& x, real_of<C> l, int j) const {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) x.part[i] -= dense::load<C>(at + j * stride + i * width) * l;
  }
  // six rows from k on, a motion or force each column of which is one
  [[gnu::always_inline]] Vec6<C> six(int k, int i) const {
    const auto row = [&](int r) { return dense::load<C>(at + (k + r) * stride + i * width); };
    return {{row(0), row(1), row(2)}, {row(3), row(4), row(5)}};
  }
  [[gnu::always_inline]] void set_six(int k, int i, const Vec6<C>& x) const {
    const auto set = [&](int r, const C& value) { dense::store(at + (k + r) * stride + i * width, value); };
    set(0, x.lin.x), set(1, x.lin.y), set(2, x.lin.z), set(3, x.ang.x), set(4, x.ang.y), set(5, x.ang.z);
  }
};

// X ← M⁻¹ Y for `count` registers of columns. In between they are in `Z`, where none lies across two lines of the
// cache.
template <int count, class T>
[[gnu::noinline]] void solve_with_triangle(const Model<real_of<T>>& model, const Workspace<T>& w,
                                           const WideRows<count, const T> Y, const WideRows<count, T> X,
                                           const WideRows<count, T> Z) {
  const auto& triangle = w.triangle;
  const T* L = triangle.L.data();
  const int* at = triangle.at.data();
  const int* parent = model.dof_parent.data();
  // u_j = y_j − Σ L_kj u_k
  for (int j = model.nv - 1; j >= 0; --j) {
    auto u = Y.get(j);
    const T* column = L + at[j];
    for (int k = triangle.end[j] - 1; k >= triangle.begin[j]; --k) Z.subtract(u, column[k], k);
    Z.set(j, u);
  }
  // x_k = D⁻¹ u_k − Σ L_kj x_j
  for (const auto& link : model.links) {
    if (link.type == Joint::free) {
      for (int i = 0; i < count; ++i) Z.set_six(link.iv, i, triangle.root[link.tree] * Z.six(link.iv, i));
      for (int k = link.iv; k < link.iv + 6; ++k) X.set(k, Z.get(k));
      continue;
    }
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      auto x = Z.get(k);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) x.part[i] *= w.Dinv[k];
      for (int j = parent[k]; j >= 0; j = parent[j]) Z.subtract(x, L[at[j] + k], j);
      Z.set(k, x);
      X.set(k, x);
    }
  }
}

}  // namespace delassus
