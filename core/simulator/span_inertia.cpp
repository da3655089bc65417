#include "simulator/span_inertia.h"

#include <algorithm>

#include "dense/cholesky.h"

namespace delassus {

void SpanInertia::begin(RowSystem& s, std::size_t velocities) {
  const std::size_t n = count_ = s.inertia_rows.size();
  if (n == 0) return;
  units_.assign(s.rows() * n, 0.0);
  for (std::size_t k = 0; k < n; ++k) units_[std::size_t(s.inertia_rows[k]) * n + k] = 1;
  for (auto* x : {&Jt_, &W_}) x->resize(velocities * n);
  for (auto* x : {&floors_, &answer_, &rate_}) x->resize(n);
  s.G->jacobian_transpose(units_.data(), int(n), Jt_.data());
  s.G->mass_inverse(Jt_.data(), int(n), W_.data());
  // S = C + J W
  S_.assign(n * n, 0.0);
  for (std::size_t v = 0; v < velocities; ++v)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k) S_[i * n + k] += Jt_[v * n + i] * W_[v * n + k];
  for (std::size_t i = 0; i < n; ++i) {
    const double c = s.compliance[std::size_t(s.inertia_rows[i])];
    S_[i * (n + 1)] += c;
    floors_[i] = dense::pivot_floor(c, S_[i * (n + 1)]);
  }
  dense::factor_cholesky<double>(int(n), S_.data(), int(n), floors_.data());
}

// y = J v
void SpanInertia::project(const double* v, std::vector<double>& y) const {
  std::fill(y.begin(), y.end(), 0.0);
  for (std::size_t j = 0; j * count_ < Jt_.size(); ++j)
    for (std::size_t k = 0; k < count_; ++k) y[k] += Jt_[j * count_ + k] * v[j];
}

void SpanInertia::resist(std::vector<double>& a) {
  if (count_ == 0) return;
  project(a.data(), answer_);
  dense::solve_cholesky<double>(int(count_), S_.data(), int(count_), answer_.data());
  for (std::size_t j = 0; j < a.size(); ++j)
    for (std::size_t k = 0; k < count_; ++k) a[j] -= W_[j * count_ + k] * answer_[k];
}

// c v_f + λ / a − c v, with the impulse λ = −dt S⁻¹ J a that is in v_f
void SpanInertia::aim(const RowSystem& s, double dt, const double* v, std::vector<double>& g) {
  if (count_ == 0) return;
  project(v, rate_);
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t row = std::size_t(s.inertia_rows[k]);
    g[row] -= rate_[k] + dt * answer_[k] * s.compliance[row];
  }
}

void SpanInertia::take_out(const RowSystem& s, const std::vector<double>& impulses, std::vector<double>& forces) const {
  for (std::size_t k = 0; k < count_; ++k) {
    const double lambda = impulses[std::size_t(s.inertia_rows[k])];
    for (std::size_t j = 0; j < forces.size(); ++j) forces[j] -= Jt_[j * count_ + k] * lambda;
  }
}

}  // namespace delassus
