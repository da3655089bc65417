#include "solvers/contacts/smooth_path.h"

#include <limits>
#include <random>
#include <utility>

#include "errors/interrupt.h"

namespace delassus {
namespace {

constexpr double end_of_path = 1e-5;     // m at which Newton's method may take over, over the speed of the problem
constexpr double reference_share = 0.3;  // m_ref over the largest |g|
constexpr double on_path = 0.1;          // ‖H‖ over √n m, below which a point counts as one of the path
constexpr double first_step = 0.5, longest_step = 3, shortest_step = 1e-5;  // of arclength
constexpr double hopeless = 1e5;  // the same, above which a prediction is not corrected
constexpr int max_corrections = 6;
constexpr double least_sigma = -0.7;                   // below it the path goes back for good
constexpr double least_damping = 1e-11;                // in the factor alone
constexpr double good_rest = 1e-2, gmres_rest = 1e-3;  // of a linear equation, over its right-hand side
constexpr int gmres_depth = 16;

}  // namespace

void SmoothPath::Point::resize(std::size_t rows, std::size_t cone_count, std::size_t interval_count) {
  for (auto* x : {&y, &r, &s, &H, &slope}) x->resize(rows);
  cones.resize(cone_count);
  intervals.resize(interval_count);
}

bool SmoothPath::begin(const ContactProblem& p, const double* d) {
  problem_ = &p;
  index_ = p.G.block_index(p.sets);
  if (!index_) return false;
  rows_ = p.rows();
  const std::size_t n = std::size_t(rows_);
  for (auto* x : {&unit_, &g_, &a_, &weight_, &in_, &out_, &w_, &x_, &z_, &rest_, &slope_rhs_, &slope_y_, &correction_,
                  &tangent_})
    x->resize(n);
  for (auto* point : {&now_, &next_, &trial_}) point->resize(n, p.sets.cones.size(), p.sets.intervals.size());
  block_.assign(1, 0);
  for (const auto& c : p.sets.cones) block_.push_back(block_.back() + c.rows * c.rows);
  B_.resize(std::size_t(block_.back()) + p.sets.intervals.size());
  real_B_.assign(index_->size, 0.0);
  // a cone without friction is a half-line for its normal, and nothing along its tangents
  for (const auto& c : p.sets.cones) {
    const std::size_t row = std::size_t(c.row);
    const double w = 1 / std::sqrt(d[row]);
    unit_[row] = c.friction > 0 ? w / c.friction : w;
    std::fill_n(unit_.begin() + c.row + 1, c.rows - 1, c.friction > 0 ? w : 0);
  }
  for (const auto& i : p.sets.intervals) unit_[std::size_t(i.row)] = 1 / std::sqrt(d[i.row]);
  held_ = false;
  speed_ = 0;
  for (std::size_t r = 0; r < n; ++r) {
    g_[r] = unit_[r] * p.g[r];
    speed_ = std::max(speed_, std::abs(g_[r]));
  }
  speed_ = std::max(speed_, 1e-300);
  reference_ = reference_share * speed_;
  return true;
}

// w: the part of Γ that is there at σ.
double SmoothPath::gamma_share(double sigma) const { return held_ ? 0 : 1 - std::exp(-sigma); }

double SmoothPath::compliance(double m) const {
  const double share = m / reference_;
  return fast_fading_ ? share * share : share;
}

void SmoothPath::hold_gamma(const double* sigma, bool first) {
  const ForceSets& K = problem_->sets;
  if (first) gamma_.assign(K.cones.size(), std::numeric_limits<double>::infinity());
  held_ = true;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const std::size_t row = std::size_t(K.cones[k].row);
    gamma_[k] = std::min(gamma_[k], K.cones[k].friction * tangential(K.cones[k], sigma + row));
    g_[row] = unit_[row] * (problem_->g[row] + gamma_[k]);
  }
}
void SmoothPath::release_gamma() { held_ = false; }

void SmoothPath::product(const double* x, double* y) {
  for (int r = 0; r < rows_; ++r) in_[std::size_t(r)] = unit_[std::size_t(r)] * x[r];
  problem_->G.apply(in_.data(), out_.data());
  for (int r = 0; r < rows_; ++r) y[r] = unit_[std::size_t(r)] * out_[std::size_t(r)];
}

