// Operators by their verbs alone: who only calls them need not compile the sweeps behind them. What a verb does is said
// where it is written: delassus.h, batch.h, explicit.h.
#pragma once

#include <memory>

#include "operators/accuracy.h"
#include "operators/block_index.h"
#include "operators/explicit/cost.h"

namespace delassus {

class Team;

// Of one state.
template <class Real>
class Operator {
 public:
  virtual ~Operator() = default;
  virtual int rows() const = 0;
  virtual const Layout<Real>& layout() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool update(const Real* q) = 0;
  virtual void place(const Real* q) = 0;  // kinematics and rows, with which update begins
  virtual void set_compliance(const Real* compliance) = 0;
  virtual void set_damping(const Real* damping) = 0;
  // Puts damping and its factor aside, and takes up what was put aside before: nothing at first, until set_damping. Who
  // calls it twice finds them as they were; an update in between ends both.
  virtual void exchange_damping() = 0;
  virtual void apply(const Real* X, int columns, Real* Y) = 0;
  virtual Real solve(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted = {}) = 0;
  // Takes the memory of what a solution may fall back to (refinement.h), which else is taken when it is needed first.
  virtual void reserve_fallbacks() {}
  virtual void backward_error(const Real* Y, const Real* X, int columns, Real* errors) = 0;
  virtual void diagonal(Real* d) = 0;
  // Blocks of stiffness B, a square one for each constraint (delassus.h); an operator without such a factor has no
  // index of their numbers.
  virtual const BlockIndex* block_index() { return nullptr; }
  virtual void set_blocks(const Real* /*B*/) {}
  virtual void respond_to_blocks(const Real* /*X*/, int /*columns*/, Real* /*Y*/, bool /*transposed*/) {}
  virtual void respond_among(const int* /*rows*/, int /*count*/, Real* /*A*/) {}
  virtual int block_determinant_sign() { return 0; }
  // Blocks of damping, and solutions with them; of an operator that has an index.
  virtual void set_block_damping(const Real* /*D*/) {}
  virtual Real solve_blocks(const Real* /*Y*/, int /*columns*/, Real* /*X*/, bool /*transposed*/,
                            const Accuracy<Real>& /*wanted*/) {
    return 0;
  }
  virtual void block_backward_error(const Real* /*Y*/, const Real* /*X*/, int /*columns*/, bool /*transposed*/,
                                    Real* /*errors*/) {}
  virtual void jacobian(const Real* X, int columns, Real* Y) = 0;
  virtual void jacobian_transpose(const Real* X, int columns, Real* Y) = 0;
  virtual void mass_inverse(const Real* X, int columns, Real* Y) = 0;
};

// The matrix-free one, whose points may move: their axes and places are changed in its layout, read anew, and update
// follows.
template <class Real>
class MovingOperator : public Operator<Real> {
 public:
  virtual void read_points() = 0;
  // Takes inertias and armature of its model anew; update follows. Its layout has the bounds of these (LayoutMaker).
  virtual void read_model() = 0;
  // Becomes that of another layout of the same model, or of its own after this was made again; compliance and damping
  // are to be set. Takes less time than a new one.
  virtual void remake(std::shared_ptr<const Layout<Real>> layout) = 0;
  virtual const Placement<Real>& placement() const = 0;
  // Threads that share large eliminations, until it is remade; null: none. Results do not depend on them.
  virtual void share(Team* team) = 0;
};

// Of many states.
template <class Real>
class BatchOperator {
 public:
  virtual ~BatchOperator() = default;
  virtual int rows() const = 0;
  virtual int batch() const = 0;
  virtual const Layout<Real>& layout() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool update(const Real* Q) = 0;
  virtual void set_compliance(const Real* C) = 0;
  virtual void set_damping(const Real* D) = 0;
  virtual void apply(const Real* X, int columns, Real* Y) = 0;
  // errors: one number per state; null if nobody asks
  virtual void solve(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted = {},
                     Real* errors = nullptr) = 0;
  virtual void backward_error(const Real* Y, const Real* X, int columns, Real* errors) = 0;
  // blocks of damping, one state after the other
  virtual const BlockIndex* block_index() = 0;
  virtual void set_block_damping(const Real* D) = 0;
  virtual void solve_blocks(const Real* Y, int columns, Real* X, bool transposed, const Accuracy<Real>& wanted,
                            Real* errors) = 0;
  virtual void block_backward_error(const Real* Y, const Real* X, int columns, bool transposed, Real* errors) = 0;
};

// Matrices as they are.
template <class Real>
class MatrixMaker {
 public:
  virtual ~MatrixMaker() = default;
  virtual int rows() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool supports(MatrixMethod method) const = 0;
  virtual bool supports(InverseMethod method) const = 0;
  virtual const Cost& cost(MatrixMethod method) const = 0;
  virtual const Cost& cost(InverseMethod method) const = 0;
  virtual void set_compliance(const Real* compliance) = 0;
  virtual const Real* compliance() const = 0;
  virtual bool matrix(MatrixMethod method, const Real* q, Real* G) = 0;
  virtual bool inverse(InverseMethod method, const Real* q, const Real* damping, Real* X) = 0;
};

// Without a matrix, or with one and its inverse or Cholesky factor.
enum class Form { matrix_free, inverse, cholesky };

// The model is looked at for as long as the operator lives.
template <class Real>
std::unique_ptr<Operator<Real>> make_operator(Form form, const Model<Real>& model, ConstraintSet<Real> constraints);
template <class Real>
std::unique_ptr<MovingOperator<Real>> make_moving_operator(const Model<Real>& model,
                                                           std::shared_ptr<const Layout<Real>> layout);
template <class Real>
std::unique_ptr<BatchOperator<Real>> make_batch_operator(const Model<Real>& model,
                                                         const ConstraintSet<Real>& constraints, int batch,
                                                         int threads);
template <class Real>
std::unique_ptr<MatrixMaker<Real>> make_matrix_maker(const Model<Real>& model, ConstraintSet<Real> constraints);

}  // namespace delassus
