// Constrained dynamics by the sparse factor of M + Jᵀ R J (proxLTLs): O(n d² + m d) for depth d, then O(n d + m d) an
// iteration; no matrix of rows is formed. Rows that act on one link or on one joint each: others would fill the factor.
//
//   M + Jᵀ R J = Lᵀ D L by composite bodies with inertias H + Kᵀ R K,   R = (C + ε)⁻¹
//   δ = L⁻¹ D⁻¹ L⁻ᵀ (τ − h − M ν̇ + Jᵀ (λ + R c)),   c = b − J ν̇ − C λ,   ν̇ ← ν̇ + δ,   λ ← λ + R (c − J δ)
//
// "Constrained Articulated Body Dynamics Algorithms", sections II-D2 and II-F, written for residuals: M loses digits
// beside Jᵀ R J, and M ν̇ by links, O(n), brings them back in the second iteration. The residual of the constraints is
// ε (λₖ₊₁ − λₖ).
#pragma once

#include <memory>

#include "operators/explicit/ltl.h"
#include "solvers/progress.h"
#include "solvers/single_state.h"

namespace delassus {

template <class T>
class ProxLtls final : public SingleStateSolver<T> {
  using Base = SingleStateSolver<T>;
  using Base::model_, Base::set_, Base::forcing_, Base::judge_, Base::compliance_;

 public:
  ProxLtls(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : Base(model, std::move(layout)),
        ltl_(model, set_),
        inertia_(model.links.size()),
        stiffness_(std::size_t(set_.rows)),
        push_(std::size_t(model.nv)) {
    for (auto* x : {&s_, &left_, &y_, &step_, &more_}) x->resize(ltl_.room);
    force_.resize(push_.size());
    move_.resize(push_.size());
  }

  // rows of a joint suit this method too
  bool suits_rows() const override {
    bool few = true;
    for (const auto& group : set_.groups) few = few && group.other < 0;
    for (const auto& block : set_.blocks) few = few && block.terms == 1;
    return few;
  }
  std::size_t bytes() const override {
    return Base::bytes() + ltl_.bytes() + inertia_.size() * sizeof(Sym6<T>) +
           (stiffness_.size() + 3 * push_.size() + 5 * s_.size()) * sizeof(T);
  }

  // As DynamicsSolver says.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    const int m = set_.rows;
    for (int r = 0; r < m; ++r) stiffness_[r] = T(1) / (compliance_[r] + damping[r]);
    factor(q);
    forcing_.find(model_, set_, ltl_.w, q, v, external, gamma);
    const T* b = forcing_.bias.data();
    joint_forces(model_, ltl_.w, forcing_.motions, static_cast<const T*>(nullptr), push_.data());
    for (int k = 0; k < model_.nv; ++k) push_[k] = (tau ? tau[k] : T{}) - push_[k];

    std::fill(vdot, vdot + model_.nv, T{});
    std::fill(y_.begin(), y_.end(), T{});
    Progress<T> progress(m, max_iterations, tolerance, report, history, 2);
    bool first = true;
    do {
      iterate(first, lambda, vdot);
      for (int r = 0; r < m; ++r) {
        if (first) progress.expect(std::abs(b[r]) + std::abs(y_[r]), damping[r]);
        progress.row(more_[r] * damping[r], step_[r], damping[r]);
      }
      first = false;
      if (m > 0) progress.end_iteration();
    } while (!progress.over());
    progress.end(damping, m);
    judge_.refine({ltl_.w, ltl_.terms.data(), forcing_.forces, tau, b, nullptr}, damping, this->gives_way_, vdot,
                  lambda, tolerance, report, history, max_iterations,
                  [&](const T*, const T*) { iterate(false, lambda, vdot); });
  }

 private:
  // One iteration: δ, and the updates of ν̇, J ν̇ and λ. The first one is from rest.
  void iterate(bool first, T* lambda, T* vdot) {
    const int m = set_.rows;
    for (int r = 0; r < m; ++r) {
      left_[r] = -forcing_.bias[r] - y_[r] - compliance_[r] * lambda[r];
      s_[r] = lambda[r] + stiffness_[r] * left_[r];
    }
    for (int k = 0; k < model_.nv; ++k) move_[k] = push_[k] + times_rows(ltl_, ltl_.Y, std::size_t(k), s_.data());
    if (!first) {
      inertial(vdot, force_.data());
      for (int k = 0; k < model_.nv; ++k) move_[k] -= force_[k];
    }
    solve_transposed(model_, ltl_, move_.data());
    for (int k = 0; k < model_.nv; ++k) move_[k] *= ltl_.Dinv[k];
    solve_plain(model_, ltl_, move_.data());
    for (int k = 0; k < model_.nv; ++k) vdot[k] += move_[k];
    std::fill(step_.begin(), step_.end(), T{});
    add_rows(ltl_, ltl_.Y, move_.data(), step_.data());
    for (int r = 0; r < m; ++r) {
      more_[r] = stiffness_[r] * (left_[r] - step_[r]);
      lambda[r] += more_[r];
      y_[r] += step_[r];
    }
  }

  // Lᵀ D L = M + Jᵀ R J, and Y = J
  void factor(const T* q) {
    kinematics(model_, ltl_.w, q);
    world_inertias(ltl_.w);
    evaluate(model_, set_, ltl_.w, q, ltl_.terms.data());
    place_rows(set_, ltl_);
    fill_jacobian(model_, set_, ltl_);
    for (std::size_t i = 0; i < inertia_.size(); ++i) inertia_[i] = articulated(ltl_.w.inertia[int(i)]);
    const std::size_t apart = ltl_.K.size() / 6;
    for (const auto& run : ltl_.runs)
      for (int e = 0; e < run.count; ++e) {
        Vec6<T> K;
        for (int c = 0; c < 6; ++c) entry(K, c) = ltl_.K[std::size_t(c) * apart + std::size_t(run.at + e)];
        downdate(inertia_[run.link], K, T(-stiffness_[run.row + e]));
      }
    fill_mass_matrix(model_, ltl_, inertia_.data());
    for (const auto& j : set_.joint_rows)
      ltl_.M[ltl_.start[j.velocity] + ltl_.depth[j.velocity]] += stiffness_[j.row] * (j.coefficient * j.coefficient);
    factor_mass_matrix(model_, ltl_);
  }

  // M ν̇
  void inertial(const T* vdot, T* force) {
    auto& [v, a, f] = forcing_.motions;
    for (std::size_t i = 0; i < model_.links.size(); ++i) {
      const auto& link = model_.links[i];
      Vec6<T> moved{};
      if (link.parent >= 0) moved = a[link.parent];
      for (int k = link.iv; k < link.iv + link.nv; ++k) moved += ltl_.w.S[k] * vdot[k];
      a.set(int(i), moved);
      f.set(int(i), ltl_.w.inertia[int(i)] * moved);
    }
    joint_forces(model_, ltl_.w, forcing_.motions, vdot, force);
  }

  LtlWork<T> ltl_;
  std::vector<Sym6<T>> inertia_;               // a link: H + Kᵀ R K, with all it carries
  std::vector<T> stiffness_;                   // a row: R
  std::vector<T> s_, left_, y_, step_, more_;  // a row: λ + R c, c, J ν̇, J δ, δλ
  std::vector<T> push_, force_, move_;         // a velocity: τ − h, M ν̇, δ
};

}  // namespace delassus