// r, s, their derivatives, and H, at y and σ.
void SmoothPath::evaluate(Point& p) {
  const ForceSets& K = problem_->sets;
  const double m = p.m = m0_ * std::exp(-p.sigma), fade = std::exp(-p.sigma), w = gamma_share(p.sigma);
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    with_rows(K.cones[k], [&](auto n) {
      const std::size_t row = std::size_t(K.cones[k].row);
      smooth_cone<n()>(K.cones[k].friction > 0, m, &p.y[row], &p.r[row], &p.s[row], &p.slope[row], p.cones[k]);
    });
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const std::size_t row = std::size_t(K.intervals[k].row);
    const double unit = unit_[row];
    const SmoothedInterval i(K.intervals[k].lower / unit, K.intervals[k].upper / unit, p.y[row], m);
    p.r[row] = i.r, p.s[row] = i.s, p.slope[row] = i.slope;
    p.intervals[k] = {i.d, i.e};
  }
  const double c = compliance(m);
  product(p.r.data(), p.H.data());
  for (int i = 0; i < rows_; ++i) {
    const std::size_t r = std::size_t(i);
    p.H[r] += c * p.r[r] + g_[r] - p.s[r] + fade * a_[r];
  }
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const std::size_t row = std::size_t(K.cones[k].row);
    p.H[row] += w * p.cones[k].gamma;
    if (!(K.cones[k].friction > 0)) std::fill_n(p.H.begin() + K.cones[k].row + 1, K.cones[k].rows - 1, 0.0);
  }
  p.length = std::sqrt(inner(rows_, p.H.data(), p.H.data()) / rows_) / m;
}

// ∂H / ∂σ = −m ∂H / ∂m + e^−σ (Γ_m e − a)
void SmoothPath::find_slope(const Point& p, double* out) {
  const ForceSets& K = problem_->sets;
  const double fade = std::exp(-p.sigma), w = gamma_share(p.sigma), w_slope = held_ ? 0 : fade;
  const double c = compliance(p.m), c_slope = (fast_fading_ ? 2 : 1) * c / p.m;
  product(p.slope.data(), out);
  for (int i = 0; i < rows_; ++i) {
    const std::size_t r = std::size_t(i);
    const double by_m = out[i] + c * p.slope[r] + c_slope * p.r[r] - p.slope[r];
    out[i] = -p.m * by_m - fade * a_[r];
  }
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const std::size_t row = std::size_t(K.cones[k].row);
    out[row] += -p.m * w * p.cones[k].gamma_slope + w_slope * p.cones[k].gamma;
    if (!(K.cones[k].friction > 0)) std::fill_n(out + row + 1, K.cones[k].rows - 1, 0.0);
  }
}

// B = N⁻¹ = (K − c K e tᵀ K / (1 + c tᵀ K e)) (1 + e tᵀ),   K = (P_m'⁻¹ − 1 + c)⁻¹, of one cone. The sum of its
// numbers.
template <int N>
double SmoothPath::factor_cone(std::size_t k, const SmoothedCone& state, double w, double c) {
  const Cone& cone = problem_->sets.cones[k];
  double* B = &B_[std::size_t(block_[k])];
  double kappa[3];
  for (int a = 0; a < 3; ++a) kappa[a] = 1 / (state.e[a] / std::max(state.d[a], 1e-16) + c);
  if (!(cone.friction > 0)) {
    std::fill_n(B, N * N, 0.0);
    B[0] = kappa[0];
  } else {
    // K in the eigenvectors of P_m': e ± h, and all across h
    const double mean = 0.5 * (kappa[0] + kappa[1]), half = 0.5 * (kappa[0] - kappa[1]);
    double Kr[N][N], t[N], tK[N];
    t[0] = 0, Kr[0][0] = mean;
    for (int a = 1; a < N; ++a) {
      const double h = state.h[a - 1];
      t[a] = w * state.t[a - 1];
      Kr[0][a] = Kr[a][0] = half * h;
      for (int b = 1; b < N; ++b) Kr[a][b] = (mean - kappa[2]) * h * state.h[b - 1] + (a == b ? kappa[2] : 0);
    }
    for (int b = 0; b < N; ++b) {
      tK[b] = 0;
      for (int a = 1; a < N; ++a) tK[b] += t[a] * Kr[a][b];
    }
    const double share = c / (1 + c * tK[0]);
    for (int a = 0; a < N; ++a) {
      double first = 0;
      for (int b = 0; b < N; ++b) {
        const double x = Kr[a][b] - share * Kr[a][0] * tK[b];
        if (b == 0) first = x;
        B[N * a + b] = b == 0 ? x : x + first * t[b];
      }
    }
  }
  const int row = cone.row, stride = index_->at(row + 1, row) - index_->at(row, row);
  double sum = 0;
  for (int a = 0; a < N; ++a)
    for (int b = 0; b < N; ++b) {
      const double x = unit_[std::size_t(row + a)] * B[N * a + b] * unit_[std::size_t(row + b)];
      real_B_[std::size_t(index_->at(row, row) + a * stride + b)] = x;
      sum += x;
    }
  return sum;
}

