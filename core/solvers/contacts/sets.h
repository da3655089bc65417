// Sets that constraint forces live in, and residuals of a contact problem:
//
//   λ ∈ K,   σ = G λ + g,   K* ∋ σ̃ ⊥ λ,   σ̃ = σ + µ ‖σ_T‖ n
//       (de Saxcé: true Coulomb friction; without the last term its convex relaxation)
//
// K is made of friction cones, three rows with the normal first, and of intervals, one row each: [0, ∞) limits, [−l, l]
// friction of joints, (−∞, ∞) loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "errors/interrupt.h"

namespace delassus {

struct Cone {
  int row;
  double friction;
};
struct Interval {
  int row;
  double lower, upper;
};

struct ForceSets {
  int rows = 0;
  std::vector<Cone> cones;
  std::vector<Interval> intervals;
};

// Where the projection of three numbers onto a cone lies.
enum class Side { inside, tip, surface };

// y ← P(x), the nearest point of the cone; y may be x.
inline Side project(double friction, const double* x, double* y) {
  const double n = x[0], t = std::sqrt(x[1] * x[1] + x[2] * x[2]);
  if (n >= 0 && t <= friction * n) {  // without friction 0 ≤ 0 · n would take what pulls for what is inside
    y[0] = x[0], y[1] = x[1], y[2] = x[2];
    return Side::inside;
  }
  const double a = n + friction * t;
  if (!(a > 0)) {
    y[0] = y[1] = y[2] = 0;
    return Side::tip;
  }
  const double height = a / (1 + friction * friction), scale = friction * height / t;
  y[0] = height, y[1] = x[1] * scale, y[2] = x[2] * scale;
  return Side::surface;
}
inline double project(const Interval& i, double x) { return std::min(std::max(x, i.lower), i.upper); }

inline void project(const ForceSets& K, const double* x, double* y) {
  for (const auto& c : K.cones) project(c.friction, x + c.row, y + c.row);
  for (const auto& i : K.intervals) y[i.row] = project(i, x[i.row]);
}

// y ← P'(x) d
inline void project_change(const ForceSets& K, const double* x, const double* d, double* y) {
  for (const auto& c : K.cones) {
    const double *at = x + c.row, *e = d + c.row;
    double p[3];
    const Side side = project(c.friction, at, p);
    double* to = y + c.row;
    if (side == Side::inside) {
      to[0] = e[0], to[1] = e[1], to[2] = e[2];
    } else if (side == Side::tip) {
      to[0] = to[1] = to[2] = 0;
    } else {
      // along the ray it is itself, across it in the tangent plane it shrinks as the circle does
      const double t = std::sqrt(at[1] * at[1] + at[2] * at[2]), a = at[1] / t, b = at[2] / t, mu = c.friction;
      const double ray = (e[0] + mu * (a * e[1] + b * e[2])) / (1 + mu * mu),
                   across = (a * e[2] - b * e[1]) * (mu * p[0] / t);
      to[0] = ray;
      to[1] = mu * ray * a - across * b;
      to[2] = mu * ray * b + across * a;
    }
  }
  for (const auto& i : K.intervals) y[i.row] = x[i.row] > i.lower && x[i.row] < i.upper ? d[i.row] : 0;
}

inline double tangential(const double* z) { return std::sqrt(z[1] * z[1] + z[2] * z[2]); }

// Residuals of a contact problem, each the largest over all sets and each a velocity [m/s]: with d, the inverse mass
// that the rows feel, none depends on the unit of mass.
//
//   |λ · σ̃| ≤ (‖λ‖ + ‖σ̃‖ / d + e) d e,   e = ‖λ − P(λ − σ̃ / d)‖   (Moreau: λ = p + ε, σ̃ / d = q + ε, p ⊥ q)
//
// so complementarity is at most three times the natural residual, and needs no tolerance of its own.
struct ContactResiduals {
  double primal = 0;           // d times the distance of λ to its set
  double dual = 0;             // σ where no force can stop it: into a contact or limit, of a loop at all
  double complementarity = 0;  // |λ · σ̃| / max(‖λ‖, ‖σ̃‖ / d): the smaller of the two along the other
  double natural = 0;  // d ‖λ − P(λ − σ̃ / d)‖: all of these in one; at least its rounding, 2e-16 d ‖λ‖
  // What is held against the tolerance: of the natural one a share.
  double worst(double share = 0.1) const {
    const double sum = primal + dual + complementarity + natural;
    return std::isnan(sum) ? sum : std::max(std::max(primal, dual), share * natural);
  }
};

// The larger of each; NaN stays.
inline ContactResiduals worse(const ContactResiduals& a, const ContactResiduals& b) {
  const auto most = [](double x, double y) { return y <= x || std::isnan(x) ? x : y; };
  return {most(a.primal, b.primal), most(a.dual, b.dual), most(a.complementarity, b.complementarity),
          most(a.natural, b.natural)};
}

inline ContactResiduals residuals(const ForceSets& K, bool coulomb, const double* d, const double* lambda,
                                  const double* sigma) {
  poll(200.0 * K.rows);
  ContactResiduals left;
  auto most = [](double& a, double b) { a = b <= a || std::isnan(a) ? a : b; };  // NaN stays
  // σ is known to ε d ‖λ‖ at best: a residual below that is not zero but unseen
  constexpr double rounding = std::numeric_limits<double>::epsilon();
  for (const auto& c : K.cones) {
    const double *l = lambda + c.row, *s = sigma + c.row;
    const double t = tangential(s), normal = coulomb ? s[0] + c.friction * t : s[0];
    double p[3];
    project(c.friction, l, p);
    const double e = d[c.row], x[3] = {l[0] - normal / e, l[1] - s[1] / e, l[2] - s[2] / e};
    most(left.primal, e * std::hypot(l[0] - p[0], l[1] - p[1], l[2] - p[2]));
    most(left.dual, coulomb ? std::max(-s[0], 0.0) : std::max(c.friction * t - s[0], 0.0));
    const double force = std::hypot(l[0], l[1], l[2]), size = std::max(force, std::hypot(normal, s[1], s[2]) / e);
    if (size > 0) most(left.complementarity, std::abs(l[0] / size * normal + l[1] / size * s[1] + l[2] / size * s[2]));
    project(c.friction, x, p);
    most(left.natural, e * std::max(std::hypot(l[0] - p[0], l[1] - p[1], l[2] - p[2]), rounding * force));
  }
  for (const auto& i : K.intervals) {
    const double l = lambda[i.row], s = sigma[i.row], e = d[i.row];
    most(left.primal, e * std::abs(l - project(i, l)));
    // σ pushes the force to one end of the interval: what it lacks to get there
    const double end = s > 0 ? i.lower : i.upper;
    if (std::isinf(end))
      most(left.dual, std::abs(s));
    else
      most(left.complementarity, std::min(std::abs(s), e * std::abs(l - end)));
    most(left.natural, e * std::max(std::abs(l - project(i, l - s / e)), rounding * std::abs(l)));
  }
  return left;
}

}  // namespace delassus
