// Derivatives of constrained dynamics ν̇(q, ν, τ), λ(q, ν, τ) as dense matrices. O(n²(d + m)) for depth d.
//
//   F(q, ν, ν̇, λ) = M ν̇ + h − Jᵀλ − external = τ,   g(q, ν, ν̇) + C λ = 0
//
// The response of both unknowns to the right-hand sides is one matrix. With X = (G + C)⁻¹ and Q = X J M⁻¹,
//
//   ∂ν̇/∂τ = A = M⁻¹ − (J M⁻¹)ᵀ Q,   ∂λ/∂τ = −Q
//   ∂ν̇/∂x = −A F_x − Qᵀ g_x,   ∂λ/∂x = Q F_x − X g_x          for x = q and ν
//
// F_x is that of inverse dynamics with λ as external forces (rnea_derivatives.h), plus that of the rows
// (row_matrices.h). It has branch-induced sparsity: the entry of two velocities is nonzero only if one joint carries
// the other, and g_x only where rows touch. Columns are processed in strips of neighbours, those for q and for ν next
// to each other, restricted to rows that are nonzero in any of them. Which neighbours share a strip is planned
// beforehand, for the least arithmetic.
//
// X is the inverse of a dense matrix if the rows are certainly independent; otherwise the caller provides it
// (linearization.h). The same matrices solve the dynamics themselves:
//
//   λ = −X (J M⁻¹ (τ − h) + γ),   ν̇ = M⁻¹ (τ − h) + (J M⁻¹)ᵀ λ,   γ = J̇ν + k_d J ν + k_p e
//
// after which only accelerations and quantities derived from them have to be computed again. Both equations are then
// checked with the result.
#pragma once

#include <vector>

#include "derivatives/row_matrices.h"

namespace delassus {

// Where derivatives go, row-major: of ν̇ nv × nv each, of λ m × nv each.
struct DynamicsDerivatives {
  double *acceleration_q, *acceleration_v, *acceleration_tau, *forces_q, *forces_v, *forces_tau;
};

// A state. `tau` and `external` may be null: zero; `compliance` and `damping` a row.
struct DynamicsState {
  const double *q, *v, *tau, *external, *compliance, *damping;
};

class DynamicsMatrices {
 public:
  DynamicsMatrices(const Model<double>& model, const ConstraintSet<double>& set);

  int rows() const { return m_; }
  std::size_t bytes() const;

  // independent: rows are so, with a wide margin in the metric of `damping`, and equations that were solved hold;
  // doubtful: they may not be, or do not; inexact: M⁻¹ as a matrix loses too many digits, products (linearization.h)
  // keep them; singular: M is.
  enum class Rows { independent, doubtful, inexact, singular };
  // Solves for ν̇ and λ and prepares their derivatives. Only where rows are independent this is to be used.
  Rows solve(const DynamicsState& s, double* acceleration, double* lambda);
  // Prepares derivatives at ν̇ and λ that solve the equations. Where rows are in doubt, set_row_inverse has to follow.
  Rows prepare(const DynamicsState& s, const double* acceleration, const double* lambda);
  // What stands for X, m × m, symmetric.
  void set_row_inverse(const double* X);
  void differentiate(const DynamicsDerivatives& out);

 private:
  // Neighbouring velocities whose columns are computed together.
  struct Strip {
    int first, count;
    int begin, end;  // rows of F and then of g that are not zero there, among strip_rows_
  };
  void plan();
  bool place(const double* q);
  bool regular();
  void find_forces(const DynamicsState& s, const Vec3<double>& up);
  void find_accelerations(const Vec3<double>& up, const double* acceleration);
  void find_rows();
  bool invert_rows(const DynamicsState& s);
  void find_unknowns(const DynamicsState& s, double* acceleration, double* lambda);
  void linearize(const DynamicsState& s, const double* acceleration, const double* lambda, const Vec3<double>& up);
  bool loses_digits() const;
  bool holds(const DynamicsState& s, const double* acceleration, const double* lambda) const;
  void respond();
  void solve_strip(const Strip& strip, const DynamicsDerivatives& out);

  const Model<double>& model_;
  const int n_, m_, total_;
  const std::ptrdiff_t n_stride_, m_stride_, stride_;  // padded rows: of nv, m and nv + m numbers
  const ConstraintSet<double> set_;
  RowMatrices rows_;
  DerivativeWorkspace<double> w_;
  std::vector<double> by_q_, by_v_;  // F_x and below it g_x: (nv + m) × nv
  std::vector<double> Minv_;         // nv × nv
  std::vector<double> R_, Rt_;       // J M⁻¹: m × nv, and transposed
  std::vector<double> X_, half_;     // m × m
  // row p of the answers: what ν̇ loses and λ gains by a unit of F_p, or of g_p from nv on: [A, Qᵀ; Q, −X];
  // between the two some rows that mean nothing
  std::vector<double> answers_;
  std::vector<Strip> strips_;
  std::vector<int> strip_rows_, idle_;                        // idle: velocities that nothing depends on
  std::vector<std::ptrdiff_t> strip_offsets_, strip_places_;  // of strip_rows_: in the answers, in F and g
  std::vector<std::vector<std::ptrdiff_t>> support_offsets_, support_rows_;  // a block: rows of M⁻¹ and of Rt
  bool measured_;                                                            // whether some row has an error
  PerLink<Vec6, double> own_;                          // a link: force of its motion without joint accelerations
  std::vector<double> errors_, speeds_, bias_, load_;  // of rows: e, J ν, γ; τ − h
  std::vector<double> balance_;                        // F of what was found
  std::vector<double> pivot_bound_;                    // a velocity: at least SᵀIᶜS, whatever q
};

}  // namespace delassus
