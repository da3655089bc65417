// Contact forces by the alternating direction method of multipliers: per iteration one solve with (G + ρ)⁻¹ and one
// projection, accelerated by Anderson extrapolation.
//
//   s ← s + f(s),   f = x − y as splitting.h has it,   until the residuals of λ = w y are within the tolerance
//
// ρ starts small, so that sticking contacts converge almost at once, and is rebalanced after 10, 20, 40 … iterations,
// which needs only a few factorizations. An extrapolation that increases ‖x − y‖ is replaced by the plain step. If the
// residual stagnates, the method restarts with another ρ; the best forces found are returned. G may be singular.
//
// Proximal ADMM for frictional contact as in Carpentier, Le Lidec, Montaut, "From Compliant to Rigid Contact
// Simulation"; the sets with Γ updated in every iteration.
#pragma once

#include "solvers/contacts/splitting.h"

namespace delassus {

class Admm {
 public:
  // λ: what to start from on entry if options say so, forces on exit; σ: velocities on exit. history: room for as many
  // numbers as iterations are allowed, an estimate of the residual after each.
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
                      double* history);

  // The same in parts, for callers that act in between. Sets scales and start; returns whether the start already solves
  // the problem.
  bool begin(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma,
             ContactReport& report);
  // Goes on to `last` iterations in all. Returns true if the problem is solved, or if there is no sense in going on.
  bool iterate(int last, double* lambda, double* sigma, double* history, ContactReport& report);
  // Forces and residuals where it stands, if it was not solved.
  void finish(double* lambda, double* sigma, ContactReport& report);
  // After s was set from outside.
  void resume();

  // Whether residuals, found anew from the definition, are within the tolerance.
  bool certified(const double* lambda, double* sigma, ContactReport& report);
  Splitting& splitting() { return split_; }

 private:
  // What an iteration does after f is known: the next s may be another one than s + f.
  enum class Next { step, again, end };

  bool check(double estimate, double* lambda, double* sigma, ContactReport& report);
  Next check_progress(double estimate, double* lambda, double* sigma, ContactReport& report);
  bool take_back(double length);
  bool balance();
  void advance(double length);
  void keep_best(const double* lambda, const ContactReport& report);
  void restart(double rho, const ContactReport& report);
  bool infeasible(double* lambda, double* sigma, ContactReport& report);

  Splitting split_;
  const ContactProblem* problem_ = nullptr;
  const ContactOptions* options_ = nullptr;
  // residuals: estimate below which the exact residual is computed, smallest estimate, residual of the best forces
  double check_below_ = 0, least_estimate_ = 0, best_residual_ = 0;
  double length_ = 0;                                  // ‖f‖ of the iteration before
  int last_check_ = 0, last_gain_ = 0;                 // iterations when
  int starts_ = 0;                                     // how many values of ρ were started from
  int balance_interval_ = 10, since_balance_ = 0;      // iterations
  int plain_steps_ = 0, next_plain_steps_ = 4;         // to go; after the next extrapolation that misleads
  bool extrapolated_ = false;                          // s is an extrapolation
  std::vector<double> plain_, earlier_, best_forces_;  // a row: the plain step instead, forces at the last look, best
};

}  // namespace delassus
