// Where the numbers of square blocks are, one block for each constraint: one after the other in the order of
// constraints, each row-major.
#pragma once

#include <cstddef>
#include <vector>

namespace delassus {

// Entry (r, c) of two rows of one constraint is at of_row[r] + c − first[r]; its rows are first[r] and count[r] − 1
// more.
struct BlockIndex {
  std::vector<int> of_row, first, count;
  std::size_t size = 0;  // of all blocks

  void clear(int rows) {
    of_row.assign(std::size_t(rows), -1);
    first.assign(std::size_t(rows), 0);
    count.assign(std::size_t(rows), 0);
    size = 0;
  }
  bool knows(int row) const { return of_row[std::size_t(row)] >= 0; }
  void add(int row, int rows) {
    for (int r = 0; r < rows; ++r) {
      of_row[std::size_t(row + r)] = int(size) + r * rows;
      first[std::size_t(row + r)] = row;
      count[std::size_t(row + r)] = rows;
    }
    size += std::size_t(rows) * std::size_t(rows);
  }
  int at(int r, int c) const { return of_row[std::size_t(r)] + c - first[std::size_t(r)]; }
};

}  // namespace delassus
