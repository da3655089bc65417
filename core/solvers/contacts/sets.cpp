#include "solvers/contacts/sets.h"

#include <limits>

#include "errors/interrupt.h"

namespace delassus {
namespace {

// The larger of two; NaN stays.
double larger(double a, double b) { return b <= a || std::isnan(a) ? a : b; }

// σ is known to ε d ‖λ‖ at best: a residual below that is not zero but unseen.
constexpr double rounding = std::numeric_limits<double>::epsilon();

double length(double x, double y, double z) { return std::sqrt(x * x + y * y + z * z); }

// Of one cone, each kept in `all` where it is the largest so far.
void add_cone(const Cone& c, bool coulomb, double d, const double* l, const double* s, ContactResiduals& all) {
  const double t = tangential(s), normal = coulomb ? s[0] + c.friction * t : s[0];
  double p[3];
  project(c.friction, l, p);
  all.primal = larger(all.primal, d * length(l[0] - p[0], l[1] - p[1], l[2] - p[2]));
  all.dual = larger(all.dual, coulomb ? std::max(-s[0], 0.0) : std::max(c.friction * t - s[0], 0.0));
  const double force = length(l[0], l[1], l[2]), size = std::max(force, length(normal, s[1], s[2]) / d);
  if (size > 0)
    all.complementarity =
        larger(all.complementarity, std::abs(l[0] / size * normal + l[1] / size * s[1] + l[2] / size * s[2]));
  const double x[3] = {l[0] - normal / d, l[1] - s[1] / d, l[2] - s[2] / d};
  project(c.friction, x, p);
  all.natural = larger(all.natural, d * std::max(length(l[0] - p[0], l[1] - p[1], l[2] - p[2]), rounding * force));
}

// Of one interval. σ pushes the force to one end of it: what it lacks to get there.
void add_interval(const Interval& i, double d, double l, double s, ContactResiduals& all) {
  all.primal = larger(all.primal, d * std::abs(l - project(i, l)));
  const double end = s > 0 ? i.lower : i.upper;
  if (std::isinf(end))
    all.dual = larger(all.dual, std::abs(s));
  else
    all.complementarity = larger(all.complementarity, std::min(std::abs(s), d * std::abs(l - end)));
  all.natural = larger(all.natural, d * std::max(std::abs(l - project(i, l - s / d)), rounding * std::abs(l)));
}

}  // namespace

void project(const ForceSets& K, const double* x, double* y) {
  for (const auto& c : K.cones) project(c.friction, x + c.row, y + c.row);
  for (const auto& i : K.intervals) y[i.row] = project(i, x[i.row]);
}

void project_change(const ForceSets& K, const double* x, const double* d, double* y) {
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

ContactResiduals worst_of(const ContactResiduals& a, const ContactResiduals& b) {
  return {larger(a.primal, b.primal), larger(a.dual, b.dual), larger(a.complementarity, b.complementarity),
          larger(a.natural, b.natural)};
}

ContactResiduals residuals(const ForceSets& K, bool coulomb, const double* d, const double* lambda,
                           const double* sigma) {
  poll(200.0 * K.rows);
  ContactResiduals all;
  for (const auto& c : K.cones) add_cone(c, coulomb, d[c.row], lambda + c.row, sigma + c.row, all);
  for (const auto& i : K.intervals) add_interval(i, d[i.row], lambda[i.row], sigma[i.row], all);
  return all;
}

}  // namespace delassus
