// The damped inverse by the matrix inversion lemma and PV-OSIMr (cABA-OSIM): O(n + m²), no m × m matrix factored.
//
//   (G + ε)⁻¹ = R − R K Ω Kᵀ R,   R = (C + ε)⁻¹,   Ω of the mechanism whose links have the inertia H + Kᵀ R K
//
// "Constrained Articulated Body Dynamics Algorithms", algorithm 5. The lemma cancels where ε is small against G: X has
// lost the digits by which R is larger.
#pragma once

#include <cmath>
#include <limits>

#include "operators/delassus.h"
#include "operators/explicit/pv_osimr.h"

namespace delassus {

// R K Ω Kᵀ R in the upper triangle of w.G: K has been placed, A is the factor of M + Kᵀ R K.
template <class T>
void caba_osim(RowWork<T>& w, PvOsimrWork<T>& e, const Articulated<T>& A, const T* R, bool floating) {
  w.scale(R);
  pv_osimr(w, e, A, floating);
}

// Growth of pivots (below) that leaves the lemma nine digits, in single precision three.
template <class Real>
inline constexpr Real lemma_growth = sizeof(Real) == 8 ? Real(3e5) : Real(1e3);

// Whether X = R − … has digits left: it is not too small against R, and the pivots have not lost them before.
template <class T>
inline bool keeps_digits(const T& growth, const T* X, const T* R, int n) {
  constexpr real_of<T> max_ratio =
      (sizeof(real_of<T>) == 8 ? real_of<T>(1e-11) : real_of<T>(1e-4)) / std::numeric_limits<real_of<T>>::epsilon();
  T size{}, stiffness{};
  for (int r = 0; r < n; ++r) {
    const T x = X[std::size_t(r) * std::size_t(n + 1)];
    size = size > x ? size : x;
    stiffness = stiffness > R[r] ? stiffness : R[r];
  }
  bool kept = true;
  for (int l = 0; l < lanes_of<T>; ++l)
    kept = kept && lane(stiffness, l) <= lane(size, l) * max_ratio && lane(growth, l) <= 2 * lemma_growth<real_of<T>>;
  return kept;
}

// The largest factor by which a pivot of M + Kᵀ R K is smaller than what was added up for it, tr(Iᶜ + Kᵀ R K) |S|²;
// infinite or NaN if one is not positive. K is as placed, `size` memory for one number a link; links
// that carry no rows have the pivots of M.
template <class T>
T pivot_growth(const Model<real_of<T>>& model, const Delassus<T>& G, const RowWork<T>& w, T* size) {
  const auto& at = G.placement();
  for (int b = 0; b < at.inertia.blocks(); ++b) {
    const auto& I = at.inertia.block(b);
    const auto trace = I.m * real_of<T>(3) + I.I.xx + I.I.yy + I.I.zz;
    for (int l = 0; l < link_lanes<T>; ++l)
      if (const int i = at.ranks.slots.link[std::size_t(b * link_lanes<T> + l)]; i < int(model.links.size()))
        __builtin_memcpy(size + i, reinterpret_cast<const T*>(&trace) + l, sizeof(T));
  }
  for (const auto& limb : w.tree.limbs)
    for (int r = limb.own; r < limb.own_past; ++r) {
      T square{};
      for (int c = 0; c < 6; ++c) square += w.K[c * w.room + std::size_t(r)] * w.K[c * w.room + std::size_t(r)];
      size[limb.tip] += square * G.stiffness()[w.tree.row[std::size_t(r)]];
    }
  for (int i = int(model.links.size()) - 1; i >= 0; --i)
    if (const int p = model.links[i].parent; p >= 0) size[p] += size[i];
  T smallest = constant<T>(std::numeric_limits<real_of<T>>::max()), largest{}, sum{};
  const auto& plan = G.layout().coupled;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto& step = plan.steps[s];
    const auto& factor = int(s) < plan.idle ? G.mass_factor() : G.damped_factor();
    for (int k = step.iv; k < step.iv + step.nv; ++k) {
      const T d = factor.Dinv[k], x = d * size[step.link] * dot(at.S[k], at.S[k]);
      smallest = smallest < d ? smallest : d;
      largest = largest > x ? largest : x;
      sum += x;
    }
  }
  const T none = constant<T>(std::numeric_limits<real_of<T>>::infinity());
  return smallest > 0 ? T(largest + (sum - sum)) : none;
}

// Whether all pivots stand out of rounding: as is_surely_regular of aba.h.
template <class T>
bool is_surely_regular(const T& growth) {
  constexpr real_of<T> least = 64 * std::numeric_limits<real_of<T>>::epsilon();
  bool sure = true;
  for (int l = 0; l < lanes_of<T>; ++l) sure = sure && lane(growth, l) * least < 1;
  return sure;
}

}  // namespace delassus
