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
// others. Those with one velocity and no neighbours go several at once, as strips, unless they are kept out of these:
// after a strip its parents, lane for lane, if these are ready.
Order order_links(const std::vector<PlannedLink>& links, const std::vector<char>& active,
                  const std::vector<std::vector<int>>& groups, int lanes, const std::vector<char>& kept_out) {
  const int n = int(links.size());
  std::vector<std::set<int>> adjacent(n);
  for (const auto& group : groups)
    for (const int i : group)
      for (const int j : group)
        if (i != j) adjacent[i].insert(j);

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
  auto key = [&](int i) { return Key{active[i] != 0, int(adjacent[i].size()), -i}; };
  for (int i = 0; i < n; ++i)
    if (children[i] == 0) ready.insert(key(i));
  auto plain = [&](int i) { return adjacent[i].empty() && links[i].nv == 1 && !kept_out[i]; };
  auto loose = [&](int i) { return adjacent[i].empty() && links[i].free && links[i].bare && !links[i].pushed; };
  auto eliminate = [&](int i) {
    const int p = links[i].parent;
    ready.erase(key(i));
    order.position[i] = int(order.links.size());
    order.links.push_back(i);
    order.boundary[i].assign(adjacent[i].begin(), adjacent[i].end());

    // fill: what was next to i is next to each other and to its parent
    std::vector<int> meeting = order.boundary[i];
    if (p >= 0 && !adjacent[i].count(p) && !meeting.empty()) meeting.push_back(p);
    for (const int j : meeting) {
      const bool waits = children[j] == 0;
      if (waits) ready.erase(key(j));
      adjacent[j].erase(i);
      for (const int k : meeting)
        if (k != j) adjacent[j].insert(k);
      if (waits) ready.insert(key(j));
    }
    if (p >= 0 && --children[p] == 0) ready.insert(key(p));
  };
  std::vector<int> strip;
  while (!ready.empty()) {
    // the next strip: the parents of the last one, and others that are ready
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
    // else free links side by side, or one link
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
  for (const auto& at : plan.storage) {
    for (int p = at.pair; p < at.pair + at.pairs; ++p) {
      written[plan.pairs[p].block] = 1;
      plan.pairs[p].block = slot(plan.pairs[p].block);
    }
    for (int j = at.neighbour; j < at.neighbour + at.neighbours; ++j) {
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

// Links that carry a constraint, and those they hang on.
std::vector<char> find_active(const std::vector<PlannedLink>& links) {
  std::vector<char> active(links.size(), 0);
  for (std::size_t i = links.size(); i-- > 0;) {
    active[i] = active[i] || links[i].held;
    if (active[i] && links[i].parent >= 0) active[links[i].parent] = 1;
  }
  return active;
}

// The order with those strips only that pay: short runs of narrow strips cost more on the way in and out than they
// save.
Order order_with_strips(const std::vector<PlannedLink>& links, const std::vector<char>& active,
                        const std::vector<std::vector<int>>& groups, int lanes) {
  std::vector<char> kept_out(links.size(), 0);
  Order order = order_links(links, active, groups, lanes, kept_out);
  for (bool changed = lanes > 1; changed;) {
    changed = false;
    for (std::size_t t = 0; t < order.strips.size();) {
      std::size_t end = t + 1;
      while (end < order.strips.size() && joins(links, active, order, end - 1)) ++end;
      const int run = int(end - t), width = int(order.strips[t].size());
      if (8 * run * width < 10 * run + 24)
        for (; t < end; ++t)
          for (const int i : order.strips[t]) kept_out[i] = 1, changed = true;
      t = end;
    }
    if (changed) order = order_links(links, active, groups, lanes, kept_out);
  }
  return order;
}

// Makes a plan of an order, part by part.
class Planner {
 public:
  Planner(const std::vector<PlannedLink>& links, const std::vector<char>& active, const Order& order)
      : links_(links), active_(active), order_(order), strip_of_(links.size(), -1) {
    for (const auto* strips : {&order.strips, &order.free_strips})
      for (std::size_t t = 0; t < strips->size(); ++t)
        for (const int i : (*strips)[t]) strip_of_[i] = int(t);
  }

  EliminationPlan make(const std::vector<std::vector<int>>& groups, int lanes) {
    number_couplings();
    for (std::size_t s = 0; s < order_.links.size(); ++s) add_step(s);
    keep_in_slots(plan_, groups);
    find_holders();
    for (const auto& members : order_.strips) add_strip(members, lanes);
    for (const auto& members : order_.free_strips) add_free_strip(members);
    return std::move(plan_);
  }

 private:
  // couplings of every link with the neighbours it has when its turn comes
  void number_couplings() {
    first_block_.resize(links_.size());
    is_neighbour_.assign(links_.size(), 0);
    for (const int i : order_.links) {
      first_block_[i] = int(plan_.blocks.size());
      for (const int j : order_.boundary[i]) {
        plan_.blocks.emplace_back(i, j);
        is_neighbour_[j] = 1;
      }
    }
  }
  // the coupling with rows j and columns i, or the other way round if flipped
  int block(int j, int i, bool& flipped) const {
    flipped = order_.position[j] < order_.position[i];
    const int column = flipped ? j : i, row = flipped ? i : j;
    const auto& list = order_.boundary[column];
    return first_block_[column] + int(std::lower_bound(list.begin(), list.end(), row) - list.begin());
  }

  void add_step(std::size_t s) {
    const int i = order_.links[s];
    const auto& link = links_[i];
    const auto& boundary = order_.boundary[i];
    EliminationPlan::Step step{};
    step.link = i;
    step.parent = link.parent;
    step.iv = link.iv;
    step.nv = std::int8_t(link.nv);
    step.free = link.free;
    step.pushed = link.pushed;
    step.plain = link.nv == 1 && boundary.empty();
    step.coupled = !boundary.empty();
    step.strip = strip_of_[i];
    step.joined = !link.free && step.strip >= 0 && joins(links_, active_, order_, std::size_t(step.strip));
    step.hands_over = s + 1 < order_.links.size() && order_.links[s + 1] == link.parent &&
                      active_[i] == active_[order_.links[s + 1]] && step.strip < 0 && strip_of_[link.parent] < 0;
    step.holds_inertia = link.stiff || is_neighbour_[i];
    step.holds_force = step.shows = step.lane_holds = step.lane_shows = link.held || is_neighbour_[i];
    plan_.steps.push_back(step);
    plan_.idle += !active_[i];
    add_storage(link, i);
  }
  // where its neighbours, their pairs and its part of the factor are
  void add_storage(const PlannedLink& link, int i) {
    const auto& boundary = order_.boundary[i];
    EliminationPlan::StepStorage at{};
    at.neighbour = int(plan_.neighbours.size());
    at.neighbours = int(boundary.size());
    at.pair = int(plan_.pairs.size());
    at.W = plan_.W_size;
    if (link.free) at.factor = plan_.frees++;
    plan_.W_size += at.neighbours * link.nv;
    plan_.widest = std::max(plan_.widest, at.neighbours);
    for (int a = 0; a < at.neighbours; ++a) {
      const int j = boundary[a];
      EliminationPlan::Neighbour neighbour{j, first_block_[i] + a, -1, false};
      if (link.parent >= 0 && j != link.parent) neighbour.merged = block(j, link.parent, neighbour.flipped);
      plan_.neighbours.push_back(neighbour);
      for (int b = a + 1; b < at.neighbours; ++b) {
        EliminationPlan::Pair pair{a, b, 0, false};
        pair.block = block(j, boundary[b], pair.flipped);
        plan_.pairs.push_back(pair);
      }
    }
    at.pairs = int(plan_.pairs.size()) - at.pair;
    plan_.storage.push_back(at);
  }

  // whose inertia and forces wait in memory, because somebody hands some to them there
  void find_holders() {
    std::vector<int> kept(links_.size(), -1);
    for (const auto& step : plan_.steps) {
      if (step.parent < 0 || step.hands_over) continue;
      auto& above = plan_.steps[order_.position[step.parent]];
      above.holds_force = above.shows = true;
      if (!step.joined) above.holds_inertia = above.lane_holds = above.lane_shows = true;
      if (active_[step.parent] && !active_[step.link] && kept[step.parent] < 0) kept[step.parent] = plan_.kept++;
    }
    for (const auto& step : plan_.steps) {
      if (!step.holds_inertia) continue;
      if (active_[step.link])
        plan_.inertia_holders.push_back({step.link, kept[step.link]});
      else
        plan_.idle_holders.push_back(step.link);
    }
    for (std::size_t s = std::size_t(plan_.idle); s < plan_.steps.size(); ++s) {
      if (links_[plan_.steps[s].link].pointed) continue;
      if (plan_.steps[s].holds_force) plan_.holders.push_back(plan_.steps[s].link);
      if (plan_.steps[s].lane_holds) plan_.lane_holders.push_back(plan_.steps[s].link);
    }
  }

  void add_strip(const std::vector<int>& members, int lanes) {
    const int ground = int(links_.size());
    EliminationPlan::Strip strip{};
    strip.step = order_.position[members[0]];
    strip.count = int(members.size());
    strip.joined = true;
    strip.meets = strip.count == 4 && lanes == 4 && links_[members[0]].parent >= 0;
    for (int l = 0; l < 4; ++l) {
      const auto& step = plan_.steps[strip.step + (l < strip.count ? l : 0)];
      strip.parent[l] = step.parent < 0 ? ground : step.parent;
      strip.iv[l] = step.iv;
      strip.link[l] = step.link;
      strip.inertia[l] = l < strip.count && step.holds_inertia ? step.link : ground;
      strip.force[l] = l < strip.count && step.lane_holds ? step.link : ground;
      strip.meets = strip.meets && step.parent == links_[members[0]].parent;
    }
    for (int l = 0; l < strip.count; ++l) {
      const auto& step = plan_.steps[strip.step + l];
      strip.joined = strip.joined && step.joined;
      strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
      strip.holds_force = strip.holds_force || step.lane_holds;
      strip.shows = strip.shows || step.lane_shows;
    }
    plan_.strips.push_back(strip);
  }
  void add_free_strip(const std::vector<int>& members) {
    const int ground = int(links_.size());
    EliminationPlan::FreeStrip strip{};
    strip.step = order_.position[members[0]];
    strip.count = int(members.size());
    for (int l = 0; l < 4; ++l) {
      const auto& step = plan_.steps[strip.step + (l < strip.count ? l : 0)];
      strip.link[l] = step.link;
      strip.inertia[l] = step.holds_inertia ? step.link : ground;
      strip.force[l] = step.lane_holds ? step.link : ground;
      strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
    }
    plan_.free_strips.push_back(strip);
  }

  const std::vector<PlannedLink>& links_;
  const std::vector<char>& active_;
  const Order& order_;
  std::vector<int> strip_of_;       // a link: which strip, or free strip, it is in; −1: none
  std::vector<int> first_block_;    // a link: where its couplings start
  std::vector<char> is_neighbour_;  // a link: of some link whose turn is before
  EliminationPlan plan_;
};

}  // namespace

EliminationPlan plan_elimination(const std::vector<PlannedLink>& links, const std::vector<std::vector<int>>& groups,
                                 int lanes) {
  const auto active = find_active(links);
  const Order order = order_with_strips(links, active, groups, lanes);
  return Planner(links, active, order).make(groups, lanes);
}

}  // namespace delassus
