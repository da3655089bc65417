#include "operators/plan.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

namespace delassus {

namespace {

// The order of elimination and the neighbours each link has when its turn comes.
struct Order {
  std::vector<int> links, position;
  std::vector<std::vector<int>> boundary;
  std::vector<std::vector<int>> strips, free_strips;
};

// Of the links whose children are gone, one with the fewest neighbours, the last of these; idle links before all
// others. Those with one velocity and no neighbours go several at once, unless they are to stay alone: after a strip
// its parents, lane for lane, if these are ready.
Order order_links(const std::vector<PlannedLink>& links, const std::vector<char>& active,
                  const std::vector<std::vector<int>>& groups, int lanes, const std::vector<char>& alone) {
  const int n = int(links.size());
  std::vector<std::set<int>> near(n);
  for (const auto& group : groups)
    for (const int i : group)
      for (const int j : group)
        if (i != j) near[i].insert(j);

  Order order{{}, std::vector<int>(n), std::vector<std::vector<int>>(n), {}, {}};
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
  auto plain = [&](int i) { return near[i].empty() && links[i].nv == 1 && !alone[i]; };
  auto loose = [&](int i) { return near[i].empty() && links[i].free && links[i].bare && !links[i].pushed; };
  auto eliminate = [&](int i) {
    const int p = links[i].parent;
    ready.erase(key(i));
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
  };
  std::vector<int> strip;
  while (!ready.empty()) {
    const Key least = *ready.begin();
    std::vector<int> next;
    for (const int i : strip)
      if (const int p = links[i].parent; p >= 0 && children[p] == 0 && active[p] == char(least.active) && plain(p) &&
                                         ready.count(key(p)) && std::find(next.begin(), next.end(), p) == next.end())
        next.push_back(p);
    if (strip.empty() || next.size() != strip.size())
      for (auto it = ready.begin();
           it != ready.end() && int(next.size()) < lanes && it->active == least.active && it->neighbours == 0; ++it)
        if (const int i = -it->last_first; plain(i) && std::find(next.begin(), next.end(), i) == next.end())
          next.push_back(i);
    if (next.size() < 2 || lanes < 2) {
      strip.clear();
      std::vector<int> free;
      for (auto it = ready.begin(); lanes > 1 && it != ready.end() && int(free.size()) < lanes &&
                                    it->active == least.active && it->neighbours == 0;
           ++it)
        if (const int i = -it->last_first; loose(i)) free.push_back(i);
      if (free.size() > 1) {
        order.free_strips.push_back(free);
        for (const int i : free) eliminate(i);
      } else {
        eliminate(-least.last_first);
      }
      continue;
    }
    strip = next;
    order.strips.push_back(strip);
    for (const int i : strip) eliminate(i);
  }
  return order;
}

// Whether the strip after t follows at once and is made of the parents of t, lane for lane.
bool joins(const std::vector<PlannedLink>& links, const std::vector<char>& active, const Order& order, std::size_t t) {
  if (t + 1 >= order.strips.size() || order.strips[t].size() != order.strips[t + 1].size()) return false;
  const auto &now = order.strips[t], &next = order.strips[t + 1];
  for (std::size_t l = 0; l < now.size(); ++l)
    if (links[now[l]].parent != next[l]) return false;
  return order.position[next[0]] == order.position[now.back()] + 1 && active[now[0]] == active[next[0]];
}

// Gives couplings their memory. One that a link hands to its parent, where there was none, keeps its own.
void keep_in_slots(EliminationPlan& plan, const std::vector<std::vector<int>>& groups) {
  std::map<std::pair<int, int>, int> block_of;
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) block_of[plan.blocks[b]] = int(b);
  std::vector<char> written(plan.blocks.size(), 0);
  for (const auto& group : groups)
    for (const int i : group)
      for (const int j : group)
        if (const auto found = block_of.find({i, j}); found != block_of.end()) written[found->second] = 1;
  plan.slots.assign(plan.blocks.size(), -1);
  auto slot = [&](int block) {
    if (plan.slots[block] < 0) plan.slots[block] = plan.slot_count++;
    return plan.slots[block];
  };
  for (const auto& place : plan.storage) {
    for (int p = place.pair; p < place.pair + place.pairs; ++p) {
      written[plan.pairs[p].block] = 1;
      plan.pairs[p].block = slot(plan.pairs[p].block);
    }
    for (int j = place.neighbour; j < place.neighbour + place.neighbours; ++j) {
      auto& neighbour = plan.neighbours[j];
      neighbour.block = slot(neighbour.block);
      if (neighbour.merged < 0) continue;
      const int to = neighbour.merged;
      if (!written[to] && !neighbour.flipped) {
        plan.slots[to] = neighbour.block;
        neighbour.merged = -1;
      } else {
        neighbour.merged = slot(to);
      }
      written[to] = 1;
    }
  }
}

}  // namespace

