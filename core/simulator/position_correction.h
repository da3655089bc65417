// The position correction moves q without changing velocities, so it adds no kinetic energy. Where the step would end
// in penetration, or with open loops,
//
//   u = M̂⁻¹ Jᵀ µ,   0 ≤ µ_n ⊥ J u + φ⁺ / dt ≥ 0          limits and normals of contacts; no friction
//                    J u + e⁺ / dt = 0                     loops
//
// where φ⁺ and e⁺ are gaps and errors at the end of the step without it. Loops are closed first, on their own; only if
// something still penetrates are loops, limits and contacts solved together. Deep penetration is reduced at one metre
// or radian per second, not at once. Where contacts contradict each other, as for shapes that overlap in every
// position, they get no deeper, and limits are corrected without them.
//
// Equality constraints of tendons are corrected in the same way, at one metre or radian per second, together with all
// other rows.
//
// Loops that are far open are closed at one metre and three radians per second, as far as limits and contacts allow
// (loop_reach.h). The same holds for loops that limits keep open: they stay open, and the limits hold.
#pragma once

#include <vector>

#include "simulator/contact_solvers.h"
#include "simulator/contact_warm_start.h"
#include "simulator/loop_midpoint.h"
#include "simulator/loop_reach.h"

namespace delassus {

class PositionCorrection {
 public:
  explicit PositionCorrection(const WorldDescription& world);

  // From v⁺ and errors at q, which is of the middle of the step for trees in loops. Returns the number of iterations.
  int find(ContactSolvers& solvers, RowSystem& s, const double* q, const std::vector<double>& v,
           const std::vector<double>& error, LoopMidpoint& loops, const WarmStart& start, ImpulseResponse& response);

  static constexpr double max_out_speed = 1.0;  // with which things come out of each other [m/s or rad/s]

  const std::vector<double>& velocity() const { return u_; }   // u, a velocity
  const std::vector<double>& asked() const { return asked_; }  // per row: J u + asked is zero where µ is not
  bool separated() const { return separated_; }  // the problem of all rows, where there was one, was solved
  // A penetration is just below the depth from which it is corrected.
  bool on_the_edge() const { return on_the_edge_; }
  bool shortened() const { return shortened_; }                // u is shorter than asked for
  const std::vector<double>& impulses() const { return mu_; }  // µ, a row
  const std::vector<double>& gaps_after() const {
    return gap_;
  }  // per row: of limits, spans and normals, with u [m or rad]
  double penalty() const { return penalty_; }                    // for the next step to start from
  double unreachable() const { return unreachable_; }            // velocity of loops' errors that no motion gives
  double max_ratio() const { return separated_ ? 100.0 : 2.0; }  // of u to the velocity that is asked for
  bool held_open() const { return held_open_; }                  // loops are not to be closed within this step

 private:
  struct Errors {
    bool open;    // a loop is
    bool off;     // a value that a span keeps is
    double deep;  // how deep something is inside of something [m or rad]
  };
  Errors ask(RowSystem& s, const double* q, const std::vector<double>& v, const std::vector<double>& error,
             LoopMidpoint& loops);
  int close_loops(RowSystem& s, LoopMidpoint& loops, ImpulseResponse& response, double& deep);
  void soften(const RowSystem& s, const LoopMidpoint& loops);
  void rest_contacts(const RowSystem& s);
  void leave_contacts(const RowSystem& s);
  bool slow_down(const RowSystem& s, const LoopMidpoint& loops);
  int approach(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops, const WarmStart& start, bool contacts,
               ImpulseResponse& response);
  int hold_limits(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops, ImpulseResponse& response);
  int separate(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops, const WarmStart& start,
               ImpulseResponse& response);

  const WorldDescription& world_;
  std::vector<double> moving_, u_;     // per velocity: what v⁺ still moves; u
  std::vector<double> asked_;          // per row: J w + φ / dt, the velocity that is to be undone
  std::vector<double> mu_, loops_mu_;  // per row: µ; µ of loops by themselves
  std::vector<double> limits_mu_;      // per row: of `hold_limits`
  std::vector<double> sigma_;          // per row: J u + asked, of the solvers
  std::vector<double> Ju_, gap_;       // per row
  double penalty_ = 0, unreachable_ = 0;
  double limits_deep_ = 0;  // how far beyond their limits joints are where loops are closed by themselves [m or rad]
  bool separated_ = true;   // the problem of all rows, where there was one, was solved
  bool held_open_ = false, shortened_ = false, on_the_edge_ = false;
  bool has_values_ = false;  // spans keep some
  LoopReach reach_;
  std::vector<double> softness_;  // per row, for `reach_`
  ForceSets only_limits_;         // position sets without contacts
};

// The largest velocity that rows of positions ask for.
double largest_asked(const RowSystem& s, const double* velocity);

// Near a dead centre a small error requires a large displacement, for which the linearisation does not hold: limits u
// to `max_ratio` times the requested velocity. Returns whether it was limited.
bool shorten(const RowSystem& s, const double* asked, double max_ratio, std::vector<double>& u);

}  // namespace delassus
