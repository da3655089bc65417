// The status of a solution, from its certificate.
//
//   solved          both equations hold
//   least_squares   the dynamics hold, and no motion lessens the residual r of the constraints in the metric of R =
//                   1 / ε: Jᵀ R r = 0. They contradict each other, which −γ · R r = r · R r tells: at rest, where
//                   γ = 0 and ν̇ = 0 meets every row, the left side is zero
//   redundant       the same, but r is so small that rows differ from dependent ones only by how exactly the
//                   mechanism was drawn
//   stalled         none of these, though the method came to its end
#pragma once

#include <limits>
#include <vector>

#include "solvers/certificate.h"
#include "solvers/verbs.h"

namespace delassus {

template <class T>
class Judge {
 public:
  using Real = real_of<T>;
  static constexpr int endless = std::numeric_limits<int>::max();  // iterations of a method that has none

  Judge(const Model<Real>& model, const ConstraintSet<Real>& set)
      : certificate_(model, set), compliance_(std::size_t(set.rows)), pull_(std::size_t(set.rows)) {
    if (lanes_of<T> > 1) return;
    best_vdot_.resize(std::size_t(model.nv));
    best_lambda_.resize(std::size_t(set.rows));
  }
  std::size_t bytes() const {
    return certificate_.bytes() + (2 * pull_.size() + best_vdot_.size() + best_lambda_.size()) * sizeof(T);
  }

  // C of the rows; what the damping adds where they give way by it
  void set_compliance(const T* compliance) {
    std::copy(compliance, compliance + compliance_.size(), compliance_.begin());
  }

  // Writes the residuals to the reports, and the outcome of every state where both equations hold. Returns whether they
  // do in all states.
  bool look(Equations<T> e, const T* damping, bool gives_way, const T* vdot, const T* lambda, Real tolerance,
            Report<Real>* reports, bool count_roundings = true) {
    e.compliance = compliance_.data();
    if (gives_way) {
      for (std::size_t r = 0; r < pull_.size(); ++r) pull_[r] = compliance_[r] + damping[r];
      e.compliance = pull_.data();
    }
    const Real goal = Certificate<T>::reachable(tolerance);
    Verdict<T> v = certificate_.judge(e, vdot, lambda, goal, count_roundings);
    if (gives_way) {
      // residual of the constraints themselves
      v.primal = T{};
      for (std::size_t r = 0; r < pull_.size(); ++r)
        v.primal = larger(v.primal, magnitude(T(certificate_.constraints()[r] + damping[r] * lambda[r])));
    }
    bool all = true;
    for (int l = 0; l < lanes_of<T>; ++l) {
      reports[l].dynamics = lane(v.dynamics, l);
      reports[l].constraints = lane(v.constraints, l);
      reports[l].primal = lane(v.primal, l);
      strict_[l] = lane(v.strict, l);
      const bool holds = reports[l].dynamics <= goal && reports[l].constraints <= goal;
      if (holds)
        reports[l].outcome = Outcome::solved;
      else if (reports[l].outcome == Outcome::solved)
        reports[l].outcome = Outcome::unfinished;
      all = all && holds;
    }
    return all;
  }

  // The larger residual of a state that was looked at, without roundings: as long as corrections lessen it, they help.
  Real strict(int l) const { return strict_[l]; }

  // After that, the outcome of states where they do not. History may be null; else what the last iteration left is what
  // the certificate says.
  void conclude(const Equations<T>& e, const T* damping, bool gives_way, bool all, Real tolerance,
                Report<Real>* reports, Real* history, int max_iterations) {
    for (int l = 0; l < lanes_of<T>; ++l)
      if (history && reports[l].iterations > 0)
        history[l * max_iterations + reports[l].iterations - 1] = reports[l].primal;
    if (all) return;
    T square{}, taken{};  // r · R r, and what accelerations and forces contribute to it
    for (std::size_t r = 0; r < pull_.size(); ++r) {
      const T residual = certificate_.constraints()[r];
      pull_[r] = residual / damping[r];
      square += residual * pull_[r];
      taken -= (e.gamma[r] + residual) * pull_[r];
    }
    const T slope = certificate_.stationarity(e, pull_.data());
    const Real goal = Certificate<T>::reachable(tolerance);
    for (int l = 0; l < lanes_of<T>; ++l) {
      Report<Real>& report = reports[l];
      if (report.outcome == Outcome::solved) continue;
      // forces grow with every iteration, and leave their rounding in the dynamics; rounding of the rows is in a small
      // residual
      const Real rounding = std::min(1000 * std::numeric_limits<Real>::epsilon() / report.constraints, Real(0.1));
      if (report.dynamics <= 1000 * goal && report.constraints > goal && !gives_way &&
          lane(slope, l) <= stationary + rounding &&
          (report.constraints <= drawn || std::abs(lane(taken, l)) <= Real(0.5) * lane(square, l)))
        report.outcome = report.constraints <= drawn ? Outcome::redundant : Outcome::least_squares;
      else
        report.outcome = gives_way || report.iterations < max_iterations ? Outcome::stalled : Outcome::unfinished;
    }
  }

  const Certificate<T>& certificate() const { return certificate_; }

  // Looks, and corrects by the residuals, τ − h − M ν̇ + Jᵀ λ and −γ − J ν̇ − C λ, as long as that helps; then concludes.
  // One state.
  template <class F>
  void refine(const Equations<T>& e, const T* damping, bool gives_way, T* vdot, T* lambda, Real tolerance,
              Report<Real>* report, Real* history, int max_iterations, F&& correct) {
    static_assert(lanes_of<T> == 1);
    const Real goal = Certificate<T>::reachable(tolerance);
    bool all = look(e, damping, gives_way, vdot, lambda, tolerance, report);
    for (int n = 0; n < corrections && report->iterations < max_iterations && !(strict_[0] <= goal); ++n) {
      const Report<Real> before = *report;
      const Real wrong = strict_[0], larger_before = std::max(report->dynamics, report->constraints);
      const bool held = all;
      std::copy(vdot, vdot + best_vdot_.size(), best_vdot_.begin());
      std::copy(lambda, lambda + best_lambda_.size(), best_lambda_.begin());
      correct(certificate_.dynamics(), certificate_.constraints());
      if (max_iterations < endless) ++report->iterations;
      all = look(e, damping, gives_way, vdot, lambda, tolerance, report);
      if (history && report->iterations > 0) history[report->iterations - 1] = report->primal;
      const Real now = std::max(report->dynamics, report->constraints);
      if (!(strict_[0] <= wrong) && !(now <= larger_before)) {
        // the answer before was better
        std::copy(best_vdot_.begin(), best_vdot_.end(), vdot);
        std::copy(best_lambda_.begin(), best_lambda_.end(), lambda);
        *report = before;
        all = held;
        break;
      }
      if (2 * strict_[0] > wrong && 2 * now > larger_before) break;
    }
    conclude(e, damping, gives_way, all, tolerance, report, history, max_iterations);
  }

 private:
  static constexpr int corrections = 4;
  // of the largest scale of a joint: below, no motion lessens the residual; of a row's: below, it is how exactly
  // mechanisms are drawn
  static constexpr Real stationary = sizeof(Real) == 8 ? Real(1e-6) : Real(1e-3),
                        drawn = sizeof(Real) == 8 ? Real(1e-6) : Real(1e-3);

  Certificate<T> certificate_;
  std::vector<T> compliance_, pull_;        // a row: C; R r, or C + ε
  std::vector<T> best_vdot_, best_lambda_;  // of one state, while it is corrected
  Real strict_[lanes_of<T>]{};
};

}  // namespace delassus
