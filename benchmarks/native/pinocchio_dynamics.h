// Pinocchio's constrained dynamics behind a plain interface, so that its headers are compiled once.
//
// Constraints are points and welds on the ground. `add_state` converts to Pinocchio's coordinates, outside of any
// timing; a way takes the index of a state and leaves its result where Pinocchio puts it; `acceleration` runs a way and
// converts its result to ours, for comparison only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioDynamics {
 public:
  PinocchioDynamics(const Robot& robot, double damping, int iterations);
  ~PinocchioDynamics();

  static std::string version();
  static std::string eigen_version();
  int rows() const;
  // v of a state becomes the nearest one, in the metric of M, that keeps the constraints: J v = 0
  void make_consistent(State& state) const;
  void add_state(const State& state);

  enum Way { ltl, pv, caba, lcaba, ways };
  static const char* name(Way way);
  void solve(Way way, int state);
  int iterations(Way way) const;  // of the last call; 0 where Pinocchio does not say

  // nv, ours
  std::vector<double> acceleration(Way way, int state);
  // by definition: dense M, J and J̇v, the constraints to the last digit, least squares where they are redundant
  std::vector<double> dense(int state) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
