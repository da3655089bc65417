// Finds the points of a pair of shapes in the contact list of the previous step, in O(1) per pair. The points of a pair
// are stored next to each other, and the lists of two steps have the same order except for pairs that appeared or
// disappeared. So the search begins where the previous pair ended. If that fails, a hash table of all pairs is used,
// which is built on first use.
#pragma once

#include <vector>

#include "simulator/contact.h"

namespace delassus {

// [begin, end); begin == end: nowhere.
struct PairRange {
  std::size_t begin = 0, end = 0;
};

class ContactPairs {
 public:
  // Whose points are looked for from now on.
  void look_at(const std::vector<Contact>& list);
  // Where the points of a pair are. `from`: where they are likely to start, or are in the midst of.
  PairRange find(const Touch& pair, std::size_t from);

  std::size_t compared() const { return compared_; }  // pairs with each other, since `look_at`

 private:
  bool same(std::size_t contact, const Touch& pair);
  void make_table();
  std::size_t slot(const Touch& pair) const;

  const std::vector<Contact>* list_ = nullptr;
  std::vector<int> table_;  // open addressing: where the points of a pair start, −1: an empty slot
  bool has_table_ = false;
  std::size_t compared_ = 0;
};

}  // namespace delassus
