// The Delassus matrix with the lowest order known (PV-OSIMr): O(n + m²), whatever the depth.
//
//   backward   of every limb, tip to the link below it:  P ← (1 − U D⁻¹ Sᵀ) P,   Ω ← Ω + Pᵀ S D⁻¹ Sᵀ P
//   forward    tips only:   Ω⁰ = Ω + Pᵀ Ω⁰_below P
//   backward   tips only:   K_below = K Pᵀ,   G_jk = K_j Ω⁰ K_kᵀ  where j and k meet
//
// "PV-OSIMr: A Lowest Order Complexity Algorithm for Computing the Delassus Matrix", algorithm 3. A limb that ends the
// tree with six rows or fewer passes those on instead of P (line 4). With `floating` a free joint is left to the end,
// where its six numbers y of every row are one product, L₀ = L₁ + K₁ H₁⁻¹ K₁ᵀ: eq. 41 of "Constrained Articulated Body
// Dynamics Algorithms".
#pragma once

#include "operators/explicit/meeting.h"
#include "operators/explicit/pv_osim.h"
#include "operators/explicit/six.h"

namespace delassus {

template <class T>
struct PvOsimrWork {
  std::vector<Six<T>> P, Omega;  // a limb: Pᵀ by rows, Ω
  std::vector<T> Y, Z;           // a velocity: of P
  std::vector<T> X;              // 6: Ω⁰ Kᵀ

  static bool direct(const Limb& limb) { return limb.children == 0 && limb.rows() <= 6; }
  void resize(const RowWork<T>& w) {
    std::size_t longest = 0;
    for (const auto& limb : w.tree.limbs) longest = std::max(longest, std::size_t(limb.dofs + 6));
    P.assign(w.tree.limbs.size(), Six<T>::identity());
    Omega.assign(w.tree.limbs.size(), Six<T>::zero());
    Y.assign(longest * six_room<T>, T{});
    Z.assign(Y.size(), T{});
    X.assign(6 * w.room, T{});
  }
  std::size_t bytes() const { return 2 * P.size() * sizeof(Six<T>) + (Y.size() + Z.size() + X.size()) * sizeof(T); }
};

template <class T>
void pv_osimr(RowWork<T>& w, PvOsimrWork<T>& e, const Articulated<T>& A, bool floating) {
  using Pack = RowPack<T>;
  constexpr int lanes = row_lanes<T>;
  constexpr std::size_t room = six_room<T>;
  const auto& tree = w.tree;
  const int n = int(tree.limbs.size());
  // the tip does not move before a free joint does
  auto fixed = [&](const Limb& limb) { return floating && limb.free >= 0 && limb.dofs == 0; };

  // backward: rows down to where they meet others, or what would do it to any
  w.clear();
  for (int l = 0; l < n; ++l) {
    Limb limb = tree.limbs[l];
    const int base = limb.free >= 0 && !floating ? 6 : 0;
    if (floating) limb.free = -1;
    if (e.direct(limb)) {
      climb_down(w, limb, A);
      add_limb(w, limb, limb.dof, limb.dofs + base);
      continue;
    }
    Six<T>&P = e.P[l], &Omega = e.Omega[l];
    P = Six<T>::identity();
    Omega = Six<T>::zero();
    if (limb.dofs + base == 0) continue;
    for (int r = 0; r < 6; r += lanes) {
      const Vec6<Pack> below =
          pass_down(tree, limb, A, load_six(P.data() + r, room), [&](const Pack& all, int t, const T& d) {
            store_rows(&e.Y[std::size_t(t - limb.dof) * room + std::size_t(r)], all);
            store_rows(&e.Z[std::size_t(t - limb.dof) * room + std::size_t(r)], Pack(all * d));
          });
      store_six(P.data() + r, room, below);
    }
    add_products(e.Z.data(), e.Y.data(), room, limb.dofs + base, 0, 6, 0, 6, false, Omega.data(), room);
  }

  // forward: inverse inertias of tips, all joints below them free to move
  for (int l = n - 1; l >= 0; --l) {
    const auto& limb = tree.limbs[l];
    if (limb.parent >= 0 && !e.direct(limb) && !fixed(tree.limbs[limb.parent]))
      add_congruence(e.Omega[l], e.P[l], e.Omega[limb.parent]);
  }

  // backward: blocks of rows that meet at a tip, then on to the next
  for (int l = 0; l < n; ++l) {
    const auto& limb = tree.limbs[l];
    if (!e.direct(limb) && !fixed(limb)) {
      T *K = &w.K[std::size_t(limb.first)], *X = &e.X[std::size_t(limb.first)];
      for (int r = 0; r < limb.rows(); r += lanes) store_six(X + r, w.room, times(e.Omega[l], load_six(K + r, w.room)));
      add_meetings(tree, limb, K, X, w.room, [&](int c) { return e.direct(tree.limbs[c]); }, w.G.data(), w.room);
      for (int r = 0; limb.dofs > 0 && r < limb.rows(); r += lanes) {
        const Vec6<Pack> k = load_six(K + r, w.room), below = transpose_times(e.P[l], k);
        for (int c = 0; c < 6; ++c)
          store_rows(K + std::size_t(c) * w.room + r, joined_rows<T>(entry(below, c), entry(k, c), limb.rows() - r));
      }
    }
    if (!floating || limb.free < 0) continue;
    // L₀ = L₁ + K₁ H₁⁻¹ K₁ᵀ
    Limb base = limb;
    base.dof = limb.base();
    base.dofs = 0;
    climb_down(w, base, A);
    add_limb(w, base, base.dof, 6);
  }
}

}  // namespace delassus
