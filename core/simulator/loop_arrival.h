// The end of a step of trees with loops: q⁺ = q ⊕ dt w. Where loops are open there, Newton steps on their exact error
// follow, with the rows of the midpoint, as long as each halves the error. Loops that are meant to stay open are left
// out.
#pragma once

#include <vector>

#include "simulator/position_correction.h"

namespace delassus {

class LoopArrival {
 public:
  explicit LoopArrival(const WorldDescription& world) : world_(world) {}

  struct Result {
    double error;    // of loops at q⁺ [m or rad]
    int iterations;  // the most of any of Newton's steps
  };
  // w: velocity from q to q⁺, changed where loops had to be closed; next: q⁺.
  Result arrive(RowSystem& s, const std::vector<double>& q, LoopMidpoint& loops, const PositionCorrection& correction,
                ImpulseResponse& response, std::vector<double>& w, std::vector<double>& next);

 private:
  const WorldDescription& world_;
  std::vector<double> asked_, impulses_, open_;  // per row: error / dt, λ, what stays open
  std::vector<double> correction_, before_;      // per velocity: of a step; w before it
};

}  // namespace delassus
