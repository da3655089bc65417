#include "operators/fill_counts.h"

#include <bit>

namespace delassus {

void FillCounts::clear(std::size_t n) {
  words_ = (n + 63) / 64;
  bits_.assign(n * words_, 0);
  counts_.assign(n, 0);
  marks_.assign(n, 0);
  changed_.clear();
  stamp_ = 0;
}

void FillCounts::change(int i, int by) {
  counts_[std::size_t(i)] += by;
  if (int& mark = marks_[std::size_t(i)]; mark != stamp_) mark = stamp_, changed_.push_back(i);
}

void FillCounts::couple(int x, int y) {
  if (x == y || meet(x, y)) return;
  std::uint64_t *a = row(x), *b = row(y);
  int only_x = 0, only_y = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    only_x += std::popcount(a[w] & ~b[w]);
    only_y += std::popcount(b[w] & ~a[w]);
    for (std::uint64_t shared = a[w] & b[w]; shared; shared &= shared - 1)
      change(int(64 * w) + std::countr_zero(shared), -1);
  }
  change(x, only_x);
  change(y, only_y);
  a[y / 64] |= bit(y);
  b[x / 64] |= bit(x);
}

void FillCounts::eliminate(int i, std::span<const int> neighbours, std::span<const int> meeting) {
  ++stamp_;
  changed_.clear();
  const std::uint64_t* own = row(i);
  for (const int j : neighbours) {
    // pairs of i and a neighbour of j that i does not have
    std::uint64_t* others = row(j);
    others[i / 64] &= ~bit(i);
    int pairs = 0;
    for (std::size_t w = 0; w < words_; ++w) pairs += std::popcount(others[w] & ~own[w]);
    change(j, -pairs);
  }
  for (std::size_t a = 0; a < meeting.size(); ++a)
    for (std::size_t b = a + 1; b < meeting.size(); ++b) couple(meeting[a], meeting[b]);
}

}  // namespace delassus
