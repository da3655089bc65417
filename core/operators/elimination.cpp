#include "operators/elimination.h"

#include <algorithm>
#include <set>

namespace delassus {

int EliminationPlan::find(int row, int column) const {
  for (const auto& step : steps) {
    if (step.link != row) continue;
    for (int j = 0; j < step.neighbours; ++j)
      if (neighbours[step.neighbour + j].link == column) return neighbours[step.neighbour + j].block;
  }
  return -1;
}

EliminationPlan plan_elimination(const std::vector<int>& parent, const std::vector<int>& velocities, const std::vector<std::vector<int>>& groups) {
  const int n = int(parent.size());
  std::vector<std::set<int>> near(n);
  for (const auto& group : groups)
    for (const int i : group)
      for (const int j : group)
        if (i != j) near[i].insert(j);

  // order: of the links whose children are gone, one with the fewest neighbours, the last of these
  std::vector<int> children(n, 0), position(n), order;
  for (const int p : parent)
    if (p >= 0) ++children[p];
  std::set<std::pair<int, int>> ready;
  auto key = [&](int i) { return std::pair<int, int>(int(near[i].size()), -i); };
  for (int i = 0; i < n; ++i)
    if (children[i] == 0) ready.insert(key(i));
  std::vector<std::vector<int>> boundary(n);
  while (!ready.empty()) {
    const int i = -ready.begin()->second;
    ready.erase(ready.begin());
    position[i] = int(order.size());
    order.push_back(i);
    boundary[i].assign(near[i].begin(), near[i].end());

    // fill: what was next to i is next to each other and to its parent
    std::vector<int> meeting = boundary[i];
    const int p = parent[i];
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

  // couplings of every link with the neighbours it has when its turn comes
  EliminationPlan plan;
  std::vector<int> first_block(n);
  for (const int i : order) {
    first_block[i] = int(plan.blocks.size());
    for (const int j : boundary[i]) plan.blocks.emplace_back(i, j);
  }
  auto block = [&](int i, int j, bool& flipped) {
    flipped = position[j] < position[i];
    const int row = flipped ? j : i, column = flipped ? i : j;
    const auto& list = boundary[row];
    return first_block[row] + int(std::lower_bound(list.begin(), list.end(), column) - list.begin());
  };
  for (const int i : order) {
    EliminationPlan::Step step{i, int(plan.neighbours.size()), int(boundary[i].size()), int(plan.pairs.size()), 0};
    for (int a = 0; a < step.neighbours; ++a) {
      const int j = boundary[i][a];
      EliminationPlan::Neighbour neighbour{j, first_block[i] + a, plan.W_size, -1, false};
      if (parent[i] >= 0 && j != parent[i]) neighbour.merged = block(parent[i], j, neighbour.flipped);
      plan.W_size += velocities[i];
      plan.neighbours.push_back(neighbour);
      for (int b = a + 1; b < step.neighbours; ++b) {
        EliminationPlan::Pair pair{a, b, 0, false};
        pair.block = block(j, boundary[i][b], pair.flipped);
        plan.pairs.push_back(pair);
      }
    }
    step.pairs = int(plan.pairs.size()) - step.pair;
    plan.widest = std::max(plan.widest, step.neighbours);
    plan.steps.push_back(step);
  }
  return plan;
}

}  // namespace delassus
