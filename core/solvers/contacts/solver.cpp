#include "solvers/contacts/solver.h"

namespace delassus {
namespace {

// Methods that need no matrix, and those that do.
template <auto method>
ContactReport run_with_products(ContactSolver& s, const ContactProblem& p, const double*, const ContactOptions& options,
                                double* lambda, double* sigma, double* history) {
  return (s.*method).solve(p, options, lambda, sigma, history);
}
template <auto method>
ContactReport run_with_matrix(ContactSolver& s, const ContactProblem& p, const double* matrix,
                              const ContactOptions& options, double* lambda, double* sigma, double* history) {
  return (s.*method).solve(p, matrix, options, lambda, sigma, history);
}
ContactReport run_lcp(ContactSolver& s, const ContactProblem& p, const double* matrix, const ContactOptions& options,
                      double* lambda, double* sigma, double*) {
  return s.lcp.solve(p, matrix, options, options.directions, lambda, sigma);
}

//                                name   iterations  matrix inverse coulomb history
constexpr ContactMethod methods[] = {
    {"auto", 2000, false, true, true, true, run_with_products<&ContactSolver::automatic>},
    {"admm", 1000, false, true, true, true, run_with_products<&ContactSolver::admm>},
    {"newton", 1000, false, true, true, true, run_with_products<&ContactSolver::newton>},
    {"apgd", 10'000, false, false, false, true, run_with_products<&ContactSolver::apgd>},
    {"pgs", 5000, true, false, true, true, run_with_matrix<&ContactSolver::pgs>},
    {"interior", 120, true, false, true, true, run_with_matrix<&ContactSolver::interior>},
    {"lcp", 100'000, true, false, false, false, run_lcp},
};

}  // namespace

std::span<const ContactMethod> contact_methods() { return methods; }

const ContactMethod* find_contact_method(std::string_view name) {
  for (const auto& method : methods)
    if (name == method.name) return &method;
  return nullptr;
}

ContactReport ContactSolver::solve(const ContactMethod& method, const ContactProblem& p, const double* matrix,
                                   const ContactOptions& options, double* lambda, double* sigma, double* history) {
  ContactReport report = method.run(*this, p, matrix, options, lambda, sigma, history);
  d_.resize(std::size_t(p.rows()));
  certify(p, options, method.coulomb, d_.data(), lambda, sigma, report);
  return report;
}

}  // namespace delassus
