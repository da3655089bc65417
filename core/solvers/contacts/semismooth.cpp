#include "solvers/contacts/semismooth.h"

#include "errors/interrupt.h"

namespace delassus {
namespace {

constexpr int tolerated_changes = 2, most_changes = 6;  // of a contact's state, for more of the proximal term
constexpr double largest_delta = 10, delta_down = 0.3, delta_up = 3;
constexpr int window = 4, halvings = 5;    // of the line search
constexpr double good_enough_rest = 0.05;  // of the linear equation, over ‖d f‖
constexpr double null_share = 0.7;         // of ‖d f‖ that δ Δr is where forces drift along the null space of G
constexpr double null_below = 1e3;         // residual below which they may, over the tolerance
constexpr double least_unit = 1e-8;        // of what residuals are measured by, over the largest |g|
constexpr double residual_unit = 1e6;      // residual over the tolerance that makes δ one
constexpr double good_share = 1e-2;        // of the tolerance, where there is nothing to make better
constexpr int rest_iterations = 3;         // with which a problem at rest is solved
constexpr int max_extra = 2;               // iterations for that
constexpr double largest_growth = 2;       // of forces in a step along that space, over the largest there is

double weighted_length(int n, const double* d, const double* x) {
  double sum = 0;
  for (int r = 0; r < n; ++r) sum += d[r] * x[r] * (d[r] * x[r]);
  return std::sqrt(sum);
}
bool is_free(const Interval& i) { return std::isinf(i.lower) && std::isinf(i.upper); }

}  // namespace

bool Semismooth::begin(const ContactProblem& p) {
  problem_ = &p;
  index_ = p.G.block_index(p.sets);
  if (!index_) return false;
  const std::size_t m = std::size_t(p.rows());
  for (auto* x :
       {&d_, &beta_, &r_, &sigma_, &f_, &dr_, &dsigma_, &w_, &x_, &rest_, &trial_r_, &trial_sigma_, &trial_f_, &best_})
    x->resize(m);
  cones_.resize(p.sets.cones.size());
  inside_.resize(p.sets.intervals.size());
  B_.assign(index_->size, 0.0);
  find_inverse_masses(p.sets, p.G, d_.data());
  return true;
}

// f at r with velocities σ, and ‖d f‖; with `keep` also which contacts stick, slide and are open.
double Semismooth::find_map(const double* r, const double* sigma, double* f, bool keep) {
  const ForceSets& K = problem_->sets;
  double sum = 0;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const int row = K.cones[k].row;
    const double mu = K.cones[k].friction, beta = beta_[std::size_t(row)], d = d_[std::size_t(row)];
    const double *l = r + row, *s = sigma + row;
    const double y[3] = {l[0] - beta * s[0], l[1] - beta * s[1], l[2] - beta * s[2]};
    double* to = f + row;
    if (!(y[0] > 0)) {
      to[0] = l[0], to[1] = l[1], to[2] = l[2];
      if (keep) note_side(k, ConeState::open);
    } else {
      const double t = std::sqrt(y[1] * y[1] + y[2] * y[2]), radius = mu * y[0];
      const bool sticks = t <= radius;
      const double c = sticks ? 1 : radius / t;
      to[0] = l[0] - y[0], to[1] = l[1] - c * y[1], to[2] = l[2] - c * y[2];
      if (keep) {
        note_side(k, sticks ? ConeState::stick : ConeState::slide);
        if (!sticks) cones_[k].h[0] = y[1] / t, cones_[k].h[1] = y[2] / t, cones_[k].c = c;
      }
    }
    sum += d * d * (to[0] * to[0] + to[1] * to[1] + to[2] * to[2]);
  }
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const Interval& i = K.intervals[k];
    const std::size_t row = std::size_t(i.row);
    const double y = r[row] - beta_[row] * sigma[row], P = project(i, y);
    f[row] = r[row] - P;
    if (keep) inside_[k] = y > i.lower && y < i.upper;
    sum += d_[row] * f[row] * (d_[row] * f[row]);
  }
  return std::sqrt(sum);
}

void Semismooth::note_side(std::size_t k, ConeState::Side side) {
  ConeState& state = cones_[k];
  if (state.side != side)
    ++state.changes;
  else if (state.changes > 0)
    --state.changes;
  state.side = side;
}

