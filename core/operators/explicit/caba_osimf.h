// The damped inverse by the matrix inversion lemma, the free base last (cABA-OSIMf): O(n + m²).
//
//   (G + ε)⁻¹ = R − R (L₁ + K₁ H₁⁻¹ K₁ᵀ) R
//
// "Constrained Articulated Body Dynamics Algorithms", section VI-B: L₁, the base held, is zero between branches, and
// what the base adds is one product of rank six. Elsewhere the same as cABA-OSIM.
#pragma once

#include "operators/explicit/caba_osim.h"

namespace delassus {

template <class T>
void caba_osimf(RowWork<T>& w, PvOsimrWork<T>& e, const Articulated<T>& A, const T* R) {
  caba_osim(w, e, A, R, true);
}

}  // namespace delassus
