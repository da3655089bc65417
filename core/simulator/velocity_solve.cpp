#include "simulator/velocity_solve.h"

#include <chrono>

namespace delassus {

void VelocitySolve::solve(const StepOptions& options, ContactSolvers& solvers, RowSystem& s,
                          const std::vector<Contact*>& contacts, const std::vector<double>& v,
                          const std::vector<double>& free, LoopMidpoint& loops, const WarmStart& start) {
  report_ = {};
  bounced_ = false;
  impulses_ = start.impulses;
  sigma_.resize(s.rows());
  if (s.rows() == 0) {
    report_.outcome = ContactOutcome::solved;
    return;
  }
  if (loops.rows() == int(s.rows()) && loops_suffice(options, s, loops)) return;

  // all rows together, in two phases where contacts bounce
  const bool bounces = options.restitution > 0 && restitution_.find_bouncing(options, s, contacts, v.data(), error, g);
  bounced_ = bounces;
  const bool mixed = loops.rows() > 0 && loops.rows() < int(s.rows());
  StepOptions rest = options;  // what is left of the budget
  if (mixed && s.matrix.whole() && options.solver == StepSolver::automatic && !bounces &&
      solve_without_loops(rest, solvers, s, loops, start))
    return;
  const int iterations = report_.iterations, factorizations = report_.factorizations;
  OperatorMap of_operator(*s.G, s.sets);
  ContactMap& map = s.map_or(of_operator);
  report_ = solvers.solve_velocities(rest, {map, g.data(), s.sets}, *s.G, {start.warm, start.penalties.velocities},
                                     impulses_.data(), sigma_.data());
  report_.iterations += iterations, report_.factorizations += factorizations;
  if (report_.outcome != ContactOutcome::solved) report_.rho = 0;  // no penalty to start from again
  if (bounces) restitution_.decompress(options, s, map, solvers, free.data(), g, impulses_, report_);

  // the solvers left another damping; impulses that redundant rows of loops hardly feel go
  loops.closure().forget();
  if (mixed) loops.closure().purify(impulses_.data());
}

// Starts from what bent the velocity of the middle. The certificate is that of the contact solvers.
bool VelocitySolve::loops_suffice(const StepOptions& options, RowSystem& s, LoopMidpoint& loops) {
  impulses_ = loops.impulses();
  report_.iterations = loops.closure().close(g.data(), impulses_.data(), sigma_.data());
  report_.factorizations = 1;
  if (certify(options, s)) return true;
  report_ = {};
  return false;
}

// The budget on entry, its rest on exit. Returns false if the problem of all rows is still to be solved, unless the
// budget is used up.
bool VelocitySolve::solve_without_loops(StepOptions& budget, ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops,
                                        const WarmStart& start) {
  const int l = loops.rows();
  const auto begin = std::chrono::steady_clock::now();
  const ContactProblem others = elimination_.eliminate(s.matrix, s.sets, g.data(), l, loops.closure());
  report_ = solvers.solve_velocities(budget, others, *s.G, {start.warm, start.penalties.velocities},
                                     impulses_.data() + l, sigma_.data() + l);
  const bool solved = report_.outcome == ContactOutcome::solved, timed = budget.time_limit > 0;
  budget.max_iterations -= report_.iterations;
  if (timed) budget.time_limit -= std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool spent = budget.max_iterations <= 0 || (timed && budget.time_limit <= 0);
  if (solved || spent) {
    elimination_.recover(s.matrix, g.data(), loops.closure(), impulses_.data(), sigma_.data());
    if (certify(budget, s)) return true;
  }
  if (spent) {
    // the best there is: forces in their sets, and what all rows say of them
    if (solved) report_.outcome = ContactOutcome::approximate;
    report_.rho = 0;
    return true;
  }
  impulses_ = start.impulses;
  return false;
}

// Whether impulses and velocities of all rows solve the problem, by their definition; the residuals of these.
bool VelocitySolve::certify(const StepOptions& options, RowSystem& s) {
  OperatorMap of_operator(*s.G, s.sets);
  inverse_masses_.resize(s.rows());
  find_inverse_masses(s.sets, s.map_or(of_operator), inverse_masses_.data());
  report_.residuals = residuals(s.sets, true, inverse_masses_.data(), impulses_.data(), sigma_.data());
  const bool solved = report_.residuals.worst(1.0) <= options.tolerance;
  if (solved) report_.outcome = ContactOutcome::solved;
  return solved;
}

}  // namespace delassus
