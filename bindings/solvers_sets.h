// Converts sets of contact forces from Python.
#pragma once

#include <limits>
#include <string>

#include "door.h"
#include "solvers/contacts/sets.h"

namespace delassus {

using SetTable = nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

// cones: (c, 2) first row, friction, or (c, 3) with the number of rows; intervals (i, 3): row, lower, upper, where NaN
// stands for an open end.
inline ForceSets read_sets(int rows, const SetTable& cones, const SetTable& intervals) {
  if ((cones.shape(1) != 2 && cones.shape(1) != 3) || intervals.shape(1) != 3)
    door::raise("ArgumentError",
                "cones: expected columns (row, friction) or (row, friction, rows), and of intervals (row, lower, "
                "upper).");
  constexpr double open = std::numeric_limits<double>::infinity();
  ForceSets sets;
  sets.rows = rows;
  const auto row_of = [&](double at, int count) {
    if (!(at >= 0 && at + count <= rows))
      door::raise("ArgumentError", "cones, intervals: a row is not one of the " + std::to_string(rows) + ".");
    return int(at);
  };
  for (std::size_t c = 0; c < cones.shape(0); ++c) {
    const int size = cones.shape(1) == 3 ? int(cones(c, 2)) : 3;
    if (size != 3 && size != 4 && size != 6)
      door::raise("ArgumentError", "cones: a contact has 3, 4 or 6 rows, got " + std::to_string(size) + ".");
    sets.cones.push_back({row_of(cones(c, 0), size), cones(c, 1), size});
  }
  for (std::size_t i = 0; i < intervals.shape(0); ++i) {
    const double lower = intervals(i, 1), upper = intervals(i, 2);
    sets.intervals.push_back(
        {row_of(intervals(i, 0), 1), std::isnan(lower) ? -open : lower, std::isnan(upper) ? open : upper});
  }
  return sets;
}

}  // namespace delassus
