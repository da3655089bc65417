// Contact forces by a sequence of methods, each tried where the previous ones fail:
//
//   1  Newton's method from where the solve starts, s = 3 (semismooth.h); given up where twenty iterations gain nothing
//   2  the same with s = 10, if it was near
//      where there are loops, which may contradict each other: ADMM, which finds that out (admm.h)
//   3  a path from the best forces so far (smooth_path.h), then Newton's method from its end, with other s and δ
//   4  a path from far away; then some from places moved at random
//   5  ADMM, which is also the method where G has no factor with blocks
//
// Most steps of a simulation end in 1, with three to ten factorizations; about one in fifty needs the path. If all of
// this fails, or the budget of iterations or time is used up, the status is `approximate`. The result is then the best
// forces found, if their residual is within a hundred tolerances; otherwise the solution of the convex problem with Γ
// held at the best forces, solved once more with the smaller of that Γ and the new one. That problem always has a
// solution: forces in their cones that create no energy and let nothing penetrate faster than the residual.
#pragma once

#include <chrono>

#include "solvers/contacts/admm.h"
#include "solvers/contacts/semismooth.h"
#include "solvers/contacts/smooth_path.h"

namespace delassus {

class AutomaticContacts {
 public:
  // λ: what to start from on entry if options say so, forces on exit; σ: velocities on exit. history: room for as many
  // numbers as iterations are allowed.
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history);
  // Takes the memory of every method for problems of these sets, which else is taken when its turn comes first. λ, σ:
  // a number a row.
  void reserve(const ContactProblem& p, double* lambda, double* sigma);

 private:
  bool newton(const SemismoothRule& rule, double* lambda, double* sigma, bool judged = false);
  bool path(const PathStart& start, const std::vector<double>& from, double* lambda, double* sigma);
  bool admm(int iterations, double* lambda, double* sigma);
  void keep_best(const double* lambda);
  bool over_budget() const;
  void approximate(double* lambda, double* sigma);

  Semismooth semismooth_;
  SmoothPath path_;
  Admm admm_;
  const ContactProblem* problem_ = nullptr;
  const ContactOptions* options_ = nullptr;
  double* history_ = nullptr;
  ContactReport report_;
  double best_residual_ = 0;
  std::chrono::steady_clock::time_point end_;
  std::vector<double> best_, start_;
};

}  // namespace delassus
