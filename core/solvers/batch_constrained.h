// Constrained dynamics of many states of one mechanism, on one or more threads. States are solved in groups of as many
// as a register holds, by the sweeps for one state (constrained.h) with T a pack of states; a group iterates until its
// last state has converged. On request, states that fail are solved one by one with the dense factor.
#pragma once

#include "operators/states.h"
#include "operators/team.h"
#include "solvers/constrained.h"
#include "solvers/repair.h"

namespace delassus {

template <class Real>
class BatchConstrainedDynamics final : public BatchDynamicsSolver<Real> {
 public:
  static constexpr int width = register_bytes / int(sizeof(Real));
  using P = Pack<Real, width>;

  BatchConstrainedDynamics(const Model<Real>& model, const ConstraintSet<Real>& set, int batch, int threads,
                           bool repairs)
      : model_(model),
        layout_(std::make_shared<const Layout<Real>>(model, set, 1)),
        repairs_(repairs && Repair<Real>::affordable(*layout_, model.nv)),
        rows_(set.rows),
        batch_(batch),
        team_(std::min(threads, (batch + width - 1) / width)) {
    const std::size_t bodies = model.bodies.size(), rows = std::size_t(rows_), nv = std::size_t(model.nv);
    // one solver and one set of numbers per thread: nothing is kept between two groups
    for (int t = 0; t < team_.size(); ++t) {
      solvers_.emplace_back(model, layout_);
      repairers_.emplace_back(model, layout_);
      hands_.push_back({std::vector<P>(std::size_t(model.nq)), std::vector<P>(nv), std::vector<P>(nv),
                        std::vector<P>(6 * bodies), std::vector<P>(rows), std::vector<P>(rows), std::vector<P>(rows),
                        std::vector<P>(rows), std::vector<P>(nv)});
    }
  }

  int rows() const override { return rows_; }
  int batch() const override { return batch_; }
  std::size_t bytes() const override {
    std::size_t sum = 0;
    for (const auto& s : solvers_) sum += s.bytes();
    for (const auto& r : repairers_) sum += r.bytes();
    for (const auto& h : hands_)
      sum += (h.q.size() + 3 * h.v.size() + h.external.size() + 4 * h.damping.size()) * sizeof(P);
    return sum;
  }

  void give_way(bool yes) override {
    for (auto& s : solvers_) s.give_way(yes);
    for (auto& r : repairers_) r.give_way(yes);
  }

  void solve(const Real* Q, const Real* V, const Real* tau, const Real* external, const Real* gamma,
             const Real* damping, const Real* compliance, int max_iterations, Real tolerance, Real* lambda, Real* vdot,
             Report<Real>* reports) override {
    const int groups = (batch_ + width - 1) / width, bodies = int(model_.bodies.size());
    team_.each(groups, [&](int g) {
      const int t = team_.whose(g, groups);
      auto& h = hands_[t];
      auto& solver = solvers_[t];
      Report<Real> report[width];
      gather(g, Q, model_.nq, h.q);
      gather(g, V, model_.nv, h.v);
      if (tau) gather(g, tau, model_.nv, h.tau);
      if (external) gather(g, external, 6 * bodies, h.external);
      if (gamma) gather(g, gamma, rows_, h.gamma);
      gather(g, damping, rows_, h.damping);
      gather(g, compliance, rows_, h.compliance);
      gather(g, lambda, rows_, h.lambda);
      solver.set_compliance(h.compliance.data());
      solver.solve(h.q.data(), h.v.data(), tau ? h.tau.data() : nullptr, external ? h.external.data() : nullptr,
                   gamma ? h.gamma.data() : nullptr, h.damping.data(), max_iterations, tolerance, h.lambda.data(),
                   h.vdot.data(), report, nullptr);
      scatter(g, h.lambda, rows_, lambda);
      scatter(g, h.vdot, model_.nv, vdot);
      for (int k = 0; k < count(g); ++k) {
        const std::size_t s = std::size_t(g) * width + std::size_t(k), nq = std::size_t(model_.nq),
                          nv = std::size_t(model_.nv), m = std::size_t(rows_);
        reports[s] = report[k];
        if (!repairs_ || !Repair<Real>::needed(report[k])) continue;
        repairers_[t].solve({Q + s * nq, V + s * nv, tau ? tau + s * nv : nullptr,
                             external ? external + s * 6 * std::size_t(bodies) : nullptr,
                             gamma ? gamma + s * m : nullptr, damping + s * m, compliance + s * m},
                            max_iterations, tolerance, lambda + s * m, vdot + s * nv, &reports[s], nullptr);
      }
    });
  }

 private:
  struct Hands {
    std::vector<P> q, v, tau, external, gamma, damping, compliance, lambda, vdot;
  };

  int count(int g) const { return std::min(width, batch_ - g * width); }

  // n numbers of every state of a group; lanes beyond the batch repeat its last state
  void gather(int g, const Real* X, int n, std::vector<P>& to) const {
    const Real* x[width];
    for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch_ - 1)) * n;
    gather_states(x, n, to.data());
  }
  void scatter(int g, const std::vector<P>& from, int n, Real* X) const {
    Real* x[width];
    for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch_ - 1)) * n;
    scatter_states(from.data(), n, x, count(g));
  }

  const Model<Real>& model_;
  std::shared_ptr<const Layout<Real>> layout_;
  bool repairs_;
  int rows_, batch_;
  Team team_;
  std::vector<ConstrainedDynamics<P>> solvers_;  // a thread
  std::vector<Repair<Real>> repairers_;          // a thread
  std::vector<Hands> hands_;
};

}  // namespace delassus
