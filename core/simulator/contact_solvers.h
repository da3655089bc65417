// The contact solvers of a thread, shared by all islands that it steps, and the choice among them. Between two solves
// they keep only allocated memory.
#pragma once

#include <vector>

#include "operators/verbs.h"
#include "simulator/step_options.h"
#include "solvers/contacts/automatic.h"
#include "solvers/contacts/interior.h"
#include "solvers/contacts/newton.h"

namespace delassus {

// G as a matrix, (m, m); `identity` is memory for its columns' unit vectors.
void form_matrix(Operator<double>& G, std::vector<double>& identity, std::vector<double>& matrix);

// Where a solve starts from besides impulses.
struct SolveStart {
  bool warm = false;   // impulses are something to start from
  double penalty = 0;  // of the solve before; 0: there is none
};

class ContactSolvers {
 public:
  // λ in its sets with σ = G λ + g, by the solver that the options name. Where few rows do not converge, as with bodies
  // that slide on many points, the matrix is small, and an interior point finds the answer. G: what problem.G maps by,
  // which a solve before may have sharpened.
  ContactReport solve_velocities(const StepOptions& options, const ContactProblem& problem, Operator<double>& G,
                                 SolveStart start, double* lambda, double* sigma);

  // The same of corrections of positions, which have no friction, to a tolerance of its own.
  ContactReport solve_positions(const StepOptions& options, const ContactProblem& problem, SolveStart start, double* mu,
                                double* sigma);

 private:
  Admm admm_;
  Newton newton_;
  Interior interior_;
  AutomaticContacts automatic_;
  Semismooth semismooth_;               // of positions
  std::vector<double> history_;         // an iteration
  std::vector<double> identity_, G_;    // (m, m)
  std::vector<double> first_impulses_;  // per row: what the first solver found
};

}  // namespace delassus
