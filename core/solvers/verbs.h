// Abstract interface of the solvers of constrained dynamics: callers of this interface do not compile the sweeps behind
// it.
#pragma once

#include <memory>

#include "constraints/constraints.h"

namespace delassus {

enum class Outcome : int { solved, least_squares, unfinished, stalled, redundant };

// Of a state: how it ended, and residuals: of the constraints, of J ν̇ between the last two iterations, and ε times
// the latter, the gradient of least squares. The last two are scaled and have no unit (certificate.h); whether another
// method had to step in.
template <class Real>
struct Report {
  Outcome outcome;
  int iterations;
  Real primal, change, least_squares, dynamics, constraints;
  bool repaired;
};

// Of one state, or of a pack T of states.
template <class T>
class DynamicsSolver {
 public:
  using Real = real_of<T>;
  virtual ~DynamicsSolver() = default;
  virtual int rows() const = 0;
  // whether the rows are such that the method can do them: of most, that every row acts on one link
  virtual bool suits_rows() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual void set_compliance(const T* compliance) = 0;
  // Takes all memory now that else is taken when it is needed first.
  virtual void reserve() {}
  // Rows that give way by ε λ as well: one solution, which is to hold with that.
  virtual void give_way(bool yes) { gives_way_ = yes; }
  // λ: the start on entry, the constraint forces on exit. tau and external may be null (zero), and so may gamma (taken
  // from the constraints). `damping`: ε per row; `reports`: one per lane; `history`: null, or `max_iterations` numbers
  // per lane for the residual of the constraints after every iteration.
  virtual void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
                     int max_iterations, Real tolerance, T* lambda, T* vdot, Report<Real>* reports, Real* history) = 0;

 protected:
  bool gives_way_ = false;
};

// Of many states.
template <class Real>
class BatchDynamicsSolver {
 public:
  virtual ~BatchDynamicsSolver() = default;
  virtual int rows() const = 0;
  virtual int batch() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual void give_way(bool yes) = 0;
  // As of one state, every array with the batch before; compliance too.
  virtual void solve(const Real* Q, const Real* V, const Real* tau, const Real* external, const Real* gamma,
                     const Real* damping, const Real* compliance, int max_iterations, Real tolerance, Real* lambda,
                     Real* vdot, Report<Real>* reports) = 0;
};

// `automatic`: lcaba, and kkt where that fails.
enum class DynamicsMethod { automatic, lcaba, kkt, prox_ltl, prox_ltls, pv, prox_pv, pv_early };

// The model is looked at for as long as the solver lives.
template <class Real>
std::unique_ptr<DynamicsSolver<Real>> make_dynamics_solver(DynamicsMethod method, const Model<Real>& model,
                                                           ConstraintSet<Real> constraints);
template <class Real>
std::unique_ptr<BatchDynamicsSolver<Real>> make_batch_dynamics_solver(const Model<Real>& model,
                                                                      const ConstraintSet<Real>& constraints, int batch,
                                                                      int threads, bool repairs);

// G's own diagonal at a configuration, one number per row; zero for rows that no joint moves.
template <class Real>
void find_diagonal(const Model<Real>& model, const ConstraintSet<Real>& constraints, const Real* q, Real* diagonal);

}  // namespace delassus
