// Accelerations and constraint forces of a constrained mechanism by proximal iterations on the loop-constrained
// articulated-body algorithm: O(n + m) each.
//
//   minimise ½ ‖ν̇ − M⁻¹ (τ − h)‖²_M   where   J ν̇ + C λ = b,   b = −γ = −(J̇ν + k_d J ν + k_p e)
//
//   (M + Jᵀ R J) ν̇ₖ₊₁ = τ − h + Jᵀ s,   s = R (b + ε λₖ),   λₖ₊₁ = s − R J ν̇ₖ₊₁,   R = (C + ε)⁻¹
//
// M + Jᵀ R J is eliminated once. The residual of the constraints is ε (λₖ − λₖ₊₁); if constraints contradict each
// other, ν̇ converges to the least-squares solution and λ grows in the null space of Jᵀ.
//
// R is so large that M loses digits in the sum M + Jᵀ R J. So every iteration but the first corrects ν̇ by the residual
// of the dynamics, which is computed with M itself: with ε about 1e-8 of G, one correction brings both equations to
// rounding level. Iterations continue until both hold (certificate.h) or no longer improve. Sweeps have moments about
// the tree's origin, which cost digits where links are short against their distance from it: where the dynamics do not
// hold in the end, residuals of the certificate, with moments about each link's own frame, correct them.
//
// "Constrained Articulated Body Dynamics Algorithms", algorithms 1 to 3, with loops as in "Matrix-Free Delassus
// Operations", section III, whose 1 / µ is ε here.
#pragma once

#include "errors/interrupt.h"
#include "operators/delassus.h"
#include "operators/explicit/limbs.h"
#include "solvers/forcing.h"
#include "solvers/judged.h"
#include "solvers/verbs.h"

namespace delassus {

template <class T>
class ConstrainedDynamics final : public DynamicsSolver<T> {
 public:
  using Real = real_of<T>;

  ConstrainedDynamics(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
      : ConstrainedDynamics(model, layout, std::make_shared<Scratch<T>>(model, *layout)) {}
  ConstrainedDynamics(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout,
                      std::shared_ptr<Scratch<T>> scratch)
      : model_(model),
        G_(model, std::move(layout), std::move(scratch)),
        set_(G_.layout().set),
        forcing_(model, set_),
        judge_(model, set_),
        strips_(G_.layout().coupled) {
    const std::size_t rows = std::size_t(set_.rows);
    for (auto* x : {&s_, &y_, &step_, &previous_, &zero_}) x->resize(rows);
  }

  int rows() const override { return set_.rows; }
  bool suits_rows() const override { return rows_act_on_single_links(set_); }
  Delassus<T>& matrix_free() { return G_; }
  std::size_t bytes() const override {
    return G_.bytes() + forcing_.bytes() + judge_.bytes() + strips_.bytes() + 5 * s_.size() * sizeof(T);
  }

  void set_compliance(const T* compliance) override {
    G_.set_compliance(compliance);
    judge_.set_compliance(compliance);
  }

  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, Real tolerance, T* lambda, T* vdot, Report<Real>* reports, Real* history) override {
    prepare(q, v, tau, external, gamma, damping);
    const bool soft = this->gives_way_;
    const int limit = soft ? std::max(max_iterations, soft_corrections + 1) : max_iterations;
    const T* memory = soft ? zero_.data() : damping;
    const Equations<T> equations{G_.placement(), G_.terms(), forcing_.forces, tau, forcing_.bias.data(), nullptr};
    StateProgress progress[lanes];
    std::fill_n(reports, lanes, Report<Real>{Outcome::unfinished, 0, 0, 0, 0, 0, 0, false});
    bool certified = false;
    for (int n = 0; n < limit && !certified; ++n) {
      poll(200.0 * (model_.nv + set_.rows));
      const Moved moved =
          n == 0 ? solve_once(damping, memory, lambda, vdot) : correct(tau, damping, memory, lambda, vdot);
      for (int l = 0; history && n < max_iterations && l < lanes; ++l)
        history[l * max_iterations + n] = lane(moved.primal, l);
      const bool ended = follow(n, moved, tolerance, max_iterations, lambda, vdot, reports, progress);
      if (ended && (n > 0 || soft || set_.rows == 0)) {
        look(equations, damping, vdot, lambda, tolerance, true, reports, progress);
        certified = settle(tolerance, lambda, vdot, reports, progress);
      } else if ((n == 1 || n == 2) && tolerance > 0) {
        // in the usual case both equations hold already; without a tolerance, all iterations are asked for
        certified = look(equations, damping, vdot, lambda, tolerance, false, reports, progress);
      }
    }
    if (!certified) look(equations, damping, vdot, lambda, tolerance, true, reports, progress);
    bool all = true;
    for (int l = 0; l < lanes; ++l) all = all && reports[l].outcome == Outcome::solved;
    bool concluded = false;
    if constexpr (lanes == 1)
      if (!all && !soft && !(reports->dynamics <= Certificate<T>::reachable(tolerance))) {
        judge_.refine(equations, damping, soft, vdot, lambda, tolerance, reports, history, max_iterations,
                      [&](const T* f, const T*) { balance_by(f, vdot, lambda); });
        concluded = true;
      }
    if (!concluded) judge_.conclude(equations, damping, soft, all, tolerance, reports, history, max_iterations);
    T largest{};
    for (int r = 0; r < set_.rows; ++r) largest = larger(largest, damping[r]);
    for (int l = 0; l < lanes; ++l) reports[l].least_squares = reports[l].change * lane(largest, l);
  }

