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

#include "operators/explicit/limbs.h"
#include "operators/explicit/ltl.h"
#include "solvers/dual.h"
#include "solvers/forcing.h"
#include "solvers/judged.h"

namespace delassus {

template <class T>
class ProxLtl final : public DynamicsSolver<T> {
 public:
  ProxLtl(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : model_(model),
        layout_(std::move(layout)),
        set_(layout_->set),
        ltl_(model, set_),
        forcing_(model, set_),
        dual_(set_.rows, all_rows(set_.rows)),
        judge_(model, set_),
        compliance_(std::size_t(set_.rows)),
        u_(std::size_t(model.nv)),
        move_(u_.size()),
        step_(ltl_.room) {}

  static bool supports(const Layout<T>&) { return true; }
  bool suits_rows() const override { return rows_act_on_single_links(set_); }
  int rows() const override { return set_.rows; }
  std::size_t bytes() const override {
    return ltl_.bytes() + forcing_.bytes() + dual_.bytes() + judge_.bytes() +
           (compliance_.size() + 2 * u_.size() + step_.size()) * sizeof(T);
  }
  void set_compliance(const T* compliance) override {
    std::copy(compliance, compliance + set_.rows, compliance_.begin());
    judge_.set_compliance(compliance);
  }
  const T* bias() const { return forcing_.bias.data(); }

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

  const Model<T>& model_;
  std::shared_ptr<const Layout<T>> layout_;
  const ConstraintSet<T>& set_;
  LtlWork<T> ltl_;
  Forcing<T> forcing_;
  Dual<T> dual_;
  Judge<T> judge_;
  std::vector<T> compliance_, u_, move_, step_;  // a row: C; a velocity: u, δν̇; a row, with room: δλ
};

}  // namespace delassus
