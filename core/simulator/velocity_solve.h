// Impulses of an island's rows: λ in its sets with
//
//   σ = G λ + g,   g = J v_f + max(φ − slop, 0) / dt          Signorini's and Coulomb's laws on velocities
//
// with g of loops as loop_midpoint.h defines it. If there are only loops, closing them (loop_closure.h) gives the
// solution, if its residual is small enough. With few rows, loops are eliminated first (loop_elimination.h), and the
// result is accepted if the residual of all rows is small enough. Otherwise all rows are solved together, with the rest
// of the iteration budget. Fast contacts bounce (restitution.h).
#pragma once

#include <vector>

#include "simulator/contact_solvers.h"
#include "simulator/contact_warm_start.h"
#include "simulator/loop_elimination.h"
#include "simulator/loop_midpoint.h"
#include "simulator/restitution.h"

namespace delassus {

class VelocitySolve {
 public:
  std::vector<double> g;      // per row; on entry as above
  std::vector<double> error;  // per row: φ of limits and contacts, errors of loops

  const std::vector<double>& impulses() const { return impulses_; }
  const ContactReport& report() const { return report_; }
  bool bounced() const { return bounced_; }  // contacts did, in the last solution
  const Restitution& restitution() const { return restitution_; }

  // v: velocity at the start of the step.
  void solve(const StepOptions& options, ContactSolvers& solvers, RowSystem& s, const std::vector<Contact*>& contacts,
             const std::vector<double>& v, const std::vector<double>& free, LoopMidpoint& loops,
             const WarmStart& start);

 private:
  bool loops_suffice(const StepOptions& options, RowSystem& s, LoopMidpoint& loops);
  bool solve_without_loops(StepOptions& budget, ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops,
                           const WarmStart& start);
  bool certify(const StepOptions& options, RowSystem& s);

  Restitution restitution_;
  LoopElimination elimination_;
  std::vector<double> impulses_, sigma_;  // per row
  std::vector<double> inverse_masses_;    // per row: of `certify`
  ContactReport report_;
  bool bounced_ = false;
};

}  // namespace delassus
