#include "solvers/contacts/pgs.h"

namespace delassus {
namespace {

// G of one contact, symmetric.
struct ContactBlock {
  double a00, a01, a02, a11, a12, a22;
};

// Sliding: u among the roots of (A b_T − b_n (G_Tn + µ G_TT u)) × u, bracketed by samples around the circle.
bool solve_sliding(const ContactBlock& G, double mu, const double* b, double* lambda) {
  struct {
    double across, along, pressed;
  } at;
  auto look = [&](double angle) {
    const double c = std::cos(angle), s = std::sin(angle), A = G.a00 + mu * (G.a01 * c + G.a02 * s);
    const double w1 = A * b[1] - b[0] * (G.a01 + mu * (G.a11 * c + G.a12 * s)),
                 w2 = A * b[2] - b[0] * (G.a02 + mu * (G.a12 * c + G.a22 * s));
    at = {w1 * s - w2 * c, w1 * c + w2 * s, A};
    return at.across;
  };
  constexpr int samples = 24;
  constexpr double turn = 6.283185307179586;
  const double first = std::atan2(-b[2], -b[1]);
  double before = look(first);
  for (int k = 1; k <= samples; ++k) {
    const double low = first + turn * (k - 1) / samples, high = first + turn * k / samples, after = look(high);
    if (before * after <= 0 && (before != 0 || after != 0)) {
      // regula falsi that halves the end which stays (Illinois)
      double x = low, y = high, hx = before, hy = after, root = low;
      for (int n = 0; n < 60 && std::abs(y - x) > 1e-15; ++n) {
        root = hx == hy ? (x + y) / 2 : (x * hy - y * hx) / (hy - hx);
        const double h = look(root);
        if (h == 0) break;
        if (h * hy < 0)
          x = y, hx = hy;
        else
          hx /= 2;
        y = root, hy = h;
      }
      look(root);
      if (at.along <= 0 && at.pressed > 0) {
        lambda[0] = -b[0] / at.pressed;
        lambda[1] = lambda[0] * mu * std::cos(root);
        lambda[2] = lambda[0] * mu * std::sin(root);
        return true;
      }
    }
    before = after;
  }
  return false;
}

}  // namespace

bool solve_one_contact(const double* G, int stride, double mu, const double* b, double* lambda) {
  lambda[0] = lambda[1] = lambda[2] = 0;
  if (b[0] >= 0) return true;
  const ContactBlock block{G[0], G[1], G[2], G[stride + 1], G[stride + 2], G[2 * stride + 2]};
  const auto [a00, a01, a02, a11, a12, a22] = block;
  // −G⁻¹ b by elimination, if G is regular
  const double d0 = a00, l1 = a01 / d0, l2 = a02 / d0, d1 = a11 - l1 * a01, m = a12 - l1 * a02,
               d2 = a22 - l2 * a02 - (d1 > 0 ? m * m / d1 : 0.0);
  const double tiny = 1e-12 * (a00 + a11 + a22);
  if (!(a00 > 0)) return false;
  if (mu > 0 && d1 > tiny && d2 > tiny) {
    const double y1 = -b[1] + l1 * b[0], x2 = (-b[2] + l2 * b[0] - m / d1 * y1) / d2, x1 = (y1 - m * x2) / d1,
                 x0 = (-b[0] - a01 * x1 - a02 * x2) / a00;
    if (std::hypot(x1, x2) <= mu * x0) {
      lambda[0] = x0, lambda[1] = x1, lambda[2] = x2;
      return true;
    }
  }
  if (mu == 0) {
    lambda[0] = -b[0] / a00;
    return true;
  }
  return solve_sliding(block, mu, b, lambda);
}

ContactReport Pgs::solve(const ContactProblem& p, const double* G, const ContactOptions& options, double* lambda,
                         double* sigma, double* history) {
  const int m = p.rows();
  d_.resize(std::size_t(m));
  find_inverse_masses(p.sets, p.G, d_.data());
  find_columns(G, m);
  if (!options.warm) std::fill_n(lambda, m, 0.0);
  project(p.sets, lambda, lambda);
  ContactReport report;
  report.residuals = judge(p, true, d_.data(), lambda, sigma);
  while (report.residuals.worst() > options.tolerance && report.iterations < options.max_iterations) {
    sweep(p, G, lambda, sigma);
    report.residuals = residuals(p.sets, true, d_.data(), lambda, sigma);
    // sums of changes drift: what counts is found anew
    if (report.residuals.worst() <= options.tolerance || report.iterations % 50 == 49)
      report.residuals = judge(p, true, d_.data(), lambda, sigma);
    history[report.iterations++] = report.residuals.natural;
    if (!std::isfinite(report.residuals.worst())) break;
  }
  if (report.iterations == options.max_iterations) report.residuals = judge(p, true, d_.data(), lambda, sigma);
  report.outcome = report.residuals.worst() <= options.tolerance ? ContactOutcome::solved
                   : std::isfinite(report.residuals.worst())     ? ContactOutcome::unfinished
                                                                 : ContactOutcome::stalled;
  return report;
}

void Pgs::sweep(const ContactProblem& p, const double* G, double* lambda, double* sigma) const {
  const int m = p.rows();
  for (const auto& c : p.sets.cones) {
    const double* block = G + std::size_t(c.row) * m + c.row;
    double b[3], next[max_cone_rows];
    for (int i = 0; i < 3; ++i)
      b[i] = sigma[c.row + i] - block[i * m] * lambda[c.row] - block[i * m + 1] * lambda[c.row + 1] -
             block[i * m + 2] * lambda[c.row + 2];
    if (c.rows > 3 || !solve_one_contact(block, m, c.friction, b, next)) {
      // a step along the natural map where the block has no solution of its own, or a singular one, or more rows; no
      // longer than its trace allows, or it would grow
      double trace = 0, x[max_cone_rows];
      for (int i = 0; i < c.rows; ++i) trace += block[i * (m + 1)];
      const double e = trace > 0 ? trace : d_[c.row], *s = sigma + c.row, *l = lambda + c.row;
      for (int i = 0; i < c.rows; ++i) x[i] = l[i] - s[i] / e;
      x[0] -= c.friction * tangential(c, s) / e;
      project(c, x, next);
    }
    for (int i = 0; i < c.rows; ++i) move(G, m, c.row + i, next[i], lambda, sigma);
  }
  for (const auto& i : p.sets.intervals) {
    const double own =
        G[std::size_t(i.row) * m + i.row];  // d may be an estimate: steps that are twice too long would grow
    move(G, m, i.row, project(i, lambda[i.row] - sigma[i.row] / (own > 1e-12 * d_[i.row] ? own : d_[i.row])), lambda,
         sigma);
  }
}

void Pgs::find_columns(const double* G, int m) {
  first_.clear();
  columns_.clear();
  for (int r = 0; r < m; ++r) {
    first_.push_back(int(columns_.size()));
    for (int c = 0; c < m; ++c)
      if (G[std::size_t(r) * m + c] != 0) columns_.push_back(c);
  }
  first_.push_back(int(columns_.size()));
}

void Pgs::move(const double* G, int m, int r, double x, double* lambda, double* sigma) const {
  const double change = x - lambda[r];
  lambda[r] = x;
  if (change == 0) return;
  const double* row = G + std::size_t(r) * m;
  for (int k = first_[std::size_t(r)]; k < first_[std::size_t(r) + 1]; ++k)
    sigma[columns_[std::size_t(k)]] += row[columns_[std::size_t(k)]] * change;
}

}  // namespace delassus
