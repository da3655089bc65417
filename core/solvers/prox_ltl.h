// Constrained dynamics by the sparse factor of M and proximal iterations on the dual (proxLTL): O(n d² + m d² + m² d +
// m³) for depth d. Any rows, loops included.
//
//   M = Lᵀ D L,   Z = J L⁻¹ D⁻¹,   G = Z D Zᵀ,   u = L⁻ᵀ (τ − h)
//   λ ← (G + C + ε)⁻¹ (b − Z u + ε λ),   ν̇ = L⁻¹ (D⁻¹ u + Zᵀ λ)
//
// Carpentier et al., "Proximal and sparse resolution of constrained dynamic equations", 2021; "Constrained Articulated
// Body Dynamics Algorithms", section II-D1.
#pragma once

#include <memory>
#include <numeric>

#include "operators/explicit/ltl.h"
#include "solvers/dual.h"
#include "solvers/single_state.h"

namespace delassus {

template <class T>
class ProxLtl final : public SingleStateSolver<T> {
  using Base = SingleStateSolver<T>;
  using Base::model_, Base::layout_, Base::set_, Base::forcing_, Base::judge_, Base::compliance_;

 public:
  ProxLtl(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : Base(model, std::move(layout)),
        ltl_(model, set_),
        dual_(set_.rows, all_rows(set_.rows)),
        u_(std::size_t(model.nv)),
        move_(u_.size()),
        step_(ltl_.room) {}

  std::size_t bytes() const override {
    return Base::bytes() + ltl_.bytes() + dual_.bytes() + (2 * u_.size() + step_.size()) * sizeof(T);
  }

  // As DynamicsSolver says.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    ltl(model_, *layout_, ltl_, q);
    forcing_.find(model_, set_, ltl_.w, q, v, external, gamma);

    // u = L⁻ᵀ (τ − h)
    joint_forces(model_, ltl_.w, forcing_.motions, static_cast<const T*>(nullptr), u_.data());
    for (int k = 0; k < model_.nv; ++k) u_[k] = (tau ? tau[k] : T{}) - u_[k];
    solve_transposed(model_, ltl_, u_.data());

    add_rows(ltl_, ltl_.Z, u_.data(), dual_.target());
    dual_.solve(ltl_.G.data(), ltl_.room, forcing_.bias.data(), compliance_.data(), damping, max_iterations, tolerance,
                lambda, report, history);

    move(dual_.forces(), vdot);

    // δλ = (G + C + ε)⁻¹ (r − Z L⁻ᵀ f),   δν̇ = L⁻¹ (D⁻¹ L⁻ᵀ f + Zᵀ δλ)   for the residuals, f of the dynamics and r of
    // the constraints
    judge_.refine({ltl_.w, ltl_.terms.data(), forcing_.forces, tau, forcing_.bias.data(), nullptr}, damping,
                  this->gives_way_, vdot, lambda, tolerance, report, history, max_iterations,
                  [&](const T* f, const T* r) {
                    std::copy(f, f + model_.nv, u_.begin());
                    solve_transposed(model_, ltl_, u_.data());
                    std::fill(step_.begin(), step_.end(), T{});
                    add_rows(ltl_, ltl_.Z, u_.data(), step_.data());
                    for (int i = 0; i < set_.rows; ++i) step_[i] = r[i] - step_[i];
                    dual_.invert(step_.data(), step_.data());
                    move(step_.data(), move_.data());
                    for (int i = 0; i < set_.rows; ++i) lambda[i] += step_[i];
                    for (int k = 0; k < model_.nv; ++k) vdot[k] += move_[k];
                  });
  }

 private:
  // ν̇ = L⁻¹ (D⁻¹ u + Zᵀ λ)
  void move(const T* lambda, T* vdot) const {
    for (int k = 0; k < model_.nv; ++k)
      vdot[k] = u_[k] * ltl_.Dinv[k] + times_rows(ltl_, ltl_.Z, std::size_t(k), lambda);
    solve_plain(model_, ltl_, vdot);
  }

  static std::vector<int> all_rows(int rows) {
    std::vector<int> order(std::size_t(rows), 0);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  LtlWork<T> ltl_;
  Dual<T> dual_;
  std::vector<T> u_, move_, step_;  // a velocity: u, δν̇; a row, with room: δλ
};

}  // namespace delassus
