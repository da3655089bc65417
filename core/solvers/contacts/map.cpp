#include "solvers/contacts/map.h"

#include <utility>

#include "dense/cholesky.h"

namespace delassus {

OperatorMap::OperatorMap(Operator<double>& G, const ForceSets& sets) : G_(G) {
  for (const auto& i : sets.intervals) loops_ = loops_ || (std::isinf(i.lower) && std::isinf(i.upper));
}
void OperatorMap::solve(const double* y, double* x) { G_.solve(y, 1, x, {.refinements = refine_, .goal = 1e-15}); }
bool OperatorMap::sharpen() { return std::exchange(refine_, loops_) != loops_; }

void SingleOperatorMap::apply(const double* x, double* y) {
  std::copy_n(x, rows(), in_.data());
  G_.apply(in_.data(), 1, out_.data());
  std::copy_n(out_.data(), rows(), y);
}
void SingleOperatorMap::diagonal(double* d) {
  G_.diagonal(out_.data());
  std::copy_n(out_.data(), rows(), d);
}
void SingleOperatorMap::set_damping(const double* damping) {
  std::copy_n(damping, rows(), in_.data());
  G_.set_damping(in_.data());
}
void SingleOperatorMap::solve(const double* y, double* x) {
  std::copy_n(y, rows(), in_.data());
  G_.solve(in_.data(), 1, out_.data(), {.refinements = 10, .goal = 1e-6f});
  std::copy_n(out_.data(), rows(), x);
}

void DenseMap::apply(const double* x, double* y) {
  int i = 0;
  for (; i + 4 <= rows_; i += 4) dense::dots<4>(rows_, G_ + std::size_t(i) * rows_, rows_, x, y + i);
  for (; i < rows_; ++i) y[i] = dense::dot(rows_, G_ + std::size_t(i) * rows_, x);
}
void DenseMap::diagonal(double* d) {
  for (int i = 0; i < rows_; ++i) d[i] = G_[std::size_t(i) * (rows_ + 1)];
}
void DenseMap::set_damping(const double* damping) {
  factor_.resize(std::size_t(rows_) * rows_);
  floors_.resize(std::size_t(rows_));
  std::copy_n(G_, factor_.size(), factor_.data());
  for (int i = 0; i < rows_; ++i) {
    double& diagonal = factor_[std::size_t(i) * (rows_ + 1)];
    diagonal += damping[i];
    floors_[std::size_t(i)] = dense::pivot_floor(damping[i], diagonal);
  }
  dense::factor_cholesky<double>(rows_, factor_.data(), rows_, floors_.data());
}
void DenseMap::solve(const double* y, double* x) {
  std::copy_n(y, rows_, x);
  dense::solve_cholesky<double>(rows_, factor_.data(), rows_, x);
}

}  // namespace delassus
