// Contact forces by projected Gauss–Seidel: one set after another is solved exactly, with the others held fixed. Needs
// G as a matrix.
//
//   σᵢ = Gᵢᵢ λᵢ + b:   open if b_n ≥ 0;   sticking if λᵢ = −Gᵢᵢ⁻¹ b is in the cone;
//       else sliding: λᵢ = n (1, µ u), |u| = 1, σ_n = 0, σ_T = −κ u, κ ≥ 0
//
// With A = G_nn + µ G_nT u the normal force is −b_n / A, and u is a root of (A b_T − b_n (G_Tn + µ G_TT u)) × u, a
// trigonometric polynomial of degree two.
#pragma once

#include "solvers/contacts/problem.h"

namespace delassus {

// λ of one contact with the 3×3 block G, rows `stride` apart, and b. Returns whether it found a solution.
bool solve_one_contact(const double* G, int stride, double mu, const double* b, double* lambda);

class Pgs {
 public:
  // G: m × m, row-major. One iteration is a sweep over all sets.
  ContactReport solve(const ContactProblem& p, const double* G, const ContactOptions& options, double* lambda,
                      double* sigma, double* history);

 private:
  void sweep(const ContactProblem& p, const double* G, double* lambda, double* sigma) const;
  // Which entries of every row are not zero.
  void find_columns(const double* G, int m);
  // λ_r ← x, σ follows
  void move(const double* G, int m, int r, double x, double* lambda, double* sigma) const;

  std::vector<double> d_;             // a row: its inverse mass
  std::vector<int> first_, columns_;  // a row: where its columns begin; columns of all rows
};

}  // namespace delassus