EliminationPlan plan_elimination(const std::vector<PlannedLink>& links, const std::vector<std::vector<int>>& groups,
                                 int lanes) {
  const int n = int(links.size());
  std::vector<char> active(n, 0);
  for (int i = n - 1; i >= 0; --i) {
    active[i] = active[i] || links[i].held;
    if (active[i] && links[i].parent >= 0) active[links[i].parent] = 1;
  }
  // short runs of narrow strips cost more on the way in and out than they save
  std::vector<char> alone(n, 0);
  Order order = order_links(links, active, groups, lanes, alone);
  for (bool changed = lanes > 1; changed;) {
    changed = false;
    for (std::size_t t = 0; t < order.strips.size();) {
      std::size_t end = t + 1;
      while (end < order.strips.size() && joins(links, active, order, end - 1)) ++end;
      const int run = int(end - t), width = int(order.strips[t].size());
      if (8 * run * width < 10 * run + 24)
        for (; t < end; ++t)
          for (const int i : order.strips[t]) alone[i] = 1, changed = true;
      t = end;
    }
    if (changed) order = order_links(links, active, groups, lanes, alone);
  }

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
  std::vector<int> strip_of(n, -1);
  for (std::size_t t = 0; t < order.strips.size(); ++t)
    for (const int i : order.strips[t]) strip_of[i] = int(t);
  for (std::size_t t = 0; t < order.free_strips.size(); ++t)
    for (const int i : order.free_strips[t]) strip_of[i] = int(t);
  for (std::size_t s = 0; s < order.links.size(); ++s) {
    const int i = order.links[s];
    const auto& link = links[i];
    const auto& boundary = order.boundary[i];
    EliminationPlan::Step step{};
    step.link = i;
    step.parent = link.parent;
    step.iv = link.iv;
    step.nv = std::int8_t(link.nv);
    step.free = link.free;
    step.pushed = link.pushed;
    step.plain = link.nv == 1 && boundary.empty();
    step.coupled = !boundary.empty();
    EliminationPlan::StepStorage place{};
    place.neighbour = int(plan.neighbours.size());
    place.neighbours = int(boundary.size());
    place.pair = int(plan.pairs.size());
    place.W = plan.W_size;
    if (link.free) place.factor = plan.frees++;
    plan.idle += !active[i];
    plan.W_size += place.neighbours * link.nv;
    plan.widest = std::max(plan.widest, place.neighbours);
    for (int a = 0; a < place.neighbours; ++a) {
      const int j = boundary[a];
      EliminationPlan::Neighbour neighbour{j, first_block[i] + a, -1, false};
      if (link.parent >= 0 && j != link.parent) neighbour.merged = block(j, link.parent, neighbour.flipped);
      plan.neighbours.push_back(neighbour);
      for (int b = a + 1; b < place.neighbours; ++b) {
        EliminationPlan::Pair pair{a, b, 0, false};
        pair.block = block(j, boundary[b], pair.flipped);
        plan.pairs.push_back(pair);
      }
    }
    place.pairs = int(plan.pairs.size()) - place.pair;
    step.strip = strip_of[i];
    step.joined = !link.free && step.strip >= 0 && joins(links, active, order, std::size_t(step.strip));
    step.hands_over = s + 1 < order.links.size() && order.links[s + 1] == link.parent &&
                      active[i] == active[order.links[s + 1]] && step.strip < 0 && strip_of[link.parent] < 0;
    step.holds_inertia = link.stiff || is_neighbour[i];
    step.holds_force = step.shows = step.lane_holds = step.lane_shows = link.held || is_neighbour[i];
    plan.steps.push_back(step);
    plan.storage.push_back(place);
  }
  keep_in_slots(plan, groups);
  std::vector<int> kept(n, -1);
  for (const auto& step : plan.steps) {
    if (step.parent < 0 || step.hands_over) continue;
    auto& above = plan.steps[order.position[step.parent]];
    above.holds_force = above.shows = true;
    if (!step.joined) above.holds_inertia = above.lane_holds = above.lane_shows = true;
    if (active[step.parent] && !active[step.link] && kept[step.parent] < 0) kept[step.parent] = plan.kept++;
  }
  for (const auto& step : plan.steps) {
    if (!step.holds_inertia) continue;
    if (active[step.link])
      plan.inertia_holders.push_back({step.link, kept[step.link]});
    else
      plan.idle_holders.push_back(step.link);
  }
  for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s) {
    if (links[plan.steps[s].link].pointed) continue;
    if (plan.steps[s].holds_force) plan.holders.push_back(plan.steps[s].link);
    if (plan.steps[s].lane_holds) plan.lane_holders.push_back(plan.steps[s].link);
  }
  for (const auto& members : order.strips) {
    EliminationPlan::Strip strip{};
    strip.step = order.position[members[0]];
    strip.count = int(members.size());
    strip.joined = true;
    strip.meets = strip.count == 4 && lanes == 4 && links[members[0]].parent >= 0;
    for (int l = 0; l < 4; ++l) {
      const auto& step = plan.steps[strip.step + (l < strip.count ? l : 0)];
      strip.parent[l] = step.parent < 0 ? n : step.parent;
      strip.iv[l] = step.iv;
      strip.link[l] = step.link;
      strip.inertia[l] = l < strip.count && step.holds_inertia ? step.link : n;
      strip.force[l] = l < strip.count && step.lane_holds ? step.link : n;
      strip.meets = strip.meets && step.parent == links[members[0]].parent;
    }
    for (int l = 0; l < strip.count; ++l) {
      const auto& step = plan.steps[strip.step + l];
      strip.joined = strip.joined && step.joined;
      strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
      strip.holds_force = strip.holds_force || step.lane_holds;
      strip.shows = strip.shows || step.lane_shows;
    }
    plan.strips.push_back(strip);
  }
  for (const auto& members : order.free_strips) {
    EliminationPlan::FreeStrip strip{};
    strip.step = order.position[members[0]];
    strip.count = int(members.size());
    for (int l = 0; l < 4; ++l) {
      const auto& step = plan.steps[strip.step + (l < strip.count ? l : 0)];
      strip.link[l] = step.link;
      strip.inertia[l] = step.holds_inertia ? step.link : n;
      strip.force[l] = step.lane_holds ? step.link : n;
      strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
    }
    plan.free_strips.push_back(strip);
  }
  return plan;
}

}  // namespace delassus
