// Makes plans of eliminations, one after another in the same memory.
#pragma once

#include <vector>

#include "operators/order.h"
#include "operators/plan.h"

namespace delassus {

class EliminationPlanner {
 public:
  // The plan of an elimination in which links of every group are coupled with each other. Strips have up to `lanes`
  // steps.
  void make(const std::vector<PlannedLink>& links, const LinkLists& groups, int lanes, EliminationPlan& plan);

  // Of the plan just made: which coupling two links have, by its place in `blocks`; −1 if they have none.
  int coupling(int i, int j) const;
  // Whether a link is eliminated before another.
  bool before(int i, int j) const { return order_.position[std::size_t(i)] < order_.position[std::size_t(j)]; }

 private:
  void number_couplings();
  void add_step(std::size_t s);
  void add_storage(std::size_t s);
  void find_pair_blocks();
  void keep_in_slots(const LinkLists& groups);
  void find_holders();
  void find_sources();
  void add_strip(std::span<const int> members, int lanes);
  void add_free_strip(std::span<const int> members);

  EliminationOrder order_;
  const std::vector<PlannedLink>* links_ = nullptr;
  EliminationPlan* plan_ = nullptr;
  std::vector<int> strip_of_;       // a link: which strip, or free strip, it is in; −1: none
  std::vector<int> first_block_;    // a link: where its couplings start
  std::vector<char> is_neighbour_;  // a link: of some link whose turn is before
  std::vector<char> written_;       // a coupling: somebody wrote to it
  std::vector<int> kept_;           // a link: where what idle links hand down to it is kept, −1: nowhere
  // Steps by their neighbours: for each link, the steps that have it as a neighbour and as which of theirs.
  struct Use {
    int step, place;
  };
  std::vector<Use> uses_;
  std::vector<int> uses_end_;  // a link
  std::vector<int> block_of_;  // a link: its coupling with the link that is looked at
};

}  // namespace delassus
