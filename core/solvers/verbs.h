// Solvers of constrained dynamics by their verbs alone: who only calls them need not compile the sweeps behind them.
#pragma once

#include <memory>

#include "constraints/constraints.h"

namespace delassus {

enum class Outcome : int { converged, least_squares, unfinished, stalled };

// Of a state: how it ended, and what is left: of the constraints, of J ν̇ between the last two iterations, and ε times the latter, the gradient of least squares.
template <class Real>
struct Report {
  Outcome outcome;
  int iterations;
  Real primal, change, least_squares;
};

// Of one state, or of a pack T of states.
template <class T>
class DynamicsSolver {
 public:
  using Real = real_of<T>;
  virtual ~DynamicsSolver() = default;
  virtual int rows() const = 0;
  // whether the rows are such that the method can do them: of most, that every row acts on one link
  virtual bool alone() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual void set_compliance(const T* compliance) = 0;
  // λ: what to start from on entry, the constraint forces on exit. tau, external and gamma may be null: nothing, nothing, what the constraints say. `damping` ε a row;
  // `reports` one a lane; `history` may be null, else `most` numbers a lane: what was left of the constraints after every iteration.
  virtual void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping, int most, Real tolerance, T* lambda, T* vdot,
                     Report<Real>* reports, Real* history) = 0;
};

// Of many states.
template <class Real>
class BatchDynamicsSolver {
 public:
  virtual ~BatchDynamicsSolver() = default;
  virtual int rows() const = 0;
  virtual int batch() const = 0;
  virtual std::size_t bytes() const = 0;
  // As of one state, every array with the batch before; compliance too.
  virtual void solve(const Real* Q, const Real* V, const Real* tau, const Real* external, const Real* gamma, const Real* damping, const Real* compliance, int most,
                     Real tolerance, Real* lambda, Real* vdot, Report<Real>* reports) = 0;
};

enum class DynamicsMethod { lcaba, prox_ltl, prox_ltls, pv, prox_pv, pv_early };

// The model is looked at for as long as the solver lives.
template <class Real>
std::unique_ptr<DynamicsSolver<Real>> make_dynamics_solver(DynamicsMethod method, const Model<Real>& model, ConstraintSet<Real> constraints);
template <class Real>
std::unique_ptr<BatchDynamicsSolver<Real>> make_batch_dynamics_solver(const Model<Real>& model, const ConstraintSet<Real>& constraints, int batch, int threads);

}  // namespace delassus
