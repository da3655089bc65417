// The Jordan algebra of the cone ‖x_T‖ ≤ x_n, in which an interior point of it is what a positive
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

using V = std::array<double, 6>;      // cones of fewer rows have zeros behind them
inline constexpr double far = 1e300;  // longer than any step

// x_T · y_T
inline double tangents(const V& x, const V& y) {
  double sum = 0;
  for (std::size_t k = 1; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}
// (n, a x_T + b y_T)
inline V combined(double n, double a, const V& x, double b, const V& y) {
  V z{n};
  for (std::size_t k = 1; k < x.size(); ++k) z[k] = a * x[k] + b * y[k];
  return z;
}

inline double det(const V& x) {
  const double t = std::sqrt(tangents(x, x));
  return (x[0] - t) * (x[0] + t);
}
inline V inverse(const V& x) {
  const double d = 1 / det(x);
  return combined(x[0] * d, -d, x, 0, x);
}
inline V root(const V& x) {
  const double t = std::sqrt(tangents(x, x)), a = std::sqrt(x[0] + t), b = std::sqrt(std::max(x[0] - t, 1e-300)),
               c = t > 0 ? (a - b) / (2 * t) : 0;
  return combined((a + b) / 2, c, x, 0, x);
}
// Q_x y, which scales
inline V scaled(const V& x, const V& y) {
  const double s = 2 * (x[0] * y[0] + tangents(x, y)), d = det(x);
  return combined(s * x[0] - d * y[0], s, x, d, y);
}
inline V jordan_product(const V& x, const V& y) { return combined(x[0] * y[0] + tangents(x, y), y[0], x, x[0], y); }
// y with x ∘ y = c
inline V quotient(const V& x, const V& c) {
  const double y = (x[0] * c[0] - tangents(x, c)) / det(x);
  return combined(y, 1 / x[0], c, -y / x[0], x);
}
// The largest a with x + a d in the cone.
inline double reach(const V& x, const V& d) {
  const double a = d[0] * d[0] - tangents(d, d), b = x[0] * d[0] - tangents(x, d), c = std::max(det(x), 0.0);
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
