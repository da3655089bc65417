#include "solvers/contacts/apgd.h"

namespace delassus {

ContactReport Apgd::solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                          double* history) {
  const int m = p.rows();
  for (auto* x : {&d_, &point_, &gradient_, &next_, &next_gradient_}) x->resize(std::size_t(m));
  find_inverse_masses(p.sets, p.G, d_.data());
  if (!options.warm) std::fill_n(lambda, m, 0.0);
  project(p.sets, lambda, lambda);
  ContactReport report;
  report.residuals = judge(p, false, d_.data(), lambda, sigma);
  std::copy_n(lambda, m, point_.data());
  std::copy_n(sigma, m, gradient_.data());
  double step = 1, theta = 1;
  while (report.residuals.worst() > options.tolerance && report.iterations < options.max_iterations) {
    step = find_next(p, step);
    // β, which starts anew when the step turns uphill
    double uphill = 0;
    for (int r = 0; r < m; ++r) uphill += gradient_[r] * (next_[r] - lambda[r]);
    const double before = theta;
    if (uphill > 0) theta = 1;
    const double after = (1 + std::sqrt(1 + 4 * theta * theta)) / 2, beta = uphill > 0 ? 0 : (before - 1) / after;
    theta = after;
    // G is linear: the gradient at µ follows
    for (int r = 0; r < m; ++r) {
      point_[r] = next_[r] + beta * (next_[r] - lambda[r]);
      gradient_[r] = next_gradient_[r] + beta * (next_gradient_[r] - sigma[r]);
      lambda[r] = next_[r];
      sigma[r] = next_gradient_[r];
    }
    step *= 1.05;
    report.residuals = residuals(p.sets, false, d_.data(), lambda, sigma);
    history[report.iterations++] = report.residuals.natural;
    if (!std::isfinite(report.residuals.worst())) break;
  }
  report.outcome = report.residuals.worst() <= options.tolerance ? ContactOutcome::solved
                   : std::isfinite(report.residuals.worst())     ? ContactOutcome::unfinished
                                                                 : ContactOutcome::stalled;
  return report;
}

double Apgd::find_next(const ContactProblem& p, double step) {
  const int m = p.rows();
  for (int halvings = 0;; ++halvings) {
    for (int r = 0; r < m; ++r) next_[r] = point_[r] - step * gradient_[r] / d_[r];
    project(p.sets, next_.data(), next_.data());
    p.G.apply(next_.data(), next_gradient_.data());
    double curved = 0, plain = 0;
    for (int r = 0; r < m; ++r) {
      next_gradient_[r] += p.g[r];
      const double move = next_[r] - point_[r];
      curved += move * (next_gradient_[r] - gradient_[r]);
      plain += move * move * d_[r];
    }
    if (curved <= plain / step * (1 + 1e-12) || halvings == 60) break;
    step /= 2;
  }
  return step;
}

}  // namespace delassus
