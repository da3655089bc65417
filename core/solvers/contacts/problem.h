// A contact problem, the options of its solution, and the result.
#pragma once

#include <chrono>
#include <limits>

#include "dense/vectors.h"
#include "solvers/contacts/map.h"
#include "solvers/contacts/sets.h"

namespace delassus {

struct ContactProblem {
  ContactMap& G;
  const double* g;  // velocities of the rows without constraint forces [m/s]
  const ForceSets& sets;
  int rows() const { return sets.rows; }
};

struct ContactOptions {
  double tolerance = 1e-6;    // of the residuals [m/s]
  int max_iterations = 1000;  // iterations allowed
  bool warm = false;          // λ is something to start from
  double rho = 0;             // of the solve before; 0: there is none
  bool hurry = false;         // near the tolerance is good enough where the rest would take long
  double share = 0.1;         // of the natural residual that is held against the tolerance
  int directions = 8;         // corners of the polygons that lcp has for cones
  double seconds = std::numeric_limits<double>::infinity();  // that `auto` may take
};

// approximate: what is solved is another problem, with polygons for cones, without Γ or with Γ held, and not Coulomb's.
enum class ContactOutcome : int { solved, unfinished, stalled, infeasible, approximate };

struct ContactReport {
  ContactOutcome outcome = ContactOutcome::unfinished;
  int iterations = 0, factorizations = 0;
  double rho = 0;  // penalty at the end, in units of the diagonal of G
  ContactResiduals residuals;
  double own = 0;  // natural residual of the problem that the method solves, which need not be Coulomb's [m/s]
};

// Whether a moment has passed; the clock is asked only where there is an end.
inline bool is_over(std::chrono::steady_clock::time_point end) {
  return end != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() >= end;
}

// Sums of products, in one fixed order.
inline double inner(int n, const double* a, const double* b) { return dense::dot(n, a, b); }

// d ← the inverse mass that the rows of a set feel: the mean of the diagonal over a cone. A row that nothing moves
// feels the largest of the others.
void find_inverse_masses(const ForceSets& K, ContactMap& G, double* d);

// The tolerance that is applied to a problem: the given one, but at most 1e-4 of the largest |g|, since otherwise zero
// forces might pass, and at least 1e-11 of it, which is rounding level. Velocities below a millionth of the tolerance
// count as rounding.
double held_tolerance(double tolerance, int rows, const double* g);

// σ = G λ + g, and its residuals.
ContactResiduals judge(const ContactProblem& p, bool coulomb, const double* d, const double* lambda, double* sigma);

// The status of forces from the definition alone, σ = G λ + g by G itself and Coulomb's residuals, whatever method
// found them. coulomb: whether that is what the method solves. d: m numbers, found here.
void certify(const ContactProblem& p, const ContactOptions& options, bool coulomb, double* d, const double* lambda,
             double* sigma, ContactReport& report);

}  // namespace delassus