// Contacts that change their state again and again get more of the proximal term than the others.
double Semismooth::cone_delta(std::size_t k, double delta) const {
  const int extra = std::min(cones_[k].changes - tolerated_changes, most_changes);
  return extra > 0 && restless_ > 1 ? std::min(delta * std::pow(restless_, extra), largest_delta) : delta;
}

// Rows without a set need no proximal term but for rounding and redundancy.
double Semismooth::free_delta(double delta) const { return std::max(1e-3 * delta, 1e-7); }

// B = E⁻¹ β C: sticking β / δ, open 0, sliding β / δ (n + µ h) nᵀ + β c / (1 + δ − c) (1 − h hᵀ).
void Semismooth::set_blocks(double delta) {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const int row = K.cones[k].row, stride = index_->at(row + 1, row) - index_->at(row, row);
    double* B = B_.data() + index_->at(row, row);
    const ConeState& state = cones_[k];
    const double mu = K.cones[k].friction, beta = beta_[std::size_t(row)], own = cone_delta(k, delta);
    const double normal = state.side == ConeState::open ? 0 : beta / own;
    const double across = state.side == ConeState::slide ? beta * state.c / (1 + own - state.c) : normal;
    const double h0 = state.h[0], h1 = state.h[1];
    const bool slides = state.side == ConeState::slide;
    B[0] = normal, B[1] = 0, B[2] = 0;
    B[stride] = slides ? normal * mu * h0 : 0;
    B[2 * stride] = slides ? normal * mu * h1 : 0;
    B[stride + 1] = slides ? across * h1 * h1 : across;
    B[2 * stride + 2] = slides ? across * h0 * h0 : across;
    B[stride + 2] = B[2 * stride + 1] = slides ? -across * h0 * h1 : 0;
  }
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const int row = K.intervals[k].row;
    B_[std::size_t(index_->at(row, row))] =
        inside_[k] ? beta_[std::size_t(row)] / (is_free(K.intervals[k]) ? free_delta(delta) : delta) : 0;
  }
  problem_->G.set_blocks(B_.data());
}

// out ← (E + β C G)⁻¹ rhs = w − B J (M + Jᵀ B J)⁻¹ Jᵀ w, w = E⁻¹ rhs
void Semismooth::solve_linear(const double* rhs, double delta, double* out) {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const int row = K.cones[k].row;
    const double* b = rhs + row;
    double* w = w_.data() + row;
    const ConeState& state = cones_[k];
    const double own = cone_delta(k, delta);
    if (state.side == ConeState::slide) {
      // E⁻¹ = [1 / δ, 0; µ h / (δ (1 + δ)), h hᵀ / (1 + δ) + (1 − h hᵀ) / (1 + δ − c)]
      const double h0 = state.h[0], h1 = state.h[1], along = (h0 * b[1] + h1 * b[2]), across = (h0 * b[2] - h1 * b[1]);
      const double a = (along + K.cones[k].friction * b[0] / own) / (1 + own), c = across / (1 + own - state.c);
      w[0] = b[0] / own;
      w[1] = a * h0 - c * h1;
      w[2] = a * h1 + c * h0;
    } else {
      const double e = 1 / (state.side == ConeState::stick ? own : 1 + own);
      w[0] = e * b[0], w[1] = e * b[1], w[2] = e * b[2];
    }
  }
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const std::size_t row = std::size_t(K.intervals[k].row);
    const double e = is_free(K.intervals[k]) ? free_delta(delta) : delta;
    w_[row] = rhs[row] / (inside_[k] ? e : 1 + e);
  }
  problem_->G.respond(w_.data(), x_.data());
  for (const auto& c : K.cones) {
    const int stride = index_->at(c.row + 1, c.row) - index_->at(c.row, c.row);
    const double *B = B_.data() + index_->at(c.row, c.row), *x = x_.data() + c.row;
    for (int a = 0; a < 3; ++a, B += stride)
      out[c.row + a] = w_[std::size_t(c.row + a)] - (B[0] * x[0] + B[1] * x[1] + B[2] * x[2]);
  }
  for (const auto& i : K.intervals) {
    const std::size_t row = std::size_t(i.row);
    out[row] = w_[row] - B_[std::size_t(index_->at(i.row, i.row))] * x_[row];
  }
}

