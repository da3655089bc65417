// The middle of a step of trees that touch something, press against a limit or rub: the velocity at which h is taken
// (free_motion.h) includes what their rows do,
//
//   v½ = v + ½ (dt α₀ + M̂⁻¹ Jᵀ λ̂),   α₀ = M̂⁻¹ (τ − h(q, v))
//
// with the impulses λ̂ of the same rows in the previous step. Without them a leg that the floor carries would have the
// Coriolis forces of a leg that is being driven through the floor, although nothing moves.
//
// λ̂ must be about what is needed now. After an impact it is too large, and where a contact opens it is no longer
// needed: over the rows that only push,
//
//   −Σ λ̂ (J (v + dt α₀) + gap / dt) ≥ ½ Σ λ̂ J M̂⁻¹ Jᵀ λ̂
//
// or else, as where a contact closes in this step, v½ = v. Loops find impulses of their own (loop_midpoint.h).
#pragma once

#include <vector>

#include "simulator/contact_warm_start.h"

namespace delassus {

class ContactMidpoint {
 public:
  enum class Rule {
    free,   // nothing presses: λ̂ is zero, or dry friction's alone
    held,   // λ̂ holds
    start,  // v½ = v
  };

  explicit ContactMidpoint(std::size_t nv) : response_(nv, 0.0) {}

  // free: v + dt α₀.
  Rule find(const StepOptions& options, RowSystem& s, const ActiveRows& rows, const std::vector<double>& error,
            const WarmStart& start, std::size_t loop_rows, ImpulseResponse& response, const std::vector<double>& free);
  const std::vector<double>& impulses() const { return impulses_; }  // λ̂ per row
  const std::vector<double>& response() const { return response_; }  // M̂⁻¹ Jᵀ λ̂

 private:
  std::vector<double> impulses_;           // per row
  std::vector<double> response_;           // per velocity
  std::vector<double> approach_, change_;  // per row: J (v + dt α₀) + gap / dt;  J M̂⁻¹ Jᵀ λ̂
};

}  // namespace delassus
