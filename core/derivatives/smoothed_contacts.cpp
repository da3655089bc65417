#include "derivatives/smoothed_contacts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dense/vectors.h"
#include "errors/interrupt.h"

namespace delassus {
namespace {

constexpr int max_iterations = 60, halvings = 12;
constexpr double good_end = 1e-11, rounding = 1e-16;  // ‖H‖ over what it is made of
constexpr double regular = 1e-15;                     // the equation is, however small κ
constexpr double detour = 4;  // larger m, over the one that Newton's method does not get to at once
constexpr int max_detours = 6;

}  // namespace

// r, s and H at y; returns ‖H‖.
double SmoothedContacts::evaluate(double m, const double* y) {
  const ForceSets& K = *K_;
  const std::size_t rows = unit_.size();
  if (y != y_.data()) std::copy_n(y, rows, y_.data());
  for (std::size_t k = 0; k < K.cones.size(); ++k)
    with_rows(K.cones[k], [&](auto n) {
      const std::size_t row = std::size_t(K.cones[k].row);
      smooth_cone<n()>(K.cones[k].friction > 0, m, &y_[row], &r_[row], &s_[row], &slope_[row], cones_[k]);
    });
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const std::size_t row = std::size_t(K.intervals[k].row);
    const SmoothedInterval i(K.intervals[k].lower / unit_[row], K.intervals[k].upper / unit_[row], y_[row], m);
    r_[row] = i.r, s_[row] = i.s;
    equation_.interval_C(k) = i.d, equation_.interval_E(k) = i.e;
    by_lower_[k] = i.by_lower, by_upper_[k] = i.by_upper;
  }
  for (std::size_t r = 0; r < rows; ++r) lambda_[r] = unit_[r] * r_[r];
  G_->apply(lambda_.data(), sigma_.data());
  size_ = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const double felt = unit_[r] * sigma_[r];
    size_ = std::max(size_, std::abs(felt) + std::abs(scaled_g_[r]) + std::abs(s_[r]));
    H_[r] = felt + scaled_g_[r] - s_[r];
    sigma_[r] += g_[r];
  }
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const std::size_t row = std::size_t(K.cones[k].row);
    H_[row] += cones_[k].gamma;
    if (!(K.cones[k].friction > 0)) std::fill_n(H_.begin() + K.cones[k].row + 1, K.cones[k].rows - 1, 0.0);
  }
  return std::sqrt(dense::dot(int(rows), H_.data(), H_.data()));
}

// E and C of a cone in the units of λ: W C W and W E W⁻¹, W = diag(1 / µ, 1, 1 …); b for a change of friction.
template <int N>
void SmoothedContacts::set_cone(std::size_t k) {
  const Cone& cone = K_->cones[k];
  const SmoothedCone& state = cones_[k];
  double *E = equation_.cone_E(k), *C = equation_.cone_C(k);
  std::fill_n(E, N * N, 0.0);
  std::fill_n(C, N * N, 0.0);
  std::fill_n(by_friction_.begin() + cone.row, N, 0.0);
  if (!(cone.friction > 0)) {
    C[0] = state.d[0], E[0] = state.e[0];
    for (int a = 1; a < N; ++a) E[N * a + a] = 1;
    return;
  }
  // P and Q in their eigenvectors: e ± h, and all across h
  double P[N][N], Q[N][N], t[N], tP[N];
  const auto fill = [&](const double* values, double(&to)[N][N]) {
    const double mean = 0.5 * (values[0] + values[1]), half = 0.5 * (values[0] - values[1]);
    to[0][0] = mean;
    for (int a = 1; a < N; ++a) {
      to[0][a] = to[a][0] = half * state.h[a - 1];
      for (int b = 1; b < N; ++b)
        to[a][b] = (mean - values[2]) * state.h[a - 1] * state.h[b - 1] + (a == b ? values[2] : 0);
    }
  };
  fill(state.d, P), fill(state.e, Q);
  t[0] = 0;
  for (int a = 1; a < N; ++a) t[a] = state.t[a - 1];
  for (int b = 0; b < N; ++b) {
    tP[b] = 0;
    for (int a = 1; a < N; ++a) tP[b] += t[a] * P[a][b];
  }
  // Y = X (1 + e tᵀ) = 1 + e (tᵀ − tᵀ P (1 + e tᵀ) / (1 + tᵀ P e)): all but the first row is the identity's
  double first[N];
  for (int b = 0; b < N; ++b) first[b] = (b == 0) + t[b] - (tP[b] + tP[0] * t[b]) / (1 + tP[0]);
  const double w = 1 / cone.friction;
  for (int a = 0; a < N; ++a)
    for (int b = 0; b < N; ++b) {
      C[N * a + b] = P[a][0] * first[b] + (b > 0 ? P[a][b] : 0);
      E[N * a + b] = Q[a][0] * first[b] + (b > 0 ? Q[a][b] : 0);
    }
  for (int b = 0; b < N; ++b)
    for (int a = 1; a < N; ++a) E[b] -= t[a] * E[N * a + b];
  // r_n = µ √d λ_n, (U σ)_n = σ_n / (µ √d): b = −U (E e r_n − C e (U σ)_n) dµ / µ
  const double felt = unit_[std::size_t(cone.row)] * sigma_[std::size_t(cone.row)];
  for (int a = 0; a < N; ++a) {
    const std::size_t row = std::size_t(cone.row + a);
    by_friction_[row] = -unit_[row] * w * (E[N * a] * r_[std::size_t(cone.row)] - C[N * a] * felt);
  }
  for (int b = 1; b < N; ++b) C[b] *= w, C[N * b] *= w, E[b] *= w, E[N * b] /= w;
  C[0] *= w * w;
}

