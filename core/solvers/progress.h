// When to stop proximal iterations: when the residual of the constraints is small, when J ν̇ no longer changes (where
// contradicting constraints end), or when neither decreases. Whether the result is right is decided in judged.h.
//
//   r² / ε  against the largest  β² / ε,   the same unit for rows of lengths and of angles;
//       δ(J ν̇)  against the largest β,   β: residual of the rows without constraint forces
//
// "Constrained Articulated Body Dynamics Algorithms", algorithm 3.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "errors/interrupt.h"
#include "solvers/verbs.h"

namespace delassus {

template <class Real>
class Progress {
 public:
  Progress(int rows, int max_iterations, Real tolerance, Report<Real>* report, Real* history, int min_iterations = 1)
      : min_iterations_(std::min(min_iterations, std::max(max_iterations, 1))),
        max_iterations_(std::max(max_iterations, 1)),
        operations_(4.0 * rows * rows),
        aim_(tolerance),
        report_(*report),
        history_(history) {
    report_ = {rows == 0 ? Outcome::solved : Outcome::unfinished, 0, 0, 0, 0, 0, 0, false};
  }

  bool over() const { return report_.outcome != Outcome::unfinished || report_.iterations == max_iterations_; }

  // A row of β; then, iteration by iteration, its residual, the change of J ν̇, and the end of the iteration.
  void expect(Real beta, Real damping) {
    scale_ = std::max(scale_, beta * beta / damping);
    size_ = std::max(size_, std::abs(beta));
  }
  void row(Real residual, Real change, Real damping) {
    residual_ = worst(residual_, residual * residual / damping);
    primal_ = worst(primal_, residual);
    change_ = worst(change_, change);
  }
  void end_iteration() {
    const int n = report_.iterations;
    poll(operations_);
    const bool slow = n > 0 && residual_ > Real(0.81) * last_residual_ && change_ > Real(0.9) * last_change_;
    if (history_) history_[n] = primal_;
    report_.iterations = n + 1;
    report_.primal = primal_;
    report_.change = n > 0 ? change_ : Real(0);
    if (n + 1 >= min_iterations_) {
      if (residual_ <= aim_ * aim_ * scale_)
        report_.outcome = Outcome::solved;
      else if (n > 0 && change_ <= aim_ * size_)
        report_.outcome = Outcome::least_squares;
      else if (slow)
        report_.outcome = Outcome::stalled;
    }
    last_residual_ = residual_;
    if (n > 0) last_change_ = change_;
    residual_ = primal_ = change_ = 0;
  }
  void end(const Real* damping, int rows) {
    Real largest = 0;
    for (int r = 0; r < rows; ++r) largest = std::max(largest, damping[r]);
    report_.least_squares = report_.change * largest;
  }

 private:
  // the larger of two magnitudes; what is no number stays
  static Real worst(Real so_far, Real x) {
    x = std::abs(x);
    return x <= so_far || so_far != so_far ? so_far : x;
  }

  int min_iterations_, max_iterations_;
  double operations_;  // about, of an iteration
  Real aim_, scale_ = 0, size_ = 0;
  Real residual_ = 0, primal_ = 0, change_ = 0, last_residual_ = 0, last_change_ = std::numeric_limits<Real>::max();
  Report<Real>& report_;
  Real* history_;
};

}  // namespace delassus
