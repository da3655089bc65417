// A contact problem as a fixed point of one vector s, which ADMM, as the splitting of Douglas and Rachford, and
// Newton's method look for:
//
//   y = P(s),   z = ρ (y − s),   (G + ρ) x = ρ y + z − g − Γ(z),   s ← s + x − y          Γ: µ ‖z_T‖ on normals
//
// y is in its set, z in its dual and at right angles to y by construction; where x = y they solve the problem. All in
// units in which G has a diagonal of about one: λ = w y, σ = z / w with one w a set, so that cones keep their shape; in
// G's own units ρ is a damping ρ / w² a row. Rows without a set need no penalty but for rounding: theirs is a million
// times smaller.
#pragma once

#include "solvers/contacts/anderson.h"

namespace delassus {

class Splitting {
 public:
  // Reads the problem and finds the units.
  void begin(const ContactProblem& p) {
    const std::size_t m = std::size_t(p.rows());
    for (auto* v : {&d_, &w_, &over_w_, &felt_, &g_, &s_, &y_, &z_, &f_, &next_, &rhs_, &x_, &damping_}) v->resize(m);
    problem_ = &p;
    feel(p.sets, p.G, d_.data());
    scaled_.rows = p.rows();
    scaled_.cones.assign(p.sets.cones.begin(), p.sets.cones.end());
    scaled_.intervals.assign(p.sets.intervals.begin(), p.sets.intervals.end());
    std::copy_n(d_.data(), m, damping_.data());
    for (const auto& i : p.sets.intervals)
      if (std::isinf(i.lower) && std::isinf(i.upper)) damping_[i.row] *= 1e-6;
    for (std::size_t r = 0; r < m; ++r) {
      over_w_[r] = std::sqrt(damping_[r]);
      w_[r] = 1 / over_w_[r];
      g_[r] = p.g[r] * w_[r];
    }
    for (std::size_t r = 0; r < m; ++r) felt_[r] = w_[r] * d_[r];
    for (auto& i : scaled_.intervals) {
      i.lower *= over_w_[i.row], i.upper *= over_w_[i.row];
      if (std::isinf(i.lower) && std::isinf(i.upper)) felt_[i.row] = 0;
    }
    anderson.resize(p.rows());
  }
  // Starts at s = −g: what stops the rows if each were alone; or at forces, and velocities with Γ that belong to them.
  void start() {
    for (int r = 0; r < rows(); ++r) s_[r] = -g_[r] / (1 + rho_);
  }
  void start(const double* lambda, const double* sigma) {
    for (int r = 0; r < rows(); ++r) s_[r] = lambda[r] * over_w_[r] - sigma[r] * w_[r] / rho_;
    for (const auto& c : scaled_.cones) s_[c.row] -= c.friction * tangential(sigma + c.row) * w_[c.row] / rho_;
  }

  void set_rho(double rho) {
    rho_ = rho;
    for (int r = 0; r < rows(); ++r) damping_[r] = rho * over_w_[r] * over_w_[r];
    problem_->G.set_damping(damping_.data());
    ++factorizations;
    anderson.forget();
  }
  double rho() const { return rho_; }
  int rows() const { return scaled_.rows; }
  double* s() { return s_.data(); }
  const double* f() const { return f_.data(); }
  const double* d() const { return d_.data(); }

