// X ← M⁻¹ Y with the factor of M (aba.h), O(n) a column, no matrix formed; several columns side by side.
//
//   backward  u = y − Sᵀ f,   f += U D⁻¹ u,   f_p += f        forward  x = D⁻¹ (u − Uᵀ a_p),   a_i = a_p + S x
#pragma once

#include "dynamics/aba.h"

namespace delassus {

// y on entry, x on exit. C is T or a pack of columns of T; f is memory for one motion or force a link.
template <class T, class C>
inline void solve_sweeps(const Model<real_of<T>>& model, const Workspace<T>& w, C* __restrict x,
                         Vec6<C>* __restrict f) {
  const int nl = int(model.links.size());

  // backward: u replaces y; a free root moves at once
  for (int i = 0; i < nl; ++i)
    if (model.links[i].branches) f[i] = Vec6<C>{};
  Vec6<C> g{};  // handed by the next link, if it hangs on this one
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    if (link.branches) g += f[i];
    if (link.type == Joint::free) {
      const Mat3<T> R = w.pose[i].R;
      f[i] = w.Hinv[link.tree] * (free_force(R, x + link.iv) - g);
      free_velocities(R, f[i], x + link.iv);
      g = Vec6<C>{};
      continue;
    }
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      x[k] -= dot(w.S[k], g);
      g += w.U[k] * (x[k] * w.Dinv[k]);
    }
    if (link.parent >= 0 && link.parent == i - 1) continue;
    if (link.parent >= 0) f[link.parent] += g;
    g = Vec6<C>{};
  }

  // forward: x replaces u, accelerations replace forces
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
      x[k] = (x[k] - dot(w.U[k], a)) * w.Dinv[k];
      a += w.S[k] * x[k];
    }
    if (link.branches) f[i] = a;
  }
}

// The first `count` of a pack C of columns of T; a whole pack is one instruction.
template <class C, class T>
inline C load_columns(const T* from, int count) {
  C x{};
  if (count == int(sizeof(C) / sizeof(T))) [[likely]]
    __builtin_memcpy(&x, from, sizeof(x));
  else
    for (int k = 0; k < count; ++k) __builtin_memcpy(reinterpret_cast<T*>(&x) + k, from + k, sizeof(T));
  return x;
}
template <class C, class T>
inline void store_columns(T* to, const C& x, int count) {
  if (count == int(sizeof(C) / sizeof(T))) [[likely]]
    __builtin_memcpy(to, &x, sizeof(x));
  else
    for (int k = 0; k < count; ++k) __builtin_memcpy(to + k, reinterpret_cast<const T*>(&x) + k, sizeof(T));
}

// Y, X: nv × columns, row-major; may be the same array.
template <class T>
void solve_mass_matrix(const Model<real_of<T>>& model, Workspace<T>& w, const T* Y, int columns, T* X) {
  constexpr int width = link_lanes<T>;
  const std::size_t nv = std::size_t(model.nv);
  if (columns == 1) {
    for (std::size_t k = 0; k < nv; ++k) X[k] = Y[k];
    solve_sweeps(model, w, X, w.single_motion.data());
    return;
  }
  for (int first = 0; first < columns; first += width) {
    const int past = columns - first < width ? columns - first : width;
    for (std::size_t k = 0; k < nv; ++k) w.column[k] = load_columns<LinkPack<T>>(Y + k * columns + first, past);
    solve_sweeps(model, w, w.column.data(), w.column_motion.data());
    for (std::size_t k = 0; k < nv; ++k) store_columns<LinkPack<T>>(X + k * columns + first, w.column[k], past);
  }
}

}  // namespace delassus
