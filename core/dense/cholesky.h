// The Cholesky factor of a dense symmetric positive definite matrix, O(n³ / 3), solutions with it, O(2 n²) each, and
// the inverse, another O(2 n³ / 3).
//
//   A = Uᵀ U,   U upper triangular,   x = U⁻¹ U⁻ᵀ y,   A⁻¹ = Wᵀ W with W = U⁻ᵀ
//
//   [ A₁₁ A₁₂ ]   U₁₁ from A₁₁,   U₁₂ = U₁₁⁻ᵀ A₁₂,   U₂₂ from A₂₂ − U₁₂ᵀ U₁₂        by halves, down to a small block
//   [  ·  A₂₂ ]
//
// Matrices are row-major, rows `stride` apart. The upper triangle is read and overwritten by U, with the reciprocals 1
// / u on its diagonal. Entries below the diagonal are not read, but overwritten; numbers past the end of a row are not
// touched. Backward error: |A − Uᵀ U| ≤ (n + 2) ε |U|ᵀ |U| (Higham, "Accuracy and Stability of Numerical Algorithms",
// theorem 10.3), whatever the order of sums.
#pragma once

#include <algorithm>
#include <limits>

#include "dense/triangular.h"

namespace delassus::dense {

// Returns n, or the first row whose pivot is not positive (or no number): the matrix is not positive definite, and what
// A holds is of no use. With `floors`, n numbers, no pivot u² is taken smaller than its floor, and n is returned.
template <class Real>
int factor_cholesky(int n, Real* A, std::ptrdiff_t stride, const Real* floors = nullptr);

// The least pivot to believe in where A is semidefinite but for `least` on its diagonal: that, or the rounding of the
// diagonal entry itself.
template <class Real>
inline Real pivot_floor(Real least, Real diagonal) {
  return std::max(least, 4 * std::numeric_limits<Real>::epsilon() * diagonal);
}

// x ← A⁻¹ x, and X ← A⁻¹ X of many columns: n × columns, row-major.
template <class Real>
inline void solve_cholesky(int n, const Real* U, std::ptrdiff_t stride, Real* x) {
  solve_upper_transposed(n, U, stride, x);
  solve_upper(n, U, stride, x);
}
template <class Real>
inline void solve_cholesky(int n, const Real* U, std::ptrdiff_t stride, int columns, Real* X, std::ptrdiff_t x_stride) {
  solve_lower(n, columns, Entries<Real>{U, 1, stride}, Diagonal::reciprocals, X, x_stride);
  solve_upper(n, columns, U, stride, X, x_stride);
}

// The inverse in two steps: W ← U⁻ᵀ, which overwrites the upper triangle of W; X ← X + Wᵀ W, which is A⁻¹ in the upper
// triangle of X and overwrites the rest. W and X are matrices of their own; X may lie where U was.
template <class Real>
void invert_transposed(int n, const Real* U, std::ptrdiff_t stride, Real* W, std::ptrdiff_t w_stride);
template <class Real>
void add_square_transposed(int n, const Real* W, std::ptrdiff_t w_stride, Real* X, std::ptrdiff_t x_stride);

}  // namespace delassus::dense