void SmoothedContacts::set_blocks() {
  for (std::size_t k = 0; k < K_->cones.size(); ++k) with_rows(K_->cones[k], [&](auto n) { set_cone<n()>(k); });
}
bool SmoothedContacts::factor() { return equation_.factor(*G_, d_.data(), max_dense_, regular); }

// Newton's step dy from y_, with the equation factored there. Whether its numbers are finite.
bool SmoothedContacts::find_step() {
  const std::size_t rows = unit_.size();
  set_blocks();
  if (!factor()) return false;
  // E dr + C U G dλ = −C H, in the units of λ
  for (std::size_t r = 0; r < rows; ++r) in_[r] = unit_[r] > 0 ? -H_[r] / (unit_[r] * d_[r]) : 0;
  equation_.apply_blocks(in_.data(), b_.data());
  equation_.solve(b_.data(), dlambda_.data());
  // ds = (1 + e tᵀ) (U G dλ + H), dy = dr − ds
  G_->apply(dlambda_.data(), dsigma_.data());
  for (std::size_t r = 0; r < rows; ++r) in_[r] = unit_[r] * dsigma_[r] + H_[r];
  for (std::size_t k = 0; k < K_->cones.size(); ++k) {
    const std::size_t row = std::size_t(K_->cones[k].row);
    for (int a = 1; a < K_->cones[k].rows; ++a) in_[row] += cones_[k].t[a - 1] * in_[row + std::size_t(a)];
  }
  for (std::size_t r = 0; r < rows; ++r) dy_[r] = (unit_[r] > 0 ? dlambda_[r] / unit_[r] : 0) - in_[r];
  return true;
}

// From y to H(y) = 0 at m: whether it came there. Leaves the equation factored.
bool SmoothedContacts::run_newton(double m) {
  const std::size_t rows = unit_.size();
  const double root = std::sqrt(double(rows));
  double now = evaluate(m, y_.data());
  for (int k = 0; k < max_iterations && std::isfinite(now); ++k) {
    poll(400.0 * double(rows));
    if (!find_step()) return false;
    ++iterations_;
    if (now <= rounding * size_ * root) return true;
    // as much of the step as makes ‖H‖ smaller
    start_ = y_;
    const bool near = now <= good_end * size_ * root;
    double part = 1, then = now;
    for (int h = 0; h < halvings; ++h, part /= 2) {
      for (std::size_t r = 0; r < rows; ++r) trial_[r] = start_[r] + part * dy_[r];
      then = evaluate(m, trial_.data());
      if (then <= (1 - 0.1 * part) * now || near) break;
    }
    if (!(then < now) || (near && then > 0.5 * now)) {
      // no smaller than this: rounding, or no solution
      if (!(then < now)) now = evaluate(m, start_.data());
      return near && find_step();
    }
    now = then;
  }
  return false;
}

