// Operational space of the rows of an operator: inertia Λ, dynamically consistent pseudo-inverse J̄, null space N.
//
//     Λ y   from λ = 0, a fixed number of times   λ ← λ + (G + ε)⁻¹ (y − G λ)
//     J̄ y  = M⁻¹ Jᵀ Λ y          J̄ᵀ τ = Λ J M⁻¹ τ
//     N v   = v − J̄ J v           Nᵀ τ  = τ − Jᵀ J̄ᵀ τ
//
// O(n + m) per column, without a matrix. Small matrices are even cheaper to multiply with. They are formed, from m
// columns of Λ, M⁻¹ Jᵀ and J, after m / 2 products since the last update of the operator: callers with many products
// gain, and callers with few never pay for them.
//
// Khatib, "A unified approach for motion and force control of robot manipulators: the operational space formulation",
// IEEE J. Robotics and Automation 3(1), 1987.
#pragma once

#include <array>
#include <vector>

#include "operators/verbs.h"

namespace delassus {

enum class OperationalMap : int { inertia, pseudo_inverse, null_space };

template <class Real>
class OperationalSpace {
 public:
  // The operator is looked at for as long as this lives.
  OperationalSpace(Operator<Real>& G, int velocities, int iterations);

  int rows_of(OperationalMap map) const { return map == OperationalMap::inertia ? m_ : n_; }
  int columns_of(OperationalMap map) const { return map == OperationalMap::null_space ? n_ : m_; }

  // Y = map X, or mapᵀ X, of some columns, row-major. `version` identifies the operator's last update: matrices of
  // another version are discarded. Returns the largest backward error of the solutions behind Y.
  Real apply(OperationalMap map, bool transposed, std::size_t version, const Real* X, int columns, Real* Y,
             const Accuracy<Real>& wanted);

 private:
  bool pays(OperationalMap map) const;
  void form(OperationalMap map, const Accuracy<Real>& wanted);
  Real sweep(OperationalMap map, bool transposed, const Real* X, int columns, Real* Y, const Accuracy<Real>& wanted);
  Real forces(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted);
  Real velocities(const Real* Y, int columns, Real* V, const Accuracy<Real>& wanted);
  Real row_forces(const Real* tau, int columns, Real* lambda, const Accuracy<Real>& wanted);

  Operator<Real>& G_;
  int n_, m_, iterations_;

  // At the numbers of `version_`: columns asked for, matrices formed, and the backward error of the solutions in them.
  std::size_t version_ = 0;
  int asked_ = 0;
  std::array<bool, 3> formed_{};
  std::array<std::vector<Real>, 3> matrices_;
  Real error_{};

  std::vector<Real> residual_, correction_, rows_, lambda_, accelerations_, identity_, transposed_, panel_;
};

}  // namespace delassus
