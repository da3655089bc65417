// Derivatives of forward dynamics ν̇(q, ν, τ), together with ν̇ and M⁻¹.
//
//   ∂ν̇/∂τ = M⁻¹,   ∂ν̇/∂q = −M⁻¹ ∂τ/∂q,   ∂ν̇/∂ν = −M⁻¹ ∂τ/∂ν      at ν̇, from τ(q, ν, ν̇(q, ν, τ)) = τ
//
// Carpentier, Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018, section III-D.
#pragma once

#include "derivatives/rnea_derivatives.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"

namespace delassus {

// After `kinematics`. tau may be null (zero), external may be null (none). vdot: nv; the others nv × nv, row-major.
// Returns whether M is regular; if not, the results mean nothing.
template <class T>
bool aba_derivatives(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, const T* tau,
                     const T* external, T* vdot, T* vdot_q, T* vdot_v, T* Minv) {
  aba(model, w, v, tau, external, vdot);
  const bool regular = is_regular(model, w);
  rnea_derivatives(model, w, v, vdot, external, static_cast<T*>(nullptr), vdot_q, vdot_v, Minv);
  mass_matrix_inverse(model, w, Minv);
  for (T* X : {vdot_q, vdot_v}) {
    solve_mass_matrix(model, w, X, model.nv, X);
    for (std::size_t e = 0; e < std::size_t(model.nv) * model.nv; ++e) X[e] = -X[e];
  }
  return regular;
}

}  // namespace delassus
