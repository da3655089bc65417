#include "solvers/contacts/map.h"

#include <limits>
#include <utility>

#include "dense/cholesky.h"
#include "dense/lu.h"

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

const BlockIndex* DenseMap::block_index(const ForceSets& sets) {
  if (rows_ > max_block_rows) return nullptr;
  index_.clear(rows_);
  for (const auto& c : sets.cones) index_.add(c.row, 3);
  for (const auto& i : sets.intervals) index_.add(i.row, 1);
  return &index_;
}

// 1 + G B = P⁻¹ L U
void DenseMap::set_blocks(const double* B) {
  const std::size_t n = std::size_t(rows_);
  lu_.assign(n * n, 0.0);
  pivots_.resize(n);
  for (std::size_t r = 0; r < n; ++r) {
    const double* row = G_ + r * n;
    for (int c = 0; c < rows_; ++c) {
      // column c of B has the rows of its set
      const int first = index_.first[std::size_t(c)];
      double sum = 0;
      for (int k = first; k < rows_ && index_.first[std::size_t(k)] == first; ++k) sum += row[k] * B[index_.at(k, c)];
      lu_[r * n + std::size_t(c)] = sum;
    }
    lu_[r * n + r] += 1;
  }
  dense::factor_lu(rows_, lu_.data(), rows_, pivots_.data(), std::numeric_limits<double>::min());
  sign_ = 1;
  for (std::size_t k = 0; k < n; ++k) {
    if (lu_[k * n + k] < 0) sign_ = -sign_;
    if (pivots_[k] != int(k)) sign_ = -sign_;
  }
}

void DenseMap::respond(const double* x, double* y) {
  apply(x, y);
  dense::solve_lu(rows_, lu_.data(), rows_, pivots_.data(), y);
}

}  // namespace delassus
