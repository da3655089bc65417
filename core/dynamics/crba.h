// Mass matrix M(q) by composite rigid bodies, O(n d) for depth d.
//
//   I^c_p += I^c_i,   F_k = I^c S_k,   M_jk = S_jᵀ F_k for every velocity j between k and the ground,   M_kk += armature
//
// Featherstone, Rigid Body Dynamics Algorithms, table 6.2.
#pragma once

#include "dynamics/inertia.h"

namespace delassus {

// M: nv × nv, both triangles. Entries that the tree's branches make zero are written only if `clear`.
template <class T>
void crba(const Model<real_of<T>>& model, Workspace<T>& w, T* __restrict M, bool clear = true) {
  const int nl = int(model.links.size()), nv = model.nv;
  if (clear)
    for (std::size_t e = 0; e < std::size_t(nv) * nv; ++e) M[e] = T{};

  for (int i = 0; i < nl; ++i) w.composite[i] = world_inertia(model.links[i], w.pose[i]);

  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    const Inertia<T>& Ic = w.composite[i];
    if (link.parent >= 0) w.composite[link.parent] += Ic;
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const Vec6<T> F = Ic * w.S[k];
      M[std::size_t(k) * nv + k] = dot(w.S[k], F) + model.armature[k];
      for (int j = model.dof_parent[k]; j >= 0; j = model.dof_parent[j])
        M[std::size_t(j) * nv + k] = M[std::size_t(k) * nv + j] = dot(w.S[j], F);
    }
  }
}

}  // namespace delassus
