#include "operators/active_plan.h"

#include <array>

namespace delassus {

template <class Real>
bool ActivePlan<Real>::make(const Layout<Real>& layout, const std::vector<char>& couples) {
  if (couples == couples_) return false;
  couples_ = couples;
  const auto& set = layout.set;
  groups_.clear();
  for (std::size_t g = 0; g < set.groups.size(); ++g)
    if (couples[g]) groups_.add(std::array{set.groups[g].link, set.groups[g].other});
  for (const auto& b : set.blocks) {
    for (int t = 0; t < b.terms; ++t) groups_.links.push_back(set.terms[b.term + t].link);
    groups_.close();
  }
  planner_.make(layout.links, groups_, 1, plan_);

  touching_ = layout.touching;
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    touching_[g].block = -1;
    if (couples[g]) find_coupling<Real>(planner_, plan_, set.groups[g], touching_[g]);
  }
  find_products(planner_, plan_, set, products_);
  return true;
}

template <class Real>
std::size_t ActivePlan<Real>::bytes() const {
  return plan_.bytes() + couples_.size() + (groups_.links.size() + groups_.ends.size()) * sizeof(int) +
         touching_.size() * sizeof(touching_[0]) + products_.size() * sizeof(products_[0]);
}

template class ActivePlan<double>;
template class ActivePlan<float>;

}  // namespace delassus
