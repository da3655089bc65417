// Pinocchio's Delassus operators behind a plain interface, so that its headers are compiled once.
//
// The matrix-free one is DelassusOperatorRigidBodySystems, the explicit one ConstraintCholeskyDecomposition (LTL).
// `add_state`, `set_inputs` and `kinematics` prepare, outside of any timing; the verbs take the index of an input and
// leave their result in `result`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioOperator {
 public:
  virtual ~PinocchioOperator() = default;

  static std::string version();
  static std::string eigen_version();

  virtual int rows() const = 0;
  virtual void add_state(const std::vector<double>& q) = 0;
  // several vectors of `rows` numbers, and as many dampings, one number a row
  virtual void set_inputs(const std::vector<std::vector<double>>& vectors,
                          const std::vector<std::vector<double>>& dampings) = 0;
  virtual std::vector<double> result() const = 0;

  virtual void kinematics(int state) = 0;                     // joint Jacobians and rows, damping 0 set
  virtual void first_apply(int k) = 0;                        // factor of M, G x
  virtual void apply(int k) = 0;                              // G x
  virtual void first_solve(int k) = 0;                        // factor with damping, (G + ε)⁻¹ y
  virtual void solve(int k) = 0;                              // (G + ε)⁻¹ y
  virtual void damp_solve(int k) = 0;                         // damping k, factor, (G + ε)⁻¹ y
  virtual void state_apply_placements(int state, int k) = 0;  // from q to G x: placements of joints only
  virtual void state_apply_jacobians(int state, int k) = 0;   // from q to G x: joint Jacobians too

  virtual void ltl_kinematics(int state) = 0;  // mass matrix, joint Jacobians and rows, damping 0 set
  virtual void ltl_first_apply(int k) = 0;
  virtual void ltl_apply(int k) = 0;
  virtual void ltl_first_solve(int k) = 0;
  virtual void ltl_solve(int k) = 0;
  virtual void ltl_damp_solve(int k) = 0;
  virtual void ltl_state_apply(int state, int k) = 0;
};

// Constraints in a vector of one type, without dispatch: point contacts only. Null if the robot has other constraints.
std::unique_ptr<PinocchioOperator> pinocchio_points(const Robot& robot, bool with_ltl);
// Constraints in a vector of Pinocchio's variant: any.
std::unique_ptr<PinocchioOperator> pinocchio_variants(const Robot& robot, bool with_ltl);

}  // namespace bench
