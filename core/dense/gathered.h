// Products with selected rows of a matrix, so that matrices with few nonzero rows use dense arithmetic.
//
//   C = Σ_e a_e b_eᵀ        a_e, b_e: row e of two lists, selected by offsets or consecutive
//
// A tile of C stays in registers during the loop over e. Numbers past the end of a row are read, so rows must be
// padded.
#pragma once

#include "dense/square.h"

namespace delassus::dense {

// The next multiple of a register's numbers.
template <class Real>
inline constexpr int padded(int n) {
  return (n + vector_lanes<Real> - 1) / vector_lanes<Real> * vector_lanes<Real>;
}

// The first numbers of a register; a whole one is one instruction.
template <class V, class Real>
[[gnu::always_inline]] inline void store_first(Real* to, const V& x, int count) {
  constexpr int lanes = int(sizeof(V) / sizeof(Real));
  if (count >= lanes) {
    store(to, x);
    return;
  }
  for (int k = 0; k < count; ++k) to[k] = x[k];
}

// Where the rows of a list are: at offsets, or `step` apart.
template <class Real>
struct PickedRows {
  const Real* at;
  const std::ptrdiff_t* offsets;
  [[gnu::always_inline]] const Real* operator[](int e) const { return at + offsets[e]; }
};
template <class Real>
struct SteppedRows {
  const Real* at;
  std::ptrdiff_t step;
  [[gnu::always_inline]] const Real* operator[](int e) const { return at + e * step; }
};

// `rows` × `vectors` registers of sums.
template <class Real, int height, int vectors>
struct GatheredTile {
  using V = Vector<Real>;
  static constexpr int rows = height, lanes = vector_lanes<Real>, columns = vectors * lanes;
  V sums[rows][vectors];

  // sums ← Σ_e a_e b_eᵀ; a: from row i on, b: from column j on
  template <class A, class B>
  [[gnu::always_inline]] void sum(int count, const A& a, int i, const B& b, int j) {
    V s[rows][vectors]{};  // stays in registers, whatever becomes of the sums
    for (int e = 0; e < count; ++e) {
      const Real *x = a[e] + i, *y = b[e] + j;
      V z[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) z[v] = load<V>(y + v * lanes);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) s[r][v] += z[v] * x[r];
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = s[r][v];
  }

  // the first `count` rows
  [[gnu::always_inline]] void write(Real* to, std::ptrdiff_t stride, int count) const {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      if (r >= count) return;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(to + r * stride + v * lanes, sums[r][v]);
    }
  }
};

// put(i, j, tile) for tiles that cover m rows and n columns, n and m rounded up: to registers, and to rows of a tile.
// `from(i)`: the first column that rows from i on need.
template <class Real, class A, class B, class From, class Put>
[[gnu::always_inline]] inline void gathered_product(int m, int n, int count, const A& a, const B& b, From&& from,
                                                    Put&& put) {
  constexpr int lanes = vector_lanes<Real>;
  const auto tiles = [&]<int rows, int vectors>(int j, int past) __attribute__((always_inline)) {
    for (int i = 0; i < m; i += rows) {
      if (from(i) >= past) break;
      GatheredTile<Real, rows, vectors> tile;
      tile.sum(count, a, i, b, j);
      put(i, j, tile);
    }
  };
  int j = 0;
  for (; n - j > 2 * lanes; j += 3 * lanes) tiles.template operator()<4, 3>(j, j + 3 * lanes);
  if (n - j > lanes)
    tiles.template operator()<6, 2>(j, j + 2 * lanes);
  else if (n - j > 0)
    tiles.template operator()<8, 1>(j, j + lanes);
}

// C ← B − Pᵀ Q where that is symmetric, n × n: tiles of the upper triangle, and each to its place below while it is at
// hand. P and Q: k × n. Rows and columns past the end are read and written, up to whole tiles.
template <class Real>
inline void subtract_symmetric_product(int n, int k, const Real* B, std::ptrdiff_t b_stride, const Real* P,
                                       std::ptrdiff_t p_stride, const Real* Q, std::ptrdiff_t q_stride, Real* C,
                                       std::ptrdiff_t c_stride) {
  using V = Vector<Real>;
  constexpr int lanes = vector_lanes<Real>, vectors = 3, columns = vectors * lanes, rows = 4;
  for (int j = 0; j < n; j += columns)
    for (int i = 0; i < n && i < j + columns; i += rows) {
      V s[rows][vectors];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) s[r][v] = load<V>(B + (i + r) * b_stride + j + v * lanes);
      const Real *x = P + i, *y = Q + j;
      for (int e = 0; e < k; ++e, x += p_stride, y += q_stride) {
        V z[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) z[v] = load<V>(y + v * lanes);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) s[r][v] -= z[v] * x[r];
      }
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) store(C + (i + r) * c_stride + j + v * lanes, s[r][v]);
      for (int c = j > i + rows ? j : i + rows; c < j + columns && c < n; c += rows)
        transpose_block(C + i * c_stride + c, c_stride, C + c * c_stride + i, c_stride);
    }
}

// How far beyond their last row tiles of `gathered_product` read and write, in rows; in columns two registers.
inline constexpr int tile_overhang = 7;

}  // namespace delassus::dense
