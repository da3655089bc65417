#include "derivatives/linearization.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace delassus {

namespace {

// Rows without Baumgarte's terms: of G alone.
ConstraintSet<double> bare(ConstraintSet<double> set) {
  for (auto& c : set.constraints) c.kp = c.kd = 0;
  return set;
}

double largest(const double* x, std::size_t n) {
  double most = 0;
  for (std::size_t k = 0; k < n; ++k) most = std::max(most, std::abs(x[k]));
  return most;
}

double* at_least(std::vector<double>& memory, int rows, int columns) {
  const std::size_t count = std::size_t(rows) * std::size_t(columns);
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

// d(G x) = dg − J M⁻¹ dF, where F and g are those of ν̇ = M⁻¹ Jᵀ x without velocities and gravity
void response_tangents(Operator<double>& G, ConstrainedResidual<double>& response, int n, int m, const double* dq,
                       int columns, std::vector<double>& force, std::vector<double>& rows, double* dy) {
  double* F = at_least(force, n, columns);
  double* Ja = at_least(rows, m, columns);
  response.tangents(dq, nullptr, nullptr, nullptr, columns, F, dy);
  G.mass_inverse(F, columns, F);
  G.jacobian(F, columns, Ja);
  for (std::size_t k = 0; k < std::size_t(m) * std::size_t(columns); ++k) dy[k] -= Ja[k];
}

// q_bar of y_bar · G x
void response_adjoints(Operator<double>& G, ConstrainedResidual<double>& response, int n, const double* y_bar,
                       int columns, std::vector<double>& force, std::vector<double>& part_v, double* q_bar) {
  double* mu = at_least(force, n, columns);
  G.jacobian_transpose(y_bar, columns, mu);
  G.mass_inverse(mu, columns, mu);
  for (std::size_t k = 0; k < std::size_t(n) * std::size_t(columns); ++k) mu[k] = -mu[k];
  response.adjoints(mu, y_bar, columns, q_bar, at_least(part_v, n, columns));
}

}  // namespace

// ---- constrained dynamics
// ----------------------------------------------------------------------------------------------

Linearization::Linearization(const Model<double>& model, const ConstraintSet<double>& set)
    : model_(model),
      n_(model.nv),
      m_(set.rows),
      G_(make_operator(Form::matrix_free, model, set)),
      residual_(model, set),
      response_(model, bare(set)),
      damping_(std::size_t(m_)) {
  for (auto* x : {&force_, &acceleration_, &pushed_, &part_q_, &part_v_}) x->resize(std::size_t(n_));
  for (auto* x : {&rows_, &multiplier_, &left_, &correction_}) x->resize(std::size_t(m_));
}

std::size_t Linearization::bytes() const {
  std::size_t count = damping_.size();
  for (const auto* x :
       {&force_, &rows_, &acceleration_, &multiplier_, &left_, &correction_, &pushed_, &part_q_, &part_v_})
    count += x->size();
  return G_->bytes() + residual_.bytes() + response_.bytes() + count * sizeof(double);
}

bool Linearization::update(const double* q, const double* v, const double* acceleration, const double* lambda,
                           const double* external, const double* compliance, const double* damping) {
  G_->set_compliance(compliance);
  if (!G_->update(q)) return false;
  residual_.update(q, v, acceleration, lambda, external, true);
  redundant_ = false;
  if (m_ > 0) {
    // rows that seem to depend on each other may only come near to it, which less damping tells
    damp(damping, 1);
    redundant_ = depends();
    if (redundant_) {
      damp(damping, 0.01);
      redundant_ = depends();
      if (redundant_) damp(damping, 1);
    }
  }
  if (redundant_) {
    // G ζ = d λ, and the ν̇ of ζ
    double* rhs = at_least(rows_, m_, 1);
    double* zeta = at_least(multiplier_, m_, 1);
    for (int r = 0; r < m_; ++r) rhs[r] = damping_[std::size_t(r)] * lambda[r];
    solve(rhs, 1, zeta);
    double* a = at_least(acceleration_, n_, 1);
    G_->jacobian_transpose(zeta, 1, a);
    G_->mass_inverse(a, 1, a);
    response_.update(q, nullptr, a, zeta, nullptr, false);
  }
  return true;
}

void Linearization::damp(const double* damping, double part) {
  for (int r = 0; r < m_; ++r) damping_[std::size_t(r)] = part * damping[r];
  G_->set_damping(damping_.data());
}

// Whether (d X)³ leaves something of numbers without a pattern, in the metric of d.
bool Linearization::depends() {
  double* y = at_least(rows_, m_, 1);
  double* x = at_least(multiplier_, m_, 1);
  for (int r = 0; r < m_; ++r) y[r] = std::sqrt(damping_[std::size_t(r)]) * std::cos(1.0 + 2.39996 * r);
  for (int k = 0; k < 3; ++k) {
    G_->solve(y, 1, x);
    for (int r = 0; r < m_; ++r) y[r] = damping_[std::size_t(r)] * x[r];
  }
  double most = 0;
  for (int r = 0; r < m_; ++r) most = std::max(most, std::abs(y[r]) / std::sqrt(damping_[std::size_t(r)]));
  return most > 1e-3;
}

// X = (G + C)⁻¹ Y, as long as corrections get smaller.
void Linearization::solve(const double* Y, int columns, double* X) {
  const std::size_t count = std::size_t(m_) * std::size_t(columns);
  if (count == 0) return;
  double* left = at_least(left_, m_, columns);
  double* correction = at_least(correction_, m_, columns);
  G_->solve(Y, columns, X);
  double before = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 12; ++k) {
    G_->apply(X, columns, left);
    for (std::size_t e = 0; e < count; ++e) left[e] = Y[e] - left[e];
    G_->solve(left, columns, correction);
    const double size = largest(correction, count);
    if (!(size < 0.5 * before)) return;
    for (std::size_t e = 0; e < count; ++e) X[e] += correction[e];
    if (size <= 1e-15 * largest(X, count)) return;
    before = size;
  }
}

