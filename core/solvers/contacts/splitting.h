// A contact problem as a fixed point of one vector s (Douglas-Rachford form), which both ADMM and Newton's method
// solve:
//
//   y = P(s),   z = ρ (y − s),   (G + ρ) x = ρ y + z − g − Γ(z),   s ← s + x − y          Γ: µ ‖z_T‖ on normals
//
// By construction y is in its set, z in the dual set and orthogonal to y; where x = y they solve the problem. Rows are
// scaled so that the diagonal of G is about one: λ = w y, σ = z / w with one w per set, so that cones keep their shape.
// In G's own units ρ is a damping of ρ / w² per row. Rows without a set need a penalty only against rounding: theirs is
// a million times smaller.
#pragma once

#include "solvers/contacts/anderson.h"

namespace delassus {

class Splitting {
 public:
  // Reads the problem and finds the units.
  void begin(const ContactProblem& p);
  // Starts at s = −g: what stops the rows if each were alone; or at forces, and velocities with Γ that belong to them.
  void start();
  void start(const double* lambda, const double* sigma);

  // A penalty, for which (G + ρ) is factored.
  void set_rho(double rho);
  double rho() const { return rho_; }
  int rows() const { return scaled_.rows; }
  double* s() { return s_.data(); }
  const double* f() const { return f_.data(); }
  const double* d() const { return d_.data(); }

  // f = x − y at s
  void evaluate();
  // A number for which sets s is inside, outside and beyond of: while it stays, f is smooth.
  std::size_t pattern() const;
  // to ← f'(s) e, after evaluate
  void change(const double* e, double* to);

  // How fast y would have to move to make up for f, which (G + ρ) f is exactly: an estimate of the residual [m/s].
  double residual_estimate() const;
  double length() const { return std::sqrt(inner(rows(), f_.data(), f_.data())); }

  // λ = w y, and w x where there is no set: these rows then move with no more than their damping times f
  void forces(double* lambda) const;

  // By how much ρ has to change to balance x − y with the change of ρ y in a plain step; and that change, with s such
  // that y and z stay as they are after the step.
  double balance();
  void rescale(double ratio);

  Anderson anderson;
  int factorizations = 0;

 private:
  // x ← (G + ρ)⁻¹ y
  void invert(double* y, double* x);

  const ContactProblem* problem_ = nullptr;
  ForceSets scaled_;
  double rho_ = 0;
  // a row: diagonal of G, units and their inverses, velocity a unit of force makes (0: it has no set), g, ρ / w²
  std::vector<double> d_, w_, over_w_, felt_, g_, damping_;
  std::vector<double> s_, y_, z_, f_, next_, rhs_, x_;
};

}  // namespace delassus
