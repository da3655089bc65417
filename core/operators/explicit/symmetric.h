// The upper triangle of a matrix of rows, in whatever order, as a whole one in the user's order.
#pragma once

#include "operators/explicit/limbs.h"
#include "operators/explicit/packs.h"

namespace delassus {

// The length of the longest row of A, n × n, rows `stride` apart: ‖A‖ from below.
template <class T>
T longest_row(const T* A, int n, std::size_t stride) {
  T largest{};
  for (int i = 0; i < n; ++i) {
    T square{};
    for (int j = 0; j < n; ++j) square += A[std::size_t(i) * stride + j] * A[std::size_t(i) * stride + j];
    largest = largest > square ? largest : square;
  }
  return square_root(largest);
}

// A ← its upper triangle in both, n × n, row by row. A few rows at a time, so that what is read against the rows comes
// into the cache once.
template <class T>
void mirror_upper(int n, T* A) {
  constexpr int few = 16;
  const std::size_t m = std::size_t(n);
  for (int i = 0; i < n; i += few) {
    const int rows = std::min(few, n - i);
    T* own = A + std::size_t(i) * m;
    for (int j = 0; j < i; j += few) transpose(few, rows, A + std::size_t(j) * m + i, m, own + j, m);
    for (int r = 1; r < rows; ++r)
      for (int c = 0; c < r; ++c) own[std::size_t(r) * m + i + c] = own[std::size_t(c) * m + i + r];
  }
}

// X ← sign G + diagonal. G: upper triangle, rows `stride` apart, in the order of the limbs, or in the user's if there
// are none; X: n × n.
template <class T>
void write_symmetric(const T* G, std::size_t stride, const Limbs* tree, int n, real_of<T> sign, const T* diagonal,
                     T* __restrict X) {
  constexpr int lanes = row_lanes<T>;
  const std::size_t m = std::size_t(n);
  if (tree == nullptr || tree->ordered) {
    for (int i = 0; i < n; ++i) {
      const T* g = G + std::size_t(i) * stride;
      T* x = X + i * m;
      int j = i;
      for (; j + lanes <= n; j += lanes) store_rows(x + j, RowPack<T>(load_rows(g + j) * sign));
      for (; j < n; ++j) x[j] = g[j] * sign;
      x[i] += diagonal[i];
    }
    mirror_upper(n, X);
    return;
  }
  for (std::size_t e = 0; e < m * m; ++e) X[e] = T{};
  const int* row = tree->row.data();
  for (int i = 0; i < tree->rows(); ++i)
    for (int j = i; j < tree->rows(); ++j)
      X[row[i] * m + row[j]] = X[row[j] * m + row[i]] = G[std::size_t(i) * stride + j] * sign;
  for (std::size_t i = 0; i < m; ++i) X[i * m + i] += diagonal[i];
}

// X ← G + diagonal where rows act on several links: entry (e, f) is the sum over the links of e and of f. G: upper
// triangle, rows `stride` apart, in the order of the limbs, zero between trees; X: n × n.
template <class T>
void fold_symmetric(const T* G, std::size_t stride, const Limbs& tree, int n, const T* diagonal, T* __restrict X) {
  const std::size_t m = std::size_t(n);
  std::fill_n(X, m * m, T{});
  for (std::size_t i = 0; i < m; ++i) X[i * m + i] = diagonal[i];
  // a block of rows on one link with rows on another: to the upper triangle of X, at (e, f) or at (f, e)
  const auto add = [&](const Limbs::RowRange& a, const Limbs::RowRange& b) {
    const T* g = G + std::size_t(a.at) * stride + b.at;
    const std::size_t e = std::size_t(tree.row[std::size_t(a.at)]), f = std::size_t(tree.row[std::size_t(b.at)]);
    for (int i = 0; i < a.count; ++i) {
      const T* row = g + std::size_t(i) * stride;
      if (e < f)
        for (int j = 0; j < b.count; ++j) X[(e + i) * m + f + j] += row[j];
      else if (f < e)
        for (int j = 0; j < b.count; ++j) X[(f + j) * m + e + i] += row[j];
      else if (a.at == b.at)
        for (int j = i; j < b.count; ++j) X[(e + i) * m + e + j] += row[j];
      else  // the same rows on two links
        for (int j = i; j < b.count; ++j) X[(e + i) * m + e + j] += row[j] + g[std::size_t(j) * stride + i];
    }
  };
  for (const auto& t : tree.trees)
    for (int a = t.range; a < t.past_range; ++a)
      for (int b = a; b < t.past_range; ++b) add(tree.ranges[std::size_t(a)], tree.ranges[std::size_t(b)]);
  mirror_upper(n, X);
}

}  // namespace delassus
