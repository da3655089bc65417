// A world of rigid bodies with contacts, and its time steps. One step:
//
//   collide      contacts at q, with gaps φ                                                 collider.h
//                points of the step before where faces rest on each other                   contact_persistence.h
//                points of a face in one plane                                              contact_patches.h
//                impulses to start from                                                     contact_warm_start.h
//   mocap        velocities of bodies that a user moves                                     mocap.h
//   spans        lengths of tendons, angles of balls                                        spans.h
//   islands      trees that contacts and loops tie together, each a problem of its own      islands.h, island.h
//                several at once, where there are threads                                   island_team.h
//   constrain    rows of loops, dry friction, limits that are near, contacts                row_system.h
//   free motion  v_f = v + dt M̂⁻¹ (τ − h − K (q − q₀) − (D + dt K) v)                       actuation.h, free_motion.h
//                τ with all that MuJoCo computes                                            mujoco_mirror.h
//                M̂ = M + dt D + dt² K: springs, dampers and servos act at the end of the step
//   solve        λ in its set, σ = G λ + J v_f + max(φ − slop, 0) / dt                      velocity_solve.h
//                Signorini and Coulomb on velocities, G = J M̂⁻¹ Jᵀ
//   bounce       what compression took is given back times e, then nothing may go in again  restitution.h
//   correct      positions alone, where bodies are in each other or loops are open          position_correction.h
//                u = M̂⁻¹ Jᵀ µ with 0 ≤ µ_n ⊥ J u + φ⁺ / dt ≥ 0; it moves q and no velocity
//   integrate    v ← v_f + M̂⁻¹ Jᵀ λ,   q ← q ⊕ dt (v + u)
//                free bodies of one link turn after the impulses                            free_bodies.h
//   judge        loops, limits and gaps as they are now                                     judge.h
//                whether anything went through something on its way                         tunnelling.h
//   sleep        islands at rest are left alone until something happens to them             sleep.h
//
// Trees with loops are evaluated in the middle of the step, q½ = q ⊕ ½ dt v, and q ← q½ ⊕ dt (½ v⁺ + u): a second-order
// step (loop_midpoint.h). Free single-link bodies rotate after the impulses, by the midpoint rule on SO(3), so that
// contacts between them conserve momentum.
#pragma once

#include <memory>
#include <vector>

#include "simulator/actuation.h"
#include "simulator/contact_patches.h"
#include "simulator/contact_persistence.h"
#include "simulator/island_team.h"
#include "simulator/islands.h"
#include "simulator/mujoco_mirror.h"
#include "simulator/sleep.h"
#include "simulator/tunnelling.h"

namespace delassus {

// What acts during a step; null for none.
struct StepForces {
  const double* tau = nullptr;       // (nv,) forces on joints
  const double* control = nullptr;   // (nu,) of actuators
  const double* external = nullptr;  // (nbody, 6) wrenches on bodies
};

class World {
 public:
  // mirror: its model is null where MuJoCo computes no forces. threads: that step islands; results are the same for any
  // number of them. kept: systems of rows, by each island.
  World(std::shared_ptr<const WorldDescription> description, const CollisionSource& collisions,
        const MirrorSource& mirror, int threads = 1, KeptSystems kept = {});

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const WorldDescription& description() const { return *world_; }
  const std::shared_ptr<const WorldDescription>& shared_description() const { return world_; }
  Collider& collider() { return collider_; }
  MujocoMirror* mirror() { return mirror_.get(); }  // null: there is none
  // Numbers of the description were changed by its owner: options but the timestep, inertias, armature, gravity,
  // springs, dampers, motors, friction loss, sizes of shapes. Whether joints of a free link have armature at all stays
  // as it was.
  void read_numbers() { islands_.read_numbers(), sleep_.read_numbers(), tunnelling_.read_numbers(); }
  int systems() const { return islands_.systems(); }
  // Of the rows of the last step: the same number for the same links that touch.
  std::uint64_t graph() const;

