#include "solvers/contacts/interior.h"

#include "dense/lu.h"

namespace delassus {

using namespace cone;

namespace {

struct Start {
  double force, share;  // size of the forces; share of the way to the border
};
constexpr Start starts[] = {{0.1, 0.95}, {1.0, 0.5}, {0.01, 0.7}};
constexpr int iterations_per_start = 40;  // before another start is tried
constexpr double frictionless = 1e-6;     // friction below which a contact has none
// damping of rows without a set, which may be redundant, towards the forces before
constexpr double free_stiffness = 1e-9;

// x_n − t · x_T: (1 − e tᵀ) x for t = v_T / ‖v_T‖
double untilted(const V& v, const V& x) {
  const double t = std::sqrt(tangents(v, v));
  return t > 1e-300 ? x[0] - tangents(v, x) / t : x[0];
}

// Of the barriers at the ends of an interval.
template <class State>
double stiffness(const State& i) {
  return (std::isfinite(i.lower) ? i.a / (i.r - i.lower) : 0) + (std::isfinite(i.upper) ? i.b / (i.upper - i.r) : 0);
}

}  // namespace

ContactReport Interior::solve(const ContactProblem& p, const double* G, const ContactOptions& options, double* lambda,
                              double* sigma, double* history) {
  begin(p, G);
  ContactReport report;
  best_ = std::numeric_limits<double>::infinity();
  best_forces_.assign(std::size_t(p.rows()), 0.0);
  if (!options.warm) std::fill_n(lambda, p.rows(), 0.0);
  project(p.sets, lambda, lambda);
  if (judged(p, options, lambda, sigma, report)) return report;

  // from each start until the path is blocked
  for (const auto& start : starts) {
    set_start(start.force);
    int blocked = 0;
    const int last = std::min(options.max_iterations, report.iterations + iterations_per_start);
    while (report.iterations < last && blocked < 4) {
      const double step = advance(start.share);
      if (!(step > 0)) break;
      history[report.iterations++] = report.residuals.natural;
      ++report.factorizations;
      blocked = step < 0.02 ? blocked + 1 : 0;
      forces(p, lambda);
      if (judged(p, options, lambda, sigma, report)) return report;
    }
  }
  std::copy_n(best_forces_.data(), p.rows(), lambda);
  report.residuals = judge(p, true, d_.data(), lambda, sigma);
  report.outcome = report.iterations >= options.max_iterations ? ContactOutcome::unfinished : ContactOutcome::stalled;
  return report;
}

bool Interior::judged(const ContactProblem& p, const ContactOptions& options, const double* lambda, double* sigma,
                      ContactReport& report) {
  report.residuals = judge(p, true, d_.data(), lambda, sigma);
  const double worst = report.residuals.worst(options.share);
  if (worst < best_) {
    best_ = worst;
    std::copy_n(lambda, p.rows(), best_forces_.data());
  }
  if (worst <= options.tolerance) report.outcome = ContactOutcome::solved;
  return worst <= options.tolerance;
}

void Interior::begin(const ContactProblem& p, const double* G) {
  const int m = p.rows();
  d_.resize(std::size_t(m));
  find_inverse_masses(p.sets, p.G, d_.data());
  list_unknowns(p);
  n_ = int(row_.size());
  for (auto* x : {&g_, &residual_, &x_}) x->assign(std::size_t(n_), 0.0);
  G_.resize(std::size_t(n_) * n_);
  K_.resize(G_.size());
  pivot_.resize(std::size_t(n_));
  // G and g in these units, with what fixed forces push
  speed_ = 0;
  for (int i = 0; i < n_; ++i) {
    const double* row = G + std::size_t(row_[i]) * m;
    const double u = unit_[i];
    for (int j = 0; j < n_; ++j) G_[std::size_t(i) * n_ + j] = u * row[row_[j]] * unit_[j];
    double g = p.g[row_[i]];
    for (int r = 0; r < m; ++r) g += row[r] * fixed_[r];
    g_[i] = u * g;
    speed_ = std::max(speed_, std::abs(u * g));
  }
  speed_ = std::max(speed_, 1e-12);
}

// Units with a unit diagonal and cones of 45°; rows that cannot have a force, and those fixed to one, are left out.
void Interior::list_unknowns(const ContactProblem& p) {
  cones_.clear();
  intervals_.clear();
  row_.clear();
  unit_.clear();
  fixed_.assign(std::size_t(p.rows()), 0.0);
  const auto unknown = [&](int row, double unit) {
    row_.push_back(row);
    unit_.push_back(unit);
    return int(row_.size()) - 1;
  };
  constexpr double open = std::numeric_limits<double>::infinity();
  for (const auto& c : p.sets.cones) {
    const double w = 1 / std::sqrt(d_[c.row]);
    if (c.friction < frictionless) {
      intervals_.push_back({unknown(c.row, w), 0, open, 0, 0, 0, 0, 0, 0});
      continue;
    }
    ConeState s{};
    s.at = unknown(c.row, w / c.friction);
    s.rows = c.rows;
    for (int a = 1; a < c.rows; ++a) unknown(c.row + a, w);
    cones_.push_back(s);
  }
  for (const auto& i : p.sets.intervals) {
    const double w = 1 / std::sqrt(d_[i.row]);
    if (!(i.upper > i.lower)) {
      fixed_[i.row] = i.lower;
      continue;
    }
    intervals_.push_back({unknown(i.row, w), i.lower / w, i.upper / w, 0, 0, 0, 0, 0, 0});
  }
}

void Interior::set_start(double share) {
  for (auto& c : cones_) c.r = {share * speed_}, c.v = {speed_}, c.dr = c.dv = {};
  for (auto& i : intervals_) {
    const bool low = std::isfinite(i.lower), high = std::isfinite(i.upper);
    i.r = low && high ? (i.lower + i.upper) / 2 : low ? i.lower + share * speed_ : high ? i.upper - share * speed_ : 0;
    i.a = low ? speed_ : 0;
    i.b = high ? speed_ : 0;
    i.dr = i.da = i.db = 0;
  }
}

void Interior::forces(const ContactProblem& p, double* lambda) const {
  std::copy_n(fixed_.data(), p.rows(), lambda);
  for (const auto& c : cones_)
    for (int k = 0; k < c.rows; ++k) lambda[row_[c.at + k]] = c.r[k] * unit_[c.at + k];
  for (const auto& i : intervals_) lambda[row_[i.at]] = i.r * unit_[i.at];
  project(p.sets, lambda, lambda);
}

double Interior::advance(double share) {
  int count = 0;
  const double mean = gap(0, &count) / std::max(count, 1);
  find_residual();
  if (!factor()) return 0;

  // predictor: straight to the end
  for (auto& c : cones_) c.c = combined(-c.v[0], -1, c.v, 0, c.v);
  find_step(0, false);
  const double ahead = std::min(1.0, longest_step());
  const double ratio = mean > 0 ? gap(ahead, &count) / std::max(count, 1) / mean : 0,
               aim = mean * std::clamp(ratio * ratio * ratio, 1e-6, 1.0);

  // corrector: to the path, with the products of its steps taken off
  for (auto& c : cones_) {
    const V w = root(c.w), over = inverse(w), a = scaled(over, c.dr), b = scaled(w, c.dv), e = jordan_product(a, b);
    const V q = scaled(over, quotient(c.z, combined(aim - e[0], -1, e, 0, e)));
    c.c = combined(q[0] - c.v[0], 1, q, -1, c.v);
  }
  find_step(aim, true);
  const double step = std::min(1.0, share * longest_step());
  if (!std::isfinite(step)) return 0;
  for (auto& c : cones_)
    for (std::size_t k = 0; k < c.r.size(); ++k) c.r[k] += step * c.dr[k], c.v[k] += step * c.dv[k];
  for (auto& i : intervals_) i.r += step * i.dr, i.a += step * i.da, i.b += step * i.db;
  return step;
}

// Σ r · v of all pairs a step of that length further, and how many pairs there are.
double Interior::gap(double step, int* count) const {
  double sum = 0;
  *count = 0;
  for (const auto& c : cones_) {
    for (std::size_t k = 0; k < c.r.size(); ++k) sum += (c.r[k] + step * c.dr[k]) * (c.v[k] + step * c.dv[k]);
    ++*count;
  }
  for (const auto& i : intervals_) {
    if (std::isfinite(i.lower)) sum += (i.r + step * i.dr - i.lower) * (i.a + step * i.da), ++*count;
    if (std::isfinite(i.upper)) sum += (i.upper - i.r - step * i.dr) * (i.b + step * i.db), ++*count;
  }
  return sum;
}

// G r + g + Γ − v
void Interior::find_residual() {
  for (const auto& c : cones_)
    for (int k = 0; k < c.rows; ++k) x_[c.at + k] = c.r[k];
  for (const auto& i : intervals_) x_[i.at] = i.r;
  for (int i = 0; i < n_; ++i) residual_[i] = g_[i] + inner(n_, &G_[std::size_t(i) * n_], x_.data());
  for (const auto& c : cones_) {
    residual_[c.at] += std::sqrt(tangents(c.v, c.v));
    for (int k = 0; k < c.rows; ++k) residual_[c.at + k] -= c.v[k];
  }
  for (const auto& i : intervals_) residual_[i.at] -= i.a - i.b;
}

// G + (1 − e tᵀ) H, as L U with rows exchanged. Returns whether it is regular.
bool Interior::factor() {
  // (1 − e tᵀ) H of every cone, Nesterov and Todd's point w on the way
  std::copy(G_.begin(), G_.end(), K_.begin());
  for (auto& c : cones_) {
    const V r = root(c.r);
    c.w = scaled(r, inverse(root(scaled(r, c.v))));
    c.z = scaled(inverse(root(c.w)), c.r);
    const V over = inverse(c.w);
    for (int k = 0; k < c.rows; ++k) {
      V e{};
      e[k] = 1;
      const V h = scaled(over, e);
      K_[std::size_t(c.at) * n_ + c.at + k] += untilted(c.v, h);
      for (int l = 1; l < c.rows; ++l) K_[std::size_t(c.at + l) * n_ + c.at + k] += h[l];
    }
  }
  for (const auto& i : intervals_) K_[std::size_t(i.at) * n_ + i.at] += i.bounded() ? stiffness(i) : free_stiffness;
  return dense::factor_lu(n_, K_.data(), n_, pivot_.data()) == n_;
}

// Δr, and Δv = c − H Δr. aim: what products r ∘ v are to become.
void Interior::find_step(double aim, bool corrected) {
  for (auto& i : intervals_) {
    // right-hand sides; the products of the predictor's steps are taken off
    const double low = std::isfinite(i.lower) ? (aim - (corrected ? i.dr * i.da : 0)) / (i.r - i.lower) - i.a : 0;
    const double high = std::isfinite(i.upper) ? (aim + (corrected ? i.dr * i.db : 0)) / (i.upper - i.r) - i.b : 0;
    i.da = low;
    i.db = high;
    x_[i.at] = low - high - residual_[i.at];
  }
  for (const auto& c : cones_) {
    x_[c.at] = untilted(c.v, c.c) - residual_[c.at];
    for (int k = 1; k < c.rows; ++k) x_[c.at + k] = c.c[k] - residual_[c.at + k];
  }
  dense::solve_lu<double>(n_, K_.data(), n_, pivot_.data(), x_.data());

  // Δr of every set, and Δv = c − H Δr
  for (auto& c : cones_) {
    for (int k = 0; k < c.rows; ++k) c.dr[std::size_t(k)] = x_[c.at + k];
    const V h = scaled(inverse(c.w), c.dr);
    for (std::size_t k = 0; k < c.r.size(); ++k) c.dv[k] = c.c[k] - h[k];
  }
  for (auto& i : intervals_) {
    i.dr = x_[i.at];
    i.da = std::isfinite(i.lower) ? i.da - i.a / (i.r - i.lower) * i.dr : 0;
    i.db = std::isfinite(i.upper) ? i.db + i.b / (i.upper - i.r) * i.dr : 0;
  }
}

// The largest step that keeps every r and v inside its set.
double Interior::longest_step() const {
  double longest = far;
  for (const auto& c : cones_) longest = std::min({longest, reach(c.r, c.dr), reach(c.v, c.dv)});
  for (const auto& i : intervals_) {
    if (std::isfinite(i.lower)) longest = std::min({longest, reach(i.r - i.lower, i.dr), reach(i.a, i.da)});
    if (std::isfinite(i.upper)) longest = std::min({longest, reach(i.upper - i.r, -i.dr), reach(i.b, i.db)});
  }
  return longest;
}

}  // namespace delassus
