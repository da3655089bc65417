// LU factors of a dense square matrix by Gaussian elimination with row pivoting, O(2 n³ / 3), and solutions with them,
// O(2 n²) each.
//
//   P A = L U,   L unit lower, U upper triangular,   x = U⁻¹ L⁻¹ P y
//
//   [ A₁ A₂ ]   L₁ and U₁₁ from the columns A₁ by halves,   U₁₂ = L₁₁⁻¹ A₁₂,   then A₂₂ − L₂₁ U₁₂
//
// Matrices are row-major, rows `stride` apart; L and U overwrite A, with the reciprocals of U's diagonal. The pivot of
// a column is its entry of largest magnitude, the first one among equals, so |l| ≤ 1. Backward error: |P A − L U| ≤ n ε
// |L| |U| (Higham, "Accuracy and Stability of Numerical Algorithms", theorem 9.3).
#pragma once

#include "dense/triangular.h"

namespace delassus::dense {

// pivots: n, the row that each was exchanged with, in turn. A pivot that is zero is replaced by `substitute`; if that
// is zero too, the column's number is returned and what A holds is of no use. Otherwise n. NaN counts as zero.
template <class Real>
int factor_lu(int n, Real* A, std::ptrdiff_t stride, int* pivots, Real substitute = 0);

// x ← A⁻¹ x, and X ← A⁻¹ X of many columns: n × columns, row-major.
template <class Real>
void solve_lu(int n, const Real* A, std::ptrdiff_t stride, const int* pivots, Real* x);
template <class Real>
void solve_lu(int n, const Real* A, std::ptrdiff_t stride, const int* pivots, int columns, Real* X,
              std::ptrdiff_t x_stride);

}  // namespace delassus::dense
