// Pinocchio's derivatives of tree dynamics behind a plain interface, so that its headers are compiled once.
//
// `add_state` converts to Pinocchio's coordinates, outside of any timing; the algorithms take the index of a state and
// leave their result where Pinocchio puts it; `inverse` and `forward` convert that result back, for comparison only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "robot.h"

namespace bench {

class PinocchioDerivatives {
 public:
  explicit PinocchioDerivatives(const Robot& robot);
  ~PinocchioDerivatives();

  static std::string version();
  static std::string eigen_version();
  int nq() const;
  int nv() const;
  void add_state(const State& state);

  void rnea(int state);  // computeRNEADerivatives
  void aba(int state);   // computeABADerivatives

  // by q, then by v, then M or M⁻¹: 3 nv × nv, row-major, in our coordinates
  std::vector<double> inverse(int state) const;
  std::vector<double> forward(int state) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace bench
