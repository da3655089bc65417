// The Jordan algebra of the cone ‖x_T‖ ≤ x_n in three dimensions, in which an interior point of it is what a positive
// number is on a half-line:
//
//   x ∘ y = (x · y, x_n y_T + y_n x_T),   x⁻¹ ∘ x = e,   √x ∘ √x = x,   Q_x y = 2 (x · y) x − det(x) (y_n, −y_T)
//
// Alizadeh, Goldfarb, "Second-order cone programming", 2003.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace delassus::cone {

using V = std::array<double, 3>;
inline constexpr double far = 1e300;  // longer than any step

inline double det(const V& x) {
  const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]);
  return (x[0] - t) * (x[0] + t);
}
inline V inverse(const V& x) {
  const double d = 1 / det(x);
  return {x[0] * d, -x[1] * d, -x[2] * d};
}
inline V root(const V& x) {
  const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]), a = std::sqrt(x[0] + t),
               b = std::sqrt(std::max(x[0] - t, 1e-300)), c = t > 0 ? (a - b) / (2 * t) : 0;
  return {(a + b) / 2, c * x[1], c * x[2]};
}
// Q_x y, which scales
inline V scaled(const V& x, const V& y) {
  const double s = 2 * (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]), d = det(x);
  return {s * x[0] - d * y[0], s * x[1] + d * y[1], s * x[2] + d * y[2]};
}
inline V jordan_product(const V& x, const V& y) {
  return {x[0] * y[0] + x[1] * y[1] + x[2] * y[2], x[0] * y[1] + y[0] * x[1], x[0] * y[2] + y[0] * x[2]};
}
// y with x ∘ y = c
inline V quotient(const V& x, const V& c) {
  const double y = (x[0] * c[0] - x[1] * c[1] - x[2] * c[2]) / det(x);
  return {y, (c[1] - y * x[1]) / x[0], (c[2] - y * x[2]) / x[0]};
}
// The largest a with x + a d in the cone.
inline double reach(const V& x, const V& d) {
  const double a = d[0] * d[0] - d[1] * d[1] - d[2] * d[2], b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2],
               c = std::max(det(x), 0.0);
  double longest = d[0] < 0 ? -x[0] / d[0] : far;
  const double disc = b * b - a * c;
  if (disc < 0) return longest;
  const double q = -(b + std::copysign(std::sqrt(disc), b));
  if (a != 0 && q / a > 0) longest = std::min(longest, q / a);
  if (q != 0 && c / q > 0) longest = std::min(longest, c / q);
  return longest;
}
inline double reach(double x, double d) { return d < 0 ? -x / d : far; }

}  // namespace delassus::cone
