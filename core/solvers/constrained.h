// Accelerations and constraint forces of a constrained mechanism by proximal iterations on the loop-constrained
// articulated-body algorithm: O(n + m) each.
//
//   minimise ½ ‖ν̇ − M⁻¹ (τ − h)‖²_M   where   J ν̇ + C λ = b,   b = −γ = −(J̇ν + k_d J ν + k_p e)
//
//   (M + Jᵀ R J) ν̇ₖ₊₁ = τ − h + Jᵀ s,   s = R (b + ε λₖ),   λₖ₊₁ = s − R J ν̇ₖ₊₁,   R = (C + ε)⁻¹
//
// M + Jᵀ R J is eliminated once; iterations in between follow J ν̇ and λ alone, over links that constraints reach. What
// is left of the constraints is ε (λₖ − λₖ₊₁); where they contradict each other, ν̇ converges to the least-squares
// answer and λ grows along what Jᵀ does not see.
//
// R is so large that M loses digits beside Jᵀ R J. So the last iterations are on all links again, for the residual of
// the dynamics: M is in them as it is. They go on until both equations hold (certificate.h), or they no longer help.
//
// "Constrained Articulated Body Dynamics Algorithms", algorithms 1 to 3, with loops as in "Matrix-Free Delassus
// Operations", section III. ε is its 1 / µ.
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
    for (auto* x : {&s_, &y_, &z_, &step_, &nothing_}) x->resize(rows);
  }

  int rows() const override { return set_.rows; }
  bool alone() const override { return rows_alone(set_); }
  Delassus<T>& matrix_free() { return G_; }
  std::size_t bytes() const override {
    return G_.bytes() + forcing_.bytes() + judge_.bytes() + strips_.bytes() + 5 * s_.size() * sizeof(T);
  }

  void set_compliance(const T* compliance) override {
    G_.set_compliance(compliance);
    judge_.set_compliance(compliance);
  }

  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping, int most,
             Real tolerance, T* lambda, T* vdot, Report<Real>* reports, Real* history) override {
    constexpr int lanes = lanes_of<T>;
    const int m = set_.rows;
    auto& p = G_.buffers();
    Loads<T> loads{forcing_.motions, strips_};
    G_.place(q);
    forcing_.find(model_, set_, G_.placement(), q, v, external, gamma);
    loads.take_forces(G_.layout().coupled);
    for (int k = 0; k < model_.nv; ++k) p.u[k] = tau ? tau[k] : T{};
    G_.prepare();
    G_.set_damping(damping, true);
    const T* R = G_.stiffness();
    G_.collect_idle(p, loads);

    // A residual r = ε δλ is measured as r² / ε against the largest (γ² + (J ν̇)²) R + ε λ²: the same unit for rows of
    // lengths and of angles. The certificate looks closer. Rows that give way by ε λ have one solution, and need no
    // iterations but for what rounding left of it.
    const bool soft = this->gives_way_;
    const int limit = soft ? std::max(most, soft_corrections + 1) : most;
    const T* held = soft ? nothing_.data() : damping;
    const Equations<T> equations{G_.placement(), G_.terms(), forcing_.forces, tau, forcing_.bias.data(), nullptr};
    Real last[lanes], last_change[lanes], best[lanes], best_counted[lanes];
    std::fill_n(last, lanes, std::numeric_limits<Real>::max());
    std::fill_n(last_change, lanes, std::numeric_limits<Real>::max());
    std::fill_n(best, lanes, std::numeric_limits<Real>::max());
    std::fill_n(best_counted, lanes, std::numeric_limits<Real>::max());
    std::fill_n(reports, lanes, Report<Real>{Outcome::unfinished, 0, 0, 0, 0, 0, 0, false});
    bool correcting = false, looked = false, judged = false, all = true, settled[lanes]{};
    Report<Real> kept[lanes];
    const Real goal_of_all = Certificate<T>::reachable(tolerance);
    const auto look = [&] {
      judge_.look(equations, damping, soft, vdot, lambda, tolerance, reports);
      for (int l = 0; l < lanes; ++l)
        if (settled[l]) reports[l] = kept[l];
    };
    T scale{}, size{};
    for (int n = 0; n < limit; ++n) {
      poll(200.0 * (model_.nv + m));
      T left{}, change{}, primal{};
      auto move_on = [&](int r, const T& next) {
        const T more = next - lambda[r];
        left = larger(left, T(more * more * damping[r]));
        if (history) primal = larger(primal, magnitude(T(more * damping[r])));
        lambda[r] = next;
      };
      if (n == 0) {
        for (int r = 0; r < m; ++r) s_[r] = (lambda[r] * held[r] - forcing_.bias[r]) * R[r];
        G_.respond(p, loads, s_.data(), y_.data());
        G_.spread_idle(p, loads);
        std::copy(p.u.begin(), p.u.end(), vdot);
        for (int r = 0; r < m; ++r) {
          z_[r] = y_[r];
          const T next = s_[r] - y_[r] * R[r];
          scale =
              larger(scale, T((forcing_.bias[r] * forcing_.bias[r] + y_[r] * y_[r]) * R[r] + next * next * damping[r]));
          size = larger(size, larger(magnitude(forcing_.bias[r]), magnitude(y_[r])));
          move_on(r, next);
        }
      } else if (!correcting) {
        // what the rows see of it: δ J ν̇ = J (M + Jᵀ R J)⁻¹ Jᵀ δs
        for (int r = 0; r < m; ++r) {
          const T s = (lambda[r] * damping[r] - forcing_.bias[r]) * R[r];
          step_[r] = s - s_[r];
          s_[r] = s;
        }
        G_.respond_to_rows(p, step_.data(), step_.data());
        for (int r = 0; r < m; ++r) {
          change = larger(change, magnitude(step_[r]));
          z_[r] += step_[r];
          move_on(r, s_[r] - z_[r] * R[r]);
        }
      } else {
        // (M + Jᵀ R J) δν̇ = τ − h − M ν̇ + Jᵀ s,   s = R (b + ε λ − J ν̇)
        loads.add_inertial(G_.placement(), G_.coupled_strips());
        for (int k = 0; k < model_.nv; ++k)
          p.u[k] = tau ? tau[k] - vdot[k] * model_.armature[k] : vdot[k] * -model_.armature[k];
        G_.collect_idle(p, loads);
        for (int r = 0; r < m; ++r) s_[r] = (lambda[r] * held[r] - forcing_.bias[r] - y_[r]) * R[r];
        G_.respond(p, loads, s_.data(), step_.data());
        G_.spread_idle(p, loads);
        for (int k = 0; k < model_.nv; ++k) vdot[k] += p.u[k];
        for (int r = 0; r < m; ++r) {
          const T next = s_[r] - step_[r] * R[r];
          s_[r] = lambda[r];
          y_[r] += step_[r];
          change = larger(change, magnitude(T(y_[r] - z_[r])));
          z_[r] = y_[r];
          move_on(r, next);
        }
      }
      bool done = true, near = true;
      for (int l = 0; l < lanes; ++l) {
        auto& report = reports[l];
        const Real now = lane(left, l), goal = tolerance * tolerance * lane(scale, l);
        if (history && n < most) history[l * most + n] = lane(primal, l);
        if (settled[l]) {
          // it was as right as it gets
          take_back(l, lambda, vdot);
          loads.forget(l);
          continue;
        }
        if (correcting && !soft && !(now <= goal) && !(now <= 4 * last[l])) {
          // rounding leads away: the iteration before was better
          take_back(l, lambda, vdot);
          loads.forget(l);
          report.outcome = Outcome::stalled;
        }
        if (report.outcome == Outcome::stalled) continue;
        // neither the residual nor J ν̇ settles: rounding, or rows that all but depend on each other
        const bool slow = n > 0 && now > Real(0.81) * last[l] && lane(change, l) > Real(0.9) * last_change[l];
        report.outcome = soft || now <= goal                                     ? Outcome::converged
                         : n > 0 && lane(change, l) <= tolerance * lane(size, l) ? Outcome::least_squares
                                                                                 : Outcome::unfinished;
        report.iterations = std::min(n + 1, most);
        report.change = lane(change, l);
        // the equations have scales of their own, and are worth a look a little before
        done = done &&
               (report.outcome != Outcome::unfinished || (correcting && (slow || (!looked && now <= look_at * goal))));
        // as much as this iteration has gained the next one will; rows alone lose digits with every one
        near = near && (n > 0 || report.outcome != Outcome::unfinished || now * now <= goal * lane(scale, l));
        last[l] = now;
        last_change[l] = n > 0 ? lane(change, l) : std::numeric_limits<Real>::max();
      }
      if (done && (correcting || soft || m == 0)) {
        // the equations themselves decide; as long as corrections help there are more
        judged = looked = true;
        look();
        bool over = true;
        for (int l = 0; l < lanes; ++l) {
          if (settled[l]) continue;
          // without roundings a residual may be all of its scale, and with them still get smaller
          const Real wrong = judge_.strict(l), counted = std::max(reports[l].dynamics, reports[l].constraints);
          if (wrong > best[l] && counted > best_counted[l]) {
            // the last correction did not help
            take_back(l, lambda, vdot);
            loads.forget(l);
            reports[l] = kept[l];
          }
          settled[l] = reports[l].outcome == Outcome::stalled || wrong <= goal_of_all ||
                       !(2 * wrong <= best[l] || 2 * counted <= best_counted[l]);
          best[l] = std::min(best[l], wrong);
          best_counted[l] = std::min(best_counted[l], counted);
          kept[l] = reports[l];
          over = over && settled[l];
        }
        if (over) break;
        judged = false;
      }
      if (!correcting && (near || n + 2 >= limit)) {
        correcting = true;
        std::fill_n(last, lanes, std::numeric_limits<Real>::max());
      }
    }
    if (!judged) look();
    for (int l = 0; l < lanes; ++l) all = all && reports[l].outcome == Outcome::converged;
    judge_.conclude(equations, damping, soft, all, tolerance, reports, history, most);
    T largest{};
    for (int r = 0; r < m; ++r) largest = larger(largest, damping[r]);
    for (int l = 0; l < lanes; ++l) reports[l].least_squares = reports[l].change * lane(largest, l);
  }

  // γ of the rows in the state of the last solve
  const T* bias() const { return forcing_.bias.data(); }

 private:
  static constexpr int soft_corrections = 3;
  static constexpr Real look_at = 1e8;  // residuals are squared in it

  // Undoes the last correction of a state.
  void take_back(int l, T* lambda, T* vdot) {
    for (int k = 0; k < model_.nv; ++k) lane(vdot[k], l) -= lane(G_.buffers().u[k], l);
    for (int r = 0; r < set_.rows; ++r) {
      lane(y_[r], l) -= lane(step_[r], l);
      lane(lambda[r], l) = lane(s_[r], l);
    }
  }

  const Model<Real>& model_;
  Delassus<T> G_;
  const ConstraintSet<Real>& set_;
  Forcing<T> forcing_;
  Judge<T> judge_;
  StripMotions<T> strips_;
  std::vector<T> s_, y_, z_, step_;  // a row: s; J ν̇ of the accelerations there are; of the last iteration; its change
  std::vector<T> nothing_;           // a row: zero
};

}  // namespace delassus
