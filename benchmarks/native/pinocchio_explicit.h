// Pinocchio's explicit Delassus matrices and their damped inverses behind a plain interface, so that its headers are
// compiled once.
//
// Constraints are points and welds on the ground. `add_state` converts to Pinocchio's coordinates, outside of any
// timing; a way takes the index of a state and leaves its result where Pinocchio puts it; `matrix` and `inverse` run a
// way and convert its result to ours, for comparison only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioExplicit {
 public:
  PinocchioExplicit(const Robot& robot, double damping);
  ~PinocchioExplicit();

  static std::string version();
  static std::string eigen_version();
  int rows() const;
  void add_state(const std::vector<double>& q);

  enum Way { efpa, pv_osimr, ltl, ways };
  static const char* matrix_name(Way way);
  static const char* inverse_name(Way way);
  void form(Way way, int state);    // G
  void invert(Way way, int state);  // (G + ε)⁻¹

  // rows × rows, both triangles, in our axes
  std::vector<double> matrix(Way way, int state);
  std::vector<double> inverse(Way way, int state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
