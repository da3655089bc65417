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
#include <vector>

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

inline double tangential(const double* z) { return std::sqrt(z[1] * z[1] + z[2] * z[2]); }

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
