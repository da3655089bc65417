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

// the unit quaternion of a rotation matrix, by way of its largest number (Shepperd)
template <class Real>
inline Quaternion<Real> quaternion(const Mat3<Real>& R) {
  // 4 e², one number each
  const Real w = 1 + R.x.x + R.y.y + R.z.z, x = 1 + R.x.x - R.y.y - R.z.z, y = 1 - R.x.x + R.y.y - R.z.z,
             z = 1 - R.x.x - R.y.y + R.z.z;
  const Real wx = R.y.z - R.z.y, wy = R.z.x - R.x.z, wz = R.x.y - R.y.x, yz = R.y.z + R.z.y, xz = R.z.x + R.x.z,
             xy = R.x.y + R.y.x;
  Real e[4] = {w, wx, wy, wz};
  Real largest = w;
  auto consider = [&](Real square, Real e0, Real e1, Real e2, Real e3) {
    if (square > largest) largest = square, e[0] = e0, e[1] = e1, e[2] = e2, e[3] = e3;
  };
  consider(x, wx, x, xy, xz);
  consider(y, wy, xy, y, yz);
  consider(z, wz, xz, yz, z);
  return normalized(e);
}

// the shortest rotation vector that turns one unit vector into another
template <class Real>
inline Vec3<Real> turn_between(const Vec3<Real>& from, const Vec3<Real>& to) {
  const Vec3<Real> across = cross(from, to);
  const Real s = std::hypot(across.x, across.y, across.z), c = dot(from, to);
  if (s > 0) return across * (std::atan2(s, c) / s);
  if (c > 0) return {};
  // half a turn, about any line across
  const Vec3<Real> line = cross(to, to.x * to.x < Real(0.5) ? Vec3<Real>{1, 0, 0} : Vec3<Real>{0, 1, 0});
  return line * (std::atan2(s, c) / std::sqrt(dot(line, line)));
}

}  // namespace delassus
