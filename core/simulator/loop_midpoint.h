// Trees with loops: a second-order step.
//
//   q½ = q ⊕ ½ dt v,   M̂ (v⁺ − v) = dt (τ − h(q½, v½)) + Jᵀ λ,   J v⁺ = −½ dt J̇v,   q⁺ = q½ ⊕ dt (½ v⁺ + u)
//
// with M̂, J and contacts at q½. The rows hold at the end of the step, as they held at its start, where J v = ½ dt J̇v.
// So the work of loop impulses, ½ λᵀ J (v + v⁺), before the midpoint cancels that after it.
//
// The equation for J v⁺ also decides what happens to the velocity error r at the start:
//
//   J v⁺ = −½ dt J̇v − k r,   r = J v − ½ dt J̇v          k: the part of the error that is kept
//
// k = 1, J v⁺ = −J v, conserves energy exactly, but r then persists and changes sign in every step. k = 0 removes r at
// once, but near a dead centre this divides by almost zero. So k = ½ in calm motion; otherwise k = 0, or 1 where
// removing r would add energy. The part of J̇v that no motion can produce is left out, so these velocities are always
// feasible.
//
// While a loop is far open, J v⁺ = 0, even if a moving body drives the loop, and only positions are corrected: there is
// no motion on the constraint to follow, and if limits keep the loop open it is at a dead centre. v⁺ is then v_f
// projected on the rows, which adds no energy.
#pragma once

#include <memory>
#include <vector>

#include "simulator/loop_closure.h"
#include "simulator/row_system.h"

namespace delassus {

class LoopMidpoint {
 public:
  explicit LoopMidpoint(const WorldDescription& world);

  int rows() const { return rows_; }  // of loops; 0: there are none, and nothing below is called
  double size() const { return size_; }
  // Per velocity: the share of the step that v⁺ moves, ½ of trees in loops, else 1.
  const std::vector<double>& remaining() const { return remaining_; }
  LoopClosure& closure() { return closure_; }

  // Errors of the loops at q [m or rad], and the largest of them. A step begins where the one before ended: of the same
  // q they are known already.
  double find_errors(const double* q);
  const std::vector<double>& errors() const { return error_; }
  // The same at the start of a step, and whether a loop is far open there.
  double find_start_errors(const double* q);
  // What is fixed to the world has moved: errors are not known.
  void forget_errors();
  bool far() const { return far_; }
  // Per row: how errors change because what leads them moves within the step, and the part of it that v⁺ follows
  // [m/s or rad/s].
  void carry(const std::vector<double>& rates, const std::vector<double>& followed) {
    rates_ = rates, carried_ = followed, led_ = true;
  }
  const std::vector<double>& leading_rates() const { return rates_; }
  // Bodies that a user moves lead some of the loops.
  bool led() const { return led_; }

  // q ← q ⊕ ½ dt v of trees in loops
  void go_half_way(const std::vector<WorldPart::Range>& trees, double* q, const double* v);

  // At v, after G was updated at q and `motions` found at v: J v, J̇v, and how much of r is kept.
  void begin(RowSystem& s, const double* q, const double* v, const Motions<double>& motions);
  // half += ½ M̂⁻¹ Jᵀ λ with λ of loops by themselves, for a free velocity of first order. Without it the velocity of
  // the middle is only of first order.
  void bend(RowSystem& s, ImpulseResponse& response, const std::vector<double>& free, std::vector<double>& half);
  // At the velocity of the middle, after `motions` were found at it: J̇v again, unless motion is calm.
  void revise(RowSystem& s, const double* q, const double* half, const Motions<double>& motions);

  // g of loops: J v_f on entry, minus the wanted J v⁺ added on exit; J v of rows that are carried along counts from
  // how they are carried.
  void aim(double* g) const;
  // λ of loops by themselves that `bend` found; zero without it. All rows of the system.
  const std::vector<double>& impulses() const { return impulses_; }

  // What `aim` asks for: J v⁺ = −half J̇ν − kept (J v − half J̇ν), with ν the velocity at the start of a calm step, else
  // that of the middle.
  struct Aim {
    double half, kept;
    bool calm;
  };
  Aim aim() const { return {far_ ? 0.0 : 0.5 * world_.options.timestep, far_ ? 0.0 : kept_, calm_}; }

  // ½ dt J̇w of loops, added to g: how they curve while moving with w.
  void add_curve(RowSystem& s, const double* q, const double* w, double* g);

 private:
  void find_drift(RowSystem& s, const double* q, const double* x, const Motions<double>& motions);
  void choose_kept();

  const WorldDescription& world_;
  int rows_ = 0;
  double size_ = 0;  // of the mechanism with loops, a metre at most [m]
  std::vector<double> remaining_;
  ConstraintSet<double> loops_;
  std::unique_ptr<Placement<double>> placement_;  // at which errors are found
  LoopClosure closure_;
  Motions<double> motions_;      // of `add_curve`
  std::vector<double> halfway_;  // per coordinate
  std::vector<double> known_q_;  // per coordinate: at which errors were found
  double largest_error_ = 0;
  std::vector<double> error_, drift_;             // per row of loops; drift: J̇v
  std::vector<double> rates_, carried_;           // per row of loops
  std::vector<double> start_;                     // per row: J v
  std::vector<double> row_velocity_, row_drift_;  // per row: what `rates` gives
  std::vector<double> free_rows_, open_rows_;     // per row: of `bend`, g of loops by themselves, and what stays open
  std::vector<double> impulses_;                  // per row
  bool led_ = false;
  bool far_ = false;  // a loop is far open
  bool calm_ = true;  // r is as small as steps of second order leave it
  double kept_ = 0;   // k
};

}  // namespace delassus
