// A contact problem, how to solve it, and how that ended.
#pragma once

#include "solvers/contacts/map.h"
#include "solvers/contacts/sets.h"

namespace delassus {

struct ContactProblem {
  ContactMap& G;
  const double* g;  // velocities of the rows without constraint forces [m/s]
  const ForceSets& sets;
  int rows() const { return sets.rows; }
};

struct ContactOptions {
  double tolerance = 1e-6;  // of the residuals [m/s]
  int most = 1000;          // iterations
  bool warm = false;        // λ is something to start from
  double rho = 0;           // of the solve before; 0: there is none
  bool hurry = false;       // near the tolerance is good enough where the rest would take long
  double share = 0.1;       // of the natural residual that is held against the tolerance
};

// approximate: what is solved is another problem, with polygons for cones or without Γ, and not Coulomb's.
enum class ContactOutcome : int { solved, unfinished, stalled, infeasible, approximate };

struct ContactReport {
  ContactOutcome outcome = ContactOutcome::unfinished;
  int iterations = 0, factorizations = 0;
  double rho = 0;  // penalty at the end, in units of the diagonal of G
  ContactResiduals left;
  double own = 0;  // natural residual of the problem that the method solves, which need not be Coulomb's [m/s]
};

// Sums of products, in one fixed order.
inline double inner(int n, const double* a, const double* b) {
  using P = Pack<double, 8>;
  P sums{};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    P x, y;
    __builtin_memcpy(&x, a + i, sizeof(P));
    __builtin_memcpy(&y, b + i, sizeof(P));
    sums += x * y;
  }
  double sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (int k = 0; k < 8; ++k) sum += sums[k];
  return sum;
}

// The inverse mass that the rows of a set feel: the mean of the diagonal over a cone. A row that nothing moves feels
// the largest of the others.
inline void feel(const ForceSets& K, ContactMap& G, double* d) {
  G.diagonal(d);
  double largest = 0;
  for (int r = 0; r < K.rows; ++r) largest = d[r] > largest ? d[r] : largest;
  if (!(largest > 0) || std::isinf(largest)) largest = 1;
  auto settle = [&](double x) { return x > 1e-12 * largest && std::isfinite(x) ? x : largest; };
  for (const auto& c : K.cones)
    d[c.row] = d[c.row + 1] = d[c.row + 2] = settle((d[c.row] + d[c.row + 1] + d[c.row + 2]) / 3);
  for (const auto& i : K.intervals) d[i.row] = settle(d[i.row]);
}

// The tolerance that a problem is held to: as given, but at most 1e-4 of the largest |g|, or no forces at all might do;
// at least 1e-11 of it, below which there is rounding. Velocities of a millionth of the tolerance count as rounding
// themselves.
inline double held_tolerance(double tolerance, int rows, const double* g) {
  double speed = 0;
  for (int r = 0; r < rows; ++r) speed = std::max(speed, std::abs(g[r]));
  return std::max(std::min(tolerance, std::max(1e-4 * speed, 1e-6 * tolerance)), 1e-11 * speed);
}

// σ = G λ + g, and its residuals
inline ContactResiduals judge(const ContactProblem& p, bool coulomb, const double* d, const double* lambda,
                              double* sigma) {
  p.G.apply(lambda, sigma);
  for (int r = 0; r < p.rows(); ++r) sigma[r] += p.g[r];
  return residuals(p.sets, coulomb, d, lambda, sigma);
}

// The status of forces from the definition alone, σ = G λ + g by G itself and Coulomb's residuals, whatever method
// found them. coulomb: whether that is what the method solves.
inline void certify(const ContactProblem& p, const ContactOptions& options, bool coulomb, double* d,
                    const double* lambda, double* sigma, ContactReport& report) {
  feel(p.sets, p.G, d);
  report.own = report.left.natural;
  report.left = judge(p, true, d, lambda, sigma);
  if (report.left.worst(options.share) <= options.tolerance)
    report.outcome = ContactOutcome::solved;
  else if (report.outcome == ContactOutcome::solved)
    report.outcome = coulomb ? ContactOutcome::stalled : ContactOutcome::approximate;
}

}  // namespace delassus
