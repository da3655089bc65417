// Contact forces to high accuracy: Newton's method on the fixed point of ADMM, f(s) = 0, which is smooth where no
// contact is between sticking, sliding and open.
//
//   f'(s) e = −f   by GMRES, a product with f' being one solve with (G + ρ)⁻¹;
//       s ← s + t e with t = 1, ½, ¼ … such that ‖f‖ shrinks
//
// ADMM comes first and goes on whenever no t is good enough: until it has found which contacts do what.
#pragma once

#include "solvers/contacts/admm.h"

namespace delassus {

class Newton {
 public:
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history) {
    const int m = p.rows();
    for (auto* x : {&from_, &e_}) x->resize(std::size_t(m));
    basis_.resize(std::size_t(m) * (directions + 1));
    ContactReport report;
    p.G.sharpen();
    if (admm_.begin(p, options, lambda, sigma, report)) return report;
    auto& s = admm_.splitting();
    int budget = 5;
    bool done = false;
    std::size_t pattern = 0;
    while (!done && report.iterations < options.most) {
      done = admm_.iterate(std::min(options.most, report.iterations + budget), lambda, sigma, history, report);
      if (done) break;
      if (const std::size_t now = s.pattern(); now != pattern && report.iterations < options.most / 2) {
        pattern = now;
        continue;
      }
      s.evaluate();
      double length = s.length();
      bool helped = false;
      while (report.iterations < options.most) {
        find_step(options.most, history, report);
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
          break;
        }
        helped = true;
        length = now;
        s.forces(lambda);
        if (s.left() <= 10 * options.tolerance && (done = admm_.certified(lambda, sigma, report))) break;
      }
      admm_.resume();
      if (!helped) budget = std::min(2 * budget, 160);
    }
    admm_.finish(lambda, sigma, report);
    return report;
  }

 private:
  static constexpr int directions = 60;

  // e ← −f'(s)⁻¹ f, where f' has an inverse; the residual is made ten thousand times smaller, or the space is used up.
  void find_step(int most, double* history, ContactReport& report) {
    auto& s = admm_.splitting();
    const int m = s.rows();
    double H[directions + 1][directions], c[directions], t[directions], q[directions + 1];
    const double size = s.length();
    for (int r = 0; r < m; ++r) basis_[std::size_t(r)] = -s.f()[r] / size;
    q[0] = size;
    int k = 0;
    for (; k < directions && k < m && report.iterations < most;) {
      double* v = &basis_[std::size_t(k + 1) * m];
      s.change(&basis_[std::size_t(k) * m], v);
      history[report.iterations++] = s.left() * std::abs(q[k]) / size;
      // twice, so that rounding leaves them at right angles
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
    for (int r = 0; r < m; ++r) e_[r] = 0;
    for (int i = k; i-- > 0;) {
      for (int j = i + 1; j < k; ++j) q[i] -= H[i][j] * q[j];
      q[i] /= H[i][i];
    }
    for (int i = 0; i < k; ++i)
      for (int r = 0; r < m; ++r) e_[r] += q[i] * basis_[std::size_t(i) * m + r];
  }

  Admm admm_;
  std::vector<double> from_, e_, basis_;
};

}  // namespace delassus
