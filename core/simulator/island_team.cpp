#include "simulator/island_team.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace delassus {

namespace {

constexpr std::size_t worth_waking = 100;  // size of the islands besides the largest, below which threads stay asleep
constexpr double island_operations = 2e4;  // that an island counts for between two looks at the clock

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

  // the largest is one thread's; whether the others are enough for another
  std::size_t others = 0;
  for (std::size_t k = 1; k < n && team_.size() > 1; ++k) others += islands[order_[k]]->size();
  const int workers = others < worth_waking ? 1 : team_.size();

  // each thread takes the next island until there is none
  std::atomic<std::size_t> next{0};
  team_.each(workers, [&](int thread) {
    for (std::size_t k = next++; k < n; k = next++) {
      islands[order_[k]]->step(now, before, solvers_[std::size_t(thread)], reports_[order_[k]]);
      poll(island_operations);
    }
  });
  return reports_;
}

}  // namespace delassus
