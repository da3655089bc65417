#include "operators/plan.h"

#include <algorithm>

#include "operators/planner.h"

namespace delassus {

namespace {

constexpr std::size_t worth_sharing = 20'000;  // targets: below, threads cost more to wake than they save
constexpr double alone = 0.1;  // of the targets: those of the first columns, which are short, are one thread's

}  // namespace

void EliminationPlan::clear() {
  steps.clear(), storage.clear();
  strips.clear(), free_strips.clear();
  idle_holders.clear(), inertia_holders.clear(), holders.clear(), lane_holders.clear();
  neighbours.clear(), pairs.clear(), blocks.clear(), slots.clear();
  sources.clear(), targets.clear(), sources_end.clear();
  idle = shared = slot_count = W_size = frees = kept = widest = 0;
}

void EliminationPlanner::make(const std::vector<PlannedLink>& links, const LinkLists& groups, int lanes,
                              EliminationPlan& plan) {
  links_ = &links;
  plan_ = &plan;
  plan.clear();
  order_.find(links, groups, lanes);
  strip_of_.assign(links.size(), -1);
  for (const auto* strips : {&order_.strips, &order_.free_strips})
    for (std::size_t t = 0; t < strips->size(); ++t)
      for (const int i : (*strips)[t]) strip_of_[i] = int(t);
  number_couplings();
  // pairs are most of a large plan: no more memory than they need
  std::size_t pairs = 0;
  for (std::size_t s = 0; s < order_.neighbours.size(); ++s)
    if (const std::size_t n = order_.neighbours[s].size(); n > 1) pairs += n * (n - 1) / 2;
  plan.pairs.reserve(pairs);
  for (std::size_t s = 0; s < order_.links.size(); ++s) add_step(s);
  find_pair_blocks();
  keep_in_slots(groups);
  find_holders();
  if (order_.large()) find_sources();
  for (std::size_t t = 0; t < order_.strips.size(); ++t) add_strip(order_.strips[t], lanes);
  for (std::size_t t = 0; t < order_.free_strips.size(); ++t) add_free_strip(order_.free_strips[t]);
}

// The coupling of two links is one of the link that goes first.
int EliminationPlanner::coupling(int i, int j) const {
  const int column = before(i, j) ? i : j, row = column == i ? j : i;
  const auto list = order_.neighbours[std::size_t(order_.position[column])];
  const auto found = std::lower_bound(list.begin(), list.end(), row);
  return found == list.end() || *found != row ? -1 : first_block_[column] + int(found - list.begin());
}

// Couplings of every link with the neighbours it has when its turn comes, and who these are.
void EliminationPlanner::number_couplings() {
  first_block_.resize(links_->size());
  is_neighbour_.assign(links_->size(), 0);
  for (std::size_t s = 0; s < order_.links.size(); ++s) {
    const int i = order_.links[s];
    first_block_[i] = int(plan_->blocks.size());
    for (const int j : order_.neighbours[s]) {
      plan_->blocks.emplace_back(i, j);
      is_neighbour_[j] = 1;
    }
  }
}

void EliminationPlanner::add_step(std::size_t s) {
  const int i = order_.links[s];
  const auto& link = (*links_)[i];
  const auto boundary = order_.neighbours[s];
  const auto& active = order_.active;
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
  step.joined = !link.free && step.strip >= 0 && order_.joins(std::size_t(step.strip));
  step.hands_over = s + 1 < order_.links.size() && order_.links[s + 1] == link.parent &&
                    active[i] == active[order_.links[s + 1]] && step.strip < 0 && strip_of_[link.parent] < 0;
  step.holds_inertia = link.stiff || is_neighbour_[i];
  step.holds_force = step.shows = step.lane_holds = step.lane_shows = link.held || is_neighbour_[i];
  plan_->steps.push_back(step);
  plan_->idle += !active[i];
  add_storage(s);
}

// Where its neighbours, their pairs and its part of the factor are.
void EliminationPlanner::add_storage(std::size_t s) {
  const int i = order_.links[s];
  const auto& link = (*links_)[i];
  const auto boundary = order_.neighbours[s];
  EliminationPlan::StepStorage at{};
  at.neighbour = int(plan_->neighbours.size());
  at.neighbours = int(boundary.size());
  at.pair = int(plan_->pairs.size());
  at.pairs = at.neighbours * (at.neighbours - 1) / 2;
  at.W = plan_->W_size;
  if (link.free) at.factor = plan_->frees++;
  plan_->W_size += at.neighbours * link.nv;
  plan_->widest = std::max(plan_->widest, at.neighbours);
  for (int a = 0; a < at.neighbours; ++a) {
    const int j = boundary[a];
    EliminationPlan::Neighbour neighbour{j, first_block_[i] + a, -1, false};
    if (link.parent >= 0 && j != link.parent) {
      neighbour.merged = coupling(j, link.parent);
      neighbour.flipped = before(j, link.parent);
    }
    plan_->neighbours.push_back(neighbour);
  }
  plan_->pairs.resize(plan_->pairs.size() + std::size_t(at.pairs));
  plan_->storage.push_back(at);
}

// The couplings of all pairs. Of two neighbours that meet, the one that goes first has their coupling: for each link in
// turn its couplings are laid out by link, and all steps that it is a neighbour of look theirs up.
void EliminationPlanner::find_pair_blocks() {
  auto& plan = *plan_;
  uses_end_.assign(links_->size() + 1, 0);
  for (const auto& neighbour : plan.neighbours) ++uses_end_[neighbour.link + 1];
  for (std::size_t i = 1; i < uses_end_.size(); ++i) uses_end_[i] += uses_end_[i - 1];
  uses_.resize(plan.neighbours.size());
  for (std::size_t s = 0; s < plan.storage.size(); ++s)
    for (int a = 0; a < plan.storage[s].neighbours; ++a)
      uses_[uses_end_[plan.neighbours[plan.storage[s].neighbour + a].link]++] = {int(s), a};

  block_of_.resize(links_->size());
  for (std::size_t s = 0; s < order_.links.size(); ++s) {
    const int column = order_.links[s], block = first_block_[column];
    const auto rows = order_.neighbours[s];
    for (std::size_t k = 0; k < rows.size(); ++k) block_of_[rows[k]] = block + int(k);
    for (int u = column == 0 ? 0 : uses_end_[column - 1]; u < uses_end_[column]; ++u) {
      const auto& at = plan.storage[uses_[u].step];
      const auto met = order_.neighbours[uses_[u].step];
      const int a = uses_[u].place, n = at.neighbours;
      // pairs (b, a), then (a, b), of which (0, 1) … (0, n − 1), (1, 2) … is the order
      for (int b = 0, pair = at.pair + a - 1; b < a; pair += n - 2 - b, ++b)
        if (order_.position[met[b]] > int(s)) plan.pairs[pair] = {b, a, block_of_[met[b]], false};
      EliminationPlan::Pair* pairs = plan.pairs.data() + at.pair + a * (2 * n - a - 1) / 2;
      for (int b = a + 1; b < n; ++b, ++pairs)
        if (order_.position[met[b]] > int(s)) *pairs = {a, b, block_of_[met[b]], true};
    }
  }
}

// Gives couplings their memory. One that a link hands to its parent, where there was none, keeps its own.
void EliminationPlanner::keep_in_slots(const LinkLists& groups) {
  auto& plan = *plan_;
  written_.assign(plan.blocks.size(), 0);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t b = 1; b < groups[g].size(); ++b)
      for (std::size_t a = 0; a < b; ++a) written_[coupling(groups[g][a], groups[g][b])] = 1;
  plan.slots.assign(plan.blocks.size(), -1);
  auto slot = [&](int block) {
    if (plan.slots[block] < 0) plan.slots[block] = plan.slot_count++;
    return plan.slots[block];
  };
  for (const auto& at : plan.storage) {
    for (int p = at.pair; p < at.pair + at.pairs; ++p) {
      written_[plan.pairs[p].block] = 1;
      plan.pairs[p].block = slot(plan.pairs[p].block);
    }
    for (int j = at.neighbour; j < at.neighbour + at.neighbours; ++j) {
      auto& neighbour = plan.neighbours[j];
      neighbour.block = slot(neighbour.block);
      if (neighbour.merged < 0) continue;
      const int to = neighbour.merged;
      if (!written_[to] && !neighbour.flipped) {
        plan.slots[to] = neighbour.block;
        neighbour.merged = -1;
      } else {
        neighbour.merged = slot(to);
      }
      written_[to] = 1;
    }
  }
}

