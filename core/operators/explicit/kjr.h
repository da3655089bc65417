// The Delassus matrix by the Kreutz–Jain–Rodriguez recursion: O(n + m² d) for depth d, three sweeps.
//
//   backward   articulated inertias
//   forward    Ωᵢ, inverse inertia of link i (kernel.h)
//   blocks     G_jj = K_j Ω_j K_jᵀ;   G_jk = K_j ʲψᵢᵀ Ωᵢ ᵏψᵢ K_kᵀ,
//              link by link from k down to the link i where they meet and up to j, for every pair anew
//
// Kreutz-Delgado, Jain, Rodriguez, "Recursive formulation of operational-space control", 1992.
#pragma once

#include "operators/explicit/kernel.h"

namespace delassus {

template <class T>
struct KjrWork {
  std::vector<Sym6<T>> Omega;  // a limb: of its tip
  std::vector<T> X;            // 6: accelerations of a link by the rows of another
  std::vector<int> way;        // limbs between two tips

  void resize(const RowWork<T>& w) {
    Omega.resize(w.tree.limbs.size());
    way.resize(w.tree.limbs.size());
    X.assign(6 * w.room, T{});
  }
  std::size_t bytes() const { return Omega.size() * sizeof(Sym6<T>) + X.size() * sizeof(T) + way.size() * sizeof(int); }
};

template <class T>
void kjr(RowWork<T>& w, KjrWork<T>& e, const Articulated<T>& A) {
  using P = RowPack<T>;
  const auto& tree = w.tree;
  const int n = int(tree.limbs.size());
  find_kernel(tree, A, e.Omega.data());
  w.clear();
  for (int k = 0; k < n; ++k) {
    const auto& limb = tree.limbs[k];
    if (limb.own == limb.own_past) continue;
    for (int j = 0; j < n; ++j) {
      const auto& other = tree.limbs[j];
      // pairs j before k, in the order of rows
      if (other.own == other.own_past || other.own > limb.own) continue;
      // where they meet, and the way from there to j
      int a = j, b = k, steps = 0;
      while (a != b && a >= 0 && b >= 0)
        if (a < b) {
          e.way[steps++] = a;
          a = tree.limbs[a].parent;
        } else {
          b = tree.limbs[b].parent;
        }
      if (a < 0 || b < 0) continue;
      for (int r = limb.own; r < limb.own_past; r += row_lanes<T>) {
        Vec6<P> x = load_six(&w.K[std::size_t(r)], w.room);
        for (int l = k; l != a; l = tree.limbs[l].parent)
          x = pass_down(tree, tree.limbs[l], A, x, [](const P&, int, const T&) {});
        x = e.Omega[a] * x;
        for (int s = steps; s-- > 0;) {
          const auto& up = tree.limbs[e.way[s]];
          for (int t = up.base() - 1; t >= up.dof; --t) {
            const int v = tree.velocity[t];
            x -= A.S[v] * dot(A.V[v], x);
          }
        }
        store_six(&e.X[std::size_t(r)], w.room, x);
      }
      add_products(w.K.data(), e.X.data(), w.room, 6, other.own, other.own_past, limb.own, limb.own_past, j == k,
                   w.G.data(), w.room);
    }
  }
}

}  // namespace delassus
