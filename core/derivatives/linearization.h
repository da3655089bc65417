// First-order changes of constrained dynamics at a solved state, and of the Delassus operator, matrix-free.
//
//   F(q, ν, ν̇, λ) = τ,   g(q, ν, ν̇) + C λ = 0                                              residual.h
//
//   along a direction   M dν̇ − Jᵀdλ = dτ − F_q dq − F_ν dν,   J dν̇ + C dλ = −g_q dq − g_ν dν
//   adjoints            M μ + Jᵀκ = ν̇_bar,   −J μ + C κ = λ_bar,   τ_bar = μ,   (q, ν)_bar = −(F, g)_(q, ν)ᵀ (μ, κ)
//
// Both are solved by (G + C)⁻¹, found from (G + C + d)⁻¹ =: X by proximal iterations, for which the damping d is small.
// If rows are dependent, λ is the solution with the smallest λᵀ d λ. This also holds along a direction: with N = lim (X
// d)ᵏ X, which maps to the null space of Jᵀ,
//
//   dλ = (G + C)⁻¹ b + N d(G) ζ,   G ζ = d λ
//
// the derivative of a pseudo-inverse (Golub, Pereyra, 1973) in the metric d.
#pragma once

#include <memory>
#include <vector>

#include "derivatives/residual.h"
#include "operators/verbs.h"

namespace delassus {

class Linearization {
 public:
  Linearization(const Model<double>& model, const ConstraintSet<double>& set);

  int rows() const { return m_; }
  std::size_t bytes() const;

  // The state: ν̇ and λ solve the equations with compliance C. `damping` per row, positive. False where M is singular.
  bool update(const double* q, const double* v, const double* acceleration, const double* lambda,
              const double* external, const double* compliance, const double* damping);
  // Whether rows depend on each other there.
  bool redundant() const { return redundant_; }

  // dν̇ (nv × columns) and dλ (m × columns) along directions; null: zero. All row-major.
  void tangents(const double* dq, const double* dv, const double* dtau, int columns, double* da, double* dlambda);
  // Derivatives by q, ν and τ (nv × columns) of a_bar · ν̇ + lambda_bar · λ; null: zero.
  void adjoints(const double* a_bar, const double* lambda_bar, int columns, double* q_bar, double* v_bar,
                double* tau_bar);

  // For matrices (dynamics_matrices.h): what takes rows to −dλ, (G + C)⁻¹ or what stands for it, m × m; and where rows
  // depend on each other, N d(G) ζ along every velocity of q added to ∂λ/∂q, m × nv. They ask for memory when first
  // called. The last gives all matrices by products, slowly and to the last digit: of ν̇ nv × nv, of λ m × nv.
  void row_inverse(double* X);
  void add_choice(double* forces_q);
  void columns(double* acceleration_q, double* acceleration_v, double* acceleration_tau, double* forces_q,
               double* forces_v, double* forces_tau);

 private:
  void solve(const double* Y, int columns, double* X);
  void project(const double* Y, int columns, double* X);
  void off_null_space(double* Y, int columns);
  void damp(const double* damping, double part);
  const double* unit();
  bool depends();

  const Model<double>& model_;
  int n_, m_;
  std::unique_ptr<Operator<double>> G_;
  ConstrainedResidual<double> residual_, response_;
  std::vector<double> damping_;
  bool redundant_ = false;
  std::vector<double> force_, rows_, acceleration_, multiplier_, left_, correction_, pushed_, part_q_, part_v_;
  std::vector<double> unit_;
};

// G(q) x and (G(q) + damping)⁻¹ y to first order.
class OperatorDerivatives {
 public:
  OperatorDerivatives(const Model<double>& model, const ConstraintSet<double>& set);

  int rows() const { return m_; }
  std::size_t bytes() const;

  bool update(const double* q, const double* compliance, const double* damping);
  // y = G x and x = (G + damping)⁻¹ y, with which the calls below go on.
  void apply(const double* x, double* y);
  double solve(const double* y, double* x, const Accuracy<double>& wanted);

  // At the x of the last call: d(G x) along dq and dx, either null; and derivatives of y_bar · G x by q and x.
  void apply_tangents(const double* dq, const double* dx, int columns, double* dy);
  void apply_adjoints(const double* y_bar, int columns, double* q_bar, double* x_bar);
  // At the solution x of the last call, along dq, dy and ddamping, any null; and derivatives of x_bar · x.
  double solve_tangents(const double* dq, const double* dy, const double* ddamping, int columns, double* dx,
                        const Accuracy<double>& wanted);
  double solve_adjoints(const double* x_bar, int columns, double* q_bar, double* y_bar, double* damping_bar,
                        const Accuracy<double>& wanted);

 private:
  void respond(const double* x);

  const Model<double>& model_;
  int n_, m_;
  std::unique_ptr<Operator<double>> G_;
  ConstrainedResidual<double> response_;
  std::vector<double> q_, x_, acceleration_, force_, rows_, moved_, part_v_;
};

}  // namespace delassus
