// Anderson's extrapolation of a fixed-point iteration s ← s + f(s): the combination of the last steps whose f is
// smallest.
//
//   γ = argmin ‖f − Σ γₖ ΔFₖ‖² + tiny ‖γ‖²,   s ← s + f − Σ γₖ (ΔSₖ + ΔFₖ)
#pragma once

#include "solvers/contacts/problem.h"

namespace delassus {

class Anderson {
 public:
  static constexpr int memory = 8;

  void resize(int n);
  void forget() { count_ = next_ = 0, begun_ = false; }

  // s: where f was found. Returns whether `to` is an extrapolation; the first time it is the plain step. `to` may be s.
  bool advance(const double* s, const double* f, double* to);

 private:
  // γ, if ΔF has independent columns
  bool weigh(const double* f, double* gamma);
  // to ← s + f − Σ γ (ΔS + ΔF)
  void combine(const double* gamma, int count, double* to) const;

  int n_ = 0, count_ = 0, next_ = 0;  // rows, columns of ΔF and ΔS, the column that comes next
  bool begun_ = false;
  std::vector<double> s_, f_, change_, step_;  // of the step before; ΔF, ΔS + ΔF by columns
  double gram_[memory][memory]{};              // ΔFᵀ ΔF
};

}  // namespace delassus
