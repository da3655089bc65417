// Contact forces by the alternating direction method of multipliers: one solve with (G + ρ)⁻¹, one projection an
// iteration, extrapolated by Anderson's rule.
//
// ρ starts small, so that sticking contacts are found almost at once, and is balanced after 10, 20, 40 … iterations: a
// handful of factorizations in all. An extrapolation after which x − y is longer is given back for the plain step,
// which always leads on. Where it comes no nearer, it starts again with another ρ, and the best that was found counts.
// G may be singular.
//
// Proximal ADMM for frictional contact as in Carpentier, Le Lidec, Montaut, "From Compliant to Rigid Contact
// Simulation"; the sets with Γ updated in every iteration.
#pragma once

#include "solvers/contacts/splitting.h"

namespace delassus {

class Admm {
 public:
  // λ: what to start from on entry if options say so, forces on exit; σ: velocities on exit. history: `most` numbers,
  // an estimate of what is left after every iteration.
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history) {
    ContactReport report;
    if (begin(p, options, lambda, sigma, report)) return report;
    iterate(options.most, lambda, sigma, history, report);
    finish(lambda, sigma, report);
    return report;
  }

  // Units and start; whether what it was given solves the problem already.
  bool begin(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
             ContactReport& report) {
    problem_ = &p;
    options_ = &options;
    worth_ = 3 * options.tolerance;
    tried_ = 0;
    best_ = std::numeric_limits<double>::infinity();
    improved_ = 0;
    again_ = options.warm ? 0 : 1;
    kept_ = std::numeric_limits<double>::infinity();
    every_ = 10;
    balanced_ = 0;
    trusted_ = false;
    pause_ = 0;
    rest_ = 4;
    for (auto* x : {&plain_, &earlier_, &best_forces_}) x->resize(std::size_t(p.rows()));
    split_.factorizations = 0;
    split_.begin(p);
    if (!options.warm)
      std::fill_n(lambda, p.rows(), 0.0);
    else
      project(p.sets, lambda, lambda);
    if (certified(lambda, sigma, report)) {
      report.rho = options.rho;
      return true;
    }
    std::copy_n(lambda, p.rows(), earlier_.data());
    keep(lambda, report);
    split_.set_rho(options.rho > 0 ? options.rho : first_rho);
    options.warm ? split_.start(lambda, sigma) : split_.start();
    return false;
  }

  // Goes on to `last` iterations in all. Returns true if the problem is solved, or if there is no sense in going on.
  bool iterate(int last, double* lambda, double* sigma, double* history, ContactReport& report) {
    auto& s = split_;
    const int m = s.rows();
    while (report.iterations < last) {
      s.evaluate();
      const double left = s.left(), length = s.length();
      history[report.iterations++] = left;
      if (!std::isfinite(length)) {
        report.outcome = ContactOutcome::stalled;
        return true;
      }
      // what is left exactly costs a product: it is asked when the estimate is near, and again when that has come
      // nearer, or now and then
      if (left <= worth_ || (left <= 10 * options_->tolerance && report.iterations >= tried_ + 25)) {
        s.forces(lambda);
        if (certified(lambda, sigma, report)) return true;
        worth_ = 0.6 * left;
        tried_ = report.iterations;
        if (left <= 0.5 * options_->tolerance && problem_->G.sharpen())
          resume();  // it is not what is left of the iteration
      }
      if (left < 0.9 * best_) {
        best_ = left;
        improved_ = report.iterations;
      }
      // where forces that G hardly feels have far to go, the last digit takes very long: in a hurry there is less
      // patience near the tolerance, and no other start
      const bool near = options_->hurry && best_ <= 30 * options_->tolerance;
      if (report.iterations >= improved_ + (near ? patience / 3 : patience) ||
          (again_ == 0 && !near && report.iterations >= warm_trust)) {
        if (infeasible(lambda, sigma, report)) return true;
        if (certified(lambda, sigma, report)) return true;
        keep(lambda, report);
        if (problem_->G.sharpen()) {
          resume();
          improved_ = report.iterations;
          continue;
        }
        if (near || again_ == sizeof(other_rho) / sizeof(double)) {
          report.outcome = ContactOutcome::stalled;
          return true;
        }
        restart(other_rho[again_++], report);
        continue;
      }
      if (trusted_ && length > length_) {
        // contacts that change between sticking, sliding and open lead extrapolations astray: some plain steps first,
        // each time more
        std::copy_n(plain_.data(), m, s.s());
        s.anderson.forget();
        trusted_ = false;
        pause_ = rest_;
        rest_ = std::min(2 * rest_, 64);
        continue;
      }
      if (++balanced_ == every_) {
        balanced_ = 0;
        const double ratio = std::clamp(s.balance(), 0.05, 20.0);
        if (ratio > 3 || ratio < 1.0 / 3) {
          every_ *= 2;
          s.rescale(ratio);
          trusted_ = false;
          continue;
        }
      }
      if (report.iterations % 100 == 0 && infeasible(lambda, sigma, report)) return true;
      for (int r = 0; r < m; ++r) plain_[r] = s.s()[r] + s.f()[r];
      length_ = length;
      trusted_ = s.anderson.advance(s.s(), s.f(), s.s());
      if (pause_ > 0) {
        --pause_;
        trusted_ = false;
        std::copy_n(plain_.data(), m, s.s());
      }
    }
    return false;
  }

