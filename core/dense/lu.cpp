#include "dense/lu.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace delassus::dense {
namespace {

constexpr int panel = 8;  // columns that are eliminated one after another; more are halved

// row ← row − l · top, and l in the place of what is eliminated, column k: a whole panel at once, or its n columns.
template <class Real>
[[gnu::always_inline]] inline void eliminate(int n, int k, const Real* top, Real reciprocal, Real* row) {
  const Real l = row[k] * reciprocal;
  if (n == panel) {
    auto x = Eight<Real>::from(row);
    x.subtract(Eight<Real>::from(top), l);
    x.to(row);
  } else {
    for (int j = k + 1; j < n; ++j) row[j] -= l * top[j];
  }
  row[k] = l;
}

// A: m × n, n ≤ panel. The next column is searched for its pivot while this one is eliminated.
template <class Real>
int factor_panel(int m, int n, Real* A, std::ptrdiff_t stride, int* pivots, Real substitute) {
  int at = 0;
  for (int i = 1; i < m; ++i)
    if (std::abs(A[i * stride]) > std::abs(A[at * stride])) at = i;
  for (int k = 0; k < n; ++k) {
    Real* row = A + k * stride;
    pivots[k] = at;
    if (at != k) std::swap_ranges(row, row + n, A + at * stride);
    // reciprocals of what is smaller are infinite
    if (!(std::abs(row[k]) >= std::numeric_limits<Real>::min())) {
      if (substitute == 0) return k;
      row[k] = substitute;
    }
    const Real reciprocal = row[k] = 1 / row[k];
    alignas(64) Real top[panel]{};
    for (int j = k + 1; j < n; ++j) top[j] = row[j];
    at = k + 1;
    Real largest = -1;
    const int next = std::min(k + 1, n - 1);
    for (int i = k + 1; i < m; ++i) {
      Real* other = A + i * stride;
      if (other[k] != 0) eliminate(n, k, top, reciprocal, other);
      if (const Real size = std::abs(other[next]); size > largest) largest = size, at = i;
    }
  }
  return n;
}

// Rows exchanged as the pivots of columns [first, past) say, in n columns of A.
template <class Real>
void exchange_rows(int first, int past, const int* pivots, int n, Real* A, std::ptrdiff_t stride) {
  for (int k = first; k < past; ++k)
    if (pivots[k] != k) std::swap_ranges(A + k * stride, A + k * stride + n, A + pivots[k] * stride);
}

// A: m × n, m ≥ n.
template <class Real>
int factor_columns(int m, int n, Real* A, std::ptrdiff_t stride, int* pivots, Real substitute) {
  if (n <= panel) return factor_panel(m, n, A, stride, pivots, substitute);
  const int half = (n / 2 + panel - 1) / panel * panel, rest = n - half;
  const int found = factor_columns(m, half, A, stride, pivots, substitute);
  if (found < half) return found;
  Real *right = A + half, *below = A + half * (stride + 1);
  exchange_rows(0, half, pivots, rest, right, stride);
  solve_lower(half, rest, Entries<Real>{A, stride, 1}, Diagonal::ones, right, stride);
  subtract_product(m - half, rest, half, Entries<Real>{A + half * stride, stride, 1}, static_cast<const Real*>(right),
                   stride, below, stride);
  const int more = factor_columns(m - half, rest, below, stride, pivots + half, substitute);
  for (int k = half; k < half + more; ++k) pivots[k] += half;
  exchange_rows(half, half + more, pivots, half, A, stride);
  return half + more;
}

}  // namespace

template <class Real>
int factor_lu(int n, Real* A, std::ptrdiff_t stride, int* pivots, Real substitute) {
  return n > 0 ? factor_columns(n, n, A, stride, pivots, substitute) : 0;
}

template <class Real>
void solve_lu(int n, const Real* A, std::ptrdiff_t stride, const int* pivots, Real* x) {
  exchange_rows(0, n, pivots, 1, x, 1);
  solve_unit_lower(n, A, stride, x);
  solve_upper(n, A, stride, x);
}

template <class Real>
void solve_lu(int n, const Real* A, std::ptrdiff_t stride, const int* pivots, int columns, Real* X,
              std::ptrdiff_t x_stride) {
  exchange_rows(0, n, pivots, columns, X, x_stride);
  solve_lower(n, columns, Entries<Real>{A, stride, 1}, Diagonal::ones, X, x_stride);
  solve_upper(n, columns, A, stride, X, x_stride);
}

#define DELASSUS_LU(Real)                                                      \
  template int factor_lu(int, Real*, std::ptrdiff_t, int*, Real);              \
  template void solve_lu(int, const Real*, std::ptrdiff_t, const int*, Real*); \
  template void solve_lu(int, const Real*, std::ptrdiff_t, const int*, int, Real*, std::ptrdiff_t);
DELASSUS_LU(double)
DELASSUS_LU(float)

}  // namespace delassus::dense
