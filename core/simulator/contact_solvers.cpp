#include "simulator/contact_solvers.h"

#include <algorithm>

namespace delassus {

namespace {

constexpr int few_rows = 100, few_iterations = 200;  // where an interior point takes over
constexpr double position_tolerance = 1e-7;          // [m/s]
constexpr SemismoothRule position_rule = {3, 0.3, 1e-3, true, 30, 12};

ContactOptions contact_options(double tolerance, int max_iterations, SolveStart start) {
  return {tolerance, max_iterations, start.warm, start.penalty, true, 1.0};
}

}  // namespace

void form_matrix(Operator<double>& G, std::vector<double>& identity, std::vector<double>& matrix) {
  const std::size_t n = std::size_t(G.rows());
  matrix.resize(n * n);
  identity.assign(n * n, 0.0);
  for (std::size_t r = 0; r < n; ++r) identity[r * n + r] = 1;
  if (n > 0) G.apply(identity.data(), int(n), matrix.data());
}

ContactReport ContactSolvers::solve_velocities(const StepOptions& options, const ContactProblem& problem,
                                               Operator<double>& G, SolveStart start, double* lambda, double* sigma) {
  history_.resize(std::size_t(options.max_iterations));
  if (options.solver == StepSolver::automatic) {
    ContactOptions limited = contact_options(options.tolerance, options.max_iterations, start);
    if (options.time_limit > 0) limited.seconds = options.time_limit;
    return automatic_.solve(problem, limited, lambda, sigma, history_.data());
  }
  // the solver that was asked for
  const bool small = problem.rows() <= few_rows;
  const int iterations = small ? std::min(options.max_iterations, few_iterations) : options.max_iterations;
  const ContactOptions first_options = contact_options(options.tolerance, iterations, start);
  const ContactReport first = options.solver == StepSolver::newton
                                  ? newton_.solve(problem, first_options, lambda, sigma, history_.data())
                                  : admm_.solve(problem, first_options, lambda, sigma, history_.data());
  if (!small || first.outcome == ContactOutcome::solved || options.max_iterations <= few_iterations) return first;
  first_impulses_.assign(lambda, lambda + problem.rows());
  form_matrix(G, identity_, G_);
  // an interior point; where it is no better, what the first solver found
  const ContactOptions second_options =
      contact_options(options.tolerance, options.max_iterations - few_iterations, start);
  ContactReport second = interior_.solve(problem, G_.data(), second_options, lambda, sigma, history_.data());
  second.iterations += first.iterations;
  second.factorizations += first.factorizations;
  if (second.outcome == ContactOutcome::solved || second.residuals.worst() < first.residuals.worst()) return second;
  std::copy(first_impulses_.begin(), first_impulses_.end(), lambda);
  second.residuals = first.residuals;
  second.outcome = first.outcome;
  return second;
}

ContactReport ContactSolvers::solve_positions(const StepOptions& options, const ContactProblem& problem,
                                              SolveStart start, double* mu, double* sigma) {
  const ContactOptions limited = contact_options(position_tolerance, options.max_iterations, start);
  history_.resize(std::size_t(options.max_iterations));
  // Newton's method, and where that does not converge, as where shapes overlap that a loop ties together, ADMM
  if (options.solver == StepSolver::automatic && semismooth_.begin(problem)) {
    ContactReport report;
    if (!start.warm) std::fill_n(mu, problem.rows(), 0.0);
    first_impulses_.assign(mu, mu + problem.rows());
    if (semismooth_.run(position_rule, limited, mu, sigma, nullptr, report)) return report;
    std::copy(first_impulses_.begin(), first_impulses_.end(), mu);
  }
  return admm_.solve(problem, limited, mu, sigma, history_.data());
}

}  // namespace delassus
