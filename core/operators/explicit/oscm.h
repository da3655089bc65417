// The Delassus matrix by spatial operators (operational-space compliance matrix): O(n + c d + c² + m²) for c links with
// rows and depth d.
//
//   Υ(i)      = ψᵀ(p, i) Υ(p) ψ(p, i) + S D⁻¹ Sᵀ       compliance kernel, base to tips (kernel.h)
//   Ω(j, k)   = ψᵀ(i, j) Υ(i) ψ(i, k)                  for the links with rows, i where j and k meet;
//             ψ(i, j) passes forces from j to i
//   G         = Bᵀ Ω B                                 B picks the rows off their links: G_jk = K_j Ω(j, k) K_kᵀ
//
// Appendix of the operational-space formulation of contact and collision dynamics (Jain), eqs. 64 to 69. Blocks of Ω
// are six by six whatever the number of rows.
#pragma once

#include "operators/explicit/kernel.h"
#include "operators/explicit/six.h"

namespace delassus {

template <class T>
struct OscmWork {
  std::vector<Sym6<T>> kernel;  // a limb: Υ of its tip
  std::vector<int>
      first;  // a limb: where its ψ start, of its own tip and of those below, one after another; −1: it has no rows
  std::vector<Six<T>> psi;    // ψᵀ by rows
  std::vector<Six<T>> moved;  // Υ ψ, transposed, by rows
  std::vector<int> depth;     // a limb: limbs below it
  std::vector<T> X;           // 6: Ω(j, k) K_kᵀ

  void resize(const RowWork<T>& w) {
    const auto& limbs = w.tree.limbs;
    kernel.resize(limbs.size());
    depth.resize(limbs.size());
    first.assign(limbs.size(), -1);
    for (std::size_t l = limbs.size(); l-- > 0;) depth[l] = limbs[l].parent < 0 ? 0 : depth[limbs[l].parent] + 1;
    int count = 0;
    for (std::size_t l = 0; l < limbs.size(); ++l)
      if (limbs[l].own < limbs[l].own_past) {
        first[l] = count;
        count += depth[l] + 1;
      }
    psi.assign(std::size_t(count), Six<T>::zero());
    moved.assign(std::size_t(count), Six<T>::zero());
    X.assign(6 * w.room, T{});
  }
  std::size_t bytes() const {
    return kernel.size() * (sizeof(Sym6<T>) + 2 * sizeof(int)) + 2 * psi.size() * sizeof(Six<T>) + X.size() * sizeof(T);
  }
};

template <class T>
void oscm(RowWork<T>& w, OscmWork<T>& e, const Articulated<T>& A) {
  using P = RowPack<T>;
  constexpr int lanes = row_lanes<T>;
  constexpr std::size_t room = six_room<T>;
  const auto& tree = w.tree;
  const int n = int(tree.limbs.size());

  // Υ, and ψ, Υ ψ of every link with rows at every tip below it
  find_kernel(tree, A, e.kernel.data());
  for (int l = 0; l < n; ++l) {
    if (e.first[l] < 0) continue;
    Six<T>* psi = &e.psi[std::size_t(e.first[l])];
    Six<T>* moved = &e.moved[std::size_t(e.first[l])];
    *psi = Six<T>::identity();
    for (int at = l;; ++psi, ++moved) {
      for (int r = 0; r < 6; r += lanes) {
        const Vec6<P> k = load_six(psi->data() + r, room);
        store_six(moved->data() + r, room, e.kernel[at] * k);
        if (tree.limbs[at].parent >= 0)
          store_six(psi[1].data() + r, room, pass_down(tree, tree.limbs[at], A, k, [](const P&, int, const T&) {}));
      }
      at = tree.limbs[at].parent;
      if (at < 0) break;
    }
  }

  // Ω of every two links with rows, and what B picks off it
  w.clear();
  for (int k = 0; k < n; ++k) {
    if (e.first[k] < 0) continue;
    const auto& limb = tree.limbs[k];
    for (int j = 0; j < n; ++j) {
      const auto& other = tree.limbs[j];
      if (e.first[j] < 0 || other.own > limb.own) continue;
      int a = j, b = k;
      while (a != b && a >= 0 && b >= 0) (a < b ? a : b) = tree.limbs[a < b ? a : b].parent;
      if (a < 0 || b < 0) continue;
      Six<T> Omega = Six<T>::zero();
      add_products(e.psi[std::size_t(e.first[j] + e.depth[j] - e.depth[a])].data(),
                   e.moved[std::size_t(e.first[k] + e.depth[k] - e.depth[a])].data(), room, 6, 0, 6, 0, 6, false,
                   Omega.data(), room);
      // Omega.data() has rows of Ω(j, k) `room` apart, so that as a Six it is its transpose
      for (int r = limb.own; r < limb.own_past; r += lanes)
        store_six(&e.X[std::size_t(r)], w.room, transpose_times(Omega, load_six(&w.K[std::size_t(r)], w.room)));
      add_products(w.K.data(), e.X.data(), w.room, 6, other.own, other.own_past, limb.own, limb.own_past, j == k,
                   w.G.data(), w.room);
    }
  }
}

}  // namespace delassus
