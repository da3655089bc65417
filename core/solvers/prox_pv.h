// Constrained dynamics by Popov and Vereshchagin's recursion with proximal iterations on its dual (proxPV): O(n + m² d
// + m³) for depth d, then O(m²) an iteration. Rows that act on one link each.
//
//   λ ← (L + C + ε)⁻¹ (b − l + ε λ) at the ground, between the sweeps of pv.h
//
// "Constrained Articulated Body Dynamics Algorithms", section V and algorithm 4.
#pragma once

#include "solvers/pv.h"

namespace delassus {

template <class T>
class ProxPv final : public PvSweeps<T> {
 public:
  using PvSweeps<T>::PvSweeps;
};

}  // namespace delassus