  std::vector<double> q, v;
  std::vector<double> hidden;             // the rest of MuJoCo's state: activations, what plugins and delays keep
  std::vector<double> mocap, mocap_goal;  // of bodies that a user moves: positions of all, then quaternions; goals
  double time = 0;
  StepMemory memory;
  std::vector<double> row_forces;  // per velocity: of contacts, loops, limits and dry friction in the last step; of
                                   // what sleeps in its last step awake

  // One step. Where MuJoCo could not find contacts, or the mass matrix is singular, which the report tells, state and
  // memory stay as they were; likewise where there are more contacts than a step takes, a CapacityError.
  StepReport step(const StepForces& forces);

  // Whether the state is one to go on from: its numbers, and their products, are finite.
  bool is_finite() const;

  // Back to where the last step, which came to its end, began; once after each. Forces of rows stay.
  void undo_step();

  // Takes over the state of a world of the same model with other loops, and its contacts with their impulses. The
  // memory of loop rows is dropped, and nothing sleeps.
  void take_over(const World& other);

  // The problems of velocities that the next step would solve first, one for each island that is awake; state and
  // memory stay as they are. The report tells whether MuJoCo found contacts, and whether the mass matrix is regular.
  StepReport pose(const StepForces& forces, std::vector<PosedProblem>& problems);

  // Forces of springs, dampers and actuators and of all that MuJoCo computes, at the present state, per velocity; null:
  // MuJoCo could not go on. They stay until the next call of anything here.
  const std::vector<double>* find_smooth_forces(const double* control);

  // Tendons with inertia, where find_smooth_forces was called last: armatures a, and rates c of their lengths, a row of
  // all velocities each. Forces of their inertia, −a cᵀ c v̇, are not in the smooth forces.
  void find_tendon_inertia(std::vector<double>& armatures, std::vector<double>& rates);

  // Of the last step: islands that stepped, contacts as they were found, and those of the step before.
  const std::vector<Island*>& islands() const { return *used_; }
  const std::vector<Touch>& touches() const { return touches_; }
  const std::vector<Contact>& contacts_before() const { return next_memory_.contacts; }
  bool sleeps() const { return sleep_.any(); }
  // Puts the collider where contacts of the last step were looked for.
  bool look_again();
  // How forces on joints follow the present state and these controls: ours, and by central differences those that
  // MuJoCo computes (nv × nv by q, by v, nv × controls, row-major; empty where it computes none). False: MuJoCo could
  // not go on.
  struct MirrorRates {
    std::vector<double> by_q, by_v, by_control;
  };
  bool find_force_rates(const double* control, int controls, ForceRates& ours, MirrorRates& others);

  // What MuJoCo said where it could not go on; empty where it could.
  const std::string& failure() const;

 private:
  bool find_forces(const StepForces& forces, double dt);
  bool start_step(const StepForces& forces);
  void sleep_on(StepReport& report);
  bool find_islands();
  bool find_contacts();
  void find_looked_at(std::vector<double>& looked_at) const;
  void finish_step(const StepForces& forces);
  bool check_tunnelling(StepReport& report);

  std::shared_ptr<const WorldDescription> world_;
  Collider collider_;
  std::unique_ptr<MujocoMirror> mirror_;
  ContactPersistence persistence_;
  ContactPatches patches_;
  Islands islands_;
  IslandTeam team_;
  Sleep sleep_;
  TunnellingCheck tunnelling_;
  std::size_t row_count_ = 0;  // of loops and dry friction
  const std::vector<Island*>* used_ = nullptr;
  std::vector<Touch> touches_, again_;         // of the step; of `look_again`
  std::vector<double> forces_, motor_forces_;  // per velocity
  SpanValues spans_;
  std::vector<char> in_loops_;                      // per velocity: of a tree in loops; empty: there is none
  std::vector<double> looked_at_, next_looked_at_;  // per coordinate: where contacts were looked for, and will be
  StepMemory next_memory_;                          // until the step is finished; then that of the step before
  std::vector<double> last_q_, last_v_;             // before the step
  std::vector<double> next_hidden_, last_hidden_;   // after the step; before it
  std::vector<double> next_mocap_, last_mocap_;
  std::vector<MocapMotion> mocaps_;
  double last_time_ = 0;
  bool slept_ = false;  // in the last step everything slept
};

}  // namespace delassus