// X = N Y; may be Y.
void Linearization::project(const double* Y, int columns, double* X) {
  const std::size_t count = std::size_t(m_) * std::size_t(columns);
  double* left = at_least(left_, m_, columns);
  std::copy_n(Y, count, left);
  for (int k = 0; k < 4; ++k) {
    G_->solve(left, columns, X);
    for (int r = 0; r < m_ && k < 3; ++r)
      for (int c = 0; c < columns; ++c)
        left[std::size_t(r) * std::size_t(columns) + std::size_t(c)] =
            damping_[std::size_t(r)] * X[std::size_t(r) * std::size_t(columns) + std::size_t(c)];
  }
}

// Y ← Y − d N Y
void Linearization::off_null_space(double* Y, int columns) {
  double* off = at_least(correction_, m_, columns);
  project(Y, columns, off);
  for (int r = 0; r < m_; ++r)
    for (int c = 0; c < columns; ++c) {
      const std::size_t e = std::size_t(r) * std::size_t(columns) + std::size_t(c);
      Y[e] -= damping_[std::size_t(r)] * off[e];
    }
}

void Linearization::tangents(const double* dq, const double* dv, const double* dtau, int columns, double* da,
                             double* dlambda) {
  const std::size_t n = std::size_t(n_) * std::size_t(columns), m = std::size_t(m_) * std::size_t(columns);
  double* b = at_least(rows_, m_, columns);
  double* moved = at_least(multiplier_, m_, columns);
  residual_.tangents(dq, dv, nullptr, nullptr, columns, da, b);
  for (std::size_t k = 0; k < n; ++k) da[k] = (dtau ? dtau[k] : 0) - da[k];
  G_->mass_inverse(da, columns, da);
  if (m_ == 0) return;
  G_->jacobian(da, columns, moved);
  for (std::size_t k = 0; k < m; ++k) b[k] = -b[k] - moved[k];
  if (redundant_) off_null_space(b, columns);
  solve(b, columns, dlambda);
  double* pushed = at_least(pushed_, n_, columns);
  G_->jacobian_transpose(dlambda, columns, pushed);
  G_->mass_inverse(pushed, columns, pushed);
  for (std::size_t k = 0; k < n; ++k) da[k] += pushed[k];
  if (redundant_ && dq) {
    response_tangents(*G_, response_, n_, m_, dq, columns, force_, multiplier_, b);
    double* kept = at_least(correction_, m_, columns);
    project(b, columns, kept);
    for (std::size_t k = 0; k < m; ++k) dlambda[k] += kept[k];
  }
}