// Of all sets. Whether it is finite.
bool SmoothPath::factor(const Point& p) {
  const ForceSets& sets = problem_->sets;
  const double w = gamma_share(p.sigma), c = compliance(p.m) + least_damping;
  double sum = 0;
  for (std::size_t k = 0; k < sets.cones.size(); ++k)
    sum += with_rows(sets.cones[k], [&](auto n) { return factor_cone<n()>(k, p.cones[k], w, c); });
  for (std::size_t k = 0; k < sets.intervals.size(); ++k) {
    const int row = sets.intervals[k].row;
    double& B = B_[std::size_t(block_.back()) + k];
    B = 1 / (p.intervals[k].e / std::max(p.intervals[k].d, 1e-16) + c);
    sum += real_B_[std::size_t(index_->at(row, row))] = unit_[std::size_t(row)] * B * unit_[std::size_t(row)];
  }
  if (!std::isfinite(sum)) return false;
  problem_->G.set_blocks(real_B_.data());
  ++factorizations_;
  return true;
}

void SmoothPath::apply_blocks(const double* x, double* y) const {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    with_rows(K.cones[k], [&](auto n) {
      const double* B = &B_[std::size_t(block_[k])];
      double v[n()];
      std::copy_n(x + K.cones[k].row, n(), v);
      for (int a = 0; a < n(); ++a) {
        double sum = 0;
        for (int b = 0; b < n(); ++b) sum += B[n() * a + b] * v[b];
        y[K.cones[k].row + a] = sum;
      }
    });
  for (std::size_t k = 0; k < K.intervals.size(); ++k)
    y[K.intervals[k].row] = B_[std::size_t(block_.back()) + k] * x[K.intervals[k].row];
}

// z ← (P_m'⁻¹ − 1) v of one cone
template <int N>
void SmoothPath::stiffen_cone(const SmoothedCone& state, const double* v, double* z) const {
  double e[3], along = 0;
  for (int a = 0; a < 3; ++a) e[a] = state.e[a] / std::max(state.d[a], 1e-16);
  for (int a = 1; a < N; ++a) along += state.h[a - 1] * v[a];
  const double one = 0.5 * e[0] * (v[0] + along), two = 0.5 * e[1] * (v[0] - along);
  z[0] = one + two;
  for (int a = 1; a < N; ++a) z[a] = e[2] * v[a] + (one - two - e[2] * along) * state.h[a - 1];
}

// z ← (P_m'⁻¹ − 1) x
void SmoothPath::stiffness(const Point& p, const double* x, double* z) const {
  const ForceSets& K = problem_->sets;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const int row = K.cones[k].row;
    with_rows(K.cones[k], [&](auto n) { stiffen_cone<n()>(p.cones[k], x + row, z + row); });
  }
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const int row = K.intervals[k].row;
    z[row] = x[row] * (p.intervals[k].e / std::max(p.intervals[k].d, 1e-16));
  }
}

// y ← (G + N) x
void SmoothPath::jacobian(const Point& p, const double* x, double* y) {
  const ForceSets& K = problem_->sets;
  const double w = gamma_share(p.sigma), c = compliance(p.m);
  product(x, y);
  stiffness(p, x, z_.data());
  for (int r = 0; r < rows_; ++r) y[r] += c * x[r] + z_[std::size_t(r)];
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const int row = K.cones[k].row;
    const double *t = p.cones[k].t, *z = &z_[std::size_t(row)];
    double tz = 0;
    for (int a = 1; a < K.cones[k].rows; ++a) tz += t[a - 1] * z[a];
    y[row] -= w * tz;
    if (!(K.cones[k].friction > 0)) std::fill_n(y + row + 1, K.cones[k].rows - 1, 0.0);
  }
}

