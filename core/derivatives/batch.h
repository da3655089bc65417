// Derivatives of tree dynamics of many states of one mechanism: as many states side by side as a register holds, groups
// of them in turn, on one or more threads. The sweeps are those of one state with T a pack of states.
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
    each_group(batch, Q, V, vdot, external, tau, tau_q, tau_v, M, [&](Hand& h, const P* push, int) {
      rnea_derivatives(model_, h.w, h.v.data(), h.given.data(), push, h.found.data(), h.by_q.data(), h.by_v.data(),
                       h.by_given.data());
    });
  }

  int forward_dynamics(int batch, const Real* Q, const Real* V, const Real* tau, const Real* external, Real* vdot,
                       Real* vdot_q, Real* vdot_v, Real* Minv) override {
    std::atomic<int> singular{groups(batch)};
    each_group(batch, Q, V, tau, external, vdot, vdot_q, vdot_v, Minv, [&](Hand& h, const P* push, int g) {
      aba_derivatives(model_, h.w, h.v.data(), h.given.data(), push, h.found.data(), h.by_q.data(), h.by_v.data(),
                      h.by_given.data());
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
    std::vector<P> q, v, given, external, found, by_q, by_v, by_given;
    explicit Hand(const Model<Real>& model)
        : w(model),
          q(std::size_t(model.nq)),
          v(std::size_t(model.nv)),
          given(v.size()),
          external(6 * model.bodies.size()),
          found(v.size()),
          by_q(v.size() * v.size()),
          by_v(by_q.size()),
          by_given(by_q.size()) {
      w.prepare_solutions(model);
    }
  };

  static int groups(int batch) { return (batch + width - 1) / width; }

  // work(hand, external, group) on every group, arguments before and results after it being those of its states. A
  // given null is zero.
  template <class F>
  void each_group(int batch, const Real* Q, const Real* V, const Real* given, const Real* external, Real* found,
                  Real* by_q, Real* by_v, Real* by_given, F&& work) {
    const int n = groups(batch), nv = model_.nv, pushes = int(6 * model_.bodies.size());
    team_.each(n, [&](int g) {
      Hand& h = hands_[std::size_t(team_.whose(g, n))];
      // lanes beyond the batch repeat its last state
      const auto gather = [&](const Real* X, int size, std::vector<P>& to) {
        const Real* x[width];
        for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch - 1)) * size;
        gather_states(x, size, to.data());
      };
      const auto scatter = [&](const std::vector<P>& from, Real* X) {
        const std::size_t size = from.size();
        Real* x[width];
        for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch - 1)) * size;
        scatter_states(from.data(), int(size), x, std::min(width, batch - g * width));
      };
      gather(Q, model_.nq, h.q);
      gather(V, nv, h.v);
      if (given)
        gather(given, nv, h.given);
      else
        std::fill(h.given.begin(), h.given.end(), P{});
      if (external) gather(external, pushes, h.external);
      kinematics(model_, h.w, h.q.data());
      work(h, external ? h.external.data() : nullptr, g);
      scatter(h.found, found);
      scatter(h.by_q, by_q);
      scatter(h.by_v, by_v);
      scatter(h.by_given, by_given);
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
