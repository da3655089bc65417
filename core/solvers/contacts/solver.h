// Table of all methods for contact problems, and their memory. A problem of the same size as the previous one is solved
// without allocation, and the result is bitwise independent of earlier solves.
//
// Whatever the method, the status is computed from the definition of the problem (certify in problem.h).
#pragma once

#include <span>
#include <string_view>

#include "solvers/contacts/apgd.h"
#include "solvers/contacts/automatic.h"
#include "solvers/contacts/interior.h"
#include "solvers/contacts/lcp.h"
#include "solvers/contacts/newton.h"
#include "solvers/contacts/pgs.h"

namespace delassus {

class ContactSolver;

// A method: its name, its requirements, and its function.
struct ContactMethod {
  const char* name;
  int max_iterations;  // by default
  bool needs_matrix;   // G as a matrix
  bool needs_inverse;  // (G + ε)⁻¹
  bool coulomb;        // whether its own problem is Coulomb's, and not one with polygons or without Γ
  bool keeps_history;  // a residual of every iteration
  ContactReport (*run)(ContactSolver& solver, const ContactProblem& p, const double* matrix,
                       const ContactOptions& options, double* lambda, double* sigma, double* history);
};

std::span<const ContactMethod> contact_methods();
// Null if there is none of that name.
const ContactMethod* find_contact_method(std::string_view name);

class ContactSolver {
 public:
  // matrix: G itself, row-major, for methods that need it. λ: what to start from on entry if options say so, forces on
  // exit; σ: velocities on exit. history: room for options.max_iterations numbers, unless the method keeps none.
  ContactReport solve(const ContactMethod& method, const ContactProblem& p, const double* matrix,
                      const ContactOptions& options, double* lambda, double* sigma, double* history);

  AutomaticContacts automatic;
  Admm admm;
  Newton newton;
  Apgd apgd;
  Pgs pgs;
  Interior interior;
  Lcp lcp;

 private:
  std::vector<double> d_;  // a row: inverse mass, for the certificate
};

}  // namespace delassus
