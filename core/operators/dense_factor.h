// The last fallback for (G + ε)⁻¹, with few rows: G as a matrix, column by column, O(m (n + m)), and its factors:
// Cholesky, O(m³ / 3), or LU if blocks of damping are not symmetric, O(2 m³ / 3). Unlike the matrix inversion lemma, a
// dense factor has no terms that cancel. In a pack of states, each state has its own matrix.
#pragma once

#include <vector>

#include "dense/cholesky.h"
#include "dense/lu.h"

namespace delassus {

template <class T, bool symmetric = true>
class DenseFactor {
  using Real = real_of<T>;
  static constexpr int states = lanes_of<T>;

 public:
  static constexpr int max_rows = 1024;

  explicit DenseFactor(int rows)
      : rows_(rows), A_(std::size_t(rows) * rows * states), column_(rows), product_(rows), floors_(rows), x_(rows) {
    if (!symmetric) pivots_.resize(std::size_t(rows) * states);
  }
  std::size_t bytes() const {
    return (A_.size() + floors_.size() + x_.size()) * sizeof(Real) + (column_.size() + product_.size()) * sizeof(T) +
           pivots_.size() * sizeof(int);
  }

  // apply(v, w): w ← (G + ε) v. `floor` is what rounding may take from a pivot: it is added to the diagonal. With rows
  // exchanged rounding takes no pivot its meaning, and floor only stands for one that is zero.
  template <class Apply>
  void factorize(Apply&& apply, const T& floor) {
    for (int k = 0; k < rows_; ++k) {
      std::fill(column_.begin(), column_.end(), T{});
      column_[k] = constant<T>(1);
      apply(static_cast<const T*>(column_.data()), product_.data());
      if (symmetric) product_[k] += floor;
      for (int s = 0; s < states; ++s)
        for (int i = symmetric ? k : 0; i < rows_; ++i)
          matrix(s)[symmetric ? std::size_t(k) * rows_ + i : std::size_t(i) * rows_ + k] = lane(product_[i], s);
    }
    for (int s = 0; s < states; ++s) {
      Real* A = matrix(s);
      if constexpr (symmetric) {
        for (int k = 0; k < rows_; ++k) floors_[k] = dense::pivot_floor(lane(floor, s), A[std::size_t(k) * rows_ + k]);
        dense::factor_cholesky(rows_, A, rows_, static_cast<const Real*>(floors_.data()));
      } else {
        dense::factor_lu(rows_, A, rows_, pivots(s), lane(floor, s));
      }
    }
  }

  // x ← x + A⁻¹ r
  void correct(const T* r, T* x) {
    for (int s = 0; s < states; ++s) {
      for (int i = 0; i < rows_; ++i) x_[i] = lane(r[i], s);
      if constexpr (symmetric)
        dense::solve_cholesky(rows_, static_cast<const Real*>(matrix(s)), rows_, x_.data());
      else
        dense::solve_lu(rows_, static_cast<const Real*>(matrix(s)), rows_, pivots(s), x_.data());
      for (int i = 0; i < rows_; ++i) lane(x[i], s) += x_[i];
    }
  }

 private:
  Real* matrix(int state) { return A_.data() + std::size_t(state) * rows_ * rows_; }
  int* pivots(int state) { return pivots_.data() + std::size_t(state) * rows_; }

  int rows_;
  std::vector<Real> A_;  // a state: its matrix, then its factor
  std::vector<T> column_, product_;
  std::vector<Real> floors_, x_;
  std::vector<int> pivots_;  // a state and row: the row it was exchanged with
};

}  // namespace delassus
