#include "solvers/contacts/sets.h"

#include <limits>

#include "errors/interrupt.h"

namespace delassus {
namespace {

// The larger of two; NaN stays.
double larger(double a, double b) { return b <= a || std::isnan(a) ? a : b; }

// σ is known to ε d ‖λ‖ at best: a residual below that is not zero but unseen.
constexpr double rounding = std::numeric_limits<double>::epsilon();

template <int N>
double length(const double* x) {
  double sum = 0;
  for (int a = 0; a < N; ++a) sum += x[a] * x[a];
  return std::sqrt(sum);
}
template <int N>
double apart(const double* x, const double* y) {
  double sum = 0;
  for (int a = 0; a < N; ++a) sum += (x[a] - y[a]) * (x[a] - y[a]);
  return std::sqrt(sum);
}

// Of one cone, each kept in `all` where it is the largest so far.
template <int N>
void add_cone(double mu, bool coulomb, double d, const double* l, const double* s, ContactResiduals& all) {
  const double t = tangential<N>(s);
  double shifted[N], p[N], x[N];
  for (int a = 0; a < N; ++a) shifted[a] = s[a];
  if (coulomb) shifted[0] += mu * t;
  project<N>(mu, l, p);
  all.primal = larger(all.primal, d * apart<N>(l, p));
  all.dual = larger(all.dual, coulomb ? std::max(-s[0], 0.0) : std::max(mu * t - s[0], 0.0));
  const double force = length<N>(l), size = std::max(force, length<N>(shifted) / d);
  if (size > 0) {
    double product = 0;
    for (int a = 0; a < N; ++a) product += l[a] / size * shifted[a];
    all.complementarity = larger(all.complementarity, std::abs(product));
  }
  for (int a = 0; a < N; ++a) x[a] = l[a] - shifted[a] / d;
  project<N>(mu, x, p);
  all.natural = larger(all.natural, d * std::max(apart<N>(l, p), rounding * force));
}

// How the projection onto a cone changes at x along e.
template <int N>
void change_cone(double mu, const double* x, const double* e, double* to) {
  double p[N];
  const Side side = project<N>(mu, x, p);
  if (side != Side::surface) {
    for (int a = 0; a < N; ++a) to[a] = side == Side::inside ? e[a] : 0;
    return;
  }
  // along the ray it is itself, across it in the tangent plane it shrinks as the circle does
  const double t = tangential<N>(x);
  double along = 0;
  for (int a = 1; a < N; ++a) along += x[a] / t * e[a];
  const double ray = (e[0] + mu * along) / (1 + mu * mu), shrinks = mu * p[0] / t;
  for (int a = 1; a < N; ++a) to[a] = mu * ray * (x[a] / t) + shrinks * (e[a] - along * (x[a] / t));
  to[0] = ray;
}

// Residual of one interval: σ pushes the force to one bound, and this is its distance to that bound.
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
  for (const auto& c : K.cones) project(c, x + c.row, y + c.row);
  for (const auto& i : K.intervals) y[i.row] = project(i, x[i.row]);
}

void project_change(const ForceSets& K, const double* x, const double* d, double* y) {
  for (const auto& c : K.cones)
    with_rows(c, [&](auto n) { change_cone<n()>(c.friction, x + c.row, d + c.row, y + c.row); });
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
  for (const auto& c : K.cones)
    with_rows(c, [&](auto n) { add_cone<n()>(c.friction, coulomb, d[c.row], lambda + c.row, sigma + c.row, all); });
  for (const auto& i : K.intervals) add_interval(i, d[i.row], lambda[i.row], sigma[i.row], all);
  return all;
}

}  // namespace delassus
