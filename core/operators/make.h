// Operators behind their verbs.
#pragma once

#include <optional>

#include "operators/batch.h"
#include "operators/explicit/operator.h"

namespace delassus {

// The matrix-free one, which of a pack of states has no verbs of its own.
template <class Real>
class MatrixFree final : public MovingOperator<Real> {
 public:
  MatrixFree(const Model<Real>& model, ConstraintSet<Real> constraints)
      : MatrixFree(model, std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<Real>)) {}
  MatrixFree(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
      : model_(model), scratch_(std::make_shared<Scratch<Real>>(model, *layout)) {
    G_.emplace(model, std::move(layout), scratch_);
  }
  void remake(std::shared_ptr<const Layout<Real>> layout) override {
    scratch_->resize(model_, *layout);
    G_.emplace(model_, std::move(layout), scratch_);
  }
  void read_points() override { G_->read_points(); }
  void read_model() override { G_->read_model(); }
  const Placement<Real>& placement() const override { return G_->placement(); }
  void share(Team* team) override { G_->share(team); }
  int rows() const override { return G_->rows(); }
  const Layout<Real>& layout() const override { return G_->layout(); }
  std::size_t bytes() const override { return G_->bytes(); }
  bool update(const Real* q) override { return G_->update(q); }
  void place(const Real* q) override { G_->place(q); }
  void set_compliance(const Real* compliance) override { G_->set_compliance(compliance); }
  void set_damping(const Real* damping) override { G_->set_damping(damping); }
  void exchange_damping() override { G_->exchange_damping(); }
  void apply(const Real* X, int columns, Real* Y) override { G_->apply(X, columns, Y); }
  Real solve(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted) override {
    return G_->solve(Y, columns, X, wanted);
  }
  void reserve_fallbacks() override { G_->reserve_fallbacks(); }
  void backward_error(const Real* Y, const Real* X, int columns, Real* errors) override {
    G_->backward_error(Y, X, columns, errors);
  }
  void diagonal(Real* d) override { G_->diagonal(d); }
  const BlockIndex* block_index() override { return &G_->block_index(); }
  void set_blocks(const Real* B) override { G_->set_blocks(B); }
  void respond_to_blocks(const Real* X, int columns, Real* Y, bool transposed) override {
    G_->respond_to_blocks(X, columns, Y, transposed);
  }
  void respond_among(const int* rows, int count, Real* A) override { G_->respond_among(rows, count, A); }
  int block_determinant_sign() override { return G_->block_determinant_sign(); }
  void set_block_damping(const Real* D) override { G_->set_block_damping(D); }
  Real solve_blocks(const Real* Y, int columns, Real* X, bool transposed, const Accuracy<Real>& wanted) override {
    return G_->solve_blocks(Y, columns, X, transposed, wanted);
  }
  void block_backward_error(const Real* Y, const Real* X, int columns, bool transposed, Real* errors) override {
    G_->block_backward_error(Y, X, columns, transposed, errors);
  }
  void jacobian(const Real* X, int columns, Real* Y) override { G_->jacobian(X, columns, Y); }
  void jacobian_transpose(const Real* X, int columns, Real* Y) override { G_->jacobian_transpose(X, columns, Y); }
  void mass_inverse(const Real* X, int columns, Real* Y) override { G_->mass_inverse(X, columns, Y); }

 private:
  const Model<Real>& model_;
  std::shared_ptr<Scratch<Real>> scratch_;
  std::optional<Delassus<Real>> G_;
};

template <class Real>
std::unique_ptr<Operator<Real>> make_operator(Form form, const Model<Real>& model, ConstraintSet<Real> constraints) {
  if (form == Form::inverse)
    return std::make_unique<DenseDelassus<Real, DenseSolve::inverse>>(model, std::move(constraints));
  if (form == Form::cholesky)
    return std::make_unique<DenseDelassus<Real, DenseSolve::cholesky>>(model, std::move(constraints));
  return std::make_unique<MatrixFree<Real>>(model, std::move(constraints));
}

template <class Real>
std::unique_ptr<MovingOperator<Real>> make_moving_operator(const Model<Real>& model,
                                                           std::shared_ptr<const Layout<Real>> layout) {
  return std::make_unique<MatrixFree<Real>>(model, std::move(layout));
}

template <class Real>
std::unique_ptr<BatchOperator<Real>> make_batch_operator(const Model<Real>& model,
                                                         const ConstraintSet<Real>& constraints, int batch,
                                                         int threads) {
  return std::make_unique<BatchDelassus<Real>>(model, constraints, batch, threads);
}

template <class Real>
std::unique_ptr<MatrixMaker<Real>> make_matrix_maker(const Model<Real>& model, ConstraintSet<Real> constraints) {
  return std::make_unique<ExplicitDelassus<Real>>(model, std::move(constraints));
}

}  // namespace delassus
