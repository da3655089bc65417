// Symmetric positive definite systems of a few unknowns, in arrays of fixed size: Cholesky's factor row by row, O(n³ /
// 3).
#pragma once

#include <cmath>

namespace delassus::dense {

// x ← (A + shift)⁻¹ x of the first n unknowns; the lower triangle of A is read. Returns whether that is positive
// definite; if not, x is of no use.
template <int N, class Real>
inline bool solve_small(int n, const Real (&A)[N][N], Real shift, Real* x) {
  Real L[N][N];
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      Real sum = A[i][j] + (i == j ? shift : Real(0));
      for (int k = 0; k < j; ++k) sum -= L[i][k] * L[j][k];
      if (i == j && !(sum > 0)) return false;
      L[i][j] = i == j ? std::sqrt(sum) : sum / L[j][j];
    }
    for (int k = 0; k < i; ++k) x[i] -= L[i][k] * x[k];
    x[i] /= L[i][i];
  }
  for (int i = n; i-- > 0;) {
    for (int k = i + 1; k < n; ++k) x[i] -= L[k][i] * x[k];
    x[i] /= L[i][i];
  }
  return true;
}

}  // namespace delassus::dense
