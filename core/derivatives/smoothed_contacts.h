// Contact forces on the central path of a contact problem, and their exact derivatives: smooth functions of the
// problem, whose gradients also see open contacts and friction below its limit.
//
// The smoothed problem with parameter κ > 0, σ = G λ + g, σ̃ = σ + µ Γ(σ_T) n:
//
//   cone       λ · σ̃ = κ,   µ² λ_n σ_T + σ̃_n λ_T = 0          λ and σ̃ inside their cones; without friction λ_n σ_n = κ
//   interval   (λ − lower) σ = κ,   (upper − λ) σ = −κ          of a half-line; both bounds: smoothed_projection.h
//   Γ(σ_T) = √(‖σ_T‖² + ε²) − ε,   ε = 0.3 √(κ d)               de Saxcé's term, without its kink
//
// κ is a work: J where λ are impulses, W where they are forces and σ velocities. κ → 0 is Coulomb's problem. In
// λ = U r, U = diag(1 / µ, 1, 1 …) / √d, it is the path of solvers/contacts/smooth_path.h at m = √κ, without its
// compliance and with all of Γ:
//
//   H(y) = U G U r + U g + Γ_m(s) e − s = 0,   r = P_m(y),   s = r − y
//
// With P = P_m', Q = 1 − P and t = ∂Γ_m / ∂s changes satisfy, without division by quantities that may be small,
//
//   E dr + C U dσ = b,   C = P X (1 + e tᵀ),   E = (1 − e tᵀ) Q X (1 + e tᵀ),   X = 1 − e tᵀ P / (1 + tᵀ P e)
//
// which is an equation of contact_equation.h. Newton's method solves H = 0 with it, from a solution of Coulomb's
// problem and, where that fails, along growing κ. d is held constant: it is not differentiated.
#pragma once

#include "derivatives/contact_equation.h"
#include "solvers/contacts/smoothed_projection.h"

namespace delassus {

class SmoothedContacts {
 public:
  // Forces on the central path at κ, from forces λ of Coulomb's problem; g: velocities without forces; d: inverse mass
  // per row. The sets and G outlive their use here. False: Newton's method did not get there.
  bool solve(const ForceSets& K, ContactMap& G, const double* g, const double* d, double kappa, const double* lambda,
             int max_dense = ContactEquation::max_dense_rows);
  const std::vector<double>& forces() const { return lambda_; }
  const std::vector<double>& velocities() const { return sigma_; }
  int iterations() const { return iterations_; }

  // Factors once more, for who used the factor of G in between.
  bool factor();
  // As those of ContactModes; of intervals changes of both bounds (intervals × columns).
  void tangents(const double* s, const double* dfriction, const double* dlower, const double* dupper, int columns,
                double* dlambda, double* dsigma);
  void adjoints(const double* lambda_bar, const double* sigma_bar, int columns, double* s_bar, double* friction_bar,
                double* lower_bar, double* upper_bar);
  bool is_dense() const { return equation_.is_dense(); }

 private:
  double evaluate(double m, const double* y);
  bool find_step();
  bool run_newton(double m);
  void set_blocks();
  template <int N>
  void set_cone(std::size_t k);

  const ForceSets* K_ = nullptr;
  ContactMap* G_ = nullptr;
  int max_dense_ = 0, iterations_ = 0;
  double size_ = 0;  // of what H is made of
  ContactEquation equation_;
  std::vector<SmoothedCone> cones_;
  std::vector<double> d_, unit_, g_, scaled_g_;         // a row; U, and g in units of H
  std::vector<double> y_, r_, s_, slope_, H_;           // a row
  std::vector<double> start_, trial_, lambda_, sigma_;  // a row
  std::vector<double> by_friction_;                     // a row: b for a change of friction
  std::vector<double> by_lower_, by_upper_;             // an interval
  std::vector<double> in_, b_, dlambda_, dsigma_, dy_;  // a row: of one column, of a step
};

}  // namespace delassus
