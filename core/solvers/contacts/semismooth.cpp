#include "solvers/contacts/semismooth.h"

#include "errors/interrupt.h"

namespace delassus {
namespace {

constexpr int tolerated_changes = 2, most_changes = 6;  // of a contact's state, for more of the proximal term
constexpr double largest_delta = 10, delta_down = 0.3, delta_up = 3;
constexpr int window = 4, halvings = 5;    // of the line search
constexpr double poor_step = 0.9;          // ‖d f‖ after a full step that is corrected, over that before
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

// f of one contact, and ‖d f‖².
template <int N>
double Semismooth::find_cone_map(std::size_t k, const double* r, const double* sigma, double* f, bool keep) {
  const int row = problem_->sets.cones[k].row;
  const double mu = problem_->sets.cones[k].friction, beta = beta_[std::size_t(row)], d = d_[std::size_t(row)];
  const double *l = r + row, *s = sigma + row;
  double y[N], *to = f + row;
  for (int a = 0; a < N; ++a) y[a] = l[a] - beta * s[a];
  if (!(y[0] > 0)) {
    for (int a = 0; a < N; ++a) to[a] = l[a];
    if (keep) note_side(k, ConeState::open);
  } else {
    const double t = tangential<N>(y), radius = mu * y[0];
    const bool sticks = t <= radius;
    const double c = sticks ? 1 : radius / t;
    to[0] = l[0] - y[0];
    for (int a = 1; a < N; ++a) to[a] = l[a] - c * y[a];
    if (keep) {
      note_side(k, sticks ? ConeState::stick : ConeState::slide);
      if (!sticks) {
        for (int a = 1; a < N; ++a) cones_[k].h[a - 1] = y[a] / t;
        cones_[k].c = c;
      }
    }
  }
  double sum = 0;
  for (int a = 0; a < N; ++a) sum += to[a] * to[a];
  return d * d * sum;
}

// f at r with velocities σ, and ‖d f‖; with `keep` also which contacts stick, slide and are open.
double Semismooth::find_map(const double* r, const double* sigma, double* f, bool keep) {
  const ForceSets& K = problem_->sets;
  double sum = 0;
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    sum += with_rows(K.cones[k], [&](auto n) { return find_cone_map<n()>(k, r, sigma, f, keep); });
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
template <int N>
void Semismooth::set_cone_block(std::size_t k, double delta) {
  const int row = problem_->sets.cones[k].row;
  double* B = B_.data() + index_->at(row, row);
  const int stride = index_->at(row + 1, row) - index_->at(row, row);
  const ConeState& state = cones_[k];
  const double mu = problem_->sets.cones[k].friction, beta = beta_[std::size_t(row)], own = cone_delta(k, delta);
  const bool slides = state.side == ConeState::slide;
  const double normal = state.side == ConeState::open ? 0 : beta / own;
  const double across = slides ? beta * state.c / (1 + own - state.c) : normal;
  B[0] = normal;
  for (int a = 1; a < N; ++a) {
    B[a] = 0;
    B[a * stride] = slides ? normal * mu * state.h[a - 1] : 0;
    for (int b = 1; b < N; ++b)
      B[a * stride + b] = across * ((a == b) - (slides ? state.h[a - 1] * state.h[b - 1] : 0));
  }
}

void Semismooth::set_blocks(double delta) {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    with_rows(K.cones[k], [&](auto n) { set_cone_block<n()>(k, delta); });
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const int row = K.intervals[k].row;
    B_[std::size_t(index_->at(row, row))] =
        inside_[k] ? beta_[std::size_t(row)] / (is_free(K.intervals[k]) ? free_delta(delta) : delta) : 0;
  }
  problem_->G.set_blocks(B_.data());
}

// w = E⁻¹ b of one contact; E⁻¹ = [1 / δ, 0; µ h / (δ (1 + δ)), h hᵀ / (1 + δ) + (1 − h hᵀ) / (1 + δ − c)] where it
// slides.
template <int N>
void Semismooth::solve_cone(std::size_t k, const double* rhs, double delta) {
  const int row = problem_->sets.cones[k].row;
  const double* b = rhs + row;
  double* w = w_.data() + row;
  const ConeState& state = cones_[k];
  const double own = cone_delta(k, delta);
  if (state.side == ConeState::slide) {
    double along = 0;
    for (int a = 1; a < N; ++a) along += state.h[a - 1] * b[a];
    const double mu = problem_->sets.cones[k].friction, across = 1 / (1 + own - state.c);
    const double change = (along + mu * b[0] / own) / (1 + own) - across * along;
    w[0] = b[0] / own;
    for (int a = 1; a < N; ++a) w[a] = across * b[a] + change * state.h[a - 1];
  } else {
    const double e = 1 / (state.side == ConeState::stick ? own : 1 + own);
    for (int a = 0; a < N; ++a) w[a] = e * b[a];
  }
}

// out ← (E + β C G)⁻¹ rhs = w − B J (M + Jᵀ B J)⁻¹ Jᵀ w, w = E⁻¹ rhs
void Semismooth::solve_linear(const double* rhs, double delta, double* out) {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    with_rows(K.cones[k], [&](auto n) { solve_cone<n()>(k, rhs, delta); });
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const std::size_t row = std::size_t(K.intervals[k].row);
    const double e = is_free(K.intervals[k]) ? free_delta(delta) : delta;
    w_[row] = rhs[row] / (inside_[k] ? e : 1 + e);
  }
  respond(out);
}

// x = J (M + Jᵀ B J)⁻¹ Jᵀ w, which is G times out ← w − B x
void Semismooth::respond(double* out) {
  const ForceSets& K = problem_->sets;
  problem_->G.respond(w_.data(), x_.data());
  for (const auto& c : K.cones)
    with_rows(c, [&](auto n) {
      const int stride = index_->at(c.row + 1, c.row) - index_->at(c.row, c.row);
      const double *B = B_.data() + index_->at(c.row, c.row), *x = x_.data() + c.row;
      for (int a = 0; a < n(); ++a, B += stride) {
        double sum = 0;
        for (int b = 0; b < n(); ++b) sum += B[b] * x[b];
        out[c.row + a] = w_[std::size_t(c.row + a)] - sum;
      }
    });
  for (const auto& i : K.intervals) {
    const std::size_t row = std::size_t(i.row);
    out[row] = w_[row] - B_[std::size_t(index_->at(i.row, i.row))] * x_[row];
  }
}

// −f − (E + β C G) Δr of one contact.
template <int N>
void Semismooth::find_cone_rest(std::size_t k, double delta) {
  const std::size_t row = std::size_t(problem_->sets.cones[k].row);
  const double beta = beta_[row], own = cone_delta(k, delta), mu = problem_->sets.cones[k].friction;
  const ConeState& state = cones_[k];
  double z[N], Cz[N] = {};  // z = Δr − β G Δr
  for (std::size_t a = 0; a < N; ++a) z[a] = dr_[row + a] - beta * dsigma_[row + a];
  if (state.side == ConeState::stick) {
    for (int a = 0; a < N; ++a) Cz[a] = z[a];
  } else if (state.side == ConeState::slide) {
    double along = 0;
    for (int a = 1; a < N; ++a) along += state.h[a - 1] * z[a];
    Cz[0] = z[0];
    for (int a = 1; a < N; ++a) Cz[a] = state.c * z[a] + (mu * z[0] - state.c * along) * state.h[a - 1];
  }
  for (std::size_t a = 0; a < N; ++a) rest_[row + a] = -f_[row + a] - (1 + own) * dr_[row + a] + Cz[a];
}

// Δr and G Δr. False: the linear equation could not be solved.
bool Semismooth::find_step(double delta, double f_length) {
  const ForceSets& K = problem_->sets;
  const int m = problem_->rows();
  set_blocks(delta);
  for (int r = 0; r < m; ++r) rest_[std::size_t(r)] = -f_[std::size_t(r)];
  solve_linear(rest_.data(), delta, dr_.data());
  for (int n = 0;; ++n) {
    // −f − (E + β C G) Δr
    problem_->G.apply(dr_.data(), dsigma_.data());
    for (std::size_t k = 0; k < K.cones.size(); ++k)
      with_rows(K.cones[k], [&](auto size) { find_cone_rest<size()>(k, delta); });
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
    const auto at = [&](std::size_t r) { return r_[r] - beta_[row] * sigma_[r]; };
    const auto by = [&](std::size_t r) { return dr_[r] - beta_[row] * dsigma_[r]; };
    const double y = at(row), dy = by(row), mu2 = cone.friction * cone.friction;
    if (dy != 0) take(-y / dy);
    // ‖y_T + t Δy_T‖ = µ (y_n + t Δy_n)
    double a = -mu2 * dy * dy, b = -mu2 * y * dy, c = -mu2 * y * y;
    for (std::size_t r = row + 1; r < row + std::size_t(cone.rows); ++r)
      a += by(r) * by(r), b += at(r) * by(r), c += at(r) * at(r);
    if (y > 0 && c < 0 && b * b - a * c >= 0 && a != 0) take((-b + std::sqrt(b * b - a * c)) / a);
  }
  for (const auto& i : problem_->sets.intervals) {
    const std::size_t row = std::size_t(i.row);
    const double y = r_[row] - beta_[row] * sigma_[row], dy = dr_[row] - beta_[row] * dsigma_[row];
    if (dy != 0) take((i.lower - y) / dy), take((i.upper - y) / dy);
  }
  return first;
}

template <int N>
double Semismooth::residual_of_cone(const Cone& c, const double* r, const double* sigma) const {
  const double *l = r + c.row, *s = sigma + c.row, d = d_[std::size_t(c.row)], over = 1 / d;
  double x[N], p[N], q[N], natural = 0, primal = 0;
  for (int a = 0; a < N; ++a) x[a] = l[a] - s[a] * over;
  x[0] -= c.friction * tangential<N>(s) * over;
  project<N>(c.friction, x, p);
  project<N>(c.friction, l, q);
  for (int a = 0; a < N; ++a) natural += (l[a] - p[a]) * (l[a] - p[a]), primal += (l[a] - q[a]) * (l[a] - q[a]);
  return d * std::sqrt(std::max(natural, primal));
}

// Natural and primal residual of r with velocities σ, the larger; r need not be in its sets.
double Semismooth::residual_of(const double* r, const double* sigma) const {
  const ForceSets& K = problem_->sets;
  double worst = 0;
  const auto take = [&](double x) { worst = x <= worst ? worst : x; };
  for (const auto& c : K.cones) take(with_rows(c, [&](auto n) { return residual_of_cone<n()>(c, r, sigma); }));
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

// The contacts that have most of f after the full step get their exact law, all others keep the linear one. length: ‖d
// f‖ after the full step; returns that after the corrected one, which is taken only if it is shorter.
double Semismooth::correct_step(double delta, double length) {
  const ForceSets& K = problem_->sets;
  for (int k = 0, count = few_.choose(K, d_.data(), trial_f_.data(), length); k < count; ++k) {
    auto& c = few_.contact(k);
    const int row = K.cones[std::size_t(c.cone)].row;
    c.beta = beta_[std::size_t(row)], c.delta = cone_delta(std::size_t(c.cone), delta);
    std::copy_n(trial_r_.data() + row, c.rows, c.r);
    std::copy_n(trial_sigma_.data() + row, c.rows, c.sigma);
    std::copy_n(dr_.data() + row, c.rows, c.dr);
    for (int a = 0; a < c.rows; ++a) std::copy_n(B_.data() + index_->at(row + a, row), c.rows, c.B + a * c.rows);
  }
  if (few_.contacts() == 0) return length;
  problem_->G.respond_among(few_.row(), few_.rows(), few_.A());
  if (!few_.solve()) return length;
  std::fill(w_.begin(), w_.end(), 0.0);
  for (int i = 0; i < few_.rows(); ++i) w_[std::size_t(few_.row()[i])] = few_.z()[i];
  respond(rest_.data());
  for (std::size_t r = 0; r < dr_.size(); ++r) rest_[r] += dr_[r], x_[r] += dsigma_[r];
  dr_.swap(rest_), dsigma_.swap(x_);
  const double corrected = length_after(1);
  if (corrected < length) return corrected;
  dr_.swap(rest_), dsigma_.swap(x_);
  return length;
}

// The first of 1, ½, ¼ … after which ‖d f‖ is below the reference, or the best of them; ‖d f‖ there. full: ‖d f‖
// after 1.
double Semismooth::search_line(double reference, double full, double& shortest) {
  double chosen = 1, t = 1;
  shortest = std::numeric_limits<double>::infinity();
  for (int h = 0; h < halvings; ++h, t /= 2) {
    const double now = h == 0 ? full : length_after(t);
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

  // the start may already be a solution
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
      double shortest = 0, full = length_after(1);
      if (full > poor_step * length) full = correct_step(delta, full);
      t = search_line(*std::max_element(past, past + std::min(count, window)), full, shortest);
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
