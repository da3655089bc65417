// Solutions with triangular matrices, O(n²) per right-hand side. Diagonals hold reciprocals, as the factorizations of
// this module store them.
#pragma once

#include "dense/product.h"

namespace delassus::dense {

enum class Diagonal { reciprocals, ones };

// X ← L⁻¹ X for L lower triangular by its entries, m × m; X: m × n, rows `stride` apart. An upper triangular matrix is
// a lower one backwards: see `backwards`.
template <class Real>
void solve_lower(int m, int n, const Entries<Real>& L, Diagonal diagonal, Real* X, std::ptrdiff_t stride);

// U X = Y from the last row to the first. U: row-major, upper triangle, its diagonal reciprocals.
template <class Real>
inline void solve_upper(int m, int n, const Real* U, std::ptrdiff_t u_stride, Real* X, std::ptrdiff_t stride) {
  const std::ptrdiff_t last = m - 1;
  if (m > 0)
    solve_lower(m, n, Entries<Real>{U + last * (u_stride + 1), -u_stride, -1}, Diagonal::reciprocals, X + last * stride,
                -stride);
}

// The same for one right-hand side, matrices row-major: x ← L⁻¹ x with ones on the diagonal, U⁻¹ x, U⁻ᵀ x.
template <class Real>
void solve_unit_lower(int n, const Real* L, std::ptrdiff_t stride, Real* x);
template <class Real>
void solve_upper(int n, const Real* U, std::ptrdiff_t stride, Real* x);
template <class Real>
void solve_upper_transposed(int n, const Real* U, std::ptrdiff_t stride, Real* x);

}  // namespace delassus::dense
