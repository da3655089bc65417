// X ← M⁻¹ Y with the factor of M (aba.h), O(n) a column, no matrix formed; several columns side by side.
//
//   backward  u = y − Sᵀ f,   f += U D⁻¹ u,   f_p += f        forward  x = D⁻¹ (u − Uᵀ a_p),   a_i = a_p + S x
#pragma once

#include "dynamics/aba.h"

namespace delassus {

// One pass for `Columns` columns; C is a pack of columns of T's real type, the factor a scalar one.
template <class Real>
inline void solve_columns_pass(const Model<Real>& model, Workspace<Real>& w) {
  using C = typename Workspace<Real>::Columns;
  const int nl = int(model.links.size());
  C* x = w.column.data();
  Vec6<C>* f = w.column_force.data();

  // backward: u replaces y
  for (int i = 0; i < nl; ++i) f[i] = Vec6<C>{};
  for (int i = nl - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      x[k] -= dot(w.S[k], f[i]);
      f[i] += w.U[k] * (x[k] * w.Dinv[k]);
    }
    if (link.parent >= 0) f[link.parent] += f[i];
  }

  // forward: x replaces u, accelerations replace forces
  for (int i = 0; i < nl; ++i) {
    const auto& link = model.links[i];
    f[i] = link.parent < 0 ? Vec6<C>{} : f[link.parent];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      x[k] = (x[k] - dot(w.U[k], f[i])) * w.Dinv[k];
      f[i] += w.S[k] * x[k];
    }
  }
}

// Y, X: nv × columns, row-major; may be the same array.
template <class Real>
void solve_mass_matrix(const Model<Real>& model, Workspace<Real>& w, const Real* Y, int columns, Real* X) {
  const std::size_t nv = std::size_t(model.nv);
  for (int first = 0; first < columns; first += solve_columns) {
    const int width = columns - first < solve_columns ? columns - first : solve_columns;
    for (std::size_t k = 0; k < nv; ++k) {
      w.column[k] = typename Workspace<Real>::Columns{};
      __builtin_memcpy(&w.column[k], Y + k * columns + first, sizeof(Real) * width);
    }
    solve_columns_pass(model, w);
    for (std::size_t k = 0; k < nv; ++k) __builtin_memcpy(X + k * columns + first, &w.column[k], sizeof(Real) * width);
  }
}

}  // namespace delassus
