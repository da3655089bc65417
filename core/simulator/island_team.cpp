#include "simulator/island_team.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace delassus {

namespace {

constexpr std::size_t worth_waking = 100;   // size of the islands besides the largest, below which threads stay asleep
constexpr std::size_t large_island = 2000;  // size from which on an elimination may be worth several threads
constexpr double island_operations = 2e4;   // that an island counts for between two looks at the clock

}  // namespace

IslandTeam::IslandTeam(int threads) : team_(threads), solvers_(std::size_t(team_.size())) {}

const std::vector<StepReport>& IslandTeam::step(const std::vector<Island*>& islands, const WorldState& now,
                                                const StepMemory& before) {
  const std::size_t n = islands.size();
  reports_.assign(n, {});
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), std::size_t(0));
  if (team_.size() > 1)
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return islands[a]->size() != islands[b]->size() ? islands[a]->size() > islands[b]->size() : a < b;
    });

  const auto step_island = [&](std::size_t k, int thread, Team* team) {
    islands[order_[k]]->step(now, before, solvers_[std::size_t(thread)], team, reports_[order_[k]]);
    poll(island_operations);
  };

  // large ones by all threads
  std::size_t large = 0;
  for (; large < n && team_.size() > 1 && islands[order_[large]]->size() >= large_island; ++large)
    step_island(large, 0, &team_);

  // of the others the largest is one thread's; whether the rest is enough for another
  std::size_t others = 0;
  for (std::size_t k = large + 1; k < n && team_.size() > 1; ++k) others += islands[order_[k]]->size();
  const int workers = others < worth_waking ? 1 : team_.size();

  // each thread takes the next island until there is none
  std::atomic<std::size_t> next{large};
  team_.each(workers, [&](int thread) {
    for (std::size_t k = next++; k < n; k = next++) step_island(k, thread, nullptr);
  });
  return reports_;
}

}  // namespace delassus
