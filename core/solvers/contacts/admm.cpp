#include "solvers/contacts/admm.h"

namespace delassus {
namespace {

constexpr double first_rho = 0.02;
constexpr double other_rho[] = {first_rho, 0.1, 3.0, 0.005};  // of starts that follow, in turn
constexpr int patience = 80;                                  // iterations without a smaller residual
constexpr int warm_trust = 40;  // iterations from a warm start, before it is taken for a bad one
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

ContactReport Admm::solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                          double* history) {
  ContactReport report;
  if (begin(p, options, lambda, sigma, report)) return report;
  iterate(options.max_iterations, lambda, sigma, history, report);
  finish(lambda, sigma, report);
  return report;
}

bool Admm::begin(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                 ContactReport& report) {
  problem_ = &p;
  options_ = &options;
  check_below_ = 3 * options.tolerance;
  last_check_ = last_gain_ = 0;
  least_estimate_ = best_residual_ = infinite;
  starts_ = options.warm ? 0 : 1;
  balance_interval_ = 10;
  since_balance_ = 0;
  extrapolated_ = false;
  plain_steps_ = 0;
  next_plain_steps_ = 4;
  for (auto* x : {&plain_, &earlier_, &best_forces_}) x->resize(std::size_t(p.rows()));
  split_.factorizations = 0;
  split_.begin(p);

  // the start, or zero forces, may already be a solution
  if (!options.warm)
    std::fill_n(lambda, p.rows(), 0.0);
  else
    project(p.sets, lambda, lambda);
  if (certified(lambda, sigma, report)) {
    report.rho = options.rho;
    return true;
  }
  std::copy_n(lambda, p.rows(), earlier_.data());
  keep_best(lambda, report);

  split_.set_rho(options.rho > 0 ? options.rho : first_rho);
  options.warm ? split_.start(lambda, sigma) : split_.start();
  return false;
}

bool Admm::iterate(int last, double* lambda, double* sigma, double* history, ContactReport& report) {
  while (report.iterations < last) {
    // f = x − y at s
    split_.evaluate();
    const double estimate = split_.residual_estimate(), length = split_.length();
    history[report.iterations++] = estimate;
    if (!std::isfinite(length)) {
      report.outcome = ContactOutcome::stalled;
      return true;
    }

    // is this the solution, and if not, has anything been gained lately?
    if (check(estimate, lambda, sigma, report)) return true;
    const Next next = check_progress(estimate, lambda, sigma, report);
    if (next == Next::end) return true;
    if (next == Next::again) continue;

    // s ← s + f, extrapolated, unless the last extrapolation misled or ρ is out of balance
    if (take_back(length) || balance()) continue;
    if (report.iterations % 100 == 0 && infeasible(lambda, sigma, report)) return true;
    advance(length);
  }
  return false;
}

// The exact residual costs a product: it is asked for when the estimate is near the tolerance, and again when that has
// come nearer, or now and then.
bool Admm::check(double estimate, double* lambda, double* sigma, ContactReport& report) {
  const bool due = estimate <= 10 * options_->tolerance && report.iterations >= last_check_ + 25;
  if (!(estimate <= check_below_ || due)) return false;
  split_.forces(lambda);
  if (certified(lambda, sigma, report)) return true;
  check_below_ = 0.6 * estimate;
  last_check_ = report.iterations;
  // well below the tolerance it is not the iteration that is inexact, but the solve
  if (estimate <= 0.5 * options_->tolerance && problem_->G.sharpen()) resume();
  return false;
}

// Without a gain for long: there may be no solution, solves may need to be more exact, or another ρ leads on.
//
// Where forces that G hardly feels have far to go, the last digit takes very long: in a hurry there is less patience
// near the tolerance, and no other start.
Admm::Next Admm::check_progress(double estimate, double* lambda, double* sigma, ContactReport& report) {
  if (estimate < 0.9 * least_estimate_) {
    least_estimate_ = estimate;
    last_gain_ = report.iterations;
  }
  const bool near_tolerance = options_->hurry && least_estimate_ <= 30 * options_->tolerance;
  const bool bad_start = starts_ == 0 && !near_tolerance && report.iterations >= warm_trust;
  if (report.iterations < last_gain_ + (near_tolerance ? patience / 3 : patience) && !bad_start) return Next::step;

  if (infeasible(lambda, sigma, report)) return Next::end;
  if (certified(lambda, sigma, report)) return Next::end;
  keep_best(lambda, report);
  if (problem_->G.sharpen()) {
    resume();
    last_gain_ = report.iterations;
    return Next::again;
  }
  if (near_tolerance || starts_ == int(std::size(other_rho))) {
    report.outcome = ContactOutcome::stalled;
    return Next::end;
  }
  restart(other_rho[starts_++], report);
  return Next::again;
}

// Contacts that change between sticking, sliding and open lead extrapolations astray: back to the plain step, and some
// more plain steps first, each time more.
bool Admm::take_back(double length) {
  if (!(extrapolated_ && length > length_)) return false;
  std::copy_n(plain_.data(), split_.rows(), split_.s());
  resume();
  plain_steps_ = next_plain_steps_;
  next_plain_steps_ = std::min(2 * next_plain_steps_, 64);
  return true;
}

// Another ρ where x − y and the change of ρ y are far from each other; asked less and less often.
bool Admm::balance() {
  if (++since_balance_ != balance_interval_) return false;
  since_balance_ = 0;
  const double ratio = std::clamp(split_.balance(), 0.05, 20.0);
  if (ratio <= 3 && ratio >= 1.0 / 3) return false;
  balance_interval_ *= 2;
  split_.rescale(ratio);
  extrapolated_ = false;
  return true;
}

void Admm::advance(double length) {
  const int m = split_.rows();
  for (int r = 0; r < m; ++r) plain_[r] = split_.s()[r] + split_.f()[r];
  length_ = length;
  extrapolated_ = split_.anderson.advance(split_.s(), split_.f(), split_.s());
  if (plain_steps_ > 0) {
    --plain_steps_;
    extrapolated_ = false;
    std::copy_n(plain_.data(), m, split_.s());
  }
}

void Admm::finish(double* lambda, double* sigma, ContactReport& report) {
  report.rho = split_.rho();
  report.factorizations = split_.factorizations;
  if (report.outcome == ContactOutcome::solved || report.outcome == ContactOutcome::infeasible) return;
  if (report.outcome == ContactOutcome::unfinished) {
    split_.forces(lambda);
    if (certified(lambda, sigma, report)) return;
    keep_best(lambda, report);
  }
  std::copy_n(best_forces_.data(), split_.rows(), lambda);
  certified(lambda, sigma, report);
}

void Admm::resume() {
  split_.anderson.forget();
  extrapolated_ = false;
}

bool Admm::certified(const double* lambda, double* sigma, ContactReport& report) {
  report.residuals = judge(*problem_, true, split_.d(), lambda, sigma);
  const bool solved = report.residuals.worst(options_->share) <= options_->tolerance;
  if (solved) report.outcome = ContactOutcome::solved;
  return solved;
}

void Admm::keep_best(const double* lambda, const ContactReport& report) {
  if (!(report.residuals.worst(options_->share) < best_residual_)) return;
  best_residual_ = report.residuals.worst(options_->share);
  std::copy_n(lambda, split_.rows(), best_forces_.data());
}

// From nothing with another ρ: after a bad warm start as from the beginning, later without balancing, which has failed.
void Admm::restart(double rho, const ContactReport& report) {
  split_.set_rho(rho);
  split_.start();
  extrapolated_ = false;
  plain_steps_ = 0;
  next_plain_steps_ = 4;
  least_estimate_ = infinite;
  check_below_ = 3 * options_->tolerance;
  last_gain_ = report.iterations;
  since_balance_ = 0;
  balance_interval_ = starts_ > 1 ? std::numeric_limits<int>::max() : 10;
}

// Whether forces run away along a direction δ of their sets that moves nothing and that g pushes against: G δ = 0, gᵀ
// δ < 0. Then nothing solves the problem; where there is friction, Γ may still help, so δ must keep away from it.
bool Admm::infeasible(double* lambda, double* sigma, ContactReport& report) {
  // δ, by which forces have changed since the last look
  const int m = split_.rows();
  split_.forces(lambda);
  for (int r = 0; r < m; ++r) {
    const double now = lambda[r];
    lambda[r] -= earlier_[r];
    earlier_[r] = now;
  }

  // what it would move, how far it leaves the sets, and its work
  double size = 0, moved = 0, outside = 0, work = 0, length = 0;
  problem_->G.apply(lambda, sigma);
  project(problem_->sets, lambda, plain_.data());
  for (int r = 0; r < m; ++r) {
    const double felt = std::abs(lambda[r]) * split_.d()[r];
    size = std::max(size, felt);
    moved = std::max(moved, std::abs(sigma[r]));
    outside = std::max(outside, std::abs(plain_[r] - lambda[r]) * split_.d()[r]);
    work += problem_->g[r] * lambda[r];
    length += std::abs(lambda[r]);
  }
  for (const auto& c : problem_->sets.cones)
    if (c.friction > 0)
      for (int r = c.row; r < c.row + c.rows; ++r) outside = std::max(outside, std::abs(lambda[r]) * split_.d()[r]);
  std::copy_n(earlier_.data(), m, lambda);

  // velocities within the tolerance would give −tolerance Σ|δ| for gᵀ δ: what contradicts itself by less does not
  const double allowed = options_->tolerance / options_->share * length;
  const bool runs = moved <= 1e-9 * size && outside <= 1e-9 * size && size > options_->tolerance;
  if (!(runs && work < -allowed)) return false;
  report.residuals = judge(*problem_, true, split_.d(), lambda, sigma);
  report.outcome = ContactOutcome::infeasible;
  return true;
}

}  // namespace delassus
