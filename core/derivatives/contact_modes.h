// Modes of a solved contact problem, λ ∈ K, σ = G λ + g, and the linear equations between small changes of λ and σ as
// long as the modes do not change:
//
//   open      dλ = 0
//   sticking  dσ = 0
//   sliding   dσ_n = 0,   dλ_T = u (µ dλ_n + λ_n dµ) − (µ λ_n / ‖σ_T‖) (1 − u uᵀ) dσ_T,   u = −σ_T / ‖σ_T‖
//   free      dσ = 0                               an interval whose force is inside of it
//   bound     dλ = change of the bound             an interval whose force is at one
//
//   dσ = G dλ + s                                  s = d(G) λ + dg
//
// With y = λ − σ / d and C = P'(y) of the map of Alart and Curnier (solvers/contacts/semismooth.h) all of these are
// (1 − C) dλ + C dσ / d = b (contact_equation.h): sticking 1, open 0, sliding n nᵀ + µ u nᵀ + c (1 − u uᵀ),
// c = µ y_n / ‖y_T‖. A contact without friction slides.
#pragma once

#include "derivatives/contact_equation.h"

namespace delassus {

class ContactModes {
 public:
  enum Mode : char { open, sticking, sliding, free, bound };
  // Relative to the size of its forces: what is nearer to another mode is a kink.
  static constexpr double kink_distance = 1e-6;
  // What equations are violated by at most where they have a solution, relative to s.
  static constexpr double solvable_share = 1e-6;

  // The modes of forces λ with velocities σ; d: inverse mass per row (find_inverse_masses). The sets outlive their use.
  void find(const ForceSets& K, const double* lambda, const double* sigma, const double* d);
  // Factors the equations for G, which is used, with the blocks of its factor, until the next call. max_dense: number
  // of active rows up to which that is dense. False: numbers are not finite.
  bool factor(ContactMap& G, int max_dense = ContactEquation::max_dense_rows);
  // Once more, for who used the factor of G in between.
  bool factor() { return factor(*G_, max_dense_); }

  // dλ, dσ (m × columns, row-major; each may be null) for s (m × columns), dfriction (cones × columns) and dbound
  // (intervals × columns): the change of the bound that a force is at; null: zero.
  void tangents(const double* s, const double* dfriction, const double* dbound, int columns, double* dlambda,
                double* dsigma);
  // Whether the equations have a solution for s (m). Where forces are redundant they may have none: then rows depend on
  // each other in this configuration only, or do not fit each other, and there is no derivative.
  bool solvable(const double* s);
  // For weights of λ and σ (m × columns, null: zero) the derivatives of their sum by s (m × columns), friction
  // (cones × columns) and bounds (intervals × columns); each may be null. By G: s_bar λᵀ.
  void adjoints(const double* lambda_bar, const double* sigma_bar, int columns, double* s_bar, double* friction_bar,
                double* bound_bar);

  // Per cone, then per interval.
  const std::vector<Mode>& modes() const { return modes_; }
  // The same: whether it is about to change its mode, so that there is no derivative but one to either side.
  const std::vector<char>& kinks() const { return kinks_; }
  // Whether forces are not unique; their change is the least then.
  bool redundant() const { return equation_.redundant(); }
  bool is_dense() const { return equation_.is_dense(); }

 private:
  template <int N>
  void find_cone(std::size_t k, const double* lambda, const double* sigma, double d);

  const ForceSets* K_ = nullptr;
  ContactMap* G_ = nullptr;
  int max_dense_ = 0;
  ContactEquation equation_;
  std::vector<Mode> modes_;
  std::vector<char> kinks_;
  std::vector<double> d_, by_friction_;           // a row: inverse mass; λ_n u of what slides
  std::vector<double> s_, b_, dlambda_, dsigma_;  // a row: a column
  std::vector<double> change_, rate_;             // a row: dλ and dσ of `solvable`
};

}  // namespace delassus