void Linearization::adjoints(const double* a_bar, const double* lambda_bar, int columns, double* q_bar, double* v_bar,
                             double* tau_bar) {
  const std::size_t n = std::size_t(n_) * std::size_t(columns), m = std::size_t(m_) * std::size_t(columns);
  if (a_bar)
    G_->mass_inverse(a_bar, columns, tau_bar);
  else
    std::fill_n(tau_bar, n, 0.0);
  double* b = at_least(rows_, m_, columns);
  double* kappa = at_least(multiplier_, m_, columns);
  double* pushed = at_least(pushed_, n_, columns);
  if (m_ > 0) {
    G_->jacobian(tau_bar, columns, b);
    if (lambda_bar)
      for (std::size_t k = 0; k < m; ++k) b[k] += lambda_bar[k];
    if (redundant_) off_null_space(b, columns);
    solve(b, columns, kappa);
    G_->jacobian_transpose(kappa, columns, pushed);
    G_->mass_inverse(pushed, columns, pushed);
    for (std::size_t k = 0; k < n; ++k) tau_bar[k] -= pushed[k];
  }
  residual_.adjoints(tau_bar, kappa, columns, q_bar, v_bar);
  for (std::size_t k = 0; k < n; ++k) q_bar[k] = -q_bar[k], v_bar[k] = -v_bar[k];
  if (redundant_ && lambda_bar) {
    project(lambda_bar, columns, kappa);
    double* part = at_least(part_q_, n_, columns);
    response_adjoints(*G_, response_, n_, kappa, columns, force_, part_v_, part);
    for (std::size_t k = 0; k < n; ++k) q_bar[k] += part[k];
  }
}

void Linearization::row_inverse(double* X) {
  const std::size_t m = std::size_t(m_);
  double* Y = at_least(rows_, m_, m_);
  std::fill_n(Y, m * m, 0.0);
  for (std::size_t r = 0; r < m; ++r) Y[r * (m + 1)] = 1;
  if (redundant_) off_null_space(Y, m_);
  solve(Y, m_, X);
  // symmetric but for rounding
  for (std::size_t r = 0; r < m; ++r)
    for (std::size_t c = 0; c < r; ++c) X[r * m + c] = X[c * m + r] = 0.5 * (X[r * m + c] + X[c * m + r]);
}

// nv × nv
const double* Linearization::unit() {
  const std::size_t n = std::size_t(n_);
  if (unit_.size() != n * n) {
    unit_.assign(n * n, 0.0);
    for (std::size_t k = 0; k < n; ++k) unit_[k * (n + 1)] = 1;
  }
  return unit_.data();
}

void Linearization::columns(double* acceleration_q, double* acceleration_v, double* acceleration_tau, double* forces_q,
                            double* forces_v, double* forces_tau) {
  tangents(unit(), nullptr, nullptr, n_, acceleration_q, forces_q);
  tangents(nullptr, unit(), nullptr, n_, acceleration_v, forces_v);
  tangents(nullptr, nullptr, unit(), n_, acceleration_tau, forces_tau);
}

void Linearization::add_choice(double* forces_q) {
  if (!redundant_) return;
  const std::size_t count = std::size_t(m_) * std::size_t(n_);
  double* b = at_least(rows_, m_, n_);
  response_tangents(*G_, response_, n_, m_, unit(), n_, force_, multiplier_, b);
  double* kept = at_least(correction_, m_, n_);
  project(b, n_, kept);
  for (std::size_t k = 0; k < count; ++k) forces_q[k] += kept[k];
}

// ---- the operator
// ------------------------------------------------------------------------------------------------------