// x ← (G + N)⁻¹ b = B (b − U J (M + Jᵀ B J)⁻¹ Jᵀ U B b), as the factor gives it
void SmoothPath::invert(const double* b, double* x) {
  apply_blocks(b, w_.data());
  for (int r = 0; r < rows_; ++r) in_[std::size_t(r)] = unit_[std::size_t(r)] * w_[std::size_t(r)];
  problem_->G.respond(in_.data(), out_.data());
  for (int r = 0; r < rows_; ++r) w_[std::size_t(r)] = b[r] - unit_[std::size_t(r)] * out_[std::size_t(r)];
  apply_blocks(w_.data(), x);
}

void SmoothPath::reserve() {
  gmres_.resize(rows_, gmres_depth);
  gamma_.reserve(problem_->sets.cones.size());
}

// dy with (∂H / ∂y) dy = b: (G + N) x = b, dy = P_m'⁻¹ x.
void SmoothPath::solve(const Point& p, const double* b, double* dy) {
  invert(b, x_.data());
  jacobian(p, x_.data(), rest_.data());
  for (int r = 0; r < rows_; ++r) rest_[std::size_t(r)] = b[r] - rest_[std::size_t(r)];
  const double size = inner(rows_, b, b), rest = inner(rows_, rest_.data(), rest_.data());
  if (rest > good_rest * good_rest * size) {
    // what is worse than nothing is no start
    if (!(rest < size)) {
      std::fill(x_.begin(), x_.end(), 0.0);
      std::copy_n(b, rows_, rest_.data());
    }
    gmres_.resize(rows_, gmres_depth);
    gmres_.cycle(
        rest_.data(), x_.data(), [&](const double* v, double* w) { jacobian(p, v, w); },
        [&](const double* v, double* w) { invert(v, w); },
        [&](double now, const double*) { return now <= gmres_rest * gmres_rest * size; });
  }
  stiffness(p, x_.data(), dy);
  for (int r = 0; r < rows_; ++r) dy[r] += x_[std::size_t(r)];
}

// The metric of the arclength: changes of y are measured by m + ‖y‖ of their set.
void SmoothPath::set_weights(const Point& p) {
  const ForceSets& K = problem_->sets;
  const double n = std::sqrt(double(rows_));
  for (const auto& c : K.cones) {
    const double* y = &p.y[std::size_t(c.row)];
    const double w = 1 / ((p.m + std::sqrt(inner(c.rows, y, y))) * n);
    std::fill_n(weight_.begin() + c.row, c.rows, w);
  }
  for (const auto& i : K.intervals) weight_[std::size_t(i.row)] = 1 / ((p.m + std::abs(p.y[std::size_t(i.row)])) * n);
}
double SmoothPath::weighted(const double* a, const double* b) const {
  double sum = 0;
  for (int r = 0; r < rows_; ++r) sum += weight_[std::size_t(r)] * a[r] * (weight_[std::size_t(r)] * b[r]);
  return sum;
}

// y₀ = r − s of the forces to start from, and a such that it solves σ = 0.
void SmoothPath::place_start(const PathStart& start, const double* lambda) {
  const std::size_t n = std::size_t(rows_);
  for (std::size_t r = 0; r < n; ++r) now_.r[r] = unit_[r] > 0 ? lambda[r] / unit_[r] : 0;
  product(now_.r.data(), now_.s.data());
  for (std::size_t r = 0; r < n; ++r) now_.s[r] += g_[r];
  for (const auto& c : problem_->sets.cones)
    if (c.friction > 0 && !held_) now_.s[std::size_t(c.row)] += tangential(c, &now_.s[std::size_t(c.row)]);
  for (std::size_t r = 0; r < n; ++r) now_.y[r] = now_.r[r] - now_.s[r];
  if (start.random > 0) {
    std::mt19937_64 generator(start.seed);
    for (auto& y : now_.y) {
      // a sum of uniform numbers: the same on every machine
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += double(generator() >> 11) * 0x1p-53;
      y += start.random * m0_ * sum;
    }
  }
  std::fill(a_.begin(), a_.end(), 0.0);
  now_.sigma = 0;
  evaluate(now_);
  for (std::size_t r = 0; r < n; ++r) a_[r] = -now_.H[r];
  evaluate(now_);
}

