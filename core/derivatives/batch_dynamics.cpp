#include "derivatives/batch_dynamics.h"

#include <algorithm>
#include <mutex>

namespace delassus {

namespace {

// The k-th of arrays of `size` numbers; null stays null.
template <class T>
T* nth(T* all, int k, std::size_t size) {
  return all ? all + std::size_t(k) * size : nullptr;
}

}  // namespace

// ---- matrices
// ----------------------------------------------------------------------------------------------------------

BatchDynamicsMatrices::Hand::Hand(const Model<double>& model, const ConstraintSet<double>& set)
    : matrices(model, set),
      linear(model, set),
      solver(make_dynamics_solver(DynamicsMethod::automatic, model, set)),
      X(std::size_t(set.rows) * std::size_t(set.rows)) {}

BatchDynamicsMatrices::BatchDynamicsMatrices(const Model<double>& model, const ConstraintSet<double>& set, int threads)
    : model_(model), rows_(set.rows), team_(threads) {
  for (int t = 0; t < team_.size(); ++t) hands_.push_back(std::make_unique<Hand>(model, set));
}

std::size_t BatchDynamicsMatrices::bytes() const {
  std::size_t sum = 0;
  for (const auto& h : hands_)
    sum += h->matrices.bytes() + h->linear.bytes() + h->solver->bytes() + h->X.size() * sizeof(double);
  return sum;
}

DynamicsState BatchDynamicsMatrices::state(const DynamicsStates& s, int k) const {
  const std::size_t n = std::size_t(model_.nv);
  return {nth(s.q, k, std::size_t(model_.nq)),          nth(s.v, k, n), nth(s.tau, k, n),
          nth(s.external, k, 6 * model_.bodies.size()), s.compliance,   s.damping};
}

DynamicsDerivatives BatchDynamicsMatrices::part(const DynamicsDerivatives& all, int k) const {
  const std::size_t n = std::size_t(model_.nv), a = n * n, f = std::size_t(rows_) * n;
  return {nth(all.acceleration_q, k, a), nth(all.acceleration_v, k, a), nth(all.acceleration_tau, k, a),
          nth(all.forces_q, k, f),       nth(all.forces_v, k, f),       nth(all.forces_tau, k, f)};
}

// work(hand, k) of every state, which returns why it failed; the first failure of all.
template <class F>
DynamicsFailure BatchDynamicsMatrices::each(int count, F&& work) {
  DynamicsFailure first;
  std::mutex lock;
  team_.each(count, [&](int k) {
    const DynamicsFailure f = work(*hands_[std::size_t(team_.whose(k, count))], k);
    if (f.state < 0) return;
    const std::lock_guard guard(lock);
    if (first.state < 0 || f.state < first.state) first = f;
  });
  return first;
}

// False where M is singular.
bool BatchDynamicsMatrices::differentiate_one(Hand& h, const DynamicsState& s, const double* acceleration,
                                              const double* lambda, const DynamicsDerivatives& out) {
  using Rows = DynamicsMatrices::Rows;
  const auto rows = h.matrices.prepare(s, acceleration, lambda);
  if (rows == Rows::singular) return false;
  if (rows != Rows::independent &&
      !h.linear.update(s.q, s.v, acceleration, lambda, s.external, s.compliance, s.damping))
    return false;
  if (rows == Rows::inexact) {
    h.linear.columns(out.acceleration_q, out.acceleration_v, out.acceleration_tau, out.forces_q, out.forces_v,
                     out.forces_tau);
    return true;
  }
  if (rows == Rows::doubtful) {
    h.linear.row_inverse(h.X.data());
    h.matrices.set_row_inverse(h.X.data());
  }
  h.matrices.differentiate(out);
  if (rows == Rows::doubtful) h.linear.add_choice(out.forces_q);
  return true;
}

DynamicsFailure BatchDynamicsMatrices::solve(const DynamicsStates& all, int max_iterations, double tolerance,
                                             double* acceleration, double* lambda, const DynamicsDerivatives& out) {
  return each(all.count, [&](Hand& h, int k) -> DynamicsFailure {
    const DynamicsState s = state(all, k);
    double* a = nth(acceleration, k, std::size_t(model_.nv));
    double* f = nth(lambda, k, std::size_t(rows_));
    const auto rows = h.matrices.solve(s, a, f);
    if (rows == DynamicsMatrices::Rows::independent) {
      h.matrices.differentiate(part(out, k));
      return {};
    }
    if (rows == DynamicsMatrices::Rows::singular) return {k, true, {}};
    Report<double> report;
    std::fill_n(f, rows_, 0.0);
    h.solver->set_compliance(s.compliance);
    h.solver->solve(s.q, s.v, s.tau, s.external, nullptr, all.solver_damping, max_iterations, tolerance, f, a, &report,
                    nullptr);
    if (report.outcome != Outcome::solved && report.outcome != Outcome::redundant) return {k, false, report.outcome};
    if (!differentiate_one(h, s, a, f, part(out, k))) return {k, true, {}};
    return {};
  });
}

DynamicsFailure BatchDynamicsMatrices::differentiate(const DynamicsStates& all, const double* acceleration,
                                                     const double* lambda, const DynamicsDerivatives& out) {
  return each(all.count, [&](Hand& h, int k) -> DynamicsFailure {
    const double* a = nth(acceleration, k, std::size_t(model_.nv));
    const double* f = nth(lambda, k, std::size_t(rows_));
    if (!differentiate_one(h, state(all, k), a, f, part(out, k))) return {k, true, {}};
    return {};
  });
}

// ---- products
// ----------------------------------------------------------------------------------------------------------

BatchLinearization::BatchLinearization(const Model<double>& model, const ConstraintSet<double>& set, int batch,
                                       int threads)
    : model_(model), rows_(set.rows), team_(std::min(threads, batch)) {
  for (int k = 0; k < batch; ++k) states_.push_back(std::make_unique<Linearization>(model, set));
}

std::size_t BatchLinearization::bytes() const {
  std::size_t sum = 0;
  for (const auto& s : states_) sum += s->bytes();
  return sum;
}

int BatchLinearization::update(const DynamicsStates& s, const double* acceleration, const double* lambda) {
  const std::size_t n = std::size_t(model_.nv), m = std::size_t(rows_);
  int first = -1;
  std::mutex lock;
  team_.each(batch(), [&](int k) {
    if (states_[std::size_t(k)]->update(nth(s.q, k, std::size_t(model_.nq)), nth(s.v, k, n), nth(acceleration, k, n),
                                        nth(lambda, k, m), nth(s.external, k, 6 * model_.bodies.size()), s.compliance,
                                        s.damping))
      return;
    const std::lock_guard guard(lock);
    if (first < 0 || k < first) first = k;
  });
  return first;
}

void BatchLinearization::tangents(const double* dq, const double* dv, const double* dtau, int columns, double* da,
                                  double* dlambda) {
  const std::size_t n = std::size_t(model_.nv) * std::size_t(columns), m = std::size_t(rows_) * std::size_t(columns);
  team_.each(batch(), [&](int k) {
    states_[std::size_t(k)]->tangents(nth(dq, k, n), nth(dv, k, n), nth(dtau, k, n), columns, nth(da, k, n),
                                      nth(dlambda, k, m));
  });
}

void BatchLinearization::adjoints(const double* a_bar, const double* lambda_bar, int columns, double* q_bar,
                                  double* v_bar, double* tau_bar) {
  const std::size_t n = std::size_t(model_.nv) * std::size_t(columns), m = std::size_t(rows_) * std::size_t(columns);
  team_.each(batch(), [&](int k) {
    states_[std::size_t(k)]->adjoints(nth(a_bar, k, n), nth(lambda_bar, k, m), columns, nth(q_bar, k, n),
                                      nth(v_bar, k, n), nth(tau_bar, k, n));
  });
}

}  // namespace delassus