// An estimate of ‖d β (G Δr − x)‖, by which the linear equation is missed if x is taken for G Δr. G is symmetric: with
// G r = σ − g, which is known, r · (G Δr − x) takes no product. Of an error e that knows nothing of r it is
// ‖r‖ ‖e‖ / √m. Infinite where there are no forces to ask by.
double Semismooth::response_error() const {
  const double *g = problem_->g, s = beta_[0] * d_[0];
  double missed = 0, square = 0;
  for (std::size_t r = 0; r < r_.size(); ++r) {
    missed += (sigma_[r] - g[r]) * dr_[r] - r_[r] * dsigma_[r];
    square += r_[r] * r_[r];
  }
  if (!(square > 0)) return std::numeric_limits<double>::infinity();
  return s * std::abs(missed) * std::sqrt(double(r_.size()) / square);
}

// Δr and G Δr. False: the linear equation could not be solved.
bool Semismooth::find_step(double delta, double f_length) {
  const ForceSets& K = problem_->sets;
  const int m = problem_->rows();
  set_blocks(delta);
  for (int r = 0; r < m; ++r) rest_[std::size_t(r)] = -f_[std::size_t(r)];
  solve_linear(rest_.data(), delta, dr_.data());
  // (1 + G B) x = G w, so G Δr = G (w − B x) is x, if that was solved; where it seems not, G itself tells
  std::copy(x_.begin(), x_.end(), dsigma_.begin());
  if (response_error() <= good_enough_rest * f_length) return true;
  for (int n = 0;; ++n) {
    // −f − (E + β C G) Δr
    problem_->G.apply(dr_.data(), dsigma_.data());
    for (std::size_t k = 0; k < K.cones.size(); ++k) {
      const std::size_t row = std::size_t(K.cones[k].row);
      const double beta = beta_[row], own = cone_delta(k, delta);
      const ConeState& state = cones_[k];
      double z[3], Cz[3] = {0, 0, 0};  // z = Δr − β G Δr
      for (std::size_t a = 0; a < 3; ++a) z[a] = dr_[row + a] - beta * dsigma_[row + a];
      if (state.side == ConeState::stick) {
        for (int a = 0; a < 3; ++a) Cz[a] = z[a];
      } else if (state.side == ConeState::slide) {
        const double h0 = state.h[0], h1 = state.h[1], across = state.c * (h0 * z[2] - h1 * z[1]);
        const double mu = K.cones[k].friction;
        Cz[0] = z[0], Cz[1] = mu * h0 * z[0] - h1 * across, Cz[2] = mu * h1 * z[0] + h0 * across;
      }
      for (std::size_t a = 0; a < 3; ++a) rest_[row + a] = -f_[row + a] - (1 + own) * dr_[row + a] + Cz[a];
    }
    for (std::size_t k = 0; k < K.intervals.size(); ++k) {
      const std::size_t row = std::size_t(K.intervals[k].row);
      const double e = is_free(K.intervals[k]) ? free_delta(delta) : delta;
      rest_[row] = -f_[row] - (1 + e) * dr_[row] + (inside_[k] ? dr_[row] - beta_[row] * dsigma_[row] : 0);
    }
    const double rest = weighted_length(m, d_.data(), rest_.data());
    if (rest <= good_enough_rest * f_length) return true;
    if (!std::isfinite(rest) || n == 2) return n > 0 && rest <= f_length;
    solve_linear(rest_.data(), delta, trial_f_.data());
    for (int r = 0; r < m; ++r) dr_[std::size_t(r)] += trial_f_[std::size_t(r)];
  }
}

