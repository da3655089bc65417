#include "simulator/row_matrix.h"

#include <algorithm>

namespace delassus {

namespace {

constexpr int max_rows = 64;  // of a matrix, or of loops

}  // namespace

void RowMatrix::form(Operator<double>& G, const ConstraintSet<double>& set, int loops) {
  rows_ = set.rows;
  columns_ = loops == 0 || loops > max_rows ? 0 : rows_ <= max_rows ? rows_ : loops;
  if (columns_ == 0) return;
  const std::size_t n = std::size_t(columns_), size = std::size_t(rows_) * n;
  numbers_.resize(size);
  units_.assign(size, 0.0);
  for (std::size_t c = 0; c < n; ++c) units_[c * (n + 1)] = 1;
  G.apply(units_.data(), columns_, numbers_.data());
  find_diagonal(set, loops);
  if (whole()) map_.look_at(numbers_.data(), rows_, diagonal_.data());
}

void RowMatrix::find_diagonal(const ConstraintSet<double>& set, int loops) {
  const std::size_t n = std::size_t(columns_);
  diagonal_.resize(n);
  for (std::size_t c = 0; c < n; ++c) diagonal_[c] = numbers_[c * (n + 1)];
  const auto share = [&](int first, int past) {
    const auto begin = diagonal_.begin() + first, end = diagonal_.begin() + past;
    if (first < past) std::fill(begin, end, *std::max_element(begin, end));
  };
  for (const auto& c : set.constraints) {
    if (c.row >= loops || (c.kind != Kind::frame && c.kind != Kind::center)) continue;
    share(c.row, c.row + c.point_rows);           // of the point
    share(c.row + c.point_rows, c.row + c.rows);  // of the rotation
  }
}

}  // namespace delassus
