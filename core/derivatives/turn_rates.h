// Derivatives of the logarithm of a rotation.
#pragma once

#include "spatial/quaternion.h"

namespace delassus {

// For θ = log R and R turned by φ in world axes, dθ = J⁻¹(θ) φ:
//   J⁻¹ = 1 − ½ [θ] + k [θ]²,   k = 1/θ² − (1 + cos θ) / (2 θ sin θ)
// Solà, Deray, Atchuthan, "A micro Lie theory for state estimation in robotics", 2018, equation (146).
template <class T>
inline T logarithm_curvature(const Vec3<T>& theta) {
  const T square = dot(theta, theta), angle = std::sqrt(square);
  return angle < T(1e-3) ? T(1) / 12 + square / 720
                         : 1 / square - (1 + std::cos(angle)) / (2 * angle * std::sin(angle));
}
template <class T, class D>
inline Vec3<D> logarithm_rate(const Vec3<T>& theta, const Vec3<D>& turn) {
  const Vec3<D> across = cross(theta, turn);
  return turn - across * T(0.5) + cross(theta, across) * logarithm_curvature(theta);
}
// J⁻ᵀ
template <class T, class D>
inline Vec3<D> logarithm_adjoint(const Vec3<T>& theta, const Vec3<D>& x) {
  const Vec3<D> across = cross(theta, x);
  return x + across * T(0.5) + cross(theta, across) * logarithm_curvature(theta);
}

// The turn g (a × b) of one unit vector into another, g = θ / sin θ: with c = a · b,
//   d = g d(a × b) − h (a × b) dc,   h = (1 − g c) / sin² θ
template <class T>
struct TurnRate {
  Vec3<T> across;
  T g, h;
};
template <class T>
inline TurnRate<T> turn_rate(const Vec3<T>& from, const Vec3<T>& to) {
  const Vec3<T> across = cross(from, to);
  const T square = dot(across, across), s = std::sqrt(square), c = dot(from, to);
  if (s < T(1e-3) && c > 0) return {across, 1 + square / 6 + square * square * 3 / 40, T(1) / 3 + square * 2 / 15};
  const T g = std::atan2(s, c) / s;
  return {across, g, (1 - g * c) / square};
}

}  // namespace delassus
