// Inertia of spans: a tendon whose length ℓ changes has the kinetic energy ½ a ℓ̇², so that M becomes M + a cᵀ c with
// c = dℓ/dq. As a row with a compliance of its own, over a step,
//
//   c v⁺ + λ / a = c v        the impulse on the joints is cᵀ λ
//
// which gives the same v⁺ as that matrix. Its response to the smooth forces is computed first, with the small dense
// matrix S = C + J M̂⁻¹ Jᵀ of these rows, and is part of the free motion. Its response to contacts, limits and loops is
// solved together with these: in the island's problem it is an equality row with C = 1 / a added to G's diagonal, and
// the status checks the law above. The force a cᵀ ċ v is MuJoCo's (mujoco_mirror.h).
#pragma once

#include <vector>

#include "simulator/row_system.h"

namespace delassus {

class SpanInertia {
 public:
  // After G was updated. Does nothing where a system has no such row, nor do the others then.
  void begin(RowSystem& s, std::size_t velocities);
  // Accelerations that joints have without inertia of spans: those that they have with it, a − M̂⁻¹ Jᵀ S⁻¹ J a.
  void resist(std::vector<double>& a);
  // g of these rows by their law, from g = J v_f where v_f = v + dt a of the last call: zero but for rounding.
  void aim(const RowSystem& s, double dt, const double* v, std::vector<double>& g);
  // forces −= Jᵀ λ of these rows.
  void take_out(const RowSystem& s, const std::vector<double>& impulses, std::vector<double>& forces) const;

 private:
  void project(const double* v, std::vector<double>& y) const;

  std::size_t count_ = 0;
  std::vector<double> units_;          // rows × count
  std::vector<double> Jt_, W_;         // velocities × count: Jᵀ, M̂⁻¹ Jᵀ
  std::vector<double> S_, floors_;     // its Cholesky factor; least pivots
  std::vector<double> answer_, rate_;  // per row of inertia: S⁻¹ J a; c v
};

}  // namespace delassus
