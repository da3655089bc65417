// Derivatives of tree dynamics for many states of one mechanism, on one or more threads. States are processed in groups
// of as many as a register holds, by the sweeps for one state with T a pack of states.
#pragma once

#include <algorithm>
#include <atomic>

#include "derivatives/aba_derivatives.h"
#include "derivatives/verbs.h"
#include "operators/states.h"
#include "operators/team.h"

namespace delassus {

template <class Real>
class PackedTreeDerivatives final : public BatchTreeDerivatives<Real> {
 public:
  static constexpr int width = register_bytes / int(sizeof(Real));
  using P = Pack<Real, width>;

  PackedTreeDerivatives(const Model<Real>& model, int threads) : model_(model), team_(threads) {
    for (int t = 0; t < team_.size(); ++t) hands_.emplace_back(model);
  }

  void inverse_dynamics(int batch, const Real* Q, const Real* V, const Real* vdot, const Real* external, Real* tau,
                        Real* tau_q, Real* tau_v, Real* M) override {
    // into matrices that nothing else writes to, so that what is zero stays so
    each_group(batch, Q, V, vdot, external, [&](Hand& h, const P* push, int g) {
      rnea_derivatives(model_, h.w, h.v.data(), h.given.data(), push, h.found.data(), h.w.tau_q.data(),
                       h.w.tau_v.data(), h.mass.data(), false);
      scatter(batch, g, h.found.data(), model_.nv, tau);
      scatter(batch, g, h.w.tau_q.data(), square(), tau_q);
      scatter(batch, g, h.w.tau_v.data(), square(), tau_v);
      scatter(batch, g, h.mass.data(), square(), M);
    });
  }

  int forward_dynamics(int batch, const Real* Q, const Real* V, const Real* tau, const Real* external, Real* vdot,
                       Real* vdot_q, Real* vdot_v, Real* Minv) override {
    std::atomic<int> singular{groups(batch)};
    each_group(batch, Q, V, tau, external, [&](Hand& h, const P* push, int g) {
      aba_derivatives(model_, h.w, h.v.data(), h.given.data(), push, h.found.data(), h.vdot_q.data(), h.vdot_v.data(),
                      h.Minv.data());
      scatter(batch, g, h.found.data(), model_.nv, vdot);
      scatter(batch, g, h.vdot_q.data(), square(), vdot_q);
      scatter(batch, g, h.vdot_v.data(), square(), vdot_v);
      scatter(batch, g, h.Minv.data(), square(), Minv);
      world_inertias(h.w);
      if (is_regular(model_, h.w)) return;
      for (int seen = singular; g < seen && !singular.compare_exchange_weak(seen, g);) {
      }
    });
    return singular == groups(batch) ? -1 : singular * width;
  }

 private:
  // What a thread works with. `given` is ν̇ or τ, `found` the other one.
  struct Hand {
    DerivativeWorkspace<P> w;
    std::vector<P> q, v, given, external, found, mass, vdot_q, vdot_v, Minv;
    explicit Hand(const Model<Real>& model)
        : w(model),
          q(std::size_t(model.nq)),
          v(std::size_t(model.nv)),
          given(v.size()),
          external(6 * model.bodies.size()),
          found(v.size()),
          mass(v.size() * v.size()),
          vdot_q(mass.size()),
          vdot_v(mass.size()),
          Minv(mass.size()) {
      w.prepare_solutions(model);
    }
  };

  static int groups(int batch) { return (batch + width - 1) / width; }
  int square() const { return model_.nv * model_.nv; }

  // n numbers of every state of a group; lanes beyond the batch repeat its last state
  static void gather(int batch, int g, const Real* X, int n, std::vector<P>& to) {
    const Real* x[width];
    for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch - 1)) * std::size_t(n);
    gather_states(x, n, to.data());
  }
  static void scatter(int batch, int g, const P* from, int n, Real* X) {
    Real* x[width];
    for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch - 1)) * std::size_t(n);
    scatter_states(from, n, x, std::min(width, batch - g * width));
  }

  // work(hand, external, group) on every group, after kinematics of its states. A given null is zero.
  template <class F>
  void each_group(int batch, const Real* Q, const Real* V, const Real* given, const Real* external, F&& work) {
    const int n = groups(batch);
    team_.each(n, [&](int g) {
      Hand& h = hands_[std::size_t(team_.whose(g, n))];
      gather(batch, g, Q, model_.nq, h.q);
      gather(batch, g, V, model_.nv, h.v);
      if (given)
        gather(batch, g, given, model_.nv, h.given);
      else
        std::fill(h.given.begin(), h.given.end(), P{});
      if (external) gather(batch, g, external, int(h.external.size()), h.external);
      kinematics(model_, h.w, h.q.data());
      work(h, external ? h.external.data() : nullptr, g);
    });
  }

  const Model<Real>& model_;
  Team team_;
  std::vector<Hand> hands_;  // a thread
};

template <class Real>
std::unique_ptr<BatchTreeDerivatives<Real>> make_batch_tree_derivatives(const Model<Real>& model, int threads) {
  return std::make_unique<PackedTreeDerivatives<Real>>(model, threads);
}

}  // namespace delassus
