// Inverse inertia Ω of links with all joints towards the base free to move: computed outwards from link to link, O(1)
// per velocity.
//
//   Ωᵢ = (1 − S D⁻¹ Uᵀ) Ω_p (1 − U D⁻¹ Sᵀ) + S D⁻¹ Sᵀ = Ω_p − S zᵀ − z Sᵀ,   V = U D⁻¹,
//       z = Ω_p V − ½ (Vᵀ Ω_p V + D⁻¹) S
//
// Vᵀ Ω_p V + D⁻¹ is the effective inverse inertia of the joint itself. A free root has Ω = H⁻¹ of its factor.
#pragma once

#include "operators/blocks.h"

namespace delassus {

// Takes Ω over one velocity. Returns what the joint feels.
template <class T>
inline T pass_joint(Sym6<T>& Omega, const Vec6<T>& S, const Vec6<T>& V, const T& Dinv) {
  const Vec6<T> u = Omega * V;
  const T felt = dot(V, u) + Dinv;
  subtract_pair(Omega, S, Vec6<T>(u - S * (felt * real_of<T>(0.5))));
  return felt;
}

}  // namespace delassus