// The step after which the first contact opens, closes, sticks or slides.
double Semismooth::first_change() const {
  double first = std::numeric_limits<double>::infinity();
  const auto take = [&](double t) {
    if (t > 1e-12 && t < first) first = t;
  };
  for (const auto& cone : problem_->sets.cones) {
    const std::size_t row = std::size_t(cone.row);
    double y[3], dy[3];
    for (std::size_t a = 0; a < 3; ++a) {
      y[a] = r_[row + a] - beta_[row] * sigma_[row + a];
      dy[a] = dr_[row + a] - beta_[row] * dsigma_[row + a];
    }
    if (dy[0] != 0) take(-y[0] / dy[0]);
    // ‖y_T + t Δy_T‖ = µ (y_n + t Δy_n)
    const double mu2 = cone.friction * cone.friction, a = dy[1] * dy[1] + dy[2] * dy[2] - mu2 * dy[0] * dy[0],
                 b = y[1] * dy[1] + y[2] * dy[2] - mu2 * y[0] * dy[0],
                 c = y[1] * y[1] + y[2] * y[2] - mu2 * y[0] * y[0];
    if (y[0] > 0 && c < 0 && b * b - a * c >= 0 && a != 0) take((-b + std::sqrt(b * b - a * c)) / a);
  }
  for (const auto& i : problem_->sets.intervals) {
    const std::size_t row = std::size_t(i.row);
    const double y = r_[row] - beta_[row] * sigma_[row], dy = dr_[row] - beta_[row] * dsigma_[row];
    if (dy != 0) take((i.lower - y) / dy), take((i.upper - y) / dy);
  }
  return first;
}

// Natural and primal residual of r with velocities σ, the larger; r need not be in its sets.
double Semismooth::residual_of(const double* r, const double* sigma) const {
  const ForceSets& K = problem_->sets;
  double worst = 0;
  const auto take = [&](double x) { worst = x <= worst ? worst : x; };
  for (const auto& c : K.cones) {
    const double *l = r + c.row, *s = sigma + c.row, d = d_[std::size_t(c.row)], over = 1 / d;
    const double x[3] = {l[0] - (s[0] + c.friction * tangential(s)) * over, l[1] - s[1] * over, l[2] - s[2] * over};
    double p[3], q[3];
    project(c.friction, x, p);
    project(c.friction, l, q);
    const auto apart = [&](const double* a) {
      return (l[0] - a[0]) * (l[0] - a[0]) + (l[1] - a[1]) * (l[1] - a[1]) + (l[2] - a[2]) * (l[2] - a[2]);
    };
    take(d * std::sqrt(std::max(apart(p), apart(q))));
  }
  for (const auto& i : K.intervals) {
    const std::size_t row = std::size_t(i.row);
    take(d_[row] * std::abs(r[row] - project(i, r[row] - sigma[row] / d_[row])));
    take(d_[row] * std::abs(r[row] - project(i, r[row])));
  }
  return worst;
}

// ‖d f‖ after a part of the step.
double Semismooth::length_after(double t) {
  for (std::size_t r = 0; r < dr_.size(); ++r) {
    trial_r_[r] = r_[r] + t * dr_[r];
    trial_sigma_[r] = sigma_[r] + t * dsigma_[r];
  }
  return find_map(trial_r_.data(), trial_sigma_.data(), trial_f_.data(), false);
}

// The first of 1, ½, ¼ … after which ‖d f‖ is below the reference, or the best of them; ‖d f‖ there.
double Semismooth::search_line(double reference, double& shortest) {
  double chosen = 1, t = 1;
  shortest = std::numeric_limits<double>::infinity();
  for (int h = 0; h < halvings; ++h, t /= 2) {
    const double now = length_after(t);
    if (now < shortest) shortest = now, chosen = t;
    if (now <= (1 - 0.02 * t) * reference) break;
  }
  return chosen;
}

// How far to go along a direction that G does not feel: to the first change of a contact. Forces that balance each
// other may not grow without bound: they would be a bad start for the next problem.
double Semismooth::find_drift(double change, double length) {
  double size = 0, growth = 0;
  for (std::size_t r = 0; r < dr_.size(); ++r) {
    size = std::max(size, d_[r] * std::abs(r_[r]));
    growth = std::max(growth, d_[r] * std::abs(dr_[r]));
  }
  const double t = std::max(1.0, std::min(change, largest_growth * size / growth));
  return length_after(t) > 30 * length ? std::min(1.0, 0.3 * t) : t;
}

