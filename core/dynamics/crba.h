// Mass matrix M(q) by composite rigid bodies, O(n d) for depth d.
//
//   I^c_p += I^c_i,   F_k = I^c S_k,   M_jk = S_jᵀ F_k for every velocity j between k and the ground,
//       M_kk += armature
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

  world_inertias(w);

  Inertia<T> handed{};  // by the next link, if it hangs on this one
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    const Inertia<T> Ic = w.inertia[i] + handed;
    handed = Inertia<T>{};
    if (link.parent >= 0 && link.parent == i - 1)
      handed = Ic;
    else if (link.parent >= 0)
      w.inertia.add(link.parent, Ic);
    const auto& root = model.links[model.roots[link.tree]];
    const bool floating = root.type == Joint::free && link.parent >= 0;
    const int last = floating ? root.iv + 5 : -1;  // the base's velocities are below
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const Vec6<T> F = Ic * w.S[k];
      T* row = M + std::size_t(k) * nv;
      row[k] = dot(w.S[k], F) + model.armature[k];
      for (int j = model.dof_parent[k]; j > last; j = model.dof_parent[j])
        M[std::size_t(j) * nv + k] = row[j] = dot(w.S[j], F);
      if (floating) {
        const Vec3<T> turned = transpose_times(w.pose[model.roots[link.tree]].R, F.ang);
        const T base[6] = {F.lin.x, F.lin.y, F.lin.z, turned.x, turned.y, turned.z};
        for (int c = 0; c < 6; ++c) M[std::size_t(root.iv + c) * nv + k] = row[root.iv + c] = base[c];
      }
    }
  }
}

}  // namespace delassus
