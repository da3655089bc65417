// Contact forces with polygons for friction cones, as a mixed linear complementarity problem by Lemke's pivoting. Needs
// G as a matrix.
//
//   λ_T = Σ β_j d_j,   0 ≤ σ_n ⊥ λ_n ≥ 0,   0 ≤ d_jᵀ σ_T + γ ⊥ β_j ≥ 0,   0 ≤ µ λ_n − Σ β_j ⊥ γ ≥ 0
//
// d_j are `directions` unit vectors around the normal, so that between them friction is weaker than Coulomb's, by a
// factor of at least cos(π / directions), and not exactly opposite to sliding. An interval is λ = lower + a with 0 ≤ σ
// + b ⊥ a ≥ 0 and 0 ≤ upper − lower − a ⊥ b ≥ 0; a free row an equation.
//
// Stewart and Trinkle, "An Implicit Time-Stepping Scheme for Rigid Body Dynamics with Inelastic Collisions and Coulomb
// Friction"; fallbacks of the pivoting in lemke.h.
#pragma once

#include <memory>

#include "solvers/contacts/problem.h"
#include "solvers/lemke.h"

namespace delassus {

class Lcp {
 public:
  // G: m × m, row-major; p.G is only asked for its diagonal and for products. One iteration is a pivot. Residuals are
  // those of the problem with polygons.
  ContactReport solve(const ContactProblem& p, const double* G, const ContactOptions& options, int directions,
                      double* lambda, double* sigma);

 private:
  // A variable is a force along some rows (normal, direction, interval), or a bound's multiplier, which is none.
  struct Variable {
    std::pair<int, double> parts[2]{{-1, 0.0}, {-1, 0.0}};  // rows of λ that it moves, −1: none
    int bound = -1;    // the variable whose velocity or slack this multiplier enters, or its own normal
    double ratio = 0;  // normal: µ; bound of an interval: its width
    enum { normal, direction, sliding, interval, end } kind;
  };

  void find_unit();
  void list_variables(const ForceSets& K, int directions);
  void fill(const ContactProblem& p, const double* G);
  // λ of the variables' values z
  void forces(const ContactProblem& p, double* lambda) const;
  // primal and dual as of the cones, natural |min(d z, w)| of every pair, γ = max_j(−d_j · σ_T)
  ContactResiduals polygon_residuals(const ContactProblem& p, const double* lambda, double* sigma);

  std::unique_ptr<Lemke> lemke_;
  ForceSets intervals_;  // without the cones
  std::vector<Variable> columns_;
  std::vector<unsigned char> free_;
  double unit_ = 1;  // of z [N s]
  std::vector<double> M_, q_, z_, start_,
      d_;  // the complementarity problem, its solution; a row: without it, inverse mass
};

}  // namespace delassus
