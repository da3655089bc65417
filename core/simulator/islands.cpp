#include "simulator/islands.h"

#include <algorithm>
#include <iterator>

namespace delassus {

namespace {

constexpr std::size_t spare_trees = 1024;  // of islands that are kept, besides two for each tree

// Representative of a tree in the union-find structure: the lowest tree that it is connected to, with path compression.
int lowest(std::vector<int>& ties, int tree) {
  while (ties[std::size_t(tree)] != tree) {
    int& next = ties[std::size_t(tree)];
    tree = next = ties[std::size_t(next)];
  }
  return tree;
}

void tie(std::vector<int>& ties, int a, int b) {
  a = lowest(ties, a), b = lowest(ties, b);
  ties[std::size_t(std::max(a, b))] = std::min(a, b);
}

std::uint64_t hash_of(const std::vector<int>& trees) {
  std::uint64_t hash = 0;
  for (const int tree : trees) hash = (hash ^ std::uint64_t(tree)) * 0x9e3779b97f4a7c15;
  return hash;
}

}  // namespace

Islands::Islands(const WorldDescription& world, KeptSystems kept)
    : world_(world),
      kept_systems_(kept),
      contents_(world),
      last_(world.model.roots.size(), kept_.end()),
      tied_(world.model.roots.size()),
      link_shift_(world.model.roots.size(), 0) {
  for (std::size_t t = 0; t < tied_.size(); ++t) tied_[t] = int(t);
  for (const auto* list : {&world.loops, &world.friction})
    for (const auto& d : *list) {
      int first = -1;
      visit_trees(world.model, d, [&](int tree) { first < 0 ? void(first = tree) : tie(tied_, first, tree); });
    }
  // a rope ties trees also where it is slack
  const auto tree_of_velocity = [&](int v) {
    return world.model.links[std::size_t(world.model.dof_link[std::size_t(v)])].tree;
  };
  for (const auto& span : world.spans)
    for (const int v : span.velocities) tie(tied_, tree_of_velocity(span.velocities[0]), tree_of_velocity(v));
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
    island.clear_contacts();
    group_[std::size_t(first)] = int(used_.size());
    for (std::size_t t = 0; t < groups_[k].size(); ++t) link_shift_[std::size_t(groups_[k][t])] = island.link_shift(t);
    used_.push_back(&island);
  }
  const auto link = [&](const Touch& t, int which) {
    const int whole = world_.model.bodies[std::size_t(t.body[which])].link;
    return whole < 0 ? whole : whole + link_shift_[std::size_t(world_.model.links[std::size_t(whole)].tree)];
  };
  for (auto& c : contacts) {
    const int first = lowest(tied_now_, tree(c.touch, 0));
    if (!sleeps(first))
      used_[std::size_t(group_[std::size_t(first)])]->add_contact(c, {link(c.touch, 0), link(c.touch, 1)});
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

// The one that its lowest tree was in last, or another that is kept, or a new one.
Island& Islands::island_of(const std::vector<int>& trees) {
  auto& last = last_[std::size_t(trees.front())];
  if (last == kept_.end() || last->trees() != trees) {
    const std::uint64_t hash = hash_of(trees);
    last = look_up(trees, hash);
    if (last == kept_.end()) {
      kept_trees_ += trees.size();
      forget_oldest();
      kept_.emplace_front(world_, contents_, trees, kept_systems_);
      last = kept_.begin();
      last->numbers = numbers_;
      by_hash_.emplace(hash, last);
    }
  }
  kept_.splice(kept_.begin(), kept_, last);
  if (last->numbers != numbers_) last->read_numbers(world_), last->numbers = numbers_;
  return *last;
}

std::list<Island>::iterator Islands::look_up(const std::vector<int>& trees, std::uint64_t hash) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (it->second->trees() == trees) return it->second;
  return kept_.end();
}

// Until no more than a bound are kept; those of this step stay.
void Islands::forget_oldest() {
  while (!kept_.empty() && kept_trees_ > 2 * tied_.size() + spare_trees && kept_.back().last_use != uses_) {
    const auto oldest = std::prev(kept_.end());
    auto& last = last_[std::size_t(oldest->trees().front())];
    if (last == oldest) last = kept_.end();
    const auto [begin, end] = by_hash_.equal_range(hash_of(oldest->trees()));
    for (auto it = begin; it != end; ++it)
      if (it->second == oldest) {
        by_hash_.erase(it);
        break;
      }
    kept_trees_ -= oldest->trees().size();
    kept_.erase(oldest);
  }
}

int Islands::tree(const Touch& t, int which) const {
  const int link = world_.model.bodies[std::size_t(t.body[which])].link;
  return link < 0 ? -1 : world_.model.links[std::size_t(link)].tree;
}

int Islands::systems() const {
  int sum = 0;
  for (const auto& island : kept_) sum += island.systems();
  return sum;
}

}  // namespace delassus
