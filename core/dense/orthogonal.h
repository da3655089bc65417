// The complete orthogonal factors of a dense square matrix that may be singular, and with them its pseudo-inverse: the
// shortest of all x for which ‖A x − b‖ is least. O(4 n³ / 3), and O(4 n²) a solution.
//
//   A P = Q [ R₁ R₂ ; 0 0 ]          Householder reflections, the longest remaining column first
//   [ R₁ R₂ ] = [ T 0 ] Z            reflections from the right, where the rank r is below n
//   A⁺ = P Zᵀ [ T⁻¹ 0 ; 0 0 ] Qᵀ
//
// Golub and Van Loan, "Matrix Computations", 5.4 and 5.5.
#pragma once

#include <vector>

namespace delassus::dense {

class OrthogonalFactor {
 public:
  // Room for n rows and columns; memory only grows. Their numbers, row-major, are to be written next.
  double* resize(int n);
  int size() const { return n_; }
  int rank() const { return rank_; }
  // Factors the numbers written: columns count as dependent on those before from |r| ≤ threshold |r₀| on. Whether
  // the numbers are finite.
  bool factor(double threshold);
  // x ← A⁺ x, x ← A⁺ᵀ x
  void solve(double* x);
  void solve_transposed(double* x);

 private:
  double* row(int i) { return A_.data() + std::size_t(i) * std::size_t(n_); }
  void reflect_rows(int k);
  void reflect_right(int k);
  void apply_reflection(int k, double* x) const;
  void apply_right(int k, double* x) const;

  int n_ = 0, rank_ = 0;
  std::vector<double> A_;               // R₁ or T, and reflections beside them
  std::vector<double> left_, right_;    // factors of reflections: 1 − τ v vᵀ
  std::vector<double> lengths_, work_;  // a column: squared length of what is left, and when it was last computed
  std::vector<int> order_;              // a column of A P: which of A
};

}  // namespace delassus::dense
