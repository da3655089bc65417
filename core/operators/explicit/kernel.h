// Inverse inertia of every tip, all joints below it free to move: a base-to-tips sweep, O(n).
//
//   Ωᵢ = (1 − S D⁻¹ Uᵀ) Ω_p (1 − U D⁻¹ Sᵀ) + S D⁻¹ Sᵀ = Ω_p − S zᵀ − z Sᵀ,   V = U D⁻¹,
//       z = Ω_p V − ½ (Vᵀ Ω_p V + D⁻¹) S
#pragma once

#include "operators/explicit/rows.h"

namespace delassus {

template <class T>
void find_kernel(const Limbs& tree, const Articulated<T>& A, Sym6<T>* Omega) {
  for (std::size_t l = tree.limbs.size(); l-- > 0;) {
    const auto& limb = tree.limbs[l];
    Sym6<T> O{};
    if (limb.parent >= 0)
      O = Omega[limb.parent];
    else if (limb.free >= 0)
      O = inverse(A.free[limb.free]);
    for (int t = limb.base() - 1; t >= limb.dof; --t) {
      const int v = tree.velocity[t];
      const Vec6<T> S = A.S[v], u = O * A.V[v];
      const Vec6<T> z = u - S * ((dot(A.V[v], u) + A.Dinv[v]) * real_of<T>(0.5));
      subtract_pair(O, S, z);
    }
    Omega[l] = O;
  }
}

}  // namespace delassus