 private:
  static constexpr int lanes = lanes_of<T>;
  static constexpr int soft_corrections = 3;

  // Largest of all rows in an iteration: ε δλ², |δ(J ν̇)|, |ε δλ|.
  struct Moved {
    T residual{}, change{}, primal{};
  };
  // How far a state is.
  struct StateProgress {
    static constexpr Real none = std::numeric_limits<Real>::max();
    Real residual = none, change = none;           // of the last iteration
    Real best_strict = none, best_counted = none;  // least residuals that the certificate has seen, see settle
    Report<Real> best_report{};
    bool settled = false;  // stays as it is
  };

  // Everything that depends on the state alone: placement, forces on links, γ, and the factor of M + Jᵀ R J.
  void prepare(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping) {
    auto& p = G_.buffers();
    G_.place(q);
    forcing_.find(model_, set_, G_.placement(), q, v, external, gamma);
    loads().take_forces(G_.layout().coupled);
    for (int k = 0; k < model_.nv; ++k) p.u[k] = tau ? tau[k] : T{};
    G_.prepare();
    G_.set_damping(damping, true);
    G_.collect_idle(p, loads());
  }
  Loads<T> loads() { return {forcing_.motions, strips_}; }

  // (M + Jᵀ R J) ν̇ = τ − h + Jᵀ s,   s = R (b + ε λ)
  Moved solve_once(const T* damping, const T* memory, T* lambda, T* vdot) {
    auto& p = G_.buffers();
    const T* R = G_.stiffness();
    const T* gamma = forcing_.bias.data();
    for (int r = 0; r < set_.rows; ++r) s_[r] = (lambda[r] * memory[r] - gamma[r]) * R[r];
    G_.respond(p, loads(), s_.data(), y_.data());
    G_.spread_idle(p, loads());
    std::copy(p.u.begin(), p.u.end(), vdot);
    Moved moved;
    scale_ = size_ = T{};
    for (int r = 0; r < set_.rows; ++r) {
      const T next = s_[r] - y_[r] * R[r];
      scale_ = larger(scale_, T((gamma[r] * gamma[r] + y_[r] * y_[r]) * R[r] + next * next * damping[r]));
      size_ = larger(size_, larger(magnitude(gamma[r]), magnitude(y_[r])));
      move_force(next, damping[r], lambda[r], moved);
    }
    return moved;
  }

  // (M + Jᵀ R J) δν̇ = τ − h − M ν̇ + Jᵀ s,   s = R (b + ε λ − J ν̇)
  Moved correct(const T* tau, const T* damping, const T* memory, T* lambda, T* vdot) {
    auto& p = G_.buffers();
    const T* R = G_.stiffness();
    loads().add_inertial(G_.placement(), G_.coupled_strips());
    for (int k = 0; k < model_.nv; ++k)
      p.u[k] = tau ? tau[k] - vdot[k] * model_.armature[k] : vdot[k] * -model_.armature[k];
    G_.collect_idle(p, loads());
    for (int r = 0; r < set_.rows; ++r) s_[r] = (lambda[r] * memory[r] - forcing_.bias[r] - y_[r]) * R[r];
    G_.respond(p, loads(), s_.data(), step_.data());
    G_.spread_idle(p, loads());
    for (int k = 0; k < model_.nv; ++k) vdot[k] += p.u[k];
    Moved moved;
    for (int r = 0; r < set_.rows; ++r) {
      const T next = s_[r] - step_[r] * R[r];
      previous_[r] = lambda[r];
      y_[r] += step_[r];
      moved.change = larger(moved.change, magnitude(step_[r]));
      move_force(next, damping[r], lambda[r], moved);
    }
    return moved;
  }
  // (M + Jᵀ R J) δν̇ = f,   δλ = −R J δν̇ for the residual f of the dynamics. That of the constraints, which is rounding,
  // stays: R of it would be larger than f.
  void balance_by(const T* f, T* vdot, T* lambda) {
    auto& p = G_.buffers();
    loads().clear_forces();
    std::copy(f, f + model_.nv, p.u.begin());
    G_.collect_idle(p, loads());
    G_.respond(p, loads(), zero_.data(), step_.data());
    G_.spread_idle(p, loads());
    for (int k = 0; k < model_.nv; ++k) vdot[k] += p.u[k];
    for (int r = 0; r < set_.rows; ++r) lambda[r] -= step_[r] * G_.stiffness()[r];
  }
  static void move_force(const T& next, const T& damping, T& lambda, Moved& moved) {
    const T more = next - lambda, residual = more * damping;
    moved.residual = larger(moved.residual, T(more * residual));
    moved.primal = larger(moved.primal, magnitude(residual));
    lambda = next;
  }

