#include "solvers/contacts/lcp.h"

namespace delassus {

ContactReport Lcp::solve(const ContactProblem& p, const double* G, const ContactOptions& options, int directions,
                         double* lambda, double* sigma) {
  d_.resize(std::size_t(p.rows()));
  find_inverse_masses(p.sets, p.G, d_.data());
  find_unit();
  list_variables(p.sets, directions);
  fill(p, G);
  const int n = int(columns_.size());
  if (!lemke_ || lemke_->capacity() < n) lemke_ = std::make_unique<Lemke>(n);
  z_.assign(std::size_t(n), 0.0);
  double size = 0;
  for (const double x : q_) size = std::max(size, std::abs(x));
  const LemkeReport end = lemke_->solve(n, reinterpret_cast<const bool*>(free_.data()), M_.data(), q_.data(), z_.data(),
                                        size > 0 ? 0.1 * options.tolerance / size : 1e-9, options.max_iterations);

  forces(p, lambda);
  ContactReport report;
  report.iterations = end.pivots;
  report.residuals = polygon_residuals(p, lambda, sigma);
  report.outcome = report.residuals.worst() <= options.tolerance ? ContactOutcome::solved
                   : end.outcome == Pivoting::limit              ? ContactOutcome::unfinished
                                                                 : ContactOutcome::stalled;
  return report;
}

// Forces are counted in what makes a velocity of one, or rows of velocities and of forces would be far apart in size.
void Lcp::find_unit() {
  double sum = 0;
  for (const double x : d_) sum += x;
  unit_ = sum > 0 ? double(d_.size()) / sum : 1;
}

void Lcp::list_variables(const ForceSets& K, int directions) {
  columns_.clear();
  free_.clear();
  auto add = [&](Variable v, bool free) {
    columns_.push_back(v);
    free_.push_back(free);
    return int(columns_.size()) - 1;
  };
  for (const auto& c : K.cones) {
    Variable v{};
    v.kind = Variable::normal, v.parts[0] = {c.row, 1.0}, v.ratio = c.friction;
    const int normal = add(v, false);
    if (c.friction == 0) continue;
    for (int j = 0; j < directions; ++j) {
      const double angle = 6.283185307179586 * j / directions;
      Variable d{};
      d.kind = Variable::direction, d.parts[0] = {c.row + 1, std::cos(angle)},
      d.parts[1] = {c.row + 2, std::sin(angle)}, d.bound = normal;
      add(d, false);
    }
    Variable s{};
    s.kind = Variable::sliding, s.bound = normal, s.ratio = c.friction;
    add(s, false);
  }
  for (const auto& i : K.intervals) {
    Variable v{};
    v.kind = Variable::interval, v.parts[0] = {i.row, 1.0};
    const int own = add(v, std::isinf(i.lower) && std::isinf(i.upper));
    if (std::isinf(i.lower) || std::isinf(i.upper)) continue;
    Variable e{};
    e.kind = Variable::end, e.bound = own, e.ratio = (i.upper - i.lower) / unit_;
    add(e, false);
  }
}

void Lcp::fill(const ContactProblem& p, const double* G) {
  const std::size_t n = columns_.size(), m = std::size_t(p.rows());
  M_.assign(n * n, 0.0);
  q_.assign(n, 0.0);
  // velocities without the variables: g, and what intervals push at their lower ends
  start_.assign(p.g, p.g + m);
  for (const auto& i : p.sets.intervals)
    if (!std::isinf(i.lower) && i.lower != 0)
      for (std::size_t r = 0; r < m; ++r) start_[r] += G[r * m + std::size_t(i.row)] * i.lower;
  for (std::size_t a = 0; a < n; ++a) {
    const Variable& x = columns_[a];
    for (const auto& [row, c] : x.parts) {
      if (row < 0) continue;
      q_[a] += c * start_[std::size_t(row)];
      for (std::size_t b = 0; b < n; ++b)
        for (const auto& [other, e] : columns_[b].parts)
          if (other >= 0) M_[a * n + b] += c * e * unit_ * G[std::size_t(row) * m + std::size_t(other)];
    }
    if (x.kind == Variable::sliding) {
      M_[a * n + std::size_t(x.bound)] = x.ratio;
      for (std::size_t b = std::size_t(x.bound) + 1; b < a; ++b) M_[a * n + b] = -1, M_[b * n + a] = 1;
    } else if (x.kind == Variable::end) {
      M_[a * n + std::size_t(x.bound)] = -1;
      M_[std::size_t(x.bound) * n + a] = 1;
      q_[a] = x.ratio;
    }
  }
}

void Lcp::forces(const ContactProblem& p, double* lambda) const {
  std::fill_n(lambda, p.rows(), 0.0);
  for (const auto& i : p.sets.intervals) lambda[i.row] = std::isinf(i.lower) ? 0 : i.lower;
  for (std::size_t k = 0; k < columns_.size(); ++k)
    for (const auto& [row, coefficient] : columns_[k].parts)
      if (row >= 0) lambda[row] += coefficient * unit_ * z_[k];
}

ContactResiduals Lcp::polygon_residuals(const ContactProblem& p, const double* lambda, double* sigma) {
  ContactResiduals r = judge(p, true, d_.data(), lambda, sigma);
  r.complementarity = 0;
  r.natural = std::max(r.primal, r.dual);
  const auto raise = [](double& a, double b) { a = b <= a || std::isnan(a) ? a : b; };  // NaN stays
  std::size_t k = 0;
  for (const auto& c : p.sets.cones) {
    const double *l = lambda + c.row, *s = sigma + c.row, e = d_[std::size_t(c.row)];
    double fastest = 0;
    raise(r.natural, std::abs(std::min(e * l[0], s[0])));
    const std::size_t normal = k++;
    // γ, then every direction's pair, then that of γ itself
    for (std::size_t j = k;
         j < columns_.size() && columns_[j].kind == Variable::direction && columns_[j].bound == int(normal); ++j) {
      const auto& d = columns_[j].parts;
      fastest = std::max(fastest, -(d[0].second * s[1] + d[1].second * s[2]));
    }
    double sum = 0;
    for (; k < columns_.size() && columns_[k].kind == Variable::direction && columns_[k].bound == int(normal); ++k) {
      const auto& d = columns_[k].parts;
      sum += unit_ * z_[k];
      raise(r.natural, std::abs(std::min(e * unit_ * z_[k], d[0].second * s[1] + d[1].second * s[2] + fastest)));
    }
    if (c.friction > 0) {
      raise(r.natural, std::abs(std::min(fastest, e * (c.friction * l[0] - sum))));
      ++k;
    }
  }
  intervals_.rows = p.sets.rows;
  intervals_.intervals.assign(p.sets.intervals.begin(), p.sets.intervals.end());
  raise(r.natural, residuals(intervals_, true, d_.data(), lambda, sigma).natural);
  return r;
}

}  // namespace delassus