// Whose inertia and forces wait in memory, because somebody hands some to them there.
void EliminationPlanner::find_holders() {
  kept_.assign(links_->size(), -1);
  for (const auto& step : plan_->steps) {
    if (step.parent < 0 || step.hands_over) continue;
    auto& above = plan_->steps[order_.position[step.parent]];
    above.holds_force = above.shows = true;
    if (!step.joined) above.holds_inertia = above.lane_holds = above.lane_shows = true;
    if (order_.active[step.parent] && !order_.active[step.link] && kept_[step.parent] < 0)
      kept_[step.parent] = plan_->kept++;
  }
  for (const auto& step : plan_->steps) {
    if (!step.holds_inertia) continue;
    if (order_.active[step.link])
      plan_->inertia_holders.push_back({step.link, kept_[step.link]});
    else
      plan_->idle_holders.push_back(step.link);
  }
  for (std::size_t s = std::size_t(plan_->idle); s < plan_->steps.size(); ++s) {
    if ((*links_)[plan_->steps[s].link].pointed) continue;
    if (plan_->steps[s].holds_force) plan_->holders.push_back(plan_->steps[s].link);
    if (plan_->steps[s].lane_holds) plan_->lane_holders.push_back(plan_->steps[s].link);
  }
}

// Who has something for whom: a step for its neighbours and its parent.
void EliminationPlanner::find_sources() {
  auto& plan = *plan_;
  const auto each = [&](auto&& visit) {
    for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s) {
      const auto boundary = order_.neighbours[s];
      const int parent = plan.steps[s].parent;
      bool met = parent < 0;
      for (std::size_t a = 0; a < boundary.size(); ++a) {
        visit(order_.position[boundary[a]], int(s), int(a));
        met = met || boundary[a] == parent;
      }
      if (!met) visit(order_.position[parent], int(s), -1);
    }
  };
  // how many before each step, then in their places, which move the ends there
  std::vector<int>& end = plan.sources_end;
  end.assign(plan.steps.size() + 1, 0);
  each([&](int step, int, int) { ++end[step + 1]; });
  for (std::size_t s = 1; s < end.size(); ++s) end[s] += end[s - 1];
  plan.sources.resize(std::size_t(end.back()) + 1);
  each([&](int step, int from, int place) { plan.sources[end[step]++] = {from, place, 0}; });
  end.pop_back();

  // pairs (b, a), then (a, b), of which (0, 1) … (0, n − 1), (1, 2) … is the order: the coupling of two is one of the
  // first if flipped, else of the second; every pair is one target, but those of idle steps, which have none
  plan.targets.reserve(plan.pairs.size());
  for (auto& source : plan.sources) {
    source.target = int(plan.targets.size());
    const auto& at = plan.storage[source.step];
    const int a = source.place, n = at.neighbours;
    if (&source == &plan.sources.back() || a < 0) continue;
    for (int b = 0, p = at.pair + a - 1; b < a; p += n - 2 - b, ++b)
      if (!plan.pairs[p].flipped) plan.targets.push_back({b, plan.pairs[p].block});
    const auto* after = plan.pairs.data() + at.pair + a * (2 * n - a - 1) / 2;
    for (int b = a + 1; b < n; ++b, ++after)
      if (after->flipped) plan.targets.push_back({b, after->block});
  }

  // columns that many others come before are the last ones, and most of the work
  plan.shared = int(plan.steps.size());
  if (plan.targets.size() < worth_sharing) return;
  while (plan.shared > plan.idle && plan.sources[end[plan.shared - 1]].target > alone * double(plan.targets.size()))
    --plan.shared;
}