  // Sets how the iteration of every state ended, and returns whether all have stopped: the residual of their rows is
  // small, J ν̇ no longer changes, or neither decreases.
  //
  // A residual r = ε δλ is measured as r² / ε against the largest (γ² + (J ν̇)²) R + ε λ²: the same unit for rows of
  // lengths and of angles. The certificate is stricter. Rows with the compliance ε have a unique solution, and need
  // iterations only against rounding.
  bool follow(int n, const Moved& moved, Real tolerance, int max_iterations, T* lambda, T* vdot, Report<Real>* reports,
              StateProgress* progress) {
    const bool soft = this->gives_way_;
    bool ended = true;
    for (int l = 0; l < lanes; ++l) {
      auto& report = reports[l];
      auto& state = progress[l];
      const Real now = lane(moved.residual, l), goal = tolerance * tolerance * lane(scale_, l),
                 change = lane(moved.change, l);
      // it was as right as it gets; or rounding leads away, and the iteration before was better
      const bool worse = n > 1 && !soft && !(now <= goal) && !(now <= 4 * state.residual);
      if (state.settled || worse) take_back(l, lambda, vdot);
      if (state.settled) continue;
      if (worse) report.outcome = Outcome::stalled;
      if (report.outcome == Outcome::stalled) continue;
      // neither the residual nor J ν̇ settles: rounding, or rows that all but depend on each other
      const bool slow = n > 0 && now > Real(0.81) * state.residual && change > Real(0.9) * state.change;
      report.outcome = soft || now <= goal                             ? Outcome::solved
                       : n > 0 && change <= tolerance * lane(size_, l) ? Outcome::least_squares
                                                                       : Outcome::unfinished;
      report.iterations = std::min(n + 1, max_iterations);
      report.change = change;
      ended = ended && (report.outcome != Outcome::unfinished || slow);
      state.residual = now;
      if (n > 0) state.change = change;
    }
    return ended;
  }

  // Certifies what there is now. Returns whether both equations hold in all states.
  bool look(const Equations<T>& equations, const T* damping, const T* vdot, const T* lambda, Real tolerance,
            bool count_roundings, Report<Real>* reports, const StateProgress* progress) {
    judge_.look(equations, damping, this->gives_way_, vdot, lambda, tolerance, reports, count_roundings);
    const Real goal = Certificate<T>::reachable(tolerance);
    bool all = true;
    for (int l = 0; l < lanes; ++l) {
      if (progress[l].settled) reports[l] = progress[l].best_report;
      all = all && (progress[l].settled || judge_.strict(l) <= goal);
    }
    return all;
  }

  // The equations themselves decide: as long as corrections lessen a residual there are more. Returns whether all
  // states are settled.
  bool settle(Real tolerance, T* lambda, T* vdot, Report<Real>* reports, StateProgress* progress) {
    bool over = true;
    for (int l = 0; l < lanes; ++l) {
      auto& state = progress[l];
      if (state.settled) continue;
      // without roundings a residual may be all of its scale, and with them still get smaller
      const Real strict = judge_.strict(l), counted = std::max(reports[l].dynamics, reports[l].constraints);
      if (strict > state.best_strict && counted > state.best_counted) {
        // the last correction did not help
        take_back(l, lambda, vdot);
        reports[l] = state.best_report;
      }
      state.settled = reports[l].outcome == Outcome::stalled || strict <= Certificate<T>::reachable(tolerance) ||
                      !(2 * strict <= state.best_strict || 2 * counted <= state.best_counted);
      state.best_strict = std::min(state.best_strict, strict);
      state.best_counted = std::min(state.best_counted, counted);
      state.best_report = reports[l];
      over = over && state.settled;
    }
    return over;
  }

  // Undoes the last correction of a state.
  void take_back(int l, T* lambda, T* vdot) {
    for (int k = 0; k < model_.nv; ++k) lane(vdot[k], l) -= lane(G_.buffers().u[k], l);
    for (int r = 0; r < set_.rows; ++r) {
      lane(y_[r], l) -= lane(step_[r], l);
      lane(lambda[r], l) = lane(previous_[r], l);
    }
    loads().forget(l);
  }

  const Model<Real>& model_;
  Delassus<T> G_;
  const ConstraintSet<Real>& set_;
  Forcing<T> forcing_;
  Judge<T> judge_;
  StripMotions<T> strips_;
  std::vector<T> s_, y_, step_;  // per row: s; J ν̇; the change of J ν̇ in the last correction
  std::vector<T> previous_;      // per row: λ before the last correction
  std::vector<T> zero_;          // per row
  T scale_{}, size_{};           // of the residuals ε δλ², of J ν̇
};

}  // namespace delassus
