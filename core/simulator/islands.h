// Finds the islands of a step: trees that are connected by loops, dry friction or contacts. Islands are cached by their
// set of trees, with their memory and symbolic work; the least recently used are dropped. Cost: O(trees + contacts),
// and for each new island O(its trees).
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "simulator/island.h"

namespace delassus {

class Islands {
 public:
  Islands(const WorldDescription& world, KeptSystems kept);

  // Which trees these contacts tie together.
  void group(const std::vector<Contact>& contacts);
  // Wakes trees that are tied to one that is awake; whether there were any. asleep: per tree.
  bool wake(std::vector<char>& asleep) const;
  // The islands of these contacts, after `group`, each with its own; in the order of their lowest trees, without those
  // that sleep. asleep: per tree, all of an island or none; empty: none sleeps.
  const std::vector<Island*>& find(std::vector<Contact>& contacts, const std::vector<char>& asleep);

  // Numbers of the world were changed: islands take them when they come up (part.h).
  void read_numbers() { ++numbers_; }

  int systems() const;  // of all that are kept
  std::size_t trees() const { return tied_.size(); }

 private:
  int tree(const Touch& t, int which) const;
  Island& island_of(const std::vector<int>& trees);
  std::list<Island>::iterator look_up(const std::vector<int>& trees, std::uint64_t hash);
  void forget_oldest();

  const WorldDescription& world_;
  KeptSystems kept_systems_;  // by each
  TreeContents contents_;
  std::list<Island> kept_;  // the last used first
  std::unordered_multimap<std::uint64_t, std::list<Island>::iterator> by_hash_;
  std::vector<std::list<Island>::iterator> last_;  // per tree: the last island that it was the lowest of
  std::size_t kept_trees_ = 0;                     // of all that are kept
  std::vector<Island*> used_;                      // of this step
  std::vector<std::vector<int>> groups_;           // trees that are tied; there may be more lists than groups
  std::size_t group_count_ = 0, uses_ = 0;
  std::size_t numbers_ = 0;  // how often the world's numbers were changed
  // per tree: a lower or the same one that it is tied to, by loops and friction; by contacts too; its group, then its
  // island, if it is the lowest of it; by how much its links' numbers in its island differ from the whole's
  std::vector<int> tied_, tied_now_, group_, link_shift_;
};

}  // namespace delassus