void EliminationPlanner::add_strip(std::span<const int> members, int lanes) {
  const int ground = int(links_->size());
  EliminationPlan::Strip strip{};
  strip.step = order_.position[members[0]];
  strip.count = int(members.size());
  strip.joined = true;
  strip.meets = strip.count == 4 && lanes == 4 && (*links_)[members[0]].parent >= 0;
  for (int l = 0; l < 4; ++l) {
    const auto& step = plan_->steps[strip.step + (l < strip.count ? l : 0)];
    strip.parent[l] = step.parent < 0 ? ground : step.parent;
    strip.iv[l] = step.iv;
    strip.link[l] = step.link;
    strip.inertia[l] = l < strip.count && step.holds_inertia ? step.link : ground;
    strip.force[l] = l < strip.count && step.lane_holds ? step.link : ground;
    strip.meets = strip.meets && step.parent == (*links_)[members[0]].parent;
  }
  for (int l = 0; l < strip.count; ++l) {
    const auto& step = plan_->steps[strip.step + l];
    strip.joined = strip.joined && step.joined;
    strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
    strip.holds_force = strip.holds_force || step.lane_holds;
    strip.shows = strip.shows || step.lane_shows;
  }
  plan_->strips.push_back(strip);
}

void EliminationPlanner::add_free_strip(std::span<const int> members) {
  const int ground = int(links_->size());
  EliminationPlan::FreeStrip strip{};
  strip.step = order_.position[members[0]];
  strip.count = int(members.size());
  for (int l = 0; l < 4; ++l) {
    const auto& step = plan_->steps[strip.step + (l < strip.count ? l : 0)];
    strip.link[l] = step.link;
    strip.inertia[l] = step.holds_inertia ? step.link : ground;
    strip.force[l] = step.lane_holds ? step.link : ground;
    strip.holds_inertia = strip.holds_inertia || step.holds_inertia;
  }
  plan_->free_strips.push_back(strip);
}

}  // namespace delassus
