// The part of a product that stays in registers, and operands packed for it: what all of this module spends its time
// in.
//
//   tile ← tile + Σ_p a_p b_pᵀ         a_p: `rows` numbers, b_p: `columns` numbers, both packed, p after p
//
// A tile is as large as the registers hold beside one b_p: a number is loaded once for many multiplications.
#pragma once

#include "dense/vectors.h"

namespace delassus::dense {

template <class Real>
struct Tile {
  static constexpr int rows = vector_bytes < 64 ? 4 : 8;  // AVX-512 has 32 registers
  static constexpr int vectors = 3;
  static constexpr int lanes = vector_lanes<Real>;
  static constexpr int columns = vectors * lanes;
  static_assert(rows <= columns, "a square block of the diagonal is within a tile");
  using V = Vector<Real>;

  V sums[rows][vectors]{};

  [[gnu::always_inline]] void add_products(int n, const Real* a, std::ptrdiff_t a_step, const Real* b,
                                           std::ptrdiff_t b_step) {
    for (int p = 0; p < n; ++p, a += a_step, b += b_step) {
      V x[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) x[v] = load<V>(b + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[r][v] += x[v] * a[r];
    }
  }

  // C ← C − tile, of which `height` rows and `width` columns are C's.
  [[gnu::always_inline]] void subtract_from(Real* C, std::ptrdiff_t stride, int height, int width) const {
    if (height == rows && width == columns) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          Real* c = C + r * stride + v * lanes;
          store(c, V(load<V>(c) - sums[r][v]));
        }
      return;
    }
    alignas(64) Real all[rows * columns];
    write(all, columns);
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c) C[r * stride + c] -= all[r * columns + c];
  }

  // tile ← C − tile
  [[gnu::always_inline]] void subtract_all_from(const Real* C, std::ptrdiff_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = load<V>(C + r * stride + v * lanes) - sums[r][v];
  }

  // tile ← L⁻¹ tile: L[r, p] = triangle[p * step + r] below its diagonal, whose reciprocals are given
  [[gnu::always_inline]] void solve(const Real* triangle, std::ptrdiff_t step, const Real* reciprocals) {
#pragma GCC unroll 8
    for (int p = 0; p < rows; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[p][v] *= reciprocals[p];
#pragma GCC unroll 8
      for (int r = p + 1; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[r][v] -= sums[p][v] * triangle[p * step + r];
    }
  }

  [[gnu::always_inline]] void write(Real* to, std::ptrdiff_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(to + r * stride + v * lanes, sums[r][v]);
  }
};

// A matrix, or its transpose, or either of them backwards: entry (i, p) is at[i * row + p * column].
template <class Real>
struct Entries {
  const Real* at;
  std::ptrdiff_t row, column;
  Entries from(int i, int p) const { return {at + i * row + p * column, row, column}; }
};

// to[p * Tile::rows + r] ← A(r, p), zero for r ≥ height
template <class Real>
inline void pack_rows(const Entries<Real>& A, int height, int n, Real* to) {
  constexpr int rows = Tile<Real>::rows;
  if (height == rows && A.row == 1) {
    for (int p = 0; p < n; ++p)
      __builtin_memcpy(to + std::ptrdiff_t(p) * rows, A.at + p * A.column, rows * sizeof(Real));
    return;
  }
  for (int r = 0; r < rows; ++r)
    for (int p = 0; p < n; ++p)
      to[std::ptrdiff_t(p) * rows + r] = r < height ? A.at[r * A.row + p * A.column] : Real(0);
}

// to[p * Tile::columns + c] ← B[p, c], zero for c ≥ width; rows of B are `stride` apart
template <class Real>
inline void pack_columns(const Real* B, std::ptrdiff_t stride, int width, int n, Real* to) {
  constexpr int columns = Tile<Real>::columns;
  for (int p = 0; p < n; ++p, to += columns, B += stride) {
    if (width == columns) {
      __builtin_memcpy(to, B, columns * sizeof(Real));
      continue;
    }
    for (int c = 0; c < columns; ++c) to[c] = c < width ? B[c] : Real(0);
  }
}

}  // namespace delassus::dense