  // f = x − y at s
  void evaluate() {
    project(scaled_, s_.data(), y_.data());
    for (int r = 0; r < rows(); ++r) {
      z_[r] = rho_ * (y_[r] - s_[r]);
      rhs_[r] = rho_ * y_[r] + z_[r] - g_[r];
    }
    for (const auto& c : scaled_.cones) rhs_[c.row] -= c.friction * tangential(&z_[c.row]);
    invert(rhs_.data(), f_.data());
    for (int r = 0; r < rows(); ++r) f_[r] -= y_[r];
  }
  // A number for which sets s is inside, outside and beyond of: while it stays, f is smooth.
  std::size_t pattern() const {
    std::size_t hash = 14695981039346656037u;
    auto take = [&](std::size_t side) { hash = (hash ^ side) * 1099511628211u; };
    for (const auto& c : scaled_.cones) {
      double p[3];
      take(std::size_t(project(c.friction, &s_[c.row], p)));
    }
    for (const auto& i : scaled_.intervals) take(s_[i.row] <= i.lower ? 0 : s_[i.row] >= i.upper ? 2 : 1);
    return hash;
  }
  // to ← f'(s) e, after evaluate
  void change(const double* e, double* to) {
    project_change(scaled_, s_.data(), e, to);
    for (int r = 0; r < rows(); ++r) rhs_[r] = rho_ * (2 * to[r] - e[r]);
    for (const auto& c : scaled_.cones) {
      const double *z = &z_[c.row], t = tangential(z);
      if (t > 0)
        rhs_[c.row] -=
            c.friction * rho_ * (z[1] * (to[c.row + 1] - e[c.row + 1]) + z[2] * (to[c.row + 2] - e[c.row + 2])) / t;
    }
    invert(rhs_.data(), next_.data());
    for (int r = 0; r < rows(); ++r) to[r] = next_[r] - to[r];
  }

  // How fast y would have to move to make up for f, which (G + ρ) f is exactly: an estimate of what is left [m/s].
  double left() const {
    double most = 0;
    const double share = rho_ / (1 + rho_);
    for (int r = 0; r < rows(); ++r)
      most = std::max(most, std::abs(f_[r]) * (felt_[r] > 0 ? felt_[r] : share * over_w_[r]));
    return most * (1 + rho_);
  }
  double length() const { return std::sqrt(inner(rows(), f_.data(), f_.data())); }

  // λ = w y, and w x where there is no set: these rows then move with no more than their damping times f
  void forces(double* lambda) const {
    for (int r = 0; r < rows(); ++r) lambda[r] = (felt_[r] > 0 ? y_[r] : y_[r] + f_[r]) * w_[r];
  }

  // ρ that balances x − y with the change of ρ y in a plain step, and s such that y and z stay as they are after that
  // step.
  double balance() {
    double gap = 0, change = 0;
    for (int r = 0; r < rows(); ++r) next_[r] = s_[r] + f_[r];
    project(scaled_, next_.data(), rhs_.data());
    for (int r = 0; r < rows(); ++r) {
      const double move = rho_ * (rhs_[r] - y_[r]);
      gap += f_[r] * f_[r];
      change += move * move;
    }
    return std::sqrt(std::sqrt(gap / std::max(change, 1e-300 * (1 + gap))));
  }
  void rescale(double ratio) {
    for (int r = 0; r < rows(); ++r) next_[r] = s_[r] + f_[r];
    project(scaled_, next_.data(), rhs_.data());
    for (int r = 0; r < rows(); ++r) s_[r] = rhs_[r] - (rhs_[r] - next_[r]) / ratio;
    set_rho(rho_ * ratio);
  }

  Anderson anderson;
  int factorizations = 0;

 private:
  // x ← (G + ρ)⁻¹ y
  void invert(double* y, double* x) {
    poll(200.0 * rows());
    for (int r = 0; r < rows(); ++r) y[r] *= over_w_[r];
    problem_->G.solve(y, x_.data());
    for (int r = 0; r < rows(); ++r) x[r] = x_[r] * over_w_[r];
  }

  const ContactProblem* problem_ = nullptr;
  ForceSets scaled_;
  double rho_ = 0;
  std::vector<double> d_, w_, over_w_, felt_, g_,
      damping_;  // a row: diagonal of G, units and their inverses, velocity a unit of force makes; 0: it has no set
  std::vector<double> s_, y_, z_, f_, next_, rhs_, x_;
};

}  // namespace delassus
