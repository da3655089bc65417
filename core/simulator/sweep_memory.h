// Memory for sweeps with many directions at once, which only grows; and the closing of loops in such sweeps.
#pragma once

#include <algorithm>
#include <vector>

namespace delassus {

inline double* sized(std::vector<double>& x, std::size_t rows, int columns) {
  x.resize(std::max(x.size(), rows * std::size_t(columns)));
  return x.data();
}
inline void copy(const double* from, std::size_t count, std::vector<double>& to) {
  std::copy_n(from, count, to.data());
}

constexpr int max_closing_steps = 12;   // of loops at the end of a step, each a thousandth of the one before
constexpr double closed_share = 1e-12;  // of what they were open, that is left

}  // namespace delassus
