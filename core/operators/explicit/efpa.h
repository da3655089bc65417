// The Delassus matrix by extended force propagators (EFPA): O(n + m d + m²) for depth d, three sweeps.
//
//   backward   ᵖK = ⁱK (1 − S D⁻¹ Uᵀ)
//   forward    Xᵢ = Ωᵢ ⁱKᵀ,   Xᵢ = (1 − S D⁻¹ Uᵀ) X_p + S D⁻¹ Sᵀ ⁱKᵀ
//              (accelerations of link i, Ωᵢ its inverse inertia; never formed)
//   assembly   G_jk = ⁱK_j Xᵢ_k  at the link i where j and k meet
//
// Wensing, Featherstone, Orin, "A reduced-order recursive algorithm for the computation of the operational-space
// inertia matrix", 2012; algorithm 2 of the PV-OSIMr paper. K and X are kept at tips only, where rows meet.
#pragma once

#include "operators/explicit/meeting.h"

namespace delassus {

template <class T>
struct EfpaWork {
  std::vector<std::size_t> at;  // a limb: where its K and X start
  std::vector<T> K, X;          // 6 a limb: of all it carries, at its tip

  static std::size_t room(const Limb& limb) { return row_room<T>(limb.rows()); }
  void resize(const RowWork<T>& w) {
    std::size_t size = 0;
    for (const auto& limb : w.tree.limbs) {
      at.push_back(size);
      size += 6 * room(limb);
    }
    K.assign(size, T{});
    X.assign(size, T{});
  }
  std::size_t bytes() const { return at.size() * sizeof(std::size_t) + (K.size() + X.size()) * sizeof(T); }
};

template <class T>
void efpa(RowWork<T>& w, EfpaWork<T>& e, const Articulated<T>& A) {
  using P = RowPack<T>;
  constexpr int lanes = row_lanes<T>;
  const auto& tree = w.tree;

  // backward: what rows are at every tip
  for (std::size_t l = 0; l < tree.limbs.size(); ++l) {
    const auto& limb = tree.limbs[l];
    const std::size_t room = e.room(limb);
    for (int r = 0; r < limb.rows(); r += lanes)
      store_six(&e.K[e.at[l] + std::size_t(r)], room, load_six(&w.K[limb.first + r], w.room));
    climb_down(w, limb, A);
  }

  // forward: accelerations of every tip by unit forces of the rows it carries
  for (std::size_t l = tree.limbs.size(); l-- > 0;) {
    const auto& limb = tree.limbs[l];
    const std::size_t room = e.room(limb);
    for (int r = 0; r < limb.rows(); r += lanes) {
      auto z = [&](int t) { return load_rows(&w.Z[std::size_t(t) * w.room + std::size_t(limb.first + r)]); };
      Vec6<P> a{};
      if (limb.parent >= 0) {
        const auto& parent = tree.limbs[limb.parent];
        a = load_six(&e.X[e.at[limb.parent] + std::size_t(limb.first - parent.first + r)], e.room(parent));
      } else if (limb.free >= 0) {
        // L⁻ᵀ D⁻¹ y
        P x[6];
        for (int c = 0; c < 6; ++c) x[c] = z(limb.base() + c);
        solve_upper(A.free[limb.free], x);
        a = {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
      }
      for (int t = limb.base() - 1; t >= limb.dof; --t) {
        const int v = tree.velocity[t];
        a += A.S[v] * P(z(t) - dot(A.V[v], a));
      }
      store_six(&e.X[e.at[l] + std::size_t(r)], room, a);
    }
  }

  // assembly
  w.clear();
  for (std::size_t l = 0; l < tree.limbs.size(); ++l) {
    const auto& limb = tree.limbs[l];
    add_meetings(tree, limb, &e.K[e.at[l]], &e.X[e.at[l]], e.room(limb), [](int) { return false; }, w.G.data(), w.room);
  }
}

}  // namespace delassus
