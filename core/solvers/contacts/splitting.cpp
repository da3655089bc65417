#include "solvers/contacts/splitting.h"

#include "errors/interrupt.h"

namespace delassus {

void Splitting::begin(const ContactProblem& p) {
  const std::size_t m = std::size_t(p.rows());
  for (auto* v : {&d_, &w_, &over_w_, &felt_, &g_, &s_, &y_, &z_, &f_, &next_, &rhs_, &x_, &damping_}) v->resize(m);
  // w from the inverse mass that each set feels, a thousand times larger for rows without a set
  problem_ = &p;
  find_inverse_masses(p.sets, p.G, d_.data());
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
  // intervals in these units; cones keep their shape
  for (std::size_t r = 0; r < m; ++r) felt_[r] = w_[r] * d_[r];
  for (auto& i : scaled_.intervals) {
    i.lower *= over_w_[i.row], i.upper *= over_w_[i.row];
    if (std::isinf(i.lower) && std::isinf(i.upper)) felt_[i.row] = 0;
  }
  anderson.resize(p.rows());
}

void Splitting::start() {
  for (int r = 0; r < rows(); ++r) s_[r] = -g_[r] / (1 + rho_);
}

void Splitting::start(const double* lambda, const double* sigma) {
  for (int r = 0; r < rows(); ++r) s_[r] = lambda[r] * over_w_[r] - sigma[r] * w_[r] / rho_;
  for (const auto& c : scaled_.cones) s_[c.row] -= c.friction * tangential(c, sigma + c.row) * w_[c.row] / rho_;
}

void Splitting::set_rho(double rho) {
  rho_ = rho;
  for (int r = 0; r < rows(); ++r) damping_[r] = rho * over_w_[r] * over_w_[r];
  problem_->G.set_damping(damping_.data());
  ++factorizations;
  anderson.forget();
}

void Splitting::evaluate() {
  project(scaled_, s_.data(), y_.data());
  for (int r = 0; r < rows(); ++r) {
    z_[r] = rho_ * (y_[r] - s_[r]);
    rhs_[r] = rho_ * y_[r] + z_[r] - g_[r];
  }
  for (const auto& c : scaled_.cones) rhs_[c.row] -= c.friction * tangential(c, &z_[c.row]);
  invert(rhs_.data(), f_.data());
  for (int r = 0; r < rows(); ++r) f_[r] -= y_[r];
}

std::size_t Splitting::pattern() const {
  std::size_t hash = 14695981039346656037u;
  auto take = [&](std::size_t side) { hash = (hash ^ side) * 1099511628211u; };
  for (const auto& c : scaled_.cones) {
    double p[max_cone_rows];
    take(std::size_t(project(c, &s_[c.row], p)));
  }
  for (const auto& i : scaled_.intervals) take(s_[i.row] <= i.lower ? 0 : s_[i.row] >= i.upper ? 2 : 1);
  return hash;
}

void Splitting::change(const double* e, double* to) {
  project_change(scaled_, s_.data(), e, to);
  for (int r = 0; r < rows(); ++r) rhs_[r] = rho_ * (2 * to[r] - e[r]);
  for (const auto& c : scaled_.cones) {
    const double *z = &z_[c.row], t = tangential(c, z);
    double along = 0;
    for (int a = 1; a < c.rows; ++a) along += z[a] * (to[c.row + a] - e[c.row + a]);
    if (t > 0) rhs_[c.row] -= c.friction * rho_ * along / t;
  }
  invert(rhs_.data(), next_.data());
  for (int r = 0; r < rows(); ++r) to[r] = next_[r] - to[r];
}

double Splitting::residual_estimate() const {
  double fastest = 0;
  const double share = rho_ / (1 + rho_);
  for (int r = 0; r < rows(); ++r)
    fastest = std::max(fastest, std::abs(f_[r]) * (felt_[r] > 0 ? felt_[r] : share * over_w_[r]));
  return fastest * (1 + rho_);
}

void Splitting::forces(double* lambda) const {
  for (int r = 0; r < rows(); ++r) lambda[r] = (felt_[r] > 0 ? y_[r] : y_[r] + f_[r]) * w_[r];
}

double Splitting::balance() {
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

void Splitting::rescale(double ratio) {
  for (int r = 0; r < rows(); ++r) next_[r] = s_[r] + f_[r];
  project(scaled_, next_.data(), rhs_.data());
  for (int r = 0; r < rows(); ++r) s_[r] = rhs_[r] - (rhs_[r] - next_[r]) / ratio;
  set_rho(rho_ * ratio);
}

void Splitting::invert(double* y, double* x) {
  poll(200.0 * rows());
  for (int r = 0; r < rows(); ++r) y[r] *= over_w_[r];
  problem_->G.solve(y, x_.data());
  for (int r = 0; r < rows(); ++r) x[r] = x_[r] * over_w_[r];
}

}  // namespace delassus
