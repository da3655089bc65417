// Rows on links at a configuration, and what passing them down a limb does to them.
//
// What a row is at link i, K_i, becomes at its parent K_p = K_i Pᵀ, P = 1 − U D⁻¹ Sᵀ: velocity by velocity y = K S,  K
// −= y D⁻¹ Uᵀ. The numbers y are the rows of J in coordinates that M is diagonal in, J M⁻¹ Jᵀ = Σ y D⁻¹ yᵀ. A free
// joint, H = L D Lᵀ, has y = L⁻¹ K.
#pragma once

#include "operators/elimination.h"
#include "operators/explicit/limbs.h"
#include "operators/explicit/packs.h"

namespace delassus {

// An elimination of all joints, of M or of M + Jᵀ R J.
template <class T>
struct Articulated {
  const Vec6<T>* S;     // a velocity
  const Vec6<T>* V;     // a velocity: U D⁻¹
  const T* Dinv;        // a velocity
  const Ldl6<T>* free;  // a free link

  Articulated(const Placement<T>& w, const Factor<T>& factor)
      : S(w.S.data()), V(factor.V.data()), Dinv(factor.Dinv.data()), free(factor.free.data()) {}
};

// Memory of the recursive algorithms. Arrays hold numbers of rows in the order of the limbs, component beside
// component, `room` apart.
template <class T>
struct RowWork {
  Limbs tree;
  std::size_t room = 0;
  std::vector<T> K;     // 6: where it has got to
  std::vector<T> Y, Z;  // a velocity of the limbs: y, y D⁻¹
  std::vector<T> G;     // rows × room, its upper triangle

  void resize_K() {
    room = row_room<T>(tree.rows());
    K.assign(6 * room + row_lanes<T>, T{});  // two packs may start at the last row
  }
  void resize() {
    resize_K();
    Y.assign(tree.velocity.size() * room, T{});
    Z.assign(Y.size(), T{});
    G.assign(std::size_t(tree.rows()) * room, T{});
  }
  std::size_t bytes() const { return tree.bytes() + (K.size() + Y.size() + Z.size() + G.size()) * sizeof(T); }

  // G, of rows on several links only where there ever is something: within trees
  void clear() {
    if (tree.single_link)
      std::fill(G.begin(), G.end(), T{});
    else
      for (const auto& t : tree.trees)
        for (int r = t.first; r < t.past; ++r) std::fill_n(&G[std::size_t(r) * room] + t.first, t.past - t.first, T{});
  }

  // K of every row at its own link: of a point along n [n; p × n], of a joint what takes velocities of its link and of
  // the parent to its own
  void place(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, const Placement<T>& w,
             const Vec6<T>* terms) {
    using Source = Limbs::Source;
    for (const auto& at : tree.ranges) {
      if (at.source == Source::term) {
        for (int r = 0; r < at.count; ++r) put(at.at + r, terms[at.index + r]);
      } else if (at.source == Source::point || at.source == Source::other_point) {
        const bool other = at.source == Source::other_point;
        const auto& point = set.points[at.index];
        const Vec3<T> p = w.pose[at.link] * set.locals[point.local + other];
        for (int r = 0; r < 3; ++r) {
          const Vec3<T> n = other ? Vec3<T>{} - point.axes[r] : Vec3<T>{} + point.axes[r];
          put(at.at + r, {n, cross(p, n)});
        }
      } else {
        const auto& row = set.joint_rows[at.index];
        put(at.at,
            speed_of(model, w, row.velocity) * (at.source == Source::joint ? row.coefficient : -row.coefficient));
      }
    }
  }
  // K ← R K, R in the user's order
  void scale(const T* R) {
    for (int r = 0; r < tree.rows(); ++r)
      for (int c = 0; c < 6; ++c) K[c * room + std::size_t(r)] *= R[tree.row[std::size_t(r)]];
  }
  void put(int row, const Vec6<T>& k) {
    for (int c = 0; c < 6; ++c) K[c * room + std::size_t(row)] = entry(k, c);
  }
};

// Passes a pack of rows down a limb: y of every velocity, then of a free joint, to emit(y, where it belongs in the
// limbs' list, D⁻¹). Returns what they are at the link below.
template <class T, class F>
[[gnu::always_inline]] inline Vec6<RowPack<T>> pass_down(const Limbs& tree, const Limb& limb, const Articulated<T>& A,
                                                         Vec6<RowPack<T>> k, F&& emit) {
  using P = RowPack<T>;
  for (int t = limb.dof; t < limb.dof + limb.dofs; ++t) {
    const int v = tree.velocity[t];
    const Vec6<T> S = A.S[v], V = A.V[v];
    const P y = dot(S, k);
    k -= V * y;
    emit(y, t, A.Dinv[v]);
  }
  if (limb.free >= 0) {
    const Ldl6<T>& LD = A.free[limb.free];
    P y[6] = {k.lin.x, k.lin.y, k.lin.z, k.ang.x, k.ang.y, k.ang.z};
    solve_lower(LD, y);
#pragma GCC unroll 6
    for (int c = 0; c < 6; ++c) emit(y[c], limb.base() + c, LD.Dinv[c]);
  }
  return k;
}

// All rows of a limb: y and y D⁻¹ to Y and Z, K to what it is at the link below, if there is one.
template <class T>
inline void climb_down(RowWork<T>& w, const Limb& limb, const Articulated<T>& A) {
  using P = RowPack<T>;
  const std::size_t room = w.room;
  for (int r = limb.first; r < limb.past; r += row_lanes<T>) {
    const int lanes = limb.past - r;
    const Vec6<P> k = load_six(w.K.data() + r, room);
    const Vec6<P> below = pass_down(w.tree, limb, A, k, [&](const P& all, int t, const T& d) {
      const P y = first_rows<T>(all, lanes);
      store_rows(w.Y.data() + std::size_t(t) * room + r, y);
      store_rows(w.Z.data() + std::size_t(t) * room + r, P(y * d));
    });
    if (limb.free >= 0) continue;
    for (int c = 0; c < 6; ++c)
      store_rows(w.K.data() + std::size_t(c) * room + r, joined_rows<T>(entry(below, c), entry(k, c), lanes));
  }
}

}  // namespace delassus
