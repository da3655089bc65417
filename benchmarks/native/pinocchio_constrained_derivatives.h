// Pinocchio's derivatives of constrained dynamics behind a plain interface, so that its headers are compiled once.
//
// Constraints are points and welds on the ground, rows in world axes. `add_state` converts to Pinocchio's coordinates,
// outside of any timing; the algorithms take the index of a state and leave their result where Pinocchio puts it;
// `result` converts that back, for comparison only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioConstrainedDerivatives {
 public:
  explicit PinocchioConstrainedDerivatives(const Robot& robot);
  ~PinocchioConstrainedDerivatives();

  static std::string version();
  static std::string eigen_version();
  int nq() const;
  int nv() const;
  int rows() const;
  void add_state(const State& state);

  void dynamics(int state);     // constraintDynamics, without damping, one iteration
  void derivatives(int state);  // computeConstraintDynamicsDerivatives, after the former

  // ∂ν̇ by q, v and τ, then ∂λ by the same, row-major, in our coordinates
  std::vector<std::vector<double>> result(int state) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
