#include "simulator/island.h"

#include <algorithm>

#include "state/configuration.h"

namespace delassus {

Island::Island(const WorldDescription& whole, const TreeContents& contents, const std::vector<int>& trees)
    : part_(whole, contents, trees),
      world_(part_.world),
      trees_(trees),
      loops_(world_),
      bodies_(world_, loops_.remaining()),
      free_motion_(world_, loops_, bodies_),
      systems_(whole.model, part_),
      response_(std::size_t(world_.model.nv)),
      correction_(world_),
      arrival_(world_) {
  for (auto* x : {&state_.q, &next_q_}) x->assign(std::size_t(world_.model.nq), 0.0);
  for (auto* x : {&state_.v, &state_.forces, &next_v_, &way_}) x->assign(std::size_t(world_.model.nv), 0.0);
  state_.external.assign(6 * world_.model.bodies.size(), 0.0);
}

void Island::step(const WorldState& now, const StepMemory& before, ContactSolvers& solvers, StepReport& report) {
  StageClock clock;
  RowSystem* const posed = pose(now, before, report, clock);
  if (!posed) return;
  RowSystem& s = *posed;
  const std::vector<double>& free = free_motion_.velocity();

  // impulses, and v⁺ = v_f + M̂⁻¹ Jᵀ λ
  velocities_.solve(world_.options, solvers, s, rows_.contacts.size(), state_.v, free, loops_, start_);
  next_v_ = free;
  if (s.rows() > 0) response_.add(s, velocities_.impulses().data(), next_v_);
  clock.end(report.times.solve);

  // q⁺ = q ⊕ dt (v⁺ + u)
  report.corrections =
      correction_.find(solvers, s, state_.q.data(), next_v_, velocities_.error, loops_, start_, response_);
  judge_gaps(world_.options, s, rows_, correction_.gaps_after(), report);
  arrive(s, report);
  judge_limits(world_, next_q_, report);
  report.contacts = velocities_.report();
  clock.end(report.times.correct);
}

// Rows, velocities g that they have without forces and with gaps, and impulses to start from.
// Null: the mass matrix is singular.
RowSystem* Island::pose(const WorldState& now, const StepMemory& before, StepReport& report, StageClock& clock) {
  take(now);
  if (loops_.rows() > 0) {
    report.loop_error = std::max(report.loop_error, loops_.find_errors(state_.q.data()));
    loops_.go_half_way(part_.ranges, state_.q.data(), state_.v.data());
  }
  rows_.find(world_, state_.q.data(), state_.v.data());
  RowSystem& s = systems_.find(rows_);
  clock.end(report.times.constrain);

  report.regular = s.G->update(state_.q.data());
  if (!report.regular) return nullptr;
  const std::vector<double>& free = free_motion_.find(s, state_, response_);
  std::vector<double>& g = velocities_.g;
  g.resize(s.rows());
  s.G->jacobian(free.data(), 1, g.data());
  if (loops_.rows() > 0) loops_.aim(g.data());
  find_row_errors(world_, s, rows_, state_.q.data(), velocities_.error);
  start_.recall(part_, s, rows_, before, trees_);
  allow_approach(world_.options, s, velocities_.error, start_.impulses, g);
  note_penetration(rows_, report);
  clock.end(report.times.operate);
  return &s;
}

// Of the whole, what is this island's.
void Island::take(const WorldState& now) {
  for (const auto& r : part_.ranges) {
    std::copy_n(now.q + r.whole_q, r.nq, state_.q.data() + r.q);
    std::copy_n(now.v + r.whole_v, r.nv, state_.v.data() + r.v);
    std::copy_n(now.forces + r.whole_v, r.nv, state_.forces.data() + r.v);
  }
  state_.has_external = now.external != nullptr;
  if (!state_.has_external) return;
  for (std::size_t b = 0; b < part_.bodies.size(); ++b)
    std::copy_n(now.external + 6 * part_.bodies[b], 6, state_.external.data() + 6 * b);
}

// q⁺ from the share of the step that v⁺ moves, and u.
void Island::arrive(RowSystem& s, StepReport& report) {
  const std::vector<double>&u = correction_.velocity(), &remaining = loops_.remaining();
  for (std::size_t k = 0; k < way_.size(); ++k) way_[k] = u[k] + remaining[k] * next_v_[k];
  bodies_.average(state_.v, free_motion_.velocity(), way_);
  if (loops_.rows() == 0) {
    integrate(world_.model, state_.q.data(), way_.data(), world_.options.timestep, next_q_.data());
    return;
  }
  const auto end = arrival_.arrive(s, state_.q, loops_, correction_, response_, way_, next_q_);
  report.corrections = std::max(report.corrections, end.iterations);
  judge_loops(end.error, loops_.size(), report);
}

void Island::give(double* q, double* v, StepMemory& after) const {
  for (const auto& r : part_.ranges) {
    std::copy_n(next_q_.data() + r.q, r.nq, q + r.whole_q);
    std::copy_n(next_v_.data() + r.v, r.nv, v + r.whole_v);
  }
  remember(part_, rows_, velocities_.impulses(), correction_.impulses(),
           {velocities_.report().rho, correction_.penalty()}, trees_, after);
}

void Island::pose_problem(const WorldState& now, const StepMemory& before, StepReport& report, PosedProblem& problem) {
  StageClock clock;
  RowSystem* const s = pose(now, before, report, clock);
  if (!s) return;
  problem.g = velocities_.g;
  problem.warm_start = start_.impulses;
  problem.sets = s->sets;
  problem.loop_rows = loops_.rows();
  problem.friction_rows = s->first_limit - loops_.rows();
  problem.limit_rows = s->first_contact - s->first_limit;
  problem.frames = rows_.frames;
  problem.contacts.clear();
  for (const Contact* c : rows_.contacts) problem.contacts.push_back(*c);
  std::vector<double> identity;
  form_matrix(*s->G, identity, problem.matrix);
}

}  // namespace delassus
