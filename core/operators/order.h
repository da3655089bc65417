// The order in which links are eliminated: among the links whose children are eliminated, the one with the fewest
// neighbours (minimum degree), the last of these in case of ties; idle links come first.
//
// Where the resulting work is large, as in deep piles, minimum fill (fill_counts.h) is tried too, and taken if it needs
// less arithmetic: by 12 to 27 % for settled piles of 300 to 3,000 boxes, by nothing for one of 600 that still fell.
// Variants of nested dissection by the places of boxes came out between 11 % less and 43 % more than minimum degree,
// always above least fill: a box touches four or five others, and separators are wide.
//
// Neighbours are stored as lists that grow by fill, so that an elimination costs time proportional to its pairs of
// neighbours. All memory is flat and reused for the next order.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "operators/fill_counts.h"
#include "operators/plan.h"

namespace delassus {

// Lists of links one after another in one array.
struct LinkLists {
  std::vector<int> links, ends;  // of all lists; where each ends

  std::size_t size() const { return ends.size(); }
  std::span<const int> operator[](std::size_t k) const {
    const std::size_t begin = k == 0 ? 0 : std::size_t(ends[k - 1]);
    return {links.data() + begin, std::size_t(ends[k]) - begin};
  }
  void clear() { links.clear(), ends.clear(); }
  void add(std::span<const int> list) {
    links.insert(links.end(), list.begin(), list.end());
    close();
  }
  // Ends the list that was written to `links`.
  void close() { ends.push_back(int(links.size())); }
};

// Numbers below a bound, of which the highest are asked for first: a bit each, and a bit for every 64 of these.
class RankSet {
 public:
  void clear(std::size_t bound);
  void insert(int r) { words_[at(r)] |= bit(r), full_[at(r) / 64] |= bit(int(at(r))); }
  void erase(int r) {
    if ((words_[at(r)] &= ~bit(r)) == 0) full_[at(r) / 64] &= ~bit(int(at(r)));
  }
  // The highest below r, −1 if there is none.
  int below(int r) const;

 private:
  static std::size_t at(int r) { return std::size_t(r) / 64; }
  static std::uint64_t bit(int r) { return std::uint64_t(1) << (r % 64); }

  std::vector<std::uint64_t> words_, full_;
};

class EliminationOrder {
 public:
  // Links of every group are coupled with each other. Strips have up to `lanes` links.
  void find(const std::vector<PlannedLink>& links, const LinkLists& groups, int lanes);

  std::vector<int> links;         // in order of elimination
  std::vector<int> position;      // a link: its place in `links`
  LinkLists neighbours;           // by place in `links`: those it has when its turn comes, ascending
  LinkLists strips, free_strips;  // in order; see EliminationPlan
  std::vector<char> active;       // a link: it carries a constraint, or something that does hangs on it

  // Whether downdates take so long that more symbolic work pays.
  bool large() const { return products_ >= large_products; }
  // Whether the strip after t follows at once and is made of the parents of t, lane for lane.
  bool joins(std::size_t t) const;

 private:
  // Neighbours of a link that are still there, and some that are gone.
  struct List {
    int begin, size, capacity;  // in pool_
    int degree;                 // how many are still there
  };

  void find_active();
  void couple(const LinkLists& groups);
  bool leave_out_short_strips();
  void eliminate_all(int lanes);
  void order_by(bool fill, int lanes);
  static constexpr double large_products = 1e4;  // of blocks: a millisecond and more

  void start_fill();
  bool take_strip(int lanes);
  bool take_free_strip(int lanes);
  void eliminate(int i);
  void join(int j);
  bool join_hub();
  void reserve(List& list, int size);
  void refresh(int i);
  int rank(int i) const { return active[std::size_t(i)] ? i : i + int(planned_->size()); }
  int link(int rank) const { return rank < int(planned_->size()) ? rank : rank - int(planned_->size()); }

  const std::vector<PlannedLink>* planned_ = nullptr;
  std::vector<char> kept_out_;          // a link: of strips
  std::vector<List> given_, lists_;     // a link: as groups couple it; now
  std::vector<int> given_pool_, pool_;  // members of these
  std::vector<int> meeting_;            // neighbours of the link that goes, and its parent
  std::vector<int> marks_;              // a link: the last stamp_ that it was seen by
  int stamp_ = 0;
  std::vector<int> children_;              // a link: how many are still there
  std::vector<std::uint64_t> tournament_;  // keys of links that may go, pairwise the lower one up to the lowest of all
  std::size_t leaves_ = 0;
  bool by_fill_ = false;  // the least fill first, not the fewest neighbours
  double products_ = 0;   // of blocks that downdates take
  FillCounts fill_;
  RankSet plain_, loose_;   // links that may go into strips and free strips now
  std::vector<int> strip_;  // the last one taken
};

}  // namespace delassus
