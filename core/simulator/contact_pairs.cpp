#include "simulator/contact_pairs.h"

#include <bit>
#include <cstdint>

namespace delassus {

void ContactPairs::look_at(const std::vector<Contact>& list) {
  list_ = &list;
  has_table_ = false;
  compared_ = 0;
}

PairRange ContactPairs::find(const Touch& pair, std::size_t from) {
  const std::size_t n = list_->size();
  if (n == 0) return {};
  std::size_t begin = from < n ? from : 0;
  if (!same(begin, pair)) {
    if (!has_table_) make_table();
    std::size_t k = slot(pair);
    while (table_[k] >= 0 && !same(std::size_t(table_[k]), pair)) k = (k + 1) % table_.size();
    if (table_[k] < 0) return {};
    begin = std::size_t(table_[k]);
  }
  std::size_t end = begin + 1;
  while (begin > 0 && same(begin - 1, pair)) --begin;
  while (end < n && same(end, pair)) ++end;
  return {begin, end};
}

bool ContactPairs::same(std::size_t contact, const Touch& pair) {
  ++compared_;
  return same_pair((*list_)[contact].touch, pair);
}

// If a pair occurs in several places of the list, the first one.
void ContactPairs::make_table() {
  has_table_ = true;
  table_.assign(std::bit_ceil(2 * list_->size() + 1), -1);
  for (std::size_t c = 0; c < list_->size(); ++c) {
    const Touch& pair = (*list_)[c].touch;
    if (c > 0 && same(c - 1, pair)) continue;
    std::size_t k = slot(pair);
    while (table_[k] >= 0 && !same(std::size_t(table_[k]), pair)) k = (k + 1) % table_.size();
    if (table_[k] < 0) table_[k] = int(c);
  }
}

std::size_t ContactPairs::slot(const Touch& pair) const {
  const std::uint64_t both = std::uint64_t(std::uint32_t(pair.geom[0])) << 32 | std::uint32_t(pair.geom[1]);
  return std::size_t((both * 0x9e3779b97f4a7c15) >> 32) % table_.size();
}

}  // namespace delassus
