// Unit quaternions (w, x, y, z) and the rotation vectors they are the exponentials of.
#pragma once

#include <cmath>

#include "spatial/spatial.h"

namespace delassus {

template <class Real>
struct Quaternion {
  Real w, x, y, z;
};

template <class Real>
inline Quaternion<Real> operator*(const Quaternion<Real>& a, const Quaternion<Real>& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

// exp of a rotation vector
template <class Real>
inline Quaternion<Real> exponential(const Vec3<Real>& r) {
  const Real angle = std::hypot(r.x, r.y, r.z), half = angle / 2;
  const Real scale = angle < Real(1e-4) ? Real(0.5) - angle * angle / 48 : std::sin(half) / angle;
  return {std::cos(half), r.x * scale, r.y * scale, r.z * scale};
}

// the shortest rotation vector whose exponential is the unit quaternion
template <class Real>
inline Vec3<Real> logarithm(Quaternion<Real> e) {
  if (e.w < 0) e = {-e.w, -e.x, -e.y, -e.z};
  const Real s = std::sqrt(e.x * e.x + e.y * e.y + e.z * e.z);
  const Real scale = s < Real(1e-4) ? 2 / e.w * (1 - s * s / (3 * e.w * e.w)) : 2 * std::atan2(s, e.w) / s;
  return {e.x * scale, e.y * scale, e.z * scale};
}

template <class Real>
inline Quaternion<Real> normalized(const Real* c) {
  const Real n = 1 / std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
  return {c[0] * n, c[1] * n, c[2] * n, c[3] * n};
}

}  // namespace delassus
