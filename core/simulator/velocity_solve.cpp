#include "simulator/velocity_solve.h"

namespace delassus {

void VelocitySolve::solve(const StepOptions& options, ContactSolvers& solvers, RowSystem& s, std::size_t contacts,
                          const std::vector<double>& v, const std::vector<double>& free, LoopMidpoint& loops,
                          const WarmStart& start) {
  report_ = {};
  impulses_ = start.impulses;
  sigma_.resize(s.rows());
  if (s.rows() == 0) {
    report_.outcome = ContactOutcome::solved;
    return;
  }
  if (loops.rows() == int(s.rows()) && loops_suffice(options, s, loops)) return;

  // all rows together, in two phases where contacts bounce
  const bool bounces = options.restitution > 0 && restitution_.find_bouncing(options, s, contacts, v.data(), error, g);
  const bool mixed = loops.rows() > 0 && loops.rows() < int(s.rows());
  if (mixed && s.matrix.whole() && options.solver == StepSolver::automatic && !bounces &&
      solve_without_loops(options, solvers, s, loops, start))
    return;
  OperatorMap of_operator(*s.G, s.sets);
  ContactMap& map = s.matrix.map_or(of_operator);
  report_ = solvers.solve_velocities(options, {map, g.data(), s.sets}, *s.G, {start.warm, start.penalties.velocities},
                                     impulses_.data(), sigma_.data());
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
  return certify(options, s);
}

// False: the problem of all rows is to be solved from where it was; but not where there is no time left for it.
bool VelocitySolve::solve_without_loops(const StepOptions& options, ContactSolvers& solvers, RowSystem& s,
                                        LoopMidpoint& loops, const WarmStart& start) {
  const int l = loops.rows();
  const ContactProblem rest = elimination_.eliminate(s.matrix, s.sets, g.data(), l, loops.closure());
  const ContactReport found = solvers.solve_velocities(options, rest, *s.G, {start.warm, start.penalties.velocities},
                                                       impulses_.data() + l, sigma_.data() + l);
  report_ = found;
  const bool solved = found.outcome == ContactOutcome::solved, last_chance = !solved && options.time_limit > 0;
  if (solved || last_chance) {
    elimination_.recover(s.matrix, g.data(), loops.closure(), impulses_.data(), sigma_.data());
    if (certify(options, s)) return true;
    if (last_chance) {
      report_ = found;
      report_.rho = 0;
      return true;
    }
  }
  impulses_ = start.impulses;
  return false;
}

// Of impulses and velocities of all rows, by their definition.
bool VelocitySolve::certify(const StepOptions& options, RowSystem& s) {
  OperatorMap of_operator(*s.G, s.sets);
  inverse_masses_.resize(s.rows());
  find_inverse_masses(s.sets, s.matrix.map_or(of_operator), inverse_masses_.data());
  report_.residuals = residuals(s.sets, true, inverse_masses_.data(), impulses_.data(), sigma_.data());
  const bool solved = report_.residuals.worst(1.0) <= options.tolerance;
  if (solved)
    report_.outcome = ContactOutcome::solved;
  else
    report_ = {};
  return solved;
}

}  // namespace delassus
