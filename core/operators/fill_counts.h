// Fill that the elimination of each link would make: pairs of its neighbours that are no neighbours of each other.
//
// Kept as links go, with the neighbours of each as bits. When link i goes, of each neighbour j the pairs with i are no
// longer counted, and each pair x, y that meets for the first time
//
//   is counted no more for the neighbours that x and y share,
//   counts for x with those of its neighbours that y does not have, and for y likewise
//
// which costs n / 64 words for each coupling of the factor. Memory n² / 8 bytes, used again.
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