OperatorDerivatives::OperatorDerivatives(const Model<double>& model, const ConstraintSet<double>& set)
    : model_(model),
      n_(model.nv),
      m_(set.rows),
      G_(make_operator(Form::matrix_free, model, set)),
      response_(model, bare(set)),
      q_(std::size_t(model.nq)),
      x_(std::size_t(m_)),
      acceleration_(std::size_t(n_)) {
  for (auto* x : {&force_, &part_v_}) x->resize(std::size_t(n_));
  for (auto* x : {&rows_, &moved_}) x->resize(std::size_t(m_));
}

std::size_t OperatorDerivatives::bytes() const {
  std::size_t count = 0;
  for (const auto* x : {&q_, &x_, &acceleration_, &force_, &rows_, &moved_, &part_v_}) count += x->size();
  return G_->bytes() + response_.bytes() + count * sizeof(double);
}

bool OperatorDerivatives::update(const double* q, const double* compliance, const double* damping) {
  std::copy_n(q, q_.size(), q_.begin());
  G_->set_compliance(compliance);
  if (!G_->update(q)) return false;
  if (damping && m_ > 0) G_->set_damping(damping);
  return true;
}

void OperatorDerivatives::respond(const double* x) {
  std::copy_n(x, m_, x_.begin());
  G_->jacobian_transpose(x, 1, acceleration_.data());
  G_->mass_inverse(acceleration_.data(), 1, acceleration_.data());
  response_.update(q_.data(), nullptr, acceleration_.data(), x, nullptr, false);
}

void OperatorDerivatives::apply(const double* x, double* y) {
  respond(x);
  G_->apply(x, 1, y);
}

double OperatorDerivatives::solve(const double* y, double* x, const Accuracy<double>& wanted) {
  const double error = G_->solve(y, 1, x, wanted);
  respond(x);
  return error;
}

void OperatorDerivatives::apply_tangents(const double* dq, const double* dx, int columns, double* dy) {
  const std::size_t m = std::size_t(m_) * std::size_t(columns);
  if (dq)
    response_tangents(*G_, response_, n_, m_, dq, columns, force_, rows_, dy);
  else
    std::fill_n(dy, m, 0.0);
  if (!dx) return;
  double* moved = at_least(moved_, m_, columns);
  G_->apply(dx, columns, moved);
  for (std::size_t k = 0; k < m; ++k) dy[k] += moved[k];
}

void OperatorDerivatives::apply_adjoints(const double* y_bar, int columns, double* q_bar, double* x_bar) {
  response_adjoints(*G_, response_, n_, y_bar, columns, force_, part_v_, q_bar);
  if (x_bar) G_->apply(y_bar, columns, x_bar);
}

// (G + ε) dx = dy − d(G) x − dε x
double OperatorDerivatives::solve_tangents(const double* dq, const double* dy, const double* ddamping, int columns,
                                           double* dx, const Accuracy<double>& wanted) {
  const std::size_t width = std::size_t(columns), m = std::size_t(m_) * width;
  double* b = at_least(moved_, m_, columns);
  if (dq)
    response_tangents(*G_, response_, n_, m_, dq, columns, force_, rows_, b);
  else
    std::fill_n(b, m, 0.0);
  for (std::size_t k = 0; k < m; ++k) b[k] = (dy ? dy[k] : 0) - b[k] - (ddamping ? ddamping[k] * x_[k / width] : 0);
  return G_->solve(b, columns, dx, wanted);
}

// y_bar = (G + ε)⁻¹ x_bar, ε_bar = −y_bar x, q_bar that of −y_bar · G x
double OperatorDerivatives::solve_adjoints(const double* x_bar, int columns, double* q_bar, double* y_bar,
                                           double* damping_bar, const Accuracy<double>& wanted) {
  const std::size_t width = std::size_t(columns), m = std::size_t(m_) * width, n = std::size_t(n_) * width;
  const double error = G_->solve(x_bar, columns, y_bar, wanted);
  response_adjoints(*G_, response_, n_, y_bar, columns, force_, part_v_, q_bar);
  for (std::size_t k = 0; k < n; ++k) q_bar[k] = -q_bar[k];
  if (damping_bar)
    for (std::size_t k = 0; k < m; ++k) damping_bar[k] = -y_bar[k] * x_[k / width];
  return error;
}

}  // namespace delassus
