// Fill that the elimination of each link would cause: pairs of its neighbours that are not yet neighbours of each
// other.
//
// The counts are updated at every elimination, with the neighbours of each link as a bit set. When link i is
// eliminated, the pairs with i of each neighbour j are removed, and each pair x, y that becomes neighbours
//
//   leaves the counts of the common neighbours of x and y,
//   adds to the count of x its neighbours that y does not have, and the same for y,
//
// at a cost of n / 64 words for each coupling of the factor. Memory: n² / 8 bytes, reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace delassus {

class FillCounts {
 public:
  // n links without neighbours.
  void clear(std::size_t n);
  void couple(int i, int j);
  // Link i goes: those that meet, its neighbours and its parent if it has any, become neighbours of each other.
  void eliminate(int i, std::span<const int> neighbours, std::span<const int> meeting);

  int of(int i) const { return counts_[std::size_t(i)]; }
  // Links whose count the last elimination changed, each once.
  std::span<const int> changed() const { return changed_; }

 private:
  std::uint64_t* row(int i) { return bits_.data() + std::size_t(i) * words_; }
  static std::uint64_t bit(int j) { return std::uint64_t(1) << (j % 64); }
  bool meet(int i, int j) { return row(i)[j / 64] & bit(j); }
  void change(int i, int by);

  std::size_t words_ = 0;            // of a link
  std::vector<std::uint64_t> bits_;  // a link and another: they are neighbours
  std::vector<int> counts_;          // a link
  std::vector<int> changed_, marks_;
  int stamp_ = 0;
};

}  // namespace delassus
