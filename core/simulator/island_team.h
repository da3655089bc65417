// Steps the islands on several threads. Large islands come first, one after another, with all threads sharing the
// elimination (column_elimination.h). Each of the others is then taken by whichever thread is free, the largest first.
//
// Islands share no mutable data: each has its own state, rows and operator, and each thread its own solvers, which keep
// nothing between solves. So the results depend neither on the number of threads nor on which thread stepped which
// island. Reports are in the order of islands.
#pragma once

#include <vector>

#include "operators/team.h"
#include "simulator/island.h"

namespace delassus {

class IslandTeam {
 public:
  explicit IslandTeam(int threads);

  // One step of every island; its report each. Where there is little to do, the caller does it alone.
  const std::vector<StepReport>& step(const std::vector<Island*>& islands, const WorldState& now,
                                      const StepMemory& before);
  // Of the last step, per island.
  const std::vector<StepReport>& reports() const { return reports_; }

 private:
  Team team_;
  std::vector<ContactSolvers> solvers_;  // per thread
  std::vector<StepReport> reports_;      // per island
  std::vector<std::size_t> order_;       // numbers of islands, the largest first
};

}  // namespace delassus
