// Sets that constraint forces live in, and residuals of a contact problem:
//
//   λ ∈ K,   σ = G λ + g,   K* ∋ σ̃ ⊥ λ,   σ̃ = σ + µ ‖σ_T‖ n
//       (de Saxcé: true Coulomb friction; without the last term its convex relaxation)
//
// K is a product of friction cones and of intervals, one row each: [0, ∞) limits, [−l, l] friction of joints, (−∞, ∞)
// loops. A cone has three rows, the normal first and two tangents; or four or six, then also the torque about the
// normal and those about the tangents, in units in which ‖λ_T‖ ≤ µ λ_n holds for all of them together: with rows of the
// rotation scaled by µ_spin / µ and µ_roll / µ that is the ellipsoid of MuJoCo's coefficients.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace delassus {

struct Cone {
  int row;
  double friction;
  int rows = 3;  // 3, 4 or 6
};

// f with the number of a cone's rows as a constant.
template <class F>
inline decltype(auto) with_rows(const Cone& c, F&& f) {
  if (c.rows == 3) return f(std::integral_constant<int, 3>{});
  if (c.rows == 4) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, 6>{});
}
constexpr int max_cone_rows = 6;

struct Interval {
  int row;
  double lower, upper;
};

struct ForceSets {
  int rows = 0;
  std::vector<Cone> cones;
  std::vector<Interval> intervals;
};

// Where the projection onto a cone lies.
enum class Side { inside, tip, surface };

// ‖z_T‖, a · b of tangents
template <int N>
inline double tangential(const double* z) {
  double sum = 0;
  for (int a = 1; a < N; ++a) sum += z[a] * z[a];
  return std::sqrt(sum);
}
inline double tangential(const Cone& c, const double* z) {
  return with_rows(c, [&](auto n) { return tangential<n()>(z); });
}

// y ← P(x), the nearest point of the cone of N rows; y may be x.
template <int N>
inline Side project(double friction, const double* x, double* y) {
  const double n = x[0], t = tangential<N>(x);
  if (n >= 0 && t <= friction * n) {  // without friction 0 ≤ 0 · n would take what pulls for what is inside
    for (int a = 0; a < N; ++a) y[a] = x[a];
    return Side::inside;
  }
  const double top = n + friction * t;
  if (!(top > 0)) {
    for (int a = 0; a < N; ++a) y[a] = 0;
    return Side::tip;
  }
  const double height = top / (1 + friction * friction), scale = friction * height / t;
  y[0] = height;
  for (int a = 1; a < N; ++a) y[a] = x[a] * scale;
  return Side::surface;
}
inline Side project(const Cone& c, const double* x, double* y) {
  return with_rows(c, [&](auto n) { return project<n()>(c.friction, x, y); });
}
inline double project(const Interval& i, double x) { return std::min(std::max(x, i.lower), i.upper); }

// y ← P(x), set by set; y may be x.
void project(const ForceSets& K, const double* x, double* y);

// y ← P'(x) d: how the projection of x changes along d.
void project_change(const ForceSets& K, const double* x, const double* d, double* y);

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
ContactResiduals worst_of(const ContactResiduals& a, const ContactResiduals& b);

// Of forces λ and velocities σ, with de Saxcé's term if `coulomb`.
ContactResiduals residuals(const ForceSets& K, bool coulomb, const double* d, const double* lambda,
                           const double* sigma);

}  // namespace delassus
