#include "solvers/contacts/problem.h"

namespace delassus {

void find_inverse_masses(const ForceSets& K, ContactMap& G, double* d) {
  G.diagonal(d);
  double largest = 0;
  for (int r = 0; r < K.rows; ++r) largest = d[r] > largest ? d[r] : largest;
  if (!(largest > 0) || std::isinf(largest)) largest = 1;
  auto settle = [&](double x) { return x > 1e-12 * largest && std::isfinite(x) ? x : largest; };
  // the mean over the normal and two tangents, or what torques of a contact feel if that is more
  for (const auto& c : K.cones) {
    double felt = (d[c.row] + d[c.row + 1] + d[c.row + 2]) / 3;
    for (int a = 3; a < c.rows; ++a) felt = std::max(felt, d[c.row + a]);
    std::fill_n(d + c.row, c.rows, settle(felt));
  }
  for (const auto& i : K.intervals) d[i.row] = settle(d[i.row]);
}

double held_tolerance(double tolerance, int rows, const double* g) {
  double speed = 0;
  for (int r = 0; r < rows; ++r) speed = std::max(speed, std::abs(g[r]));
  return std::max(std::min(tolerance, std::max(1e-4 * speed, 1e-6 * tolerance)), 1e-11 * speed);
}

ContactResiduals judge(const ContactProblem& p, bool coulomb, const double* d, const double* lambda, double* sigma) {
  p.G.apply(lambda, sigma);
  for (int r = 0; r < p.rows(); ++r) sigma[r] += p.g[r];
  return residuals(p.sets, coulomb, d, lambda, sigma);
}

void certify(const ContactProblem& p, const ContactOptions& options, bool coulomb, double* d, const double* lambda,
             double* sigma, ContactReport& report) {
  find_inverse_masses(p.sets, p.G, d);
  report.own = report.residuals.natural;
  report.residuals = judge(p, true, d, lambda, sigma);
  if (report.residuals.worst(options.share) <= options.tolerance)
    report.outcome = ContactOutcome::solved;
  else if (report.outcome == ContactOutcome::solved)
    report.outcome = coulomb ? ContactOutcome::stalled : ContactOutcome::approximate;
}

}  // namespace delassus
