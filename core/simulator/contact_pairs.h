// Where in a list of contacts the points of a pair of shapes are. The points of a pair stand beside each other, and
// lists of two steps are in the same order but for pairs that came or went: so a pair is looked for where the last one
// ended, and only if it is not there in a table of all pairs, which is made for the first one that asks. O(1) a pair.
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
