// Derivatives of constrained dynamics at many states of one mechanism, on one or more threads: derivatives as matrices
// (dynamics_matrices.h), and products (linearization.h). Results do not depend on the number of threads.
#pragma once

#include <memory>
#include <vector>

#include "derivatives/dynamics_matrices.h"
#include "derivatives/linearization.h"
#include "operators/team.h"
#include "solvers/verbs.h"

namespace delassus {

// States, one after the other. Arguments that may be null for one state may be null here. Compliance and the damping of
// derivatives and of the solver are common to all states, one number per row.
struct DynamicsStates {
  int count;
  const double *q, *v, *tau, *external, *compliance, *damping, *solver_damping;
};

// The first state that cannot be differentiated, and why.
struct DynamicsFailure {
  int state = -1;  // none
  bool singular = false;
  Outcome outcome = Outcome::solved;
};

// Matrices: a state needs memory only while it is at hand, so a thread has one workspace.
class BatchDynamicsMatrices {
 public:
  BatchDynamicsMatrices(const Model<double>& model, const ConstraintSet<double>& set, int threads);

  int rows() const { return rows_; }
  std::size_t bytes() const;

  // Solves for ν̇ and λ and differentiates them. Where the dense matrices are in doubt, the solver of constrained
  // dynamics with its certificate takes over.
  DynamicsFailure solve(const DynamicsStates& s, int max_iterations, double tolerance, double* acceleration,
                        double* lambda, const DynamicsDerivatives& out);
  // Differentiates at ν̇ and λ that solve the equations; of the states tau is not looked at.
  DynamicsFailure differentiate(const DynamicsStates& s, const double* acceleration, const double* lambda,
                                const DynamicsDerivatives& out);

 private:
  // What a thread works with.
  struct Hand {
    DynamicsMatrices matrices;
    Linearization linear;
    std::unique_ptr<DynamicsSolver<double>> solver;
    std::vector<double> X;
    Hand(const Model<double>& model, const ConstraintSet<double>& set);
  };
  bool differentiate_one(Hand& h, const DynamicsState& s, const double* acceleration, const double* lambda,
                         const DynamicsDerivatives& out);
  DynamicsState state(const DynamicsStates& s, int k) const;
  DynamicsDerivatives part(const DynamicsDerivatives& all, int k) const;
  template <class F>
  DynamicsFailure each(int count, F&& work);

  const Model<double>& model_;
  int rows_;
  Team team_;
  std::vector<std::unique_ptr<Hand>> hands_;
};

// Products: every state keeps its own elimination.
class BatchLinearization {
 public:
  BatchLinearization(const Model<double>& model, const ConstraintSet<double>& set, int batch, int threads);

  int rows() const { return rows_; }
  int batch() const { return int(states_.size()); }
  std::size_t bytes() const;
  bool redundant(int state) const { return states_[std::size_t(state)]->redundant(); }

  // As of one state, arrays with the batch before; compliance and damping those of all states. Returns the first state
  // whose M is singular, or −1.
  int update(const DynamicsStates& s, const double* acceleration, const double* lambda);
  void tangents(const double* dq, const double* dv, const double* dtau, int columns, double* da, double* dlambda);
  void adjoints(const double* a_bar, const double* lambda_bar, int columns, double* q_bar, double* v_bar,
                double* tau_bar);

 private:
  const Model<double>& model_;
  int rows_;
  Team team_;
  std::vector<std::unique_ptr<Linearization>> states_;
};

}  // namespace delassus
