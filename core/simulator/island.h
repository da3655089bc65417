// An island: bodies that are connected by contacts or loops, and by nothing to any other body. It is a problem of its
// own, with its own penalty, stopping test and symbolic work. Its step:
//
//   rows                 row_system.h           which rows there are, and G = J M̂⁻¹ Jᵀ over them
//   free motion          free_motion.h          v_f; trees in loops in loop_midpoint.h
//   warm start           contact_warm_start.h   what the solvers start from
//   velocities           velocity_solve.h       λ; restitution.h: fast contacts bounce
//   position correction  position_correction.h  u
//   arrival              free_bodies.h          q⁺ = q ⊕ dt (v⁺ + u); how free bodies turn
//                        loop_arrival.h         with loops closed
//   judgement            judge.h                what is wrong at the end
//
// An impact may drive a joint through a limit that it was far from. If q⁺ is beyond a limit without a row, or will be
// in the middle of the next step, the limit gets a row and the step is repeated from the rows on.
#pragma once

#include <array>
#include <vector>

#include "simulator/free_motion.h"
#include "simulator/island_linearization.h"
#include "simulator/judge.h"
#include "simulator/loop_arrival.h"
#include "simulator/mocap.h"
#include "simulator/step_report.h"
#include "simulator/velocity_solve.h"

namespace delassus {

// The problem of an island's velocities, as it is given to the solver, with its matrix.
struct PosedProblem {
  std::vector<double> matrix, g, warm_start;  // (m, m), (m,), (m,) impulses that the solver starts from
  ForceSets sets;
  int loop_rows = 0, friction_rows = 0, limit_rows = 0;
  std::vector<Contact> contacts;
  std::vector<ContactFrame> frames;  // of contacts
};

// State of the world, and forces on joints and wrenches on bodies (null: none); by the numbers of the whole.
struct WorldState {
  const double *q, *v, *forces, *external;
  const SpanValues* spans;
  const std::vector<MocapMotion>* mocaps;
};

class Island {
 public:
  Island(const WorldDescription& whole, const TreeContents& contents, const std::vector<int>& trees, KeptSystems kept);
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;

  std::size_t last_use = 0, numbers = 0;                    // when it was used; which numbers of the whole it has
  const std::vector<int>& trees() const { return trees_; }  // by the numbers of the whole
  // Of each tree: by how much numbers of its links here differ from those of the whole.
  int link_shift(std::size_t tree) const { return part_.ranges[tree].link - part_.ranges[tree].whole_link; }
  // Contacts of a step, to be given before it, and their links by the numbers here, −1 for the ground.
  void clear_contacts() { rows_.contacts.clear(), rows_.links.clear(); }
  void add_contact(Contact& c, const std::array<int, 2>& links) {
    rows_.contacts.push_back(&c), rows_.links.push_back(links);
  }
  int systems() const { return systems_.size(); }
  std::uint64_t graph() const { return systems_.hash(); }  // of the rows of its last step
  // Copies the data of the whole world that may change (part.h).
  void read_numbers(const WorldDescription& whole) {
    part_.read_numbers(whole), systems_.read_numbers();
    if (linearization_) linearization_->read_numbers();
  }
  // The sizes that the work of its step grows with: velocities and contact rows.
  std::size_t size() const { return state_.v.size() + 3 * rows_.contacts.size(); }

  // One step. What is found stays here until `give`. Changes nothing but the island, the solvers and the report. A team
  // helps with the elimination of a large island; null: none does.
  void step(const WorldState& now, const StepMemory& before, ContactSolvers& solvers, Team* team, StepReport& report);
  // q, v, forces of all rows on joints, and what the next step may start from, to the whole.
  void give(double* q, double* v, double* row_forces, StepMemory& after) const;

  // Its last step to first order, with motions of contacts, of which `first` is that of the first of the world's; stays
  // until the next step. Contacts: which of the world's its own are, in order.
  IslandLinearization& linearize(const ContactMotions& motions, const Contact* first, double smoothing);
  IslandLinearization& linearization() { return *linearization_; }
  const std::vector<int>& linearized_contacts() const { return linearized_; }
  const WorldPart& part() const { return part_; }

  // The problem that `step` would solve first, without solving it: G, g, sets and what the solver starts from.
  void pose_problem(const WorldState& now, const StepMemory& before, StepReport& report, PosedProblem& problem);

 private:
  void take(const WorldState& now, StepReport& report);
  void take_spans(const SpanValues& whole);
  void carry_loops(const std::vector<MocapMotion>& mocaps);
  bool place_mocaps(const std::vector<MocapMotion>& mocaps, Pose<double> MocapMotion::*when);
  void meet_mocaps(const RowSystem& s);
  void meet_surfaces(const RowSystem& s);
  RowSystem* pose(const StepMemory& before, ContactSolvers& solvers, StepReport& report, StageClock& clock);
  RowSystem* pose_again(const StepMemory& before, ContactSolvers& solvers, StepReport& report, StageClock& clock);
  double move(RowSystem& s, ContactSolvers& solvers, ContactReport& solved, StepReport& report, StageClock& clock);
  LoopArrival::Result arrive(RowSystem& s);

  WorldPart part_;
  const WorldDescription& world_;  // of the part
  std::vector<int> trees_;
  LoopMidpoint loops_;
  FreeBodies bodies_;
  FreeMotion free_motion_;
  RowSystemCache systems_;
  ImpulseResponse response_;
  SpanInertia inertia_;
  WarmStart start_;
  VelocitySolve velocities_;
  PositionCorrection correction_;
  LoopArrival arrival_;

  IslandState state_;
  SpanValues spans_;
  std::vector<MocapBody> mocap_bodies_;  // of the part, by its numbers
  std::vector<int> body_mocap_;          // per body of the whole: which one moves it, −1: none; empty: there are none
  const std::vector<MocapMotion>* mocaps_ = nullptr;  // of this step
  // per row of loops: how errors change because of mocap bodies; the same as far as loops can follow; errors
  std::vector<double> carried_, followed_, loop_errors_;
  LoopReach reach_;
  ActiveRows rows_;
  Team* team_ = nullptr;                                // of this step
  std::vector<double> next_q_, next_v_;                 // q⁺, v⁺
  std::vector<double> row_forces_;                      // per velocity: Jᵀ λ / dt, of all rows but those of inertia
  std::vector<double> way_;                             // per velocity: from state_.q to q⁺ over dt
  RowSystem* last_system_ = nullptr;                    // of the last step
  std::unique_ptr<IslandLinearization> linearization_;  // null: nobody asked
  std::vector<int> linearized_;
  std::vector<const ContactMotion*> motions_;
};

}  // namespace delassus
