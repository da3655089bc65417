// Islands of a step: trees that loops, dry friction and contacts tie together. Each set of trees that was an island is
// kept, with its memory and symbolic work, until others were used more recently.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "simulator/island.h"

namespace delassus {

class Islands {
 public:
  explicit Islands(const WorldDescription& world);

  // Which trees these contacts tie together.
  void group(const std::vector<Contact>& contacts);
  // Wakes trees that are tied to one that is awake; whether there were any. asleep: per tree.
  bool wake(std::vector<char>& asleep) const;
  // The islands of these contacts, after `group`, each with its own; in the order of their lowest trees, without those
  // that sleep. asleep: per tree, all of an island or none; empty: none sleeps.
  const std::vector<Island*>& find(std::vector<Contact>& contacts, const std::vector<char>& asleep);

  int systems() const;  // of all that are kept
  std::size_t trees() const { return tied_.size(); }

 private:
  int tree(const Touch& t, int which) const;
  Island& island_of(const std::vector<int>& trees);

  const WorldDescription& world_;
  std::map<std::vector<int>, std::unique_ptr<Island>> kept_;
  std::vector<Island*> used_;             // of this step
  std::vector<std::vector<int>> groups_;  // trees that are tied; there may be more lists than groups
  std::size_t group_count_ = 0, uses_ = 0;
  // per tree: a lower or the same one that it is tied to, by loops and friction; by contacts too; its group, then its
  // island, if it is the lowest of it
  std::vector<int> tied_, tied_now_, group_;
};

}  // namespace delassus
