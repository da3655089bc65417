// Closes loops without regard to contacts and limits: impulses of the loop rows that close them as far as any motion
// can.
//
//   λ ← λ − (G_ll + ε)⁻¹ r,   r = G_ll λ + g          proximal steps, ε = 1e-8 of each row's diagonal
//
// Rows of loops may be redundant: exactly (planar loops in space, Bricard's mechanism) or to rounding (the same, a
// little out of plane). Then G_ll is singular, and g need not be in its range. Each step reduces the part of r that
// motions can change by ε / (σ + ε), with σ an eigenvalue of G_ll. Once r no longer decreases, the remainder is the
// model's own error, which no motion changes. Cost: one factorization, then one solve and one product per step; two or
// three steps are usual.
//
// If the columns of the loops were formed (row_matrix.h), they are used; otherwise the operator is.
#pragma once

#include <vector>

#include "simulator/row_matrix.h"

namespace delassus {

class LoopClosure {
 public:
  // loops: the first rows of G. After G was updated, and its matrix formed.
  void begin(Operator<double>& G, const RowMatrix& matrix, int loops);
  // Another damping of G was set meanwhile.
  void forget() { factored_ = factored_ && formed(); }

  // λ: the start on entry, zero except for loops. On exit σ = G λ + g of all rows; for loops this is the error that no
  // motion closes. Stops when that is at most `small` times g, or no longer decreases. Returns the number of steps.
  int close(const double* g, double* lambda, double* sigma, double small = 1e-13);

  // X ← (G_ll + ε)⁻¹ X: loops × columns, row-major. Where the columns of loops were formed.
  bool is_formed() const { return formed(); }
  void solve(int columns, double* X);

  // x ← G (G + ε)⁻¹ x of loops: without the part that no motion reaches, or only one ten thousand times its size.
  void soften(double* x);

  // λ ← λ − ((G + ε)⁻¹ ε)² λ of loops: without impulses that redundant rows hardly feel. These may be huge, and what
  // rows that are redundant only to rounding make of them is not nothing. Squared, so that G λ stays as it is: it
  // changes by no more than ε λ / 4.
  void purify(double* lambda);

  // The largest magnitude among the loops' rows.
  double largest(const double* x) const;

 private:
  bool formed() const { return matrix_->columns() >= int(loops_); }
  void factor();
  void solve();
  double residual(const double* g, const double* lambda, double* sigma);

  Operator<double>* G_ = nullptr;
  const RowMatrix* matrix_ = nullptr;
  std::size_t loops_ = 0;
  bool factored_ = false;
  std::vector<double> damping_, rhs_, change_;  // per row
  std::vector<double> factor_, floors_;         // Cholesky's factor of G_ll + ε where formed, its least pivots
};

}  // namespace delassus
