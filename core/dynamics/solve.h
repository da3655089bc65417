// X ← M⁻¹ Y with the factor of M (aba.h), O(n) per column, no matrix formed; several columns side by side.
//
//   backward  u = y − Sᵀ f,   f += U D⁻¹ u,   f_p += f        forward  x = D⁻¹ u − (U D⁻¹)ᵀ a_p,   a_i = a_p + S x
//
// 25 products per velocity and column. Each joint depends on the previous one, so two registers of columns take hardly
// longer than one, and they share the loads of S and U D⁻¹.
#pragma once

#include "dynamics/aba.h"
#include "dynamics/columns.h"
#include "dynamics/pair.h"
#include "dynamics/triangle.h"

namespace delassus {

// Columns C of a matrix of T where they stand, rows `stride` apart.
template <class T, class C>
struct ColumnsAt {
  const T* from;
  T* to;
  std::size_t stride;

  C y(int k) const { return row(from, k); }
  C x(int k) const { return row(to, k); }
  void set(int k, const C& x) { store(to + std::size_t(k) * stride, x); }

 private:
  C row(const T* matrix, int k) const {
    C x;
    load(x, matrix + std::size_t(k) * stride);
    return x;
  }
};

// X ← M⁻¹ Y for one scalar C of columns: T, a pack of T, or two packs. f is memory for one motion or force a link.
// One column takes U and D⁻¹, several U D⁻¹, which is worth computing for them.
template <class T, class C>
inline void solve_sweeps(const Model<real_of<T>>& model, const Workspace<T>& w, ColumnsAt<T, C> at,
                         Vec6<C>* __restrict f) {
  const int nl = int(model.links.size());

  // backward: X takes u; a free root moves at once
  for (int i = 0; i < nl; ++i)
    if (model.links[i].branches) f[i] = Vec6<C>{};
  Vec6<C> g{};  // handed by the next link, if it hangs on this one
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    if (link.branches) g += f[i];
    if (link.type == Joint::free) {
      const Mat3<T> R = w.pose[i].R;
      C base[6];
      for (int k = 0; k < 6; ++k) base[k] = at.y(link.iv + k);
      f[i] = w.Hinv[link.tree] * (free_force(R, base) - g);
      free_velocities(R, f[i], base);
      for (int k = 0; k < 6; ++k) at.set(link.iv + k, base[k]);
      g = Vec6<C>{};
      continue;
    }
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const C u = at.y(k) - dot(w.S[k], g);
      at.set(k, u);
      if constexpr (std::is_same_v<C, T>)
        g += w.U[k] * (u * w.Dinv[k]);
      else
        g += w.UDinv[k] * u;
    }
    if (link.parent >= 0 && link.parent == i - 1) continue;
    if (link.parent >= 0) f[link.parent] += g;
    g = Vec6<C>{};
  }

  // forward: X takes x, accelerations replace forces
  Vec6<C> a{};
  for (int i = 0; i < nl; ++i) {
    const auto& link = model.links[i];
    if (link.type == Joint::free) {
      a = f[i];
      continue;
    }
    if (link.parent < 0)
      a = Vec6<C>{};
    else if (link.parent != i - 1)
      a = f[link.parent];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      C x;
      if constexpr (std::is_same_v<C, T>)
        x = (at.x(k) - dot(w.U[k], a)) * w.Dinv[k];
      else
        x = at.x(k) * w.Dinv[k] - dot(w.UDinv[k], a);
      at.set(k, x);
      a += w.S[k] * x;
    }
    if (link.branches) f[i] = a;
  }
}

// Registers of columns from which on L (triangle.h) is worth finding.
inline constexpr int worth_triangle = 4;

// Y, X: nv × columns, row-major; may be the same array.
template <class T>
void solve_mass_matrix(const Model<real_of<T>>& model, Workspace<T>& w, const T* Y, int columns, T* X) {
  using C = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  const std::size_t nv = std::size_t(model.nv), stride = std::size_t(columns);
  int first = 0;
  if constexpr (width > 1) {
    if (w.triangle.pays() && columns >= worth_triangle * width) {
      // many columns of shallow trees
      find_triangle(model, w);
      T* const between = reinterpret_cast<T*>(w.triangle.columns.data());
      const auto take = [&]<int count>() {
        for (; first + count * width <= columns; first += count * width)
          solve_with_triangle(model, w, WideRows<count, const T>{Y + first, columns},
                              WideRows<count, T>{X + first, columns}, WideRows<count, T>{between, count * width});
      };
      take.template operator()<8>();
      take.template operator()<2>();
    }
    if (columns > first + 1)
      for (std::size_t k = 0; k < nv; ++k) w.UDinv[k] = w.U[k] * w.Dinv[k];
    for (; first + 2 * width <= columns; first += 2 * width)
      solve_sweeps(model, w, ColumnsAt<T, Pair<C>>{Y + first, X + first, stride}, w.column_motions.data());
    for (; first + width <= columns; first += width)
      solve_sweeps(model, w, ColumnsAt<T, C>{Y + first, X + first, stride}, w.column_motion.data());
    // the last few fill no pack
    if (const int rest = std::min(columns - first, width - 1); rest > 1) {
      T* const column = reinterpret_cast<T*>(w.column.data());
      for (std::size_t k = 0; k < nv; ++k) w.column[k] = load_columns<C>(Y + k * stride + first, rest);
      solve_sweeps(model, w, ColumnsAt<T, C>{column, column, std::size_t(width)}, w.column_motion.data());
      for (std::size_t k = 0; k < nv; ++k) store_columns<C>(X + k * stride + first, w.column[k], rest);
      first = columns;
    }
  }
  for (; first < columns; ++first)
    solve_sweeps(model, w, ColumnsAt<T, T>{Y + first, X + first, stride}, w.single_motion.data());
}

}  // namespace delassus