  // Forces and what is left where it stands, if it was not solved.
  void finish(double* lambda, double* sigma, ContactReport& report) {
    report.rho = split_.rho();
    report.factorizations = split_.factorizations;
    if (report.outcome == ContactOutcome::solved || report.outcome == ContactOutcome::infeasible) return;
    if (report.outcome == ContactOutcome::unfinished) {
      split_.forces(lambda);
      if (certified(lambda, sigma, report)) return;
      keep(lambda, report);
    }
    std::copy_n(best_forces_.data(), split_.rows(), lambda);
    certified(lambda, sigma, report);
  }

  // After s was set from outside.
  void resume() {
    split_.anderson.forget();
    trusted_ = false;
  }

  bool certified(const double* lambda, double* sigma, ContactReport& report) {
    report.left = judge(*problem_, true, split_.d(), lambda, sigma);
    const bool solved = report.left.worst(options_->share) <= options_->tolerance;
    if (solved) report.outcome = ContactOutcome::solved;
    return solved;
  }
  Splitting& splitting() { return split_; }

 private:
  static constexpr double first_rho = 0.02;
  static constexpr double other_rho[] = {first_rho, 0.1, 3.0, 0.005};
  static constexpr int patience = 80;    // iterations without coming nearer
  static constexpr int warm_trust = 40;  // iterations from a warm start, before it is taken for a bad one

  // The best forces so far, by what is left.
  void keep(const double* lambda, const ContactReport& report) {
    if (!(report.left.worst(options_->share) < kept_)) return;
    kept_ = report.left.worst(options_->share);
    std::copy_n(lambda, split_.rows(), best_forces_.data());
  }
  void restart(double rho, const ContactReport& report) {
    split_.set_rho(rho);
    split_.start();
    trusted_ = false;
    pause_ = 0;
    rest_ = 4;
    best_ = std::numeric_limits<double>::infinity();
    worth_ = 3 * options_->tolerance;
    improved_ = report.iterations;
    balanced_ = 0;
    every_ = again_ > 1 ? std::numeric_limits<int>::max()
                        : 10;  // after a bad warm start as from the beginning; after balancing has failed without it
  }

  // Whether forces run away along a direction δ of their sets that moves nothing and that g pushes against: G δ = 0, gᵀ
  // δ < 0. Then nothing solves the problem; where there is friction, Γ may still help, so δ must keep away from it.
  bool infeasible(double* lambda, double* sigma, ContactReport& report) {
    const int m = split_.rows();
    split_.forces(lambda);
    for (int r = 0; r < m; ++r) {
      const double now = lambda[r];
      lambda[r] -= earlier_[r];
      earlier_[r] = now;
    }
    double size = 0, moved = 0, along = 0, against = 0, length = 0;
    problem_->G.apply(lambda, sigma);
    project(problem_->sets, lambda, plain_.data());
    for (int r = 0; r < m; ++r) {
      const double felt = std::abs(lambda[r]) * split_.d()[r];
      size = std::max(size, felt);
      moved = std::max(moved, std::abs(sigma[r]));
      along = std::max(along, std::abs(plain_[r] - lambda[r]) * split_.d()[r]);
      against += problem_->g[r] * lambda[r];
      length += std::abs(lambda[r]);
    }
    for (const auto& c : problem_->sets.cones)
      if (c.friction > 0)
        for (int r = c.row; r < c.row + 3; ++r) along = std::max(along, std::abs(lambda[r]) * split_.d()[r]);
    std::copy_n(earlier_.data(), m, lambda);
    // velocities within the tolerance would give −tolerance Σ|δ| for gᵀ δ: what contradicts itself by less does not
    const double allowed = options_->tolerance / options_->share * length;
    const bool runs = moved <= 1e-9 * size && along <= 1e-9 * size && size > options_->tolerance;
    if (!(runs && against < -allowed)) return false;
    report.left = judge(*problem_, true, split_.d(), lambda, sigma);
    report.outcome = ContactOutcome::infeasible;
    return true;
  }

  Splitting split_;
  const ContactProblem* problem_ = nullptr;
  const ContactOptions* options_ = nullptr;
  double worth_ = 0, best_ = 0, kept_ = 0,
         length_ = 0;  // what is left: worth asking exactly, least estimate, of the best forces; ‖f‖ before
  int tried_ = 0, improved_ = 0, again_ = 0;  // iterations when; how many starts
  int every_ = 10, balanced_ = 0;
  int pause_ = 0, rest_ = 4;  // plain steps to go, and after the next extrapolation that misleads
  bool trusted_ = false;      // s is an extrapolation
  std::vector<double> plain_, earlier_,
      best_forces_;  // a row: the plain step instead; forces a hundred iterations before
};

}  // namespace delassus
