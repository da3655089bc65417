// Islands of a step: large ones by all threads together, which share their eliminations (column_elimination.h), one
// after another; then each of the others by whichever thread is free, the largest first.
//
// Islands share nothing that changes: each has its own state, rows and operator, a thread has its own solvers, which
// keep nothing from one solve to the next. So the results do not depend on how many threads there are, nor on which of
// them stepped which island. Reports are in the order of islands.
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
