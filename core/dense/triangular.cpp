#include "dense/triangular.h"

#include <algorithm>

#include "dense/zeros.h"

namespace delassus::dense {
namespace {

constexpr int block_rows = 64;  // rows that are solved strip by strip; more are halved

// A strip of X, as wide as a tile, stays in the first cache while L passes; L is packed once for all strips.
template <class Real>
void solve_lower_block(int m, int n, const Entries<Real>& L, Diagonal diagonal, Real* X, std::ptrdiff_t stride) {
  using T = Tile<Real>;
  alignas(64) Real l[block_rows * block_rows], x[block_rows * T::columns];
  Real reciprocals[block_rows];
  for (int i = 0; i < m; i += T::rows) {
    const int height = std::min(T::rows, m - i);
    pack_rows(L.from(i, 0), height, i + height, l + i * block_rows);
  }
  for (int i = 0; i < block_rows; ++i)
    reciprocals[i] = i < m && diagonal == Diagonal::reciprocals ? L.at[i * (L.row + L.column)] : Real(1);

  for (int j = 0; j < n; j += T::columns) {
    const int width = std::min(T::columns, n - j);
    pack_columns(X + j, stride, width, m, x);
    if (is_zero(x, m * T::columns)) continue;
    for (int i = 0; i < m; i += T::rows) {
      const Real* rows = l + i * block_rows;
      T tile;
      tile.add_products(i, rows, T::rows, x, T::columns);
      const int height = std::min(T::rows, m - i);
      if (height == T::rows) {
        tile.subtract_all_from(x + i * T::columns, T::columns);
        tile.solve(rows + i * T::rows, T::rows, reciprocals + i);
        tile.write(x + i * T::columns, T::columns);
        continue;
      }
      // fewer rows than a tile has, row by row
      alignas(64) Real sums[T::rows * T::columns];
      tile.write(sums, T::columns);
      for (int r = 0; r < height; ++r)
        for (int c = 0; c < T::columns; ++c) {
          Real y = x[(i + r) * T::columns + c] - sums[r * T::columns + c];
          for (int p = 0; p < r; ++p) y -= rows[(i + p) * T::rows + r] * x[(i + p) * T::columns + c];
          x[(i + r) * T::columns + c] = y * reciprocals[i + r];
        }
    }
    for (int i = 0; i < m; ++i)
      __builtin_memcpy(X + i * stride + j, x + i * T::columns, std::size_t(width) * sizeof(Real));
  }
}

}  // namespace

template <class Real>
void solve_lower(int m, int n, const Entries<Real>& L, Diagonal diagonal, Real* X, std::ptrdiff_t stride) {
  if (m <= block_rows) return solve_lower_block(m, n, L, diagonal, X, stride);
  const int half = (m / 2 + Tile<Real>::rows - 1) / Tile<Real>::rows * Tile<Real>::rows;
  solve_lower(half, n, L, diagonal, X, stride);
  subtract_product(m - half, n, half, L.from(half, 0), static_cast<const Real*>(X), stride, X + half * stride, stride);
  solve_lower(m - half, n, L.from(half, half), diagonal, X + half * stride, stride);
}

// Rows that are no multiple of four come first, while they are short; then four at once: their products with what is
// known, and their own triangle.
template <class Real>
void solve_unit_lower(int n, const Real* L, std::ptrdiff_t stride, Real* x) {
  const int few = n % 4;
#pragma GCC unroll 4
  for (int i = 1; i < 3; ++i) {
    if (i >= few) break;
#pragma GCC unroll 4
    for (int p = 0; p < i; ++p) x[i] -= L[i * stride + p] * x[p];
  }
  for (int i = few; i < n; i += 4) {
    const Real* row = L + i * stride;
    Real sums[4];
    dots<4>(i, row, stride, x, sums);
    for (int r = 0; r < 4; ++r) {
      for (int p = 0; p < r; ++p) sums[r] += row[r * stride + i + p] * x[i + p];
      x[i + r] -= sums[r];
    }
  }
}

template <class Real>
void solve_upper(int n, const Real* U, std::ptrdiff_t stride, Real* x) {
#pragma GCC unroll 4
  for (int r = 1; r < 4; ++r) {
    if (r > n % 4) break;
    const Real* row = U + (n - r) * stride + n;
#pragma GCC unroll 4
    for (int p = 1; p < r; ++p) x[n - r] -= row[-p] * x[n - p];
    x[n - r] *= row[-r];
  }
  for (int i = n - n % 4; i > 0; i -= 4) {
    const Real* row = U + (i - 4) * stride + i;
    Real sums[4];
    dots<4>(n - i, row, stride, x + i, sums);
    for (int r = 3; r >= 0; --r) {
      for (int p = r + 1; p < 4; ++p) sums[r] += row[r * stride - 4 + p] * x[i - 4 + p];
      x[i - 4 + r] = (x[i - 4 + r] - sums[r]) * row[r * stride - 4 + r];
    }
  }
}

template <class Real>
void solve_upper_transposed(int n, const Real* U, std::ptrdiff_t stride, Real* x) {
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    const Real* row = U + i * stride + i;
    for (int r = 0; r < 4; ++r) {
      Real y = x[i + r];
      for (int p = 0; p < r; ++p) y -= row[p * stride + r] * x[i + p];
      x[i + r] = y * row[r * stride + r];
    }
    subtract_multiples<4>(n - i - 4, row + 4, stride, x + i, x + i + 4);
  }
  for (; i < n; ++i) {
    const Real* row = U + i * stride + i;
    x[i] *= row[0];
    subtract_multiples<1>(n - i - 1, row + 1, stride, x + i, x + i + 1);
  }
}

#define DELASSUS_TRIANGULAR(Real)                                                             \
  template void solve_lower(int, int, const Entries<Real>&, Diagonal, Real*, std::ptrdiff_t); \
  template void solve_unit_lower(int, const Real*, std::ptrdiff_t, Real*);                    \
  template void solve_upper(int, const Real*, std::ptrdiff_t, Real*);                         \
  template void solve_upper_transposed(int, const Real*, std::ptrdiff_t, Real*);
DELASSUS_TRIANGULAR(double)
DELASSUS_TRIANGULAR(float)

}  // namespace delassus::dense
