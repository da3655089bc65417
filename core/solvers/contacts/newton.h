// Contact forces to high accuracy: Newton's method on the fixed point of ADMM, f(s) = 0, which is smooth away from the
// boundaries between sticking, sliding and open contacts.
//
//   f'(s) e = −f   by GMRES, a product with f' being one solve with (G + ρ)⁻¹;
//       s ← s + t e with t = 1, ½, ¼ … such that ‖f‖ shrinks
//
// ADMM runs first, and again whenever no t is good enough, until it has found which contacts stick, slide and open.
#pragma once

#include "solvers/contacts/admm.h"

namespace delassus {

class Newton {
 public:
  // As Admm's. Products with f' count as iterations.
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history);

 private:
  static constexpr int max_directions = 60;  // of GMRES

  // Steps until one does not make ‖f‖ smaller. helped: whether any did. Returns whether the problem is solved.
  bool descend(const ContactOptions& options, double* lambda, double* sigma, double* history, ContactReport& report,
               bool* helped);
  // e ← −f'(s)⁻¹ f, where f' has an inverse; the residual is made ten thousand times smaller, or the space is used up.
  void find_step(int max_iterations, double* history, ContactReport& report);

  Admm admm_;
  std::vector<double> from_, e_, basis_;  // s before a step, the step, directions of GMRES
};

}  // namespace delassus
