// The plan of M + Jᵀ B J without the couplings of contacts whose blocks are zero.
//
// In a deep pile about half of the contacts are open, and a third of the pairs of links touch at open contacts alone.
// Those cause neither couplings nor fill. A plan that includes them stores zeros and has an order that does not suit
// the rest: six to seven times the products in piles of 600 and 1,000 boxes. The plan is made again whenever other
// groups couple, and from these groups only, so that results do not depend on earlier solves.
#pragma once

#include <vector>

#include "operators/layout.h"

namespace delassus {

template <class Real>
class ActivePlan {
 public:
  // Plans for the groups of points that couple their links, if it did not for the same before. Whether it made a plan.
  bool make(const Layout<Real>& layout, const std::vector<char>& couples);

  const EliminationPlan& plan() const { return plan_; }
  typename Layout<Real>::Places places() const { return {touching_, products_}; }
  std::size_t bytes() const;

 private:
  EliminationPlanner planner_;
  LinkLists groups_;           // links that constraints couple
  std::vector<char> couples_;  // a group of points: of the plan
  EliminationPlan plan_;
  std::vector<typename Layout<Real>::Touching> touching_;  // a group of points; those that couple nothing have none
  std::vector<typename Layout<Real>::Product> products_;
};

}  // namespace delassus
