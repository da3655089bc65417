#include "solvers/contacts/newton.h"

namespace delassus {

ContactReport Newton::solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                            double* history) {
  const std::size_t m = std::size_t(p.rows());
  for (auto* x : {&from_, &e_}) x->resize(m);
  basis_.resize(m * (max_directions + 1));
  ContactReport report;
  p.G.sharpen();
  if (admm_.begin(p, options, lambda, sigma, report)) return report;
  int budget = 5;
  bool done = false;
  std::size_t pattern = 0;
  while (!done && report.iterations < options.max_iterations) {
    // ADMM, until twice in a row it leaves the same contacts sticking, sliding and open
    done = admm_.iterate(std::min(options.max_iterations, report.iterations + budget), lambda, sigma, history, report);
    if (done) break;
    if (const std::size_t now = admm_.splitting().pattern();
        now != pattern && report.iterations < options.max_iterations / 2) {
      pattern = now;
      continue;
    }
    bool helped = false;
    done = descend(options, lambda, sigma, history, report, &helped);
    admm_.resume();
    if (!helped) budget = std::min(2 * budget, 160);
  }
  admm_.finish(lambda, sigma, report);
  return report;
}

bool Newton::descend(const ContactOptions& options, double* lambda, double* sigma, double* history,
                     ContactReport& report, bool* helped) {
  auto& s = admm_.splitting();
  const int m = s.rows();
  s.evaluate();
  double length = s.length();
  while (report.iterations < options.max_iterations) {
    // s ← s + t e
    find_step(options.max_iterations, history, report);
    std::copy_n(s.s(), m, from_.data());
    double now = length;
    for (double t = 1; t > 0.1; t /= 2) {
      for (int r = 0; r < m; ++r) s.s()[r] = from_[r] + t * e_[r];
      s.evaluate();
      now = s.length();
      if (now <= (1 - 0.25 * t) * length) break;
    }
    if (!(now < 0.9 * length)) {
      std::copy_n(from_.data(), m, s.s());
      return false;
    }
    *helped = true;
    length = now;
    s.forces(lambda);
    if (s.residual_estimate() <= 10 * options.tolerance && admm_.certified(lambda, sigma, report)) return true;
  }
  return false;
}

void Newton::find_step(int max_iterations, double* history, ContactReport& report) {
  auto& s = admm_.splitting();
  const int m = s.rows();
  double H[max_directions + 1][max_directions], c[max_directions], t[max_directions], q[max_directions + 1];
  const double size = s.length();
  for (int r = 0; r < m; ++r) basis_[std::size_t(r)] = -s.f()[r] / size;
  q[0] = size;
  int k = 0;
  for (; k < max_directions && k < m && report.iterations < max_iterations;) {
    double* v = &basis_[std::size_t(k + 1) * m];
    s.change(&basis_[std::size_t(k) * m], v);
    history[report.iterations++] = s.residual_estimate() * std::abs(q[k]) / size;
    // v at right angles to all before, twice, so that rounding leaves it so
    for (int i = 0; i <= k; ++i) H[i][k] = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i <= k; ++i) {
        const double* b = &basis_[std::size_t(i) * m];
        const double along = inner(m, b, v);
        H[i][k] += along;
        for (int r = 0; r < m; ++r) v[r] -= along * b[r];
      }
    const double rest = std::sqrt(inner(m, v, v));
    H[k + 1][k] = rest;
    // Givens rotations: those known, and one that makes H[k + 1][k] zero
    for (int i = 0; i < k; ++i) {
      const double a = H[i][k], b = H[i + 1][k];
      H[i][k] = c[i] * a + t[i] * b;
      H[i + 1][k] = c[i] * b - t[i] * a;
    }
    const double hyp = std::hypot(H[k][k], H[k + 1][k]);
    if (!(hyp > 1e-14)) break;  // f' does not see this direction
    c[k] = H[k][k] / hyp, t[k] = H[k + 1][k] / hyp;
    H[k][k] = hyp;
    q[k + 1] = -t[k] * q[k];
    q[k] *= c[k];
    ++k;
    if (std::abs(q[k]) <= 1e-4 * size || !(rest > 1e-14)) break;
    for (int r = 0; r < m; ++r) v[r] /= rest;
  }
  // e = V H⁻¹ q
  for (int r = 0; r < m; ++r) e_[r] = 0;
  for (int i = k; i-- > 0;) {
    for (int j = i + 1; j < k; ++j) q[i] -= H[i][j] * q[j];
    q[i] /= H[i][i];
  }
  for (int i = 0; i < k; ++i)
    for (int r = 0; r < m; ++r) e_[r] += q[i] * basis_[std::size_t(i) * m + r];
}

}  // namespace delassus
