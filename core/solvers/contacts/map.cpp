#include "solvers/contacts/map.h"

#include <algorithm>
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

void DenseMap::apply(const double* x, double* y) { dense::multiply_vector(rows_, rows_, G_, rows_, x, y); }
void DenseMap::diagonal(double* d) {
  for (int i = 0; i < rows_; ++i) d[i] = diagonal_ ? diagonal_[i] : G_[std::size_t(i) * (rows_ + 1)];
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
  for (const auto& c : sets.cones) index_.add(c.row, c.rows);
  for (const auto& i : sets.intervals) index_.add(i.row, 1);
  return &index_;
}

// Where B is zero, 1 + G B has a column of the identity: only the rows of other blocks, the active ones, are coupled.
//
//   (1 + G B)_aa = P⁻¹ L U
void DenseMap::set_blocks(const double* B) {
  blocks_ = B;
  active_.clear();
  is_active_.assign(std::size_t(rows_), 0);
  for (int r = 0; r < rows_;) {
    const int count = index_.count[std::size_t(r)], size = count * count;
    const double* block = B + index_.at(r, r);
    const bool active = std::any_of(block, block + size, [](double b) { return b != 0; });
    for (const int past = r + count; r < past; ++r) {
      is_active_[std::size_t(r)] = active;
      if (active) active_.push_back(r);
    }
  }
  const int n = int(active_.size());
  lu_.resize(std::size_t(n) * n);
  pivots_.resize(std::size_t(n));
  // column by column of B, whose numbers are in the rows of its block
  for (int j = 0; j < n;) {
    const int first = active_[std::size_t(j)], count = index_.count[std::size_t(first)];
    const double* b = B + index_.at(first, first);
    for (int i = 0; i < n; ++i) {
      const double* g = G_ + std::size_t(active_[std::size_t(i)]) * rows_ + first;
      double* to = lu_.data() + std::size_t(i) * n + j;
      if (count == 3) {
        for (int c = 0; c < 3; ++c) to[c] = g[0] * b[c] + g[1] * b[3 + c] + g[2] * b[6 + c];
      } else {
        for (int c = 0; c < count; ++c) {
          to[c] = 0;
          for (int k = 0; k < count; ++k) to[c] += g[k] * b[k * count + c];
        }
      }
    }
    j += count;
  }
  for (int i = 0; i < n; ++i) lu_[std::size_t(i) * (n + 1)] += 1;
  dense::factor_lu(n, lu_.data(), n, pivots_.data(), std::numeric_limits<double>::min());
  sign_ = 1;
  for (int k = 0; k < n; ++k) {
    if (lu_[std::size_t(k) * (n + 1)] < 0) sign_ = -sign_;
    if (pivots_[std::size_t(k)] != k) sign_ = -sign_;
  }
}

// y_a = (1 + G B)_aa⁻¹ (G x)_a, and of the others y = G x − G B y_a
void DenseMap::respond(const double* x, double* y) {
  apply(x, y);
  const std::size_t n = active_.size();
  solution_.resize(n);
  for (std::size_t i = 0; i < n; ++i) solution_[i] = y[active_[i]];
  dense::solve_lu(int(n), lu_.data(), int(n), pivots_.data(), solution_.data());
  for (std::size_t i = 0; i < n; ++i) y[active_[i]] = solution_[i];
  if (int(n) == rows_) return;
  forces_.assign(std::size_t(rows_), 0.0);
  for (const int r : active_) {
    const int first = index_.first[std::size_t(r)], count = index_.count[std::size_t(r)];
    for (int c = 0; c < count; ++c) forces_[std::size_t(r)] += blocks_[index_.at(r, first + c)] * y[first + c];
  }
  for (int r = 0; r < rows_; ++r)
    if (!is_active_[std::size_t(r)]) y[r] -= dense::dot(rows_, G_ + std::size_t(r) * rows_, forces_.data());
}

void DenseMap::respond_among(const int* rows, int count, double* A) {
  unit_.assign(std::size_t(rows_), 0.0);
  column_.resize(std::size_t(rows_));
  for (int j = 0; j < count; ++j) {
    unit_[std::size_t(rows[j])] = 1;
    respond(unit_.data(), column_.data());
    unit_[std::size_t(rows[j])] = 0;
    for (int i = 0; i < count; ++i) A[std::size_t(i) * count + j] = column_[std::size_t(rows[i])];
  }
}

}  // namespace delassus
