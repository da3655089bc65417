#include "dense/cholesky.h"

#include <cmath>

namespace delassus::dense {
namespace {

constexpr int few = 24;     // rows that are factored where they lie
constexpr int group = 128;  // rows of W = U⁻ᵀ that its square takes at once: zero to the end of the group
constexpr int block = 64;   // rows that are factored in a copy of their own; more are halved

// Columns [first, n) of a row, a register at a time from its end: the last one may reach back beyond `first`, below the
// diagonal, where numbers count for nothing. Columns at the start, for which there is no whole register, one by one.
template <class Real, class Wide, class One>
[[gnu::always_inline]] inline void for_columns(int first, int n, Wide&& wide, One&& one) {
  constexpr int lanes = Eight<Real>::lanes;
  const int ragged = n % lanes;
  for (int c = n - lanes, last = std::max(first - lanes + 1, ragged); c >= last; c -= lanes) wide(c);
  if (first >= ragged) return;
#pragma GCC unroll 8
  for (int c = 0; c < lanes - 1; ++c)
    if (c >= first && c < ragged) one(c);
}

// a_i· ← a_i· − Σ_p u_pi u_p· of P rows u, `stride` apart.
template <int P, class Real>
[[gnu::always_inline]] inline void subtract_rows(int i, int n, const Real* u, std::ptrdiff_t stride, Real* row) {
  using V = typename Eight<Real>::V;
  Real l[P];
  for (int p = 0; p < P; ++p) l[p] = u[p * stride + i];
  for_columns<Real>(
      i, n,
      [&](int c) {
        V x = load<V>(row + c);
        for (int p = 0; p < P; ++p) x -= load<V>(u + p * stride + c) * l[p];
        store(row + c, x);
      },
      [&](int c) {
        for (int p = 0; p < P; ++p) row[c] -= l[p] * u[p * stride + c];
      });
}

// u_k· = a_k· / √a_kk, with the reciprocal on the diagonal. Returns whether the pivot is a positive number.
template <class Real>
[[gnu::always_inline]] inline bool scale_row(int k, int n, Real* row, const Real* floors) {
  using V = typename Eight<Real>::V;
  Real pivot = row[k];
  if (floors != nullptr) pivot = pivot > floors[k] ? pivot : floors[k];
  if (!(pivot > 0) || std::isinf(pivot)) return false;
  const Real reciprocal = 1 / std::sqrt(pivot);
  for_columns<Real>(
      k, n, [&](int c) { store(row + c, V(load<V>(row + c) * reciprocal)); }, [&](int c) { row[c] *= reciprocal; });
  row[k] = reciprocal;
  return true;
}

// A handful of rows where they lie, four pivots at a time. Returns how many were positive.
template <class Real>
int factor_few(int n, Real* A, std::ptrdiff_t stride, const Real* floors) {
  int k = 0;
  for (; k + 4 <= n; k += 4) {
    Real* u = A + k * stride;
    if (!scale_row(k, n, u, floors)) return k;
    subtract_rows<1>(k + 1, n, u, stride, u + stride);
    if (!scale_row(k + 1, n, u + stride, floors)) return k + 1;
    subtract_rows<2>(k + 2, n, u, stride, u + 2 * stride);
    if (!scale_row(k + 2, n, u + 2 * stride, floors)) return k + 2;
    subtract_rows<3>(k + 3, n, u, stride, u + 3 * stride);
    if (!scale_row(k + 3, n, u + 3 * stride, floors)) return k + 3;
    for (int i = k + 4; i < n; ++i) subtract_rows<4>(i, n, u, stride, A + i * stride);
  }
  for (; k < n; ++k) {
    Real* u = A + k * stride;
    if (!scale_row(k, n, u, floors)) return k;
    for (int i = k + 1; i < n; ++i) subtract_rows<1>(i, n, u, stride, A + i * stride);
  }
  return n;
}

// A small matrix in a copy with room for whole tiles, as many rows at once as a tile has:
// U_i· = U_ii⁻ᵀ (A_i· − Σ_{k<i} U_kiᵀ U_k·), the block U_ii itself from its own triangle first.
template <class Real>
int factor_block(int n, Real* A, std::ptrdiff_t stride, const Real* floors) {
  using T = Tile<Real>;
  constexpr int room = block + T::columns;
  alignas(64) Real u[block * room];
  const int rows = (n + T::rows - 1) / T::rows * T::rows;  // rows past the end are those of the identity
  for (int i = 0; i < rows; ++i) {
    Real* to = u + i * room;
    const int width = std::max(n - i, 0);
    if (width > 0) __builtin_memcpy(to + i, A + i * stride + i, std::size_t(width) * sizeof(Real));
    std::fill(to + i + width, to + rows + T::columns, Real(0));
    if (i >= n) to[i] = 1;
  }
  for (int i = 0; i < rows; i += T::rows) {
    Real *own = u + i * room + i, triangle[T::rows * T::rows]{}, reciprocals[T::rows]{};
    for (int j = i; j < n; j += T::columns) {
      T tile;
      tile.add_products(i, u + i, room, u + j, room);
      tile.subtract_all_from(u + i * room + j, room);
      if (j == i) {
        // the first strip begins with the triangle of these rows
        tile.write(own, room);
        const int height = std::min(T::rows, n - i);
        const int positive = factor_few(height, own, room, floors == nullptr ? nullptr : floors + i);
        if (positive < height) return i + positive;
        for (int r = 0; r < T::rows; ++r) {
          for (int p = 0; p < T::rows; ++p) triangle[r * T::rows + p] = own[r * room + p];
          reciprocals[r] = own[r * room + r];
        }
      }
      tile.solve(triangle, T::rows, reciprocals);
      tile.write(u + i * room + j, room);
    }
    for (int r = 0; r < T::rows; ++r) own[r * room + r] = reciprocals[r];
  }
  for (int i = 0; i < n; ++i) __builtin_memcpy(A + i * stride + i, u + i * room + i, std::size_t(n - i) * sizeof(Real));
  return n;
}

}  // namespace

template <class Real>
int factor_cholesky(int n, Real* A, std::ptrdiff_t stride, const Real* floors) {
  if (n <= few) return factor_few(n, A, stride, floors);
  if (n <= block) return factor_block(n, A, stride, floors);
  const int half = (n / 2 + Tile<Real>::rows - 1) / Tile<Real>::rows * Tile<Real>::rows, rest = n - half;
  const int positive = factor_cholesky(half, A, stride, floors);
  if (positive < half) return positive;
  Real *right = A + half, *below = A + half * (stride + 1);
  solve_lower(half, rest, Entries<Real>{A, 1, stride}, Diagonal::reciprocals, right, stride);
  subtract_product(rest, rest, half, Entries<Real>{right, 1, stride}, static_cast<const Real*>(right), stride, below,
                   stride, Part::upper);
  return half + factor_cholesky(rest, below, stride, floors == nullptr ? nullptr : floors + half);
}

// Block by block of rows: W_i· = U_ii⁻ᵀ (1 − Σ_k U_kiᵀ W_k·), k from where a column of the lower triangle begins.
template <class Real>
void invert_transposed(int n, const Real* U, std::ptrdiff_t stride, Real* W, std::ptrdiff_t w_stride) {
  for (int i = 0; i < n; i += block) {
    const int height = std::min(block, n - i), width = i + height;
    for (int r = i; r < width; ++r) {
      std::fill(W + r * w_stride, W + r * w_stride + std::min(i / group * group + group, n), Real(0));
      W[r * w_stride + r] = 1;
    }
    for (int j = 0; j < i; j += block)
      subtract_product(height, block, i - j, Entries<Real>{U + j * stride + i, 1, stride},
                       static_cast<const Real*>(W + j * w_stride + j), w_stride, W + i * w_stride + j, w_stride);
    solve_lower(height, width, Entries<Real>{U + i * (stride + 1), 1, stride}, Diagonal::reciprocals, W + i * w_stride,
                w_stride);
  }
}

// −X − Wᵀ W: a group of rows of W counts in the columns up to its diagonal.
template <class Real>
void add_square_transposed(int n, const Real* W, std::ptrdiff_t w_stride, Real* X, std::ptrdiff_t x_stride) {
  const auto negate = [&] {
    for (int i = 0; i < n; ++i)
      for (int j = i; j < n; ++j) X[i * x_stride + j] = -X[i * x_stride + j];
  };
  negate();
  for (int i = 0; i < n; i += group) {
    const int height = std::min(group, n - i), width = i + height;
    const Real* rows = W + i * w_stride;
    subtract_product(width, width, height, Entries<Real>{rows, 1, w_stride}, rows, w_stride, X, x_stride, Part::upper);
  }
  negate();
}

#define DELASSUS_CHOLESKY(Real)                                                             \
  template int factor_cholesky(int, Real*, std::ptrdiff_t, const Real*);                    \
  template void invert_transposed(int, const Real*, std::ptrdiff_t, Real*, std::ptrdiff_t); \
  template void add_square_transposed(int, const Real*, std::ptrdiff_t, Real*, std::ptrdiff_t);
DELASSUS_CHOLESKY(double)
DELASSUS_CHOLESKY(float)

}  // namespace delassus::dense