bool Semismooth::run(const SemismoothRule& rule, const ContactOptions& options, double* lambda, double* sigma,
                     double* history, ContactReport& report, bool judged) {
  const ContactProblem& p = *problem_;
  const int m = p.rows();
  const std::size_t n = std::size_t(m);
  for (std::size_t r = 0; r < n; ++r) beta_[r] = rule.scale / d_[r];
  restless_ = rule.restless;

  // what residuals are measured by: the tolerance, unless that is very small
  double speed = 0;
  for (int r = 0; r < m; ++r) speed = std::max(speed, std::abs(p.g[r]));
  const double unit = std::max(options.tolerance, least_unit * speed);

  // what it was given may do already
  const auto certify_forces = [&] {
    project(p.sets, lambda, lambda);
    report.residuals = judge(p, true, d_.data(), lambda, sigma);
    return report.residuals.worst(options.share);
  };
  const auto solved = [&] {
    report.outcome = ContactOutcome::solved;
    return true;
  };
  double certified = judged ? report.residuals.worst(options.share) : certify_forces();
  if (certified <= good_share * options.tolerance) return solved();
  std::copy_n(lambda, m, r_.data());
  std::copy_n(sigma, m, sigma_.data());
  std::copy_n(lambda, m, best_.data());
  int extra = certified <= options.tolerance;  // iterations since it is within the tolerance
  double best = certified <= options.tolerance ? 0 : residual_of(lambda, sigma),
         check_below = 2 * options.tolerance / options.share;
  double delta = rule.first_delta;
  if (rule.by_residual)
    delta = std::min(std::max(residual_of(lambda, sigma) / (residual_unit * unit), rule.least_delta), rule.first_delta);
  double length = find_map(r_.data(), sigma_.data(), f_.data(), true), residual = residual_of(lambda, sigma);
  for (auto& state : cones_) state.changes = 0;  // the first look is no change
  double past[window] = {length, 0, 0, 0}, gained_from = residual;
  int count = 0, last_gain = 0;

  const auto note = [&](double estimate) {
    if (history && report.iterations < options.max_iterations) history[report.iterations] = estimate;
    ++report.iterations;
  };

  for (int k = 0; k < rule.max_iterations; ++k) {
    poll(400.0 * m);
    past[count++ % window] = length;
    if (!find_step(delta, length)) {
      // the matrix is all but singular: more of the proximal term
      note(residual), ++report.factorizations;
      if (delta >= largest_delta) break;
      delta = std::min(delta * delta_up, largest_delta);
      continue;
    }
    ++report.factorizations;

    const double stretch = delta * weighted_length(m, d_.data(), dr_.data()) / length;
    const double change = stretch > null_share && residual < null_below * unit ? 1.0001 * first_change() : 0;
    const bool drifts = change > 1;
    double t = 1;
    if (drifts) {
      t = find_drift(change, length);
    } else {
      double shortest = 0;
      t = search_line(*std::max_element(past, past + std::min(count, window)), shortest);
      if (t <= 0.25 || !(shortest <= 1.2 * length))
        delta = std::min(delta * delta_up, largest_delta);
      else if (t == 1 && shortest < 0.7 * length)
        delta = std::max(delta * delta_down, rule.least_delta);
    }
    for (std::size_t r = 0; r < n; ++r) r_[r] += t * dr_[r], sigma_[r] += t * dsigma_[r];
    length = find_map(r_.data(), sigma_.data(), f_.data(), true);
    if (!std::isfinite(length)) break;

    // is it there?
    residual = residual_of(r_.data(), sigma_.data());
    note(residual);
    if (residual < best) {
      best = residual;
      std::copy_n(r_.data(), m, best_.data());
    }
    if (residual < 0.9 * gained_from) gained_from = residual, last_gain = k;
    if (residual <= check_below || extra > 0) {
      std::copy_n(r_.data(), m, lambda);
      const double now = certify_forces();
      // what is within the tolerance after few iterations is made better: a pile at rest would creep otherwise
      if (now <= good_share * options.tolerance) return solved();
      if (now <= certified) {
        certified = now;
        std::copy_n(lambda, m, best_.data());
        if (now <= options.tolerance) best = 0;
      }
      if (certified <= options.tolerance && (++extra > max_extra || k >= rest_iterations)) break;
      check_below = std::max(0.6 * residual, 0.1 * options.tolerance);
      // velocities have gathered rounding
      p.G.apply(r_.data(), sigma_.data());
      for (std::size_t r = 0; r < n; ++r) sigma_[r] += p.g[r];
      length = find_map(r_.data(), sigma_.data(), f_.data(), true);
    }
    if (k - last_gain >= rule.patience || is_over(rule.end)) break;
  }
  std::copy_n(best_.data(), m, lambda);
  return certify_forces() <= options.tolerance && solved();
}

}  // namespace delassus
