// Solves states on which a fast method failed with the dense factor. Its memory is allocated on first use, which most
// mechanisms never reach.
#pragma once

#include <memory>

#include "solvers/kkt.h"

namespace delassus {

template <class Real>
class Repair {
 public:
  // One state and what acts on it, as DynamicsSolver::solve takes it.
  struct State {
    const Real *q, *v, *tau, *external, *gamma, *damping, *compliance;
  };

  Repair(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
      : model_(&model), layout_(std::move(layout)) {}

  // It may take seconds, and tens of megabytes.
  static bool affordable(const Layout<Real>& layout, int nv) { return nv + layout.set.rows <= 2000; }
  static bool needed(const Report<Real>& report) {
    return report.outcome == Outcome::unfinished || report.outcome == Outcome::stalled;
  }

  std::size_t bytes() const { return (kkt_ ? kkt_->bytes() : 0) + (lambda_.size() + vdot_.size()) * sizeof(Real); }
  void give_way(bool yes) { gives_way_ = yes; }

  void reserve() {
    if (kkt_) return;
    kkt_ = std::make_unique<Kkt<Real>>(*model_, layout_);
    lambda_.resize(std::size_t(layout_->set.rows));
    vdot_.resize(std::size_t(model_->nv));
  }

  // Solves from rest. Where this fails too, the better of both answers stays. The report has the iterations of the fast
  // method.
  void solve(const State& s, int max_iterations, Real tolerance, Real* lambda, Real* vdot, Report<Real>* report,
             Real* history) {
    const std::size_t rows = std::size_t(layout_->set.rows), nv = std::size_t(model_->nv);
    reserve();
    const Report<Real> before = *report;
    std::copy(lambda, lambda + rows, lambda_.begin());
    std::copy(vdot, vdot + nv, vdot_.begin());
    std::fill(lambda, lambda + rows, Real(0));
    kkt_->give_way(gives_way_);
    kkt_->set_compliance(s.compliance);
    kkt_->solve(s.q, s.v, s.tau, s.external, s.gamma, s.damping, corrections, tolerance, lambda, vdot, report, nullptr);
    report->repaired = true;
    report->iterations = before.iterations;
    if (needed(*report) &&
        !(std::max(report->dynamics, report->constraints) < std::max(before.dynamics, before.constraints))) {
      std::copy(lambda_.begin(), lambda_.end(), lambda);
      std::copy(vdot_.begin(), vdot_.end(), vdot);
      *report = before;
    }
    if (history && report->iterations > 0) history[std::min(report->iterations, max_iterations) - 1] = report->primal;
  }

 private:
  static constexpr int corrections = 30;

  const Model<Real>* model_;
  std::shared_ptr<const Layout<Real>> layout_;
  std::unique_ptr<Kkt<Real>> kkt_;
  std::vector<Real> lambda_, vdot_;  // of the fast method
  bool gives_way_ = false;
};

}  // namespace delassus
