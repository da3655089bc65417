// Contact forces of the convex relaxation by accelerated projected gradients: products with G only, no inverse.
//
//   minimise ½ λᵀ G λ + gᵀ λ   over λ ∈ K:   λ ← P(µ − t (G µ + g)),   µ ← λ + β (λ − λ before)
//
// without de Saxcé's term: where a contact slides, it also opens with µ ‖σ_T‖. t is halved until the quadratic bound
// holds; β is reset when a step goes uphill. Rows are scaled so that the diagonal of G is about one, as in splitting.h.
//
// Nesterov's method as in Mazhar et al., "Using Nesterov's Method to Accelerate Multibody Dynamics with Friction and
// Contact".
#pragma once

#include "solvers/contacts/problem.h"

namespace delassus {

class Apgd {
 public:
  // λ: what to start from on entry if options say so, forces on exit; σ: velocities on exit. Residuals are those of the
  // relaxation. history: room for as many numbers as iterations are allowed.
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history);

 private:
  // λ⁺ = P(µ − t (G µ + g) / d) and G λ⁺ + g, t halved until ½ δᵀ G δ ≤ ½ ‖δ‖² / t. Returns t.
  double find_next(const ContactProblem& p, double step);

  std::vector<double> d_, point_, gradient_, next_,
      next_gradient_;  // a row: its inverse mass, µ, G µ + g, λ⁺, G λ⁺ + g
};

}  // namespace delassus
