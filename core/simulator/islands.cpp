#include "simulator/islands.h"

#include <algorithm>

namespace delassus {

namespace {

constexpr std::size_t spare_islands = 32;  // kept, besides two for each tree

// The lowest tree of those that a tree is tied to.
int lowest(const std::vector<int>& ties, int tree) {
  while (ties[std::size_t(tree)] != tree) tree = ties[std::size_t(tree)];
  return tree;
}

void tie(std::vector<int>& ties, int a, int b) {
  a = lowest(ties, a), b = lowest(ties, b);
  ties[std::size_t(std::max(a, b))] = std::min(a, b);
}

}  // namespace

Islands::Islands(const WorldDescription& world) : world_(world), tied_(world.model.roots.size()) {
  for (std::size_t t = 0; t < tied_.size(); ++t) tied_[t] = int(t);
  for (const auto* list : {&world.loops, &world.friction})
    for (const auto& d : *list) {
      int first = -1;
      visit_trees(world.model, d, [&](int tree) { first < 0 ? void(first = tree) : tie(tied_, first, tree); });
    }
}

const std::vector<Island*>& Islands::find(std::vector<Contact>& contacts, const std::vector<char>& asleep) {
  const auto sleeps = [&](int tree) { return !asleep.empty() && asleep[std::size_t(tree)]; };
  ++uses_;
  used_.clear();
  for (std::size_t k = 0; k < group_count_; ++k) {
    const int first = groups_[k].front();
    if (sleeps(first)) continue;
    Island& island = island_of(groups_[k]);
    island.last_use = uses_;
    island.contacts().clear();
    group_[std::size_t(first)] = int(used_.size());
    used_.push_back(&island);
  }
  for (auto& c : contacts) {
    const int first = lowest(tied_now_, tree(c.touch, 0));
    if (!sleeps(first)) used_[std::size_t(group_[std::size_t(first)])]->contacts().push_back(&c);
  }
  return used_;
}

bool Islands::wake(std::vector<char>& asleep) const {
  bool woke = false;
  for (std::size_t k = 0; k < group_count_; ++k) {
    const auto sleeps = [&](int tree) { return asleep[std::size_t(tree)] != 0; };
    const auto sleeping = std::count_if(groups_[k].begin(), groups_[k].end(), sleeps);
    if (sleeping == 0 || sleeping == std::ptrdiff_t(groups_[k].size())) continue;
    for (const int tree : groups_[k]) asleep[std::size_t(tree)] = 0;
    woke = true;
  }
  return woke;
}

// Trees that touch each other, by their lowest tree.
void Islands::group(const std::vector<Contact>& contacts) {
  tied_now_ = tied_;
  for (const auto& c : contacts)
    if (tree(c.touch, 1) >= 0) tie(tied_now_, tree(c.touch, 0), tree(c.touch, 1));
  group_count_ = 0;
  group_.resize(tied_now_.size());
  for (std::size_t t = 0; t < tied_now_.size(); ++t) {
    const std::size_t first = std::size_t(lowest(tied_now_, int(t)));
    if (first == t) {
      group_[t] = int(group_count_++);
      if (groups_.size() < group_count_) groups_.emplace_back();
      groups_[group_count_ - 1].clear();
    }
    groups_[std::size_t(group_[first])].push_back(int(t));
  }
}

Island& Islands::island_of(const std::vector<int>& trees) {
  auto found = kept_.find(trees);
  if (found == kept_.end()) {
    if (kept_.size() >= 2 * tied_.size() + spare_islands)
      kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
        return a.second->last_use < b.second->last_use;
      }));
    found = kept_.emplace(trees, std::make_unique<Island>(world_, trees)).first;
  }
  return *found->second;
}

int Islands::tree(const Touch& t, int which) const {
  const int link = world_.model.bodies[std::size_t(t.body[which])].link;
  return link < 0 ? -1 : world_.model.links[std::size_t(link)].tree;
}

int Islands::systems() const {
  int sum = 0;
  for (const auto& [trees, island] : kept_) sum += island->systems();
  return sum;
}

}  // namespace delassus
