#include "simulator/loop_closure.h"

#include <algorithm>
#include <cmath>

#include "dense/cholesky.h"
#include "dense/vectors.h"

namespace delassus {

namespace {

constexpr double softness = 1e-8;  // ε over the row's diagonal
constexpr int max_proximal_steps = 8;

}  // namespace

void LoopClosure::begin(Operator<double>& G, const RowMatrix& matrix, int loops) {
  G_ = &G;
  matrix_ = &matrix;
  loops_ = std::size_t(loops);
  for (auto* x : {&damping_, &rhs_, &change_}) x->resize(std::size_t(G.rows()));
  if (formed())
    std::copy_n(matrix.diagonal().data(), loops_, damping_.data());
  else
    G.diagonal(damping_.data());
  const std::size_t known = formed() ? loops_ : damping_.size();
  double largest = 0;
  for (std::size_t r = 0; r < known; ++r)
    if (std::isfinite(damping_[r])) largest = std::max(largest, damping_[r]);
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
    solve();
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
  solve();
  for (std::size_t r = 0; r < loops_; ++r) x[r] -= damping_[r] * change_[r];
}

void LoopClosure::purify(double* lambda) {
  factor();
  std::copy_n(lambda, rhs_.size(), change_.data());
  for (int n = 0; n < 2; ++n) {
    for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? damping_[r] * change_[r] : 0.0;
    solve();
  }
  for (std::size_t r = 0; r < loops_; ++r) lambda[r] -= change_[r];
}

double LoopClosure::largest(const double* x) const {
  double largest = 0;
  for (std::size_t r = 0; r < loops_; ++r) largest = std::max(largest, std::abs(x[r]));
  return largest;
}

void LoopClosure::factor() {
  if (factored_) return;
  factored_ = true;
  if (!formed()) {
    G_->set_damping(damping_.data());
    return;
  }
  const std::size_t stride = std::size_t(matrix_->columns());
  factor_.resize(loops_ * loops_);
  floors_.resize(loops_);
  for (std::size_t r = 0; r < loops_; ++r) {
    double* row = factor_.data() + r * loops_;
    std::copy_n(matrix_->numbers() + r * stride, loops_, row);
    row[r] += damping_[r];
    floors_[r] = dense::pivot_floor(damping_[r], row[r]);
  }
  dense::factor_cholesky<double>(int(loops_), factor_.data(), int(loops_), floors_.data());
}

// change ← (G_ll + ε)⁻¹ rhs of loops
void LoopClosure::solve() {
  if (!formed()) {
    G_->solve(rhs_.data(), 1, change_.data());
    return;
  }
  std::copy_n(rhs_.data(), loops_, change_.data());
  dense::solve_cholesky<double>(int(loops_), factor_.data(), int(loops_), change_.data());
}

void LoopClosure::solve(int columns, double* X) {
  factor();
  dense::solve_cholesky<double>(int(loops_), factor_.data(), int(loops_), columns, X, columns);
}

// σ = G λ + g; returns the largest of it among loops.
double LoopClosure::residual(const double* g, const double* lambda, double* sigma) {
  const int rows = int(rhs_.size());
  if (!(largest(lambda) > 0))
    std::fill_n(sigma, rows, 0.0);
  else if (formed())
    dense::multiply_vector(rows, int(loops_), matrix_->numbers(), matrix_->columns(), lambda, sigma);
  else
    G_->apply(lambda, 1, sigma);
  for (int r = 0; r < rows; ++r) sigma[r] += g[r];
  return largest(sigma);
}

}  // namespace delassus
