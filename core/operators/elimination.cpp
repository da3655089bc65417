#include "operators/elimination.h"

#include <algorithm>
#include <set>

namespace delassus {

namespace {

// The order of elimination and the neighbours each link has when its turn comes.
struct Order {
  std::vector<int> links, position;
  std::vector<std::vector<int>> boundary;
};

// Of the links whose children are gone, one with the fewest neighbours, the last of these; idle links before all others.
Order order_links(const std::vector<PlannedLink>& links, const std::vector<char>& active, const std::vector<std::vector<int>>& groups) {
  const int n = int(links.size());
  std::vector<std::set<int>> near(n);
  for (const auto& group : groups)
    for (const int i : group)
      for (const int j : group)
        if (i != j) near[i].insert(j);

  Order order{{}, std::vector<int>(n), std::vector<std::vector<int>>(n)};
  std::vector<int> children(n, 0);
  for (const auto& link : links)
    if (link.parent >= 0) ++children[link.parent];
  struct Key {
    bool active;
    int neighbours, last_first;
    auto operator<=>(const Key&) const = default;
  };
  std::set<Key> ready;
  auto key = [&](int i) { return Key{active[i] != 0, int(near[i].size()), -i}; };
  for (int i = 0; i < n; ++i)
    if (children[i] == 0) ready.insert(key(i));
  while (!ready.empty()) {
    const int i = -ready.begin()->last_first, p = links[i].parent;
    ready.erase(ready.begin());
    order.position[i] = int(order.links.size());
    order.links.push_back(i);
    order.boundary[i].assign(near[i].begin(), near[i].end());

    // fill: what was next to i is next to each other and to its parent
    std::vector<int> meeting = order.boundary[i];
    if (p >= 0 && !near[i].count(p) && !meeting.empty()) meeting.push_back(p);
    for (const int j : meeting) {
      const bool waits = children[j] == 0;
      if (waits) ready.erase(key(j));
      near[j].erase(i);
      for (const int k : meeting)
        if (k != j) near[j].insert(k);
      if (waits) ready.insert(key(j));
    }
    if (p >= 0 && --children[p] == 0) ready.insert(key(p));
  }
  return order;
}

}  // namespace

EliminationPlan plan_elimination(const std::vector<PlannedLink>& links, const std::vector<std::vector<int>>& groups) {
  const int n = int(links.size());
  std::vector<char> active(n, 0);
  for (int i = n - 1; i >= 0; --i) {
    active[i] = active[i] || links[i].held;
    if (active[i] && links[i].parent >= 0) active[links[i].parent] = 1;
  }
  const Order order = order_links(links, active, groups);

  // couplings of every link with the neighbours it has when its turn comes
  EliminationPlan plan;
  std::vector<int> first_block(n);
  std::vector<char> is_neighbour(n, 0);
  for (const int i : order.links) {
    first_block[i] = int(plan.blocks.size());
    for (const int j : order.boundary[i]) {
      plan.blocks.emplace_back(i, j);
      is_neighbour[j] = 1;
    }
  }
  // the coupling with rows j and columns i, or the other way round if flipped
  auto block = [&](int j, int i, bool& flipped) {
    flipped = order.position[j] < order.position[i];
    const int column = flipped ? j : i, row = flipped ? i : j;
    const auto& list = order.boundary[column];
    return first_block[column] + int(std::lower_bound(list.begin(), list.end(), row) - list.begin());
  };
  for (std::size_t s = 0; s < order.links.size(); ++s) {
    const int i = order.links[s];
    const auto& link = links[i];
    const auto& boundary = order.boundary[i];
    EliminationPlan::Step step{};
    step.link = i;
    step.parent = link.parent;
    step.iv = link.iv;
    step.nv = link.nv;
    step.free = link.free;
    step.plain = link.nv == 1 && boundary.empty();
    step.neighbour = int(plan.neighbours.size());
    step.neighbours = int(boundary.size());
    step.pair = int(plan.pairs.size());
    step.W = plan.W_size;
    if (link.free) step.factor = plan.frees++;
    plan.idle += !active[i];
    plan.W_size += step.neighbours * link.nv;
    plan.widest = std::max(plan.widest, step.neighbours);
    for (int a = 0; a < step.neighbours; ++a) {
      const int j = boundary[a];
      EliminationPlan::Neighbour neighbour{j, first_block[i] + a, -1, false};
      if (link.parent >= 0 && j != link.parent) neighbour.merged = block(j, link.parent, neighbour.flipped);
      plan.neighbours.push_back(neighbour);
      for (int b = a + 1; b < step.neighbours; ++b) {
        EliminationPlan::Pair pair{a, b, 0, false};
        pair.block = block(j, boundary[b], pair.flipped);
        plan.pairs.push_back(pair);
      }
    }
    step.pairs = int(plan.pairs.size()) - step.pair;
    step.hands_over = s + 1 < order.links.size() && order.links[s + 1] == link.parent && active[i] == active[order.links[s + 1]];
    step.holds_inertia = link.stiff || is_neighbour[i];
    step.holds_force = step.shows = link.held || is_neighbour[i];
    step.kept = -1;
    plan.steps.push_back(step);
  }
  for (const auto& step : plan.steps) {
    if (step.parent < 0 || step.hands_over) continue;
    auto& above = plan.steps[order.position[step.parent]];
    above.holds_inertia = above.holds_force = above.shows = true;
    if (active[step.parent] && !active[step.link] && above.kept < 0) above.kept = plan.kept++;
  }
  for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s)
    if (plan.steps[s].holds_force) plan.holders.push_back(plan.steps[s].link);
  return plan;
}

}  // namespace delassus
