// Contact forces by an interior-point method: Newton's method along a smooth path to the solution. Needs G as a matrix,
// and a few factorizations, however many contacts slide.
//
//   r ∈ K, v ∈ K*,   v = G r + g + Γ(v),   r ∘ v = µ e,   µ → 0
//       Γ: ‖v_T‖ on normals, in units in which cones have an opening of 45°
//   H r = v by Nesterov and Todd,   H Δr + Δv = c,   (1 − e tᵀ) Δv = G Δr + …
//       t = v_T / ‖v_T‖: how Γ changes is part of it
//   ⇒ (G + (1 − e tᵀ) H) Δr = (1 − e tᵀ) c − (G r + g + Γ − v)
//
// Mehrotra's predictor-corrector. The usual approach holds Γ fixed, so that each problem is convex, but the sequence of
// these problems may not converge if many contacts slide. With the derivative of Γ it does. Intervals have one or two
// barriers, rows without a set none. Coulomb's problem is not convex: if the path is blocked, another start is tried.
#pragma once

#include "solvers/contacts/cone_algebra.h"
#include "solvers/contacts/problem.h"

namespace delassus {

class Interior {
 public:
  // G: m × m, row-major. One iteration is a factorization. What λ is on entry is taken if it solves the problem, and
  // not used otherwise.
  ContactReport solve(const ContactProblem& p, const double* G, const ContactOptions& options, double* lambda,
                      double* sigma, double* history);

 private:
  using V = cone::V;

  struct ConeState {
    int at, rows;       // first of its unknowns, how many
    V r, v;             // force, velocity with Γ
    V w, z, c, dr, dv;  // Nesterov and Todd's point, both in its units, right-hand side, steps
  };
  struct IntervalState {
    int at;
    double lower, upper;  // infinite: there is none
    double r, a, b;       // force; pressures of the two ends
    double dr, da, db;
    bool bounded() const { return std::isfinite(lower) || std::isfinite(upper); }
  };

  void begin(const ContactProblem& p, const double* G);
  void list_unknowns(const ContactProblem& p);
  void set_start(double share);
  // Residuals of λ as it is, which is kept if it is the best so far. Returns whether they are within the tolerance.
  bool judged(const ContactProblem& p, const ContactOptions& options, const double* lambda, double* sigma,
              ContactReport& report);
  void forces(const ContactProblem& p, double* lambda) const;

  // One step, at most `share` of the distance to the boundary. Returns its length; 0 if the matrix is singular or
  // values are not finite.
  double advance(double share);
  double gap(double step, int* count) const;
  void find_residual();
  bool factor();
  void find_step(double aim, bool corrected);
  double longest_step() const;

  int n_ = 0;         // unknowns
  double speed_ = 0;  // largest of g, in the units used here
  double best_ = 0;   // residual of the best forces
  std::vector<ConeState> cones_;
  std::vector<IntervalState> intervals_;
  std::vector<int> row_, pivot_;                         // an unknown: its row; with which it was exchanged
  std::vector<double> unit_, g_, residual_, x_, G_, K_;  // in the units used here; K: the matrix of a step, factored
  std::vector<double> d_, fixed_, best_forces_;          // a row: its inverse mass; a force that has no choice
};

}  // namespace delassus
