// Contact forces by a semismooth Newton method on the map of Alart and Curnier, with an adaptive proximal term: the
// method of choice from a warm start, however many bodies slide.
//
//   y = r − β σ,   σ = G r + g,   β = s / d           d: inverse mass that the rows of a set feel
//   P(y): normals max(y_n, 0), tangents to the disc of radius µ P_n, intervals clipped
//   f(r) = r − P(y) = 0                               at the solution, and only there
//
//   ((1 + δ) − C + β C G) Δr = −f,   C = P'(y)        sticking 1, open 0, sliding n nᵀ + µ h nᵀ + c (1 − h hᵀ),
//                                                     h = y_T / ‖y_T‖, c = µ y_n / ‖y_T‖
//
// With E = (1 + δ) − C and B = E⁻¹ β C, which is a square block per contact that friction makes unsymmetric, this is
//
//   Δr = w − B J (M + Jᵀ B J)⁻¹ Jᵀ w,   w = −E⁻¹ f
//
// one elimination of all joints (block_elimination.h) and one substitution. The residual of this equation is computed
// with G itself, and the solution is refined if it is too large. Steps are shortened until ‖d f‖ is below the largest
// of its last four values. δ is adapted to the success of the steps.
//
// If a full step hardly reduces ‖d f‖, the few contacts that dominate it are solved with their exact law, using the
// factor of that step (nonlinear_elimination.h).
//
// Redundant contacts: near convergence, forces may still have to move far in the null space of G, of which δ allows
// only a small part per step. The step is then extended until the first contact opens, closes, sticks or slides.
//
// Alart and Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution methods", 1991.
#pragma once

#include <chrono>

#include "solvers/contacts/nonlinear_elimination.h"
#include "solvers/contacts/problem.h"

namespace delassus {

// How a run of Newton steps goes.
struct SemismoothRule {
  double scale;        // s
  double first_delta;  // δ at the start, at most
  double least_delta;  // δ at least
  bool by_residual;    // δ starts as the residual of what it starts from, between these
  int max_iterations;
  int patience;         // iterations without a smaller residual after which it is given up
  double restless = 1;  // factor of δ for every further change of a contact between sticking, sliding and open
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

class Semismooth {
 public:
  // Reads the problem: units, and where the numbers of blocks are. Whether G has such a factor.
  bool begin(const ContactProblem& p);
  // From forces r to others that are better, until they are within the tolerance or the rule's iterations are used up.
  // λ: forces to start from on entry, the best ones found, in their sets, on exit; σ: their velocities, on entry too if
  // λ was `judged` already and is in its sets. Adds to the
  // report's iterations and factorizations; history: an estimate after each, if not null. Returns whether it is solved.
  bool run(const SemismoothRule& rule, const ContactOptions& options, double* lambda, double* sigma, double* history,
           ContactReport& report, bool judged = false);

  const double* d() const { return d_.data(); }

 private:
  struct ConeState {
    enum Side { open, stick, slide } side;
    int changes;                     // of the side, how often lately
    double h[max_cone_rows - 1], c;  // direction of sliding, and C_TT across it
  };

  double find_map(const double* r, const double* sigma, double* f, bool keep);
  template <int N>
  double find_cone_map(std::size_t k, const double* r, const double* sigma, double* f, bool keep);
  template <int N>
  void set_cone_block(std::size_t k, double delta);
  template <int N>
  void solve_cone(std::size_t k, const double* rhs, double delta);
  template <int N>
  void find_cone_rest(std::size_t k, double delta);
  template <int N>
  double residual_of_cone(const Cone& c, const double* r, const double* sigma) const;
  void note_side(std::size_t k, ConeState::Side side);
  double cone_delta(std::size_t k, double delta) const;
  void set_blocks(double delta);
  void solve_linear(const double* rhs, double delta, double* out);
  void respond(double* out);
  double correct_step(double delta, double length);
  bool find_step(double delta, double f_length);
  double first_change() const;
  double length_after(double t);
  double search_line(double reference, double full, double& shortest);
  double find_drift(double change, double length);
  double residual_of(const double* r, const double* sigma) const;
  double free_delta(double delta) const;

  const ContactProblem* problem_ = nullptr;
  const BlockIndex* index_ = nullptr;
  double restless_ = 1;
  std::vector<ConeState> cones_;
  std::vector<char> inside_;                        // an interval: y is inside of it
  std::vector<double> B_;                           // blocks
  std::vector<double> d_, beta_;                    // a row
  std::vector<double> r_, sigma_, f_;               // a row: forces, velocities, the map
  std::vector<double> dr_, dsigma_, w_, x_, rest_;  // a row: step, change of velocities, of the linear equation
  std::vector<double> trial_r_, trial_sigma_, trial_f_, best_;
  NonlinearElimination few_;
};

}  // namespace delassus