// Newton's corrections of the next point, at right angles to the tangent (t_y, t_σ = along), or where the path `ends`
// at its σ. Leaves ∂y / ∂σ there. Whether the point is on the path then; how many factors that took.
bool SmoothPath::correct(bool ends, double length, double along, int& corrections) {
  corrections = 0;
  if (!(std::isfinite(next_.length) && next_.length < hopeless)) return false;
  while (factor(next_)) {
    find_slope(next_, slope_rhs_.data());
    solve(next_, slope_rhs_.data(), slope_y_.data());
    ++corrections;
    if (next_.length <= on_path) return true;
    if (corrections > max_corrections) return false;
    // bordering: the change of σ that keeps the step at right angles to the tangent
    solve(next_, next_.H.data(), correction_.data());
    double change = 0;
    if (!ends) {
      const double pivot = along - weighted(tangent_.data(), slope_y_.data());
      if (std::abs(pivot) > 1e-12) change = weighted(tangent_.data(), correction_.data()) / pivot;
      const double most = 2 * std::max(length, 0.05);
      change = std::min(std::max(change, -most), most);
    }
    if (!search_line(change)) return false;
    std::swap(next_, trial_);
  }
  return false;
}

// The trial point: all of the correction, or as much of it as makes ‖H‖ smaller. Whether any does.
bool SmoothPath::search_line(double change) {
  const auto go = [&](double part) {
    trial_.sigma = next_.sigma + part * change;
    for (std::size_t r = 0; r < trial_.y.size(); ++r)
      trial_.y[r] = next_.y[r] - part * (correction_[r] + slope_y_[r] * change);
    evaluate(trial_);
  };
  double part = 1, best = std::numeric_limits<double>::infinity(), best_part = 1;
  for (int k = 0; k < 5; ++k, part *= 0.4) {
    go(part);
    if (trial_.length < best) best = trial_.length, best_part = part;
    if (trial_.length <= (1 - 0.3 * part) * next_.length) break;
  }
  if (!(best <= 0.93 * next_.length)) return false;
  if (best_part != part) go(best_part);
  return true;
}

bool SmoothPath::follow(const PathStart& start, double* lambda, ContactReport& report) {
  const std::size_t n = std::size_t(rows_);
  factorizations_ = 0;
  m0_ = start.m > 0 ? start.m : reference_;
  fast_fading_ = start.fast_fading;
  place_start(start, lambda);

  const double last_sigma = std::log(m0_ / (end_of_path * speed_));
  bool arrived = last_sigma <= 0;
  double step = first_step, along = 0;
  if (!arrived && factor(now_)) {
    // the tangent (t_y, t_σ)
    find_slope(now_, slope_rhs_.data());
    solve(now_, slope_rhs_.data(), slope_y_.data());
    set_weights(now_);
    along = 1 / std::sqrt(weighted(slope_y_.data(), slope_y_.data()) + 1);
    for (std::size_t r = 0; r < n; ++r) tangent_[r] = -slope_y_[r] * along;
  }
  while (!arrived && std::isfinite(along) && along != 0 && factorizations_ < start.max_factorizations &&
         !is_over(start.end)) {
    poll(2000.0 * rows_);
    // predict, correct
    double length = step;
    const bool ends = along > 0 && now_.sigma + length * along >= last_sigma;
    if (ends) length = (last_sigma - now_.sigma) / along;
    next_.sigma = now_.sigma + length * along;
    if (next_.sigma < least_sigma) break;
    for (std::size_t r = 0; r < n; ++r) next_.y[r] = now_.y[r] + length * tangent_[r];
    evaluate(next_);
    int corrections = 0;
    if (!correct(ends, length, along, corrections)) {
      step = 0.3 * length;
      if (step < shortest_step) break;
      continue;
    }

    // the next tangent, in the direction in which the path goes on
    std::swap(now_, next_);
    set_weights(now_);
    const double size = std::sqrt(weighted(slope_y_.data(), slope_y_.data()) + 1);
    const double sign = problem_->G.determinant_sign() < 0 ? -1 : 1;
    const double cosine = sign * (along / size - weighted(slope_y_.data(), tangent_.data()) / size);
    for (std::size_t r = 0; r < n; ++r) tangent_[r] = -sign * slope_y_[r] / size;
    along = sign / size;
    arrived = now_.sigma >= last_sigma - 1e-9;
    if (corrections <= 2 && cosine > 0.7) {
      if (length == step) step = std::min(2.5 * length, longest_step);
    } else if (corrections >= 5 || cosine < 0.3) {
      step = std::max(0.5 * length, 2 * shortest_step);
    }
  }
  report.iterations += factorizations_;
  report.factorizations += factorizations_;
  for (std::size_t r = 0; r < n; ++r) lambda[r] = unit_[r] * now_.r[r];
  project(problem_->sets, lambda, lambda);
  return arrived;
}

}  // namespace delassus
