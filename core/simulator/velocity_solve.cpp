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
  OperatorMap map(*s.G, s.sets);
  report_ = solvers.solve_velocities(options, {map, g.data(), s.sets}, *s.G, {start.warm, start.penalties.velocities},
                                     impulses_.data(), sigma_.data());
  if (report_.outcome != ContactOutcome::solved) report_.rho = 0;  // no penalty to start from again
  if (bounces) restitution_.decompress(options, s, map, solvers, free.data(), g, impulses_, report_);

  // the solvers left another damping; impulses that redundant rows of loops hardly feel go
  loops.closure().forget();
  if (loops.rows() > 0 && loops.rows() < int(s.rows())) loops.closure().purify(impulses_.data());
}

// Starts from what bent the velocity of the middle. The certificate is that of the contact solvers.
bool VelocitySolve::loops_suffice(const StepOptions& options, RowSystem& s, LoopMidpoint& loops) {
  impulses_ = loops.impulses();
  report_.iterations = loops.closure().close(g.data(), impulses_.data(), sigma_.data());
  report_.factorizations = 1;
  OperatorMap map(*s.G, s.sets);
  inverse_masses_.resize(s.rows());
  find_inverse_masses(s.sets, map, inverse_masses_.data());
  report_.residuals = residuals(s.sets, true, inverse_masses_.data(), impulses_.data(), sigma_.data());
  if (!(report_.residuals.worst(1.0) <= options.tolerance)) {
    report_ = {};
    return false;
  }
  report_.outcome = ContactOutcome::solved;
  return true;
}

}  // namespace delassus
