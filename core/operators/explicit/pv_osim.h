// The Delassus matrix by the Popov–Vereshchagin recursion (PV-OSIM): O(n + m² d) for depth d, two sweeps.
//
//   K_p = K_i (1 − S D⁻¹ Uᵀ),   L_p = L_i + K_i S D⁻¹ Sᵀ K_iᵀ,   G = L at the ground
//
// "PV-OSIMr: A Lowest Order Complexity Algorithm for Computing the Delassus Matrix", algorithm 1. The rank-one terms of
// a limb are added up at once.
#pragma once

#include "operators/explicit/rows.h"

namespace delassus {

// L of limb l: of the limbs that hang on it, and its own velocities'.
template <class T>
inline void add_limb(RowWork<T>& w, const Limb& limb, int dof, int dofs) {
  const std::size_t at = std::size_t(dof) * w.room;
  add_products(w.Z.data() + at, w.Y.data() + at, w.room, dofs, limb.first, limb.past, limb.first, limb.past, true,
               w.G.data(), w.room);
}

template <class T>
void pv_osim(RowWork<T>& w, const Articulated<T>& A) {
  w.clear();
  for (const auto& limb : w.tree.limbs) {
    climb_down(w, limb, A);
    add_limb(w, limb, limb.dof, limb.dofs + (limb.free >= 0 ? 6 : 0));
  }
}

}  // namespace delassus
