// Derivatives of a world's step: how q⁺ and v⁺ change with q and v, joint forces, controls and contact friction. Each
// island is differentiated separately (island_linearization.h), joint forces for the whole world (actuation.h).
#pragma once

#include "simulator/world.h"

namespace delassus {

class StepLinearization {
 public:
  // controls: how many there are. The world outlives it.
  StepLinearization(World& world, int controls);

  // Takes the step with these forces and finds its derivatives. The world is after the step then; undo_step goes back,
  // and derivatives stay until the next step. Where the report says that it could not, there are none, and the world is
  // as it was but for forces of rows. smoothing: κ of the law of contacts [J], 0: as it is (island_linearization.h).
  StepReport update(const StepForces& forces, double smoothing);
  const StepGaps& gaps() const { return gaps_; }
  std::size_t contacts() const { return contacts_; }
  // Per contact of the step: its mode, and whether it is about to change it. Contacts of what sleeps are open.
  const std::vector<char>& contact_modes() const { return modes_; }
  const std::vector<char>& contact_kinks() const { return kinks_; }
  // Whether a limit or dry friction is about to change its mode; whether positions are about to be corrected.
  bool row_kinks() const { return row_kinks_; }
  bool correction_kink() const { return correction_kink_; }
  // Whether impulses are not unique: their change is the least of all that do the same.
  bool redundant() const { return redundant_; }

  // Directions of q, v, forces on joints (nv × columns, row-major), controls (controls × columns), friction and
  // restitution of contacts (contacts × columns); null: zero.
  struct Direction {
    const double *q, *v, *tau, *control, *friction, *restitution;
    int columns;
  };
  // dq⁺ and dv⁺ (nv × columns).
  void tangents(const Direction& d, double* next_dq, double* next_dv);
  // Where adjoints go; those of parameters may be null: inertial parameters of bodies (10 bodies × columns,
  // regressor.h), the armature of M̂ (nv × columns), restitution (contacts × columns).
  struct Bars {
    double *q, *v, *tau, *control, *friction, *inertial, *armature, *restitution;
    int columns;
  };
  // The adjoint of q_bar · q⁺ + v_bar · v⁺; null: zero.
  void adjoints(const double* next_q_bar, const double* next_v_bar, const Bars& to);

 private:
  using Numbers = std::vector<double>;
  void find_modes(Island& island);

  World& world_;
  std::size_t n_, controls_, contacts_ = 0;
  std::vector<Island*> islands_;
  ContactMotions motions_;
  ForceRates rates_;
  World::MirrorRates others_;
  StepGaps gaps_;
  std::vector<char> modes_, kinks_;  // per contact
  bool row_kinks_ = false, correction_kink_ = false, redundant_ = false;
  Numbers zero_, force_;                                                 // nv × columns
  Numbers part_q_, part_v_, part_f_, part_mu_, part_e_, end_q_, end_v_;  // of an island
  Numbers part_inertial_, part_armature_;
};

}  // namespace delassus
