// The last way to (G + ε)⁻¹ where rows are few: G column by column as a matrix, O(m (n + m)), and its Cholesky factor,
// O(m³ / 6). A dense factor has no lemma whose terms cancel.
#pragma once

#include <vector>

#include "operators/explicit/dense.h"

namespace delassus {

template <class T>
class DenseFactor {
 public:
  static constexpr int max_rows = 1024;

  explicit DenseFactor(int rows)
      : rows_(rows),
        room_(row_room<T>(rows)),
        A_(std::size_t(rows) * room_),
        Dinv_(std::size_t(rows)),
        x_(room_),
        least_(std::size_t(rows)) {}
  std::size_t bytes() const { return (A_.size() + Dinv_.size() + x_.size() + least_.size()) * sizeof(T); }

  // apply(v, w): w ← (G + ε) v. `floor` is what rounding may take from a pivot: it is added to the diagonal.
  template <class Apply>
  void factorize(Apply&& apply, const T& floor) {
    for (int k = 0; k < rows_; ++k) {
      std::fill(x_.begin(), x_.end(), T{});
      x_[k] = constant<T>(1);
      T* row = A_.data() + std::size_t(k) * room_;
      apply(static_cast<const T*>(x_.data()), row);
      row[k] += floor;
      least_[k] = floor;
    }
    factor_upper(A_.data(), rows_, room_, least_.data(), Dinv_.data());
  }

  // x ← x + A⁻¹ r
  void correct(const T* r, T* x) {
    std::fill(x_.begin(), x_.end(), T{});
    std::copy(r, r + rows_, x_.begin());
    solve_upper_factor(A_.data(), rows_, room_, Dinv_.data(), x_.data());
    for (int i = 0; i < rows_; ++i) x[i] += x_[i];
  }

 private:
  int rows_;
  std::size_t room_;
  std::vector<T> A_, Dinv_, x_, least_;  // rows `room_` apart; a row each
};

}  // namespace delassus
