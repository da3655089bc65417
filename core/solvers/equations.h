// The two equations of constrained dynamics at a state, and the magnitudes of their terms.
//
//   M ν̇ + h = τ + Jᵀ λ,   J ν̇ + C λ + γ = 0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "constraints/constraints.h"
#include "dynamics/workspace.h"

namespace delassus {

template <class T>
inline T magnitude(const T& a) {
  if constexpr (lanes_of<T> == 1) {
    return std::abs(a);
  } else {
    // all bits but the sign's
    using Int = std::conditional_t<sizeof(real_of<T>) == 8, std::int64_t, std::int32_t>;
    using Ints = Pack<Int, lanes_of<T>>;
    return std::bit_cast<T>(Ints(std::bit_cast<Ints>(a) & std::numeric_limits<Int>::max()));
  }
}
template <class T>
inline T larger(const T& a, const T& b) {
  return a > b ? a : b;
}
// sum of the magnitudes of the components
template <class T>
inline T size_of(const Vec3<T>& v) {
  return magnitude(v.x) + magnitude(v.y) + magnitude(v.z);
}
// |x| / scale, of 0 / 0 zero; what is no number counts as the largest there is
template <class T>
inline T quotient(const T& x, const T& scale) {
  using Real = real_of<T>;
  const T largest = constant<T>(std::numeric_limits<Real>::max()),
          q = magnitude(x) / (scale + std::numeric_limits<Real>::denorm_min());
  return q < largest ? q : largest;
}

// whether velocity k of a joint is a length a second
inline bool moves_along(Joint type, int k) { return type == Joint::slide || (type == Joint::free && k < 3); }

// Placement, K of terms, forces on links without joint accelerations; τ (may be null) per velocity, γ and C per row.
template <class T>
struct Equations {
  const Placement<T>& w;
  const Vec6<T>* K;
  const PerLink<Vec6, T>& forces;
  const T *tau, *gamma, *compliance;
};

}  // namespace delassus
