#include "derivatives/contact_modes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace delassus {

// C of one contact, and whether it is near another mode.
template <int N>
void ContactModes::find_cone(std::size_t k, const double* lambda, const double* sigma, double d) {
  const Cone& cone = K_->cones[k];
  const double *l = lambda + cone.row, *s = sigma + cone.row, mu = cone.friction;
  double y[N], largest_force = 0, largest_speed = 0;
  for (int a = 0; a < N; ++a) {
    y[a] = l[a] - s[a] / d;
    largest_force = std::max(largest_force, std::abs(l[a]));
    largest_speed = std::max(largest_speed, std::abs(s[a]));
  }
  const double near = kink_distance * (largest_force + largest_speed / d), across = tangential<N>(y), limit = mu * y[0];
  double* C = equation_.cone_C(k);
  if (!(y[0] > 0)) {
    modes_[k] = open;
    kinks_[k] = -y[0] <= near;
    return;
  }
  kinks_[k] = y[0] <= near || (mu > 0 && std::abs(across - limit) <= near);
  if (mu > 0 && across <= limit + near) {
    modes_[k] = sticking;
    for (int a = 0; a < N; ++a) C[N * a + a] = 1;
    return;
  }
  // without friction a contact slides, also where it does not move yet: then friction to come has no direction
  modes_[k] = sliding;
  const double c = across > 0 ? limit / across : 0;
  C[0] = 1;
  for (int a = 1; a < N; ++a) {
    const double u = across > 0 ? y[a] / across : 0;
    C[N * a] = mu * u;
    by_friction_[std::size_t(cone.row + a)] = l[0] * u;
    for (int b = 1; b < N; ++b) C[N * a + b] = c * ((a == b) - (across > 0 ? u * y[b] / across : 0));
  }
}

void ContactModes::find(const ForceSets& K, const double* lambda, const double* sigma, const double* d) {
  K_ = &K;
  equation_.resize(K);
  const std::size_t m = std::size_t(K.rows), cones = K.cones.size();
  modes_.resize(cones + K.intervals.size());
  kinks_.resize(modes_.size());
  d_.assign(d, d + m);
  by_friction_.assign(m, 0.0);
  for (auto* x : {&s_, &b_, &dlambda_, &dsigma_, &change_, &rate_}) x->resize(m);
  for (std::size_t k = 0; k < cones; ++k)
    with_rows(K.cones[k], [&](auto n) {
      find_cone<n()>(k, lambda, sigma, d[K.cones[k].row]);
      for (int a = 0; a < n() * n(); ++a) equation_.cone_E(k)[a] = (a % (n() + 1) == 0) - equation_.cone_C(k)[a];
    });
  for (std::size_t k = 0; k < K.intervals.size(); ++k) {
    const Interval& i = K.intervals[k];
    const double y = lambda[i.row] - sigma[i.row] / d[i.row];
    const double near = kink_distance * (std::abs(lambda[i.row]) + std::abs(sigma[i.row]) / d[i.row]);
    const bool inside = y > i.lower && y < i.upper;
    modes_[cones + k] = inside ? free : bound;
    kinks_[cones + k] = std::abs(y - i.lower) <= near || std::abs(y - i.upper) <= near;
    equation_.interval_C(k) = inside, equation_.interval_E(k) = !inside;
  }
}

bool ContactModes::factor(ContactMap& G, int max_dense) {
  G_ = &G, max_dense_ = max_dense;
  return equation_.factor(G, d_.data(), max_dense);
}

// b = −C s / d + λ_n u dµ + dbound
void ContactModes::tangents(const double* s, const double* dfriction, const double* dbound, int columns,
                            double* dlambda, double* dsigma) {
  const std::size_t m = d_.size(), n = std::size_t(columns), cones = K_->cones.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t r = 0; r < m; ++r) {
      s_[r] = s ? s[r * n + j] : 0;
      dlambda_[r] = -s_[r] / d_[r];
    }
    equation_.apply_blocks(dlambda_.data(), b_.data());
    for (std::size_t k = 0; k < cones && dfriction; ++k)
      for (int a = 1; a < K_->cones[k].rows; ++a) {
        const std::size_t r = std::size_t(K_->cones[k].row + a);
        b_[r] += by_friction_[r] * dfriction[k * n + j];
      }
    for (std::size_t k = 0; k < K_->intervals.size() && dbound; ++k)
      if (modes_[cones + k] == bound) b_[std::size_t(K_->intervals[k].row)] = dbound[k * n + j];
    equation_.solve(b_.data(), dlambda_.data());
    if (dlambda)
      for (std::size_t r = 0; r < m; ++r) dlambda[r * n + j] = dlambda_[r];
    if (!dsigma) continue;
    G_->apply(dlambda_.data(), dsigma_.data());
    for (std::size_t r = 0; r < m; ++r) dsigma[r * n + j] = dsigma_[r] + s_[r];
  }
}

// dλ = C (dλ − dσ / d), which is E dλ + C dσ / d = 0
bool ContactModes::solvable(const double* s) {
  tangents(s, nullptr, nullptr, 1, change_.data(), rate_.data());
  for (std::size_t r = 0; r < d_.size(); ++r) s_[r] = change_[r] - rate_[r] / d_[r];
  equation_.apply_blocks(s_.data(), b_.data());
  double size = 0, violation = 0;
  for (std::size_t r = 0; r < d_.size(); ++r) {
    size = std::max(size, std::abs(s[r]));
    violation = std::max(violation, d_[r] * std::abs(change_[r] - b_[r]));
  }
  return violation <= solvable_share * size;
}

// Aᵀ p = λ_bar + G σ_bar,   s_bar = σ_bar − Cᵀ p / d
void ContactModes::adjoints(const double* lambda_bar, const double* sigma_bar, int columns, double* s_bar,
                            double* friction_bar, double* bound_bar) {
  const std::size_t m = d_.size(), n = std::size_t(columns), cones = K_->cones.size();
  for (std::size_t j = 0; j < n; ++j) {
    std::fill(b_.begin(), b_.end(), 0.0);
    if (sigma_bar) {
      for (std::size_t r = 0; r < m; ++r) s_[r] = sigma_bar[r * n + j];
      G_->apply(s_.data(), b_.data());
    }
    for (std::size_t r = 0; r < m && lambda_bar; ++r) b_[r] += lambda_bar[r * n + j];
    equation_.solve_transposed(b_.data(), dlambda_.data());
    if (s_bar) {
      equation_.apply_blocks_transposed(dlambda_.data(), dsigma_.data());
      for (std::size_t r = 0; r < m; ++r) s_bar[r * n + j] = (sigma_bar ? s_[r] : 0) - dsigma_[r] / d_[r];
    }
    for (std::size_t k = 0; k < cones && friction_bar; ++k) {
      double sum = 0;
      for (int a = 1; a < K_->cones[k].rows; ++a) {
        const std::size_t r = std::size_t(K_->cones[k].row + a);
        sum += by_friction_[r] * dlambda_[r];
      }
      friction_bar[k * n + j] = sum;
    }
    for (std::size_t k = 0; k < K_->intervals.size() && bound_bar; ++k)
      bound_bar[k * n + j] = modes_[cones + k] == bound ? dlambda_[std::size_t(K_->intervals[k].row)] : 0;
  }
}

}  // namespace delassus
