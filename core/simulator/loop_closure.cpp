#include "simulator/loop_closure.h"

#include <algorithm>
#include <cmath>

namespace delassus {

namespace {

constexpr double softness = 1e-8;  // ε over the row's diagonal
constexpr int max_proximal_steps = 8;

}  // namespace

void LoopClosure::begin(Operator<double>& G, int loops) {
  G_ = &G;
  loops_ = std::size_t(loops);
  for (auto* x : {&damping_, &rhs_, &change_}) x->resize(std::size_t(G.rows()));
  G.diagonal(damping_.data());
  double largest = 0;
  for (const double d : damping_)
    if (std::isfinite(d)) largest = std::max(largest, d);
  if (!(largest > 0)) largest = 1;
  for (std::size_t r = 0; r < damping_.size(); ++r) {
    const double d = damping_[r] > 1e-12 * largest && std::isfinite(damping_[r]) ? damping_[r] : largest;
    damping_[r] = r < loops_ ? softness * d : largest / softness;  // others as if they were not there
  }
  factored_ = false;
}

int LoopClosure::close(const double* g, double* lambda, double* sigma, double small) {
  factor();
  const double floor = small * largest(g);
  double open = residual(g, lambda, sigma);
  for (int n = 0;; ++n) {
    if (!(open > floor) || n == max_proximal_steps) return n;
    for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? -sigma[r] : 0.0;
    G_->solve(rhs_.data(), 1, change_.data());
    for (std::size_t r = 0; r < loops_; ++r) lambda[r] += change_[r];
    const double now = residual(g, lambda, sigma);
    const bool helps = now < 0.7 * open;
    open = now;
    if (!helps) return n + 1;
  }
}

void LoopClosure::soften(double* x) {
  factor();
  for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? x[r] : 0.0;
  G_->solve(rhs_.data(), 1, change_.data());
  for (std::size_t r = 0; r < loops_; ++r) x[r] -= damping_[r] * change_[r];
}

void LoopClosure::purify(double* lambda) {
  factor();
  std::copy_n(lambda, rhs_.size(), change_.data());
  for (int n = 0; n < 2; ++n) {
    for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? damping_[r] * change_[r] : 0.0;
    G_->solve(rhs_.data(), 1, change_.data());
  }
  for (std::size_t r = 0; r < loops_; ++r) lambda[r] -= change_[r];
}

double LoopClosure::largest(const double* x) const {
  double largest = 0;
  for (std::size_t r = 0; r < loops_; ++r) largest = std::max(largest, std::abs(x[r]));
  return largest;
}

void LoopClosure::factor() {
  if (!factored_) G_->set_damping(damping_.data());
  factored_ = true;
}

// σ = G λ + g; returns the largest of it among loops.
double LoopClosure::residual(const double* g, const double* lambda, double* sigma) {
  if (largest(lambda) > 0)
    G_->apply(lambda, 1, sigma);
  else
    std::fill_n(sigma, rhs_.size(), 0.0);
  for (std::size_t r = 0; r < rhs_.size(); ++r) sigma[r] += g[r];
  return largest(sigma);
}

}  // namespace delassus
