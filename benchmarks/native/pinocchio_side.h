// Pinocchio behind a plain interface, so that its headers are compiled once.
//
// `add_state` converts to Pinocchio's coordinates, outside of any timing; the algorithms take the index of a state and
// leave their result where Pinocchio puts it; `torque` … `columns` convert that result back, for comparison only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioSide {
 public:
  explicit PinocchioSide(const Robot& robot);
  ~PinocchioSide();

  static std::string version();
  static std::string eigen_version();
  int nq() const;
  int nv() const;
  void add_state(const State& state);
  void set_right_hand_sides(int state, const std::vector<double>& Y, int columns);  // nv × columns, row-major

  void rnea(int state);
  void crba_local(int state);
  void crba_world(int state);
  void aba_local(int state);
  void aba_world(int state);
  void minverse(int state);
  void solve_cholesky(int state);  // crba, Cholesky, solve in place
  void solve_minverse(int state);  // M⁻¹, product

  std::vector<double> torque(int state) const;
  std::vector<double> mass_matrix(int state) const;
  std::vector<double> acceleration(int state) const;
  std::vector<double> mass_matrix_inverse(int state) const;
  std::vector<double> columns(int state) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
