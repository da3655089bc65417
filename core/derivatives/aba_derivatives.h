// Derivatives of forward dynamics ν̇(q, ν, τ), together with ν̇ and M⁻¹. O(n² d) for depth d.
//
//   ∂ν̇/∂τ = M⁻¹,   ∂ν̇/∂q = −M⁻¹ ∂τ/∂q,   ∂ν̇/∂ν = −M⁻¹ ∂τ/∂ν      at ν̇, from τ(q, ν, ν̇(q, ν, τ)) = τ
//
// Carpentier, Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018, section III-D. The elimination
// of `aba` is a factor of M with the sparsity of the tree (Featherstone, "Efficient factorization of the joint-space
// inertia matrix for branched kinematic trees", 2005), which solves for all columns:
//
//   M = Lᵀ D L,   L_kj = D_k⁻¹ U_kᵀ S_j for j that carry k
//   backward  y_j −= Σ_k L_kj y_k over k that j carries        forward  x_k = D_k⁻¹ y_k − Σ_j L_kj x_j over j that
//   carry k
//
// A free root is eliminated at once, by its block of M⁻¹.
#pragma once

#include "derivatives/rnea_derivatives.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"

namespace delassus {

// L from the factor of `aba`, one row for each velocity that carries others.
template <class T>
void sparse_factor(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w) {
  constexpr int width = link_lanes<T>;
  const std::size_t nv = std::size_t(model.nv);
  for (int k = 0; k < model.nv; ++k) w.scaled_U.set(k, w.U[k] * w.Dinv[k]);
  for (const auto& link : model.links) {
    const bool free = link.type == Joint::free;
    for (int j = link.iv; j < link.iv + link.nv; ++j) {
      T* row = w.L.data() + std::size_t(j) * nv;
      for (int k = free ? link.iv + link.nv : j + 1; k < link.end_v; k += width)
        store_row<T>(row + k, dot(w.scaled_U[k], w.S[j]), link.end_v - k);
    }
  }
}

// out ← −M⁻¹ Y for both Y = ∂τ/∂q and ∂τ/∂ν, in `count` columns from `first` on, n packs of each; their rows other than
// `rows` are zero there. Matrices nv × nv, row-major.
template <int n, class T>
void solve_strip(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* __restrict Minv, int first,
                 int count, const int* rows, int nonzero, T* __restrict vdot_q, T* __restrict vdot_v) {
  using C = LinkPack<T>;
  constexpr int width = link_lanes<T>;
  struct Row {
    C c[2 * n];  // n of ∂q, n of ∂ν
  };
  const std::size_t nv = std::size_t(model.nv);
  Row* __restrict x = reinterpret_cast<Row*>(w.columns.data());
  const T* __restrict L = w.L.data();
  const auto subtract = [](Row & from, const T& l, const Row& y) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int c = 0; c < 2 * n; ++c) from.c[c] -= y.c[c] * l;
  };

  // backward, over rows that are not zero; those between are cleared
  int last = int(nv);
  for (int r = nonzero - 1; r >= 0; --r) {
    const int j = rows[r];
    for (int k = j + 1; k < last; ++k) x[k] = Row{};
    last = j;
    const auto& link = model.links[model.dof_link[j]];
    const int after = link.type == Joint::free ? link.iv + 6 : j + 1;
    const T* Lj = L + std::size_t(j) * nv;
    const std::size_t at = std::size_t(j) * nv + std::size_t(first);
    Row y;
#pragma GCC unroll 8
    for (int c = 0; c < n; ++c) {
      __builtin_memcpy(&y.c[c], w.tau_q.data() + at + c * width, sizeof(C));
      __builtin_memcpy(&y.c[n + c], w.tau_v.data() + at + c * width, sizeof(C));
    }
    int e = r + 1;
    while (e < nonzero && rows[e] < after) ++e;
    for (; e < nonzero && rows[e] < link.end_v; ++e) subtract(y, Lj[rows[e]], x[rows[e]]);
    x[j] = y;
  }
  for (int k = 0; k < last; ++k) x[k] = Row{};

  // forward
  for (const auto& link : model.links) {
    const int i = link.iv;
    if (link.type == Joint::free) {
      Row y[6]{};
      for (int k = 0; k < 6; ++k)
        for (int j = 0; j < 6; ++j) subtract(y[k], -Minv[std::size_t(i + k) * nv + i + j], x[i + j]);
      for (int k = 0; k < 6; ++k) x[i + k] = y[k];
      continue;
    }
    for (int k = i; k < i + link.nv; ++k) {
      Row y = x[k];
#pragma GCC unroll 8
      for (int c = 0; c < 2 * n; ++c) y.c[c] *= w.Dinv[k];
      for (int j = model.dof_parent[k]; j >= 0; j = model.dof_parent[j]) subtract(y, L[std::size_t(j) * nv + k], x[j]);
      x[k] = y;
    }
  }
  for (std::size_t k = 0; k < nv; ++k)
    for (int c = 0; c < n; ++c) {
      const std::size_t at = k * nv + std::size_t(first) + std::size_t(c * width);
      store_row<T>(vdot_q + at, -x[k].c[c], count - c * width);
      store_row<T>(vdot_v + at, -x[k].c[n + c], count - c * width);
    }
}

// All columns, strip by strip.
template <class T>
void solve_columns(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* Minv, T* vdot_q, T* vdot_v) {
  constexpr int width = link_lanes<T>, packs = DerivativeWorkspace<T>::packs;
  const int start = w.first_column(model);
  for (std::size_t k = 0; k < std::size_t(model.nv); ++k)
    for (int c = 0; c < start; ++c) vdot_q[k * model.nv + c] = vdot_v[k * model.nv + c] = T{};
  for (std::size_t s = 0; s + 1 < w.strip_start.size(); ++s) {
    const int first = start + int(s) * w.strip, count = std::min(model.nv - first, int(w.strip));
    const int* rows = w.strip_rows.data() + w.strip_start[s];
    const int nonzero = w.strip_start[s + 1] - w.strip_start[s];
    const int needed = (count + width - 1) / width;
    if (needed == 1)
      solve_strip<1>(model, w, Minv, first, count, rows, nonzero, vdot_q, vdot_v);
    else if (needed == 2)
      solve_strip<2>(model, w, Minv, first, count, rows, nonzero, vdot_q, vdot_v);
    else
      solve_strip<packs>(model, w, Minv, first, count, rows, nonzero, vdot_q, vdot_v);
  }
}

// After `kinematics`. tau may be null (zero), external may be null (none). vdot: nv; the others nv × nv, row-major.
// Leaves the factor of M, so that `is_regular` may be asked after `world_inertias`.
template <class T>
void aba_derivatives(const Model<real_of<T>>& model, DerivativeWorkspace<T>& w, const T* v, const T* tau,
                     const T* external, T* vdot, T* vdot_q, T* vdot_v, T* Minv) {
  w.prepare_solutions(model);
  aba(model, w, v, tau, external, vdot);
  T* none = nullptr;
  rnea_derivatives(model, w, v, vdot, external, none, w.tau_q.data(), w.tau_v.data(), none, false);
  inverse_of_factor(model, w, Minv);
  sparse_factor(model, w);
  solve_columns(model, w, Minv, vdot_q, vdot_v);
}

}  // namespace delassus
