#include "simulator/judge.h"

#include <algorithm>
#include <cmath>

namespace delassus {

namespace {

constexpr double gap_tolerance = 1e-7;    // where the slop is smaller [m]
constexpr double loop_tolerance = 1e-5;   // error of loops that are closed, at a size of 1 m [m or rad]
constexpr double limit_tolerance = 1e-5;  // [m or rad], and twice the slop

}  // namespace

void note_penetration(const ActiveRows& rows, StepReport& report) {
  for (const Contact* c : rows.contacts) report.penetration = std::max(report.penetration, -c->touch.distance);
}

void judge_gaps(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                const std::vector<double>& gaps_after, StepReport& report) {
  const double tolerance = std::max(2 * options.slop, gap_tolerance);
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const double before = rows.contacts[k]->touch.distance, after = gaps_after[s.normal_row(k)];
    report.penetration_after = std::max(report.penetration_after, -after);
    if (!(after >= std::min(before, 0.0) - tolerance)) report.blame(StepFlaw::penetrating);
  }
}

double allowed_limit_error(const StepOptions& options) { return limit_tolerance + 2 * options.slop; }

void judge_limits(const WorldDescription& world, const std::vector<double>& q, StepReport& report) {
  double worst = 0;
  for (std::size_t k = 0; k < world.limits.size(); ++k) {
    const JointLimit& limit = world.limits[k];
    const double x = q[std::size_t(limit.coordinate)];
    const double beyond = std::max(limit.lower - x, x - limit.upper) - limit.margin;
    if (beyond > worst) worst = beyond, report.worst_limit = int(k);
  }
  report.limit_error_after = worst;
  if (!(worst <= allowed_limit_error(world.options))) report.blame(StepFlaw::limit_violated);
}

void judge_spans(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                 const std::vector<double>& before, const std::vector<double>& after, StepReport& report) {
  for (std::size_t k = 0; k < rows.span_rows.size(); ++k) {
    const int kind = span_row_kind(rows.span_rows[k]);
    const std::size_t r = std::size_t(s.first_span) + k;
    if (kind == span_value) judge_loops(std::abs(after[r]), 1.0, report);
    if (kind != span_lower && kind != span_upper) continue;
    if (-after[r] > report.limit_error_after) {
      report.limit_error_after = -after[r];
      report.worst_limit = -1, report.worst_span = int(span_of(rows.span_rows[k]));
    }
    if (!(after[r] >= std::min(before[r], 0.0) - allowed_limit_error(options))) report.blame(StepFlaw::limit_violated);
  }
}

void judge_loops(double error, double size, StepReport& report) {
  report.loop_error_after = std::max(report.loop_error_after, error);
  if (!(error <= loop_tolerance * size)) report.blame(StepFlaw::open_loops);
}

void add_island(const StepReport& island, StepReport& all) {
  ContactReport& contacts = all.contacts;
  contacts.outcome = std::max(contacts.outcome, island.contacts.outcome);
  contacts.iterations = std::max(contacts.iterations, island.contacts.iterations);
  contacts.factorizations += island.contacts.factorizations;
  contacts.residuals = worst_of(contacts.residuals, island.contacts.residuals);
  all.blame(island.flaw);
  all.corrections = std::max(all.corrections, island.corrections);
  all.regular = all.regular && island.regular;
  if (island.limit_error_after > all.limit_error_after)
    all.worst_limit = island.worst_limit, all.worst_span = island.worst_span;
  for (const auto error : {&StepReport::penetration, &StepReport::penetration_after, &StepReport::loop_error,
                           &StepReport::loop_error_after, &StepReport::limit_error_after})
    all.*error = std::max(all.*error, island.*error);
  for (const auto stage : {&StageTimes::constrain, &StageTimes::operate, &StageTimes::solve, &StageTimes::correct})
    all.times.*stage += island.times.*stage;
}

int step_status_number(const StepReport& report) {
  const int outcome = int(report.contacts.outcome), flaw = int(report.flaw);
  return outcome > 0 || flaw == 0 ? outcome : int(ContactOutcome::approximate) + flaw;
}

const char* step_status(const StepReport& report) {
  static constexpr const char* names[step_status_count] = {"solved",         "iteration_limit", "stalled",
                                                           "infeasible",     "approximate",     "penetrating",
                                                           "limit_violated", "open_loops",      "tunnelling"};
  return names[step_status_number(report)];
}

}  // namespace delassus
