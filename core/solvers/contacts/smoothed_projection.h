// Projections onto sets of forces, smoothed. In units in which cones have an opening of 45°,
//
//   r = P_m(y),   s = P_m(y) − y          x → (x + √(x² + 4 m²)) / 2 of the eigenvalues y_n ± ‖y_T‖ of a cone, of the
//                                         distances to the bounds of an interval
//
// so that r ∘ s = m² e of a cone, (r − lower) s = m² of a half-line: the central path. And de Saxcé's term,
// Γ_m = √(‖s_T‖² + (0.3 m)²) − 0.3 m.
//
// Chen and Mangasarian's smoothing of complementarity; Fukushima, Luo and Tseng for cones (2002).
#pragma once

#include <algorithm>
#include <cmath>

#include "solvers/contacts/sets.h"

namespace delassus {

// (x + √(x² + 4 m²)) / 2, without cancellation, and its derivatives by x and by m.
struct SmoothedPart {
  double value, by_x, by_m;
  SmoothedPart(double x, double m) {
    const double q = std::sqrt(x * x + 4 * m * m);
    value = x > 0 ? 0.5 * (x + q) : 2 * m * m / std::max(q - x, 1e-300);
    by_x = x > 0 ? 0.5 * (1 + x / q) : 2 * m * m / std::max(q * (q - x), 1e-300);
    by_m = 2 * m / q;
  }
};

// A cone at y: eigenvalues of P_m' (d) and of 1 − P_m' (e), the last of each as often as there are directions across
// y_T; the direction of y_T; Γ_m, its derivatives by s_T (t) and by m.
struct SmoothedCone {
  double d[3], e[3], h[max_cone_rows - 1], t[max_cone_rows - 1];
  double gamma, gamma_slope;
};

constexpr double gamma_rounding = 0.3;  // of Γ_m, over m

// r, s and ∂r / ∂m = ∂s / ∂m of a cone of N rows. Without friction it is a half-line for its normal, and its tangents,
// y's too, are zero.
template <int N>
inline void smooth_cone(bool friction, double m, double* y, double* r, double* s, double* slope, SmoothedCone& state) {
  if (!friction) {
    const SmoothedPart plus(y[0], m), minus(-y[0], m);
    r[0] = plus.value, s[0] = minus.value, slope[0] = plus.by_m;
    for (int a = 1; a < N; ++a) y[a] = r[a] = s[a] = slope[a] = 0;
    state = {{plus.by_x, 1, 1}, {minus.by_x, 0, 0}, {1}, {0}, 0, 0};
    return;
  }
  const double t = tangential<N>(y), l1 = y[0] + t, l2 = y[0] - t;
  for (int a = 1; a < N; ++a) state.h[a - 1] = t > 1e-300 ? y[a] / t : a == 1;
  const SmoothedPart p1(l1, m), p2(l2, m), n1(-l1, m), n2(-l2, m);
  r[0] = 0.5 * (p1.value + p2.value), s[0] = 0.5 * (n1.value + n2.value), slope[0] = 0.5 * (p1.by_m + p2.by_m);
  const double rt = 0.5 * (p1.value - p2.value), st = 0.5 * (n1.value - n2.value), mt = 0.5 * (p1.by_m - p2.by_m);
  for (int a = 1; a < N; ++a) {
    const double h = state.h[a - 1];
    r[a] = rt * h, s[a] = st * h, slope[a] = mt * h;
  }
  const bool apart = 2 * t > 1e-9 * (std::abs(l1) + std::abs(l2) + m);
  state.d[0] = p1.by_x, state.d[1] = p2.by_x;
  state.d[2] = apart ? (p1.value - p2.value) / (2 * t) : 0.5 * (p1.by_x + p2.by_x);
  state.e[0] = n1.by_x, state.e[1] = n2.by_x;
  state.e[2] = apart ? (n2.value - n1.value) / (2 * t) : 0.5 * (n1.by_x + n2.by_x);
  const double eps = gamma_rounding * m, q = std::sqrt(st * st + eps * eps);
  state.gamma = q - eps;
  state.gamma_slope = (st * mt + gamma_rounding * eps) / q - gamma_rounding;
  for (int a = 1; a < N; ++a) state.t[a - 1] = st * state.h[a - 1] / q;
}

// An interval at y: r, s, ∂r / ∂m, derivatives of r and of −s by y, and of r by its bounds.
struct SmoothedInterval {
  double r, s, slope, d, e, by_lower, by_upper;
  SmoothedInterval(double lower, double upper, double y, double m)
      : r(y), s(0), slope(0), d(1), e(0), by_lower(0), by_upper(0) {
    if (std::isfinite(lower)) {
      const SmoothedPart plus(y - lower, m), minus(lower - y, m);
      r = lower + plus.value, s = minus.value, slope = plus.by_m, d = plus.by_x, e = minus.by_x;
      by_lower = minus.by_x;
    }
    if (std::isfinite(upper)) {
      const SmoothedPart plus(y - upper, m), minus(upper - y, m);
      by_upper = plus.by_x;
      if (std::isfinite(lower)) {
        r -= plus.value, s -= plus.value, slope -= plus.by_m, e += plus.by_x;
        d = std::min(std::max(d - plus.by_x, 1e-14), 1.0), e = std::min(e, 1.0);
      } else {
        r = upper - minus.value, s = -plus.value, slope = -plus.by_m, d = minus.by_x, e = plus.by_x;
      }
    }
  }
};

}  // namespace delassus
