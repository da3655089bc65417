// When proximal iterations have come to an end: the constraints hold, or J ν̇ no longer changes, which is where constraints that contradict each other end.
//
// "Constrained Articulated Body Dynamics Algorithms", algorithm 3; both against the largest bias, or one. Where the former stops getting smaller, what it is added up of
// tells whether that is rounding.
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
  Progress(const Real* bias, int rows, int most, Real tolerance, Report<Real>* report, Real* history, int fewest = 1)
      : fewest_(std::min(fewest, std::max(most, 1))), most_(std::max(most, 1)), operations_(4.0 * rows * rows),
        report_(*report), history_(history) {
    Real scale = 1;
    for (int r = 0; r < rows; ++r) scale = std::max(scale, std::abs(bias[r]));
    least_ = tolerance * scale;
    report_ = {rows == 0 ? Outcome::converged : Outcome::unfinished, 0, 0, 0, 0};
  }

  Real least() const { return least_; }
  bool over() const { return report_.outcome != Outcome::unfinished || report_.iterations == most_; }

  // After an iteration: what is left of the constraints, how far J ν̇ went, the largest sum of magnitudes that the former is a difference of.
  void note(Real primal, Real change, Real size = 0) {
    const int n = report_.iterations;
    poll(operations_);
    const bool stays = most_ == 1 || (n > 0 && 2 * primal > report_.primal);
    const Real goal = stays ? std::max(least_, 32 * std::numeric_limits<Real>::epsilon() * size) : least_;
    if (history_) history_[n] = primal;
    report_ = {Outcome::unfinished, n + 1, primal, n > 0 ? change : Real(0), 0};
    if (n + 1 < fewest_) return;
    if (primal <= goal)
      report_.outcome = Outcome::converged;
    else if (n > 0 && change <= goal)
      report_.outcome = Outcome::least_squares;
  }
  void end(const Real* damping, int rows) {
    Real largest = 0;
    for (int r = 0; r < rows; ++r) largest = std::max(largest, damping[r]);
    report_.least_squares = report_.change * largest;
  }

 private:
  int fewest_, most_;
  Real least_;
  double operations_;  // about, of an iteration
  Report<Real>& report_;
  Real* history_;
};

// The larger of two magnitudes; what is no number stays.
template <class Real>
inline Real worst(Real so_far, Real x) {
  x = std::abs(x);
  return x <= so_far || so_far != so_far ? so_far : x;
}

}  // namespace delassus
