// Contact forces by path following, for problems where Newton's method fails: a smooth path from a problem with a known
// solution to Coulomb's problem. It is followed by arclength, so that it may fold back.
//
// In units in which cones have an opening of 45° and G a diagonal of about one (r = U x, U = diag(1 / µ, 1, 1 …) / √d):
//
//   r = P_m(y),   s = P_m(y) − y          projection onto the cone, smoothed: λ → (λ + √(λ² + 4 m²)) / 2 of the
//                                         eigenvalues y_n ± ‖y_T‖, so that r ∘ s = m² e
//   H(y, σ) = (G + c) r + g + w Γ_m(s) e + (1 − w) a − s = 0
//       m = m₀ e^−σ,   w = 1 − e^−σ,   c = m / m_ref,   Γ_m = √(‖s_T‖² + (0.3 m)²) − 0.3 m
//
// a is such that y₀ solves σ = 0, where the problem is monotone and has no other solution; at σ → ∞ it is Coulomb's
// problem. The compliance c makes forces in the null space of G unique, and vanishes along the path. In dr = P_m' dy
// the Jacobian is
//
//   G + N,   N = c + (1 − w e tᵀ) (P_m'⁻¹ − 1),   t = ∂Γ_m / ∂s
//
// so B = N⁻¹ are blocks of stiffness, by Sherman and Morrison's formula in the eigenvectors of P_m', and one
// elimination (block_elimination.h) gives the tangent of the path and Newton's corrections to it (bordering). The sign
// of the determinant decides the direction along the path: continuity of the tangent is not enough at sharp bends,
// where it would turn back. Near a fold the matrix is not positive definite, and an elimination without pivoting loses
// digits (residuals of 100 times the right-hand side were seen). GMRES with that factor as preconditioner recovers
// them, usually in one to four products (krylov.h).
//
// Chen and Mangasarian's smoothing of complementarity; arclength continuation as in Allgower and Georg, "Introduction
// to Numerical Continuation Methods".
#pragma once

#include <chrono>

#include "operators/krylov.h"
#include "solvers/contacts/problem.h"
#include "solvers/contacts/smoothed_projection.h"

namespace delassus {

// Where a path starts and how long it may be.
struct PathStart {
  double m = 0;              // m₀ [√J]; 0: m_ref, which is far from the end
  bool fast_fading = false;  // c = (m / m_ref)² instead of m / m_ref
  double random = 0;         // part of m₀ that y₀ is moved by, in random directions
  unsigned seed = 0;
  int max_factorizations = 150;
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

class SmoothPath {
 public:
  // Reads the problem; d: a row, the inverse mass of its set. Whether G has the factor that is needed.
  bool begin(const ContactProblem& p, const double* d);
  // After that, takes the memory that else is taken when it is needed first.
  void reserve();
  // Follows the path from forces λ; on exit λ is where it ended, in its sets, whether or not that was the end. Adds to
  // the report's iterations and factorizations. Returns whether it came to the end.
  bool follow(const PathStart& start, double* lambda, ContactReport& report);
  // From now on Γ is held constant: at µ ‖σ_T‖ of these velocities, in later calls at the smaller of that and its
  // previous value. The path then leads to a convex problem.
  void hold_gamma(const double* sigma, bool first);
  void release_gamma();
  // The size of velocities in the units used here, which m is measured by.
  double speed() const { return speed_; }

 private:
  struct IntervalState {
    double d, e;
  };
  // A point of the path.
  struct Point {
    std::vector<double> y, r, s, H;
    std::vector<double> slope;  // ∂r / ∂m = ∂s / ∂m
    std::vector<SmoothedCone> cones;
    std::vector<IntervalState> intervals;
    double sigma = 0, m = 0, length = 0;  // ‖H‖ over √n m
    void resize(std::size_t rows, std::size_t cones, std::size_t intervals);
  };

  void place_start(const PathStart& start, const double* lambda);
  bool correct(bool ends, double length, double along, int& corrections);
  bool search_line(double change);
  void evaluate(Point& p);
  template <int N>
  double factor_cone(std::size_t k, const SmoothedCone& state, double w, double c);
  template <int N>
  void stiffen_cone(const SmoothedCone& state, const double* v, double* z) const;
  double gamma_share(double sigma) const;
  double compliance(double m) const;
  bool factor(const Point& p);
  void apply_blocks(const double* x, double* y) const;
  void product(const double* x, double* y);  // G x in the units used here
  void stiffness(const Point& p, const double* x, double* z) const;
  void jacobian(const Point& p, const double* x, double* y);
  void invert(const double* rhs, double* x);
  void solve(const Point& p, const double* rhs, double* dy);
  void find_slope(const Point& p, double* out);
  void set_weights(const Point& p);
  double weighted(const double* a, const double* b) const;

  const ContactProblem* problem_ = nullptr;
  const BlockIndex* index_ = nullptr;
  int rows_ = 0, factorizations_ = 0;
  bool held_ = false;
  double speed_ = 0, m0_ = 0, reference_ = 0;  // largest |g|, m₀, m_ref
  bool fast_fading_ = false;
  std::vector<double> unit_, g_, a_, weight_;  // a row; units: λ = U r
  std::vector<double> gamma_;                  // a cone: Γ that is held [m/s]
  std::vector<double> B_, real_B_;             // blocks in the units used here, of cones, then of intervals; in G's
  std::vector<int> block_;                     // a cone: where its block starts in B_; then where those of intervals do
  std::vector<double> in_, out_, w_, x_, z_, rest_, slope_rhs_, slope_y_, correction_, tangent_;
  FlexibleGmres<double> gmres_;
  Point now_, next_, trial_;
};

}  // namespace delassus
