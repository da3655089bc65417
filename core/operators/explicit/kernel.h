// Inverse inertia of every tip, all joints below it free to move: a base-to-tips sweep along limbs, O(n)
// (inverse_inertia.h has the equation).
#pragma once

#include "operators/explicit/rows.h"
#include "operators/inverse_inertia.h"

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
      pass_joint(O, A.S[v], A.V[v], A.Dinv[v]);
    }
    Omega[l] = O;
  }
}

}  // namespace delassus