bool SmoothedContacts::solve(const ForceSets& K, ContactMap& G, const double* g, const double* d, double kappa,
                             const double* lambda, int max_dense) {
  K_ = &K, G_ = &G, max_dense_ = max_dense, iterations_ = 0;
  equation_.resize(K);
  const std::size_t rows = std::size_t(K.rows);
  for (auto* x : {&unit_, &scaled_g_, &y_, &r_, &s_, &slope_, &H_, &trial_, &start_, &lambda_, &sigma_, &by_friction_,
                  &in_, &b_, &dlambda_, &dsigma_, &dy_})
    x->assign(rows, 0.0);
  cones_.resize(K.cones.size());
  for (auto* x : {&by_lower_, &by_upper_}) x->resize(K.intervals.size());
  d_.assign(d, d + rows);
  g_.assign(g, g + rows);
  for (const auto& c : K.cones) {
    const std::size_t row = std::size_t(c.row);
    const double w = 1 / std::sqrt(d[row]);
    unit_[row] = c.friction > 0 ? w / c.friction : w;
    std::fill_n(unit_.begin() + c.row + 1, c.rows - 1, c.friction > 0 ? w : 0);
  }
  for (const auto& i : K.intervals) unit_[std::size_t(i.row)] = 1 / std::sqrt(d[i.row]);
  for (std::size_t r = 0; r < rows; ++r) scaled_g_[r] = unit_[r] * g[r];

  // y = r − s of the forces given
  const auto start = [&] {
    G.apply(lambda, s_.data());
    for (std::size_t r = 0; r < rows; ++r) s_[r] = unit_[r] * (s_[r] + g[r]);
    for (const auto& c : K.cones)
      if (c.friction > 0) s_[std::size_t(c.row)] += tangential(c, &s_[std::size_t(c.row)]);
    for (std::size_t r = 0; r < rows; ++r) y_[r] = (unit_[r] > 0 ? lambda[r] / unit_[r] : 0) - s_[r];
  };
  // at κ, else at the next larger one from which it goes down
  const double m = std::sqrt(kappa);
  for (int up = 0; up <= max_detours; ++up) {
    start();
    double now = m * std::pow(detour, up);
    bool there = run_newton(now);
    for (int down = 0; down < up && there; ++down) there = run_newton(now /= detour);
    if (there) return true;
  }
  return false;
}

void SmoothedContacts::tangents(const double* s, const double* dfriction, const double* dlower, const double* dupper,
                                int columns, double* dlambda, double* dsigma) {
  const std::size_t m = d_.size(), n = std::size_t(columns);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t r = 0; r < m; ++r) in_[r] = s ? -s[r * n + j] / d_[r] : 0;
    equation_.apply_blocks(in_.data(), b_.data());
    for (std::size_t k = 0; k < K_->cones.size() && dfriction; ++k)
      for (int a = 0; a < K_->cones[k].rows; ++a) {
        const std::size_t r = std::size_t(K_->cones[k].row + a);
        b_[r] += by_friction_[r] * dfriction[k * n + j];
      }
    for (std::size_t k = 0; k < K_->intervals.size(); ++k) {
      const std::size_t r = std::size_t(K_->intervals[k].row);
      if (dlower) b_[r] += by_lower_[k] * dlower[k * n + j];
      if (dupper) b_[r] += by_upper_[k] * dupper[k * n + j];
    }
    equation_.solve(b_.data(), dlambda_.data());
    if (dlambda)
      for (std::size_t r = 0; r < m; ++r) dlambda[r * n + j] = dlambda_[r];
    if (!dsigma) continue;
    G_->apply(dlambda_.data(), dsigma_.data());
    for (std::size_t r = 0; r < m; ++r) dsigma[r * n + j] = dsigma_[r] + (s ? s[r * n + j] : 0);
  }
}

void SmoothedContacts::adjoints(const double* lambda_bar, const double* sigma_bar, int columns, double* s_bar,
                                double* friction_bar, double* lower_bar, double* upper_bar) {
  const std::size_t m = d_.size(), n = std::size_t(columns);
  for (std::size_t j = 0; j < n; ++j) {
    std::fill(b_.begin(), b_.end(), 0.0);
    if (sigma_bar) {
      for (std::size_t r = 0; r < m; ++r) in_[r] = sigma_bar[r * n + j];
      G_->apply(in_.data(), b_.data());
    }
    for (std::size_t r = 0; r < m && lambda_bar; ++r) b_[r] += lambda_bar[r * n + j];
    equation_.solve_transposed(b_.data(), dlambda_.data());
    if (s_bar) {
      equation_.apply_blocks_transposed(dlambda_.data(), dsigma_.data());
      for (std::size_t r = 0; r < m; ++r) s_bar[r * n + j] = (sigma_bar ? in_[r] : 0) - dsigma_[r] / d_[r];
    }
    for (std::size_t k = 0; k < K_->cones.size() && friction_bar; ++k) {
      double sum = 0;
      for (int a = 0; a < K_->cones[k].rows; ++a) {
        const std::size_t r = std::size_t(K_->cones[k].row + a);
        sum += by_friction_[r] * dlambda_[r];
      }
      friction_bar[k * n + j] = sum;
    }
    for (std::size_t k = 0; k < K_->intervals.size(); ++k) {
      const double p = dlambda_[std::size_t(K_->intervals[k].row)];
      if (lower_bar) lower_bar[k * n + j] = by_lower_[k] * p;
      if (upper_bar) upper_bar[k * n + j] = by_upper_[k] * p;
    }
  }
}

}  // namespace delassus
