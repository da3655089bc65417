// Checks the result of a step: contact gaps, limits and loops (docs/statuses.md).
#pragma once

#include <vector>

#include "simulator/row_system.h"
#include "simulator/step_report.h"

namespace delassus {

// Penetration before the step.
void note_penetration(const ActiveRows& rows, StepReport& report);

// Gaps of contacts at the end of the step, by their velocities: none may be deeper than before by more than twice the
// slop.
void judge_gaps(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                const std::vector<double>& gaps_after, StepReport& report);

// How far coordinates may be beyond their limits: 1e-5 and twice the slop [m or rad].
double allowed_limit_error(const StepOptions& options);
// How far they are. The report has the number here of the worst one; likewise of spans.
void judge_limits(const WorldDescription& world, const std::vector<double>& q, StepReport& report);
// The same of ends of spans, by their velocities: beyond an end, and farther than before. Values that spans keep are
// judged as loops are.
void judge_spans(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                 const std::vector<double>& before, const std::vector<double>& after, StepReport& report);

// Loop errors are accepted up to 1e-5 of the mechanism's size.
void judge_loops(double error, double size, StepReport& report);

// The report of an island, added to that of all: the worst of each number, sums of factorizations and of times.
void add_island(const StepReport& island, StepReport& all);

// The status of a step: of its contact solver, or what is wrong although that was solved. Its number, 0 where all is
// well, and its name.
constexpr int step_status_count = 9;
int step_status_number(const StepReport& report);
const char* step_status(const StepReport& report);

}  // namespace delassus
