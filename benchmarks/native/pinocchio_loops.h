// Pinocchio's explicit Delassus matrix and its damped inverse through loops (ConstraintCholeskyDecomposition, its only
// way with rows between two bodies) behind a plain interface.
//
// Constraints are points on two bodies, or on one and the ground; one state, the scene's, where its axes are ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioLoops {
 public:
  PinocchioLoops(const Robot& robot, double damping);
  ~PinocchioLoops();

  static std::string version();
  static std::string eigen_version();
  int rows() const;
  void form();    // G: M, its constraints and the sparse part of the factor
  void invert();  // (G + ε)⁻¹

  // rows × rows, both triangles
  std::vector<double> matrix();
  std::vector<double> inverse();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
