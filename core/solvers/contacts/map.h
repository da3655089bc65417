// G as a contact solver sees it: products, an estimate of its diagonal and, where a solver needs it, (G + ε)⁻¹.
#pragma once

#include <vector>

#include "operators/verbs.h"
#include "solvers/contacts/sets.h"

namespace delassus {

class ContactMap {
 public:
  virtual ~ContactMap() = default;
  virtual int rows() const = 0;
  virtual void apply(const double* x, double* y) = 0;
  virtual void diagonal(double* d) = 0;
  virtual void set_damping(const double* damping) = 0;
  virtual void solve(const double* y, double* x) = 0;
  // Blocks of stiffness B, a square one for each set, and J (M + Jᵀ B J)⁻¹ Jᵀ x = (1 + G B)⁻¹ G x with them. Where
  // their numbers are; null: there is no such factor. B stays as it is until the next set_blocks.
  virtual const BlockIndex* block_index(const ForceSets&) { return nullptr; }
  virtual void set_blocks(const double* /*B*/) {}
  virtual void respond(const double* /*x*/, double* /*y*/) {}
  // The same of transposed blocks, J (M + Jᵀ Bᵀ J)⁻¹ Jᵀ x, where there is such a response.
  virtual bool has_transposed_response() const { return false; }
  virtual void respond_transposed(const double* /*x*/, double* /*y*/) {}
  // A ← rows and columns of that response by their numbers, none of a joint alone: count × count, row-major.
  virtual void respond_among(const int* /*rows*/, int /*count*/, double* /*A*/) {}
  virtual int determinant_sign() { return 1; }
  // From now on solves as exactly as it can; whether that is more than before.
  virtual bool sharpen() { return false; }
};

// A DelassusOperator, whose damping is changed. Rows without a set have almost no damping and may have large forces;
// solutions may then need one refinement, which costs one and a half times as much again.
class OperatorMap final : public ContactMap {
 public:
  OperatorMap(Operator<double>& G, const ForceSets& sets);
  int rows() const override { return G_.rows(); }
  void apply(const double* x, double* y) override { G_.apply(x, 1, y); }
  void diagonal(double* d) override { G_.diagonal(d); }
  void set_damping(const double* damping) override { G_.set_damping(damping); }
  void solve(const double* y, double* x) override;
  const BlockIndex* block_index(const ForceSets&) override { return G_.block_index(); }
  void set_blocks(const double* B) override { G_.set_blocks(B); }
  void respond(const double* x, double* y) override { G_.respond_to_blocks(x, 1, y, false); }
  bool has_transposed_response() const override { return true; }
  void respond_transposed(const double* x, double* y) override { G_.respond_to_blocks(x, 1, y, true); }
  void respond_among(const int* rows, int count, double* A) override { G_.respond_among(rows, count, A); }
  int determinant_sign() override { return G_.block_determinant_sign(); }
  bool sharpen() override;

 private:
  Operator<double>& G_;
  bool loops_ = false, refine_ = false;
};

// One of our operators in single precision, with forces and velocities in double. Leaves it with another damping.
class SingleOperatorMap final : public ContactMap {
 public:
  explicit SingleOperatorMap(Operator<float>& G) : G_(G), in_(std::size_t(G.rows())), out_(in_.size()) {}
  int rows() const override { return G_.rows(); }
  void apply(const double* x, double* y) override;
  void diagonal(double* d) override;
  void set_damping(const double* damping) override;
  void solve(const double* y, double* x) override;

 private:
  Operator<float>& G_;
  std::vector<float> in_, out_;
};

// A symmetric positive semidefinite matrix, row-major, that outlives its use here; (G + ε)⁻¹ by its Cholesky factor.
class DenseMap final : public ContactMap {
 public:
  static constexpr int max_block_rows = 1500;  // with more of them a factor with blocks takes too long

  DenseMap() = default;
  DenseMap(const double* G, int rows) { look_at(G, rows); }
  // Another matrix; the memory of the factor stays. diagonal: what to take for the inverse masses of rows, outliving
  // its use here; null: the matrix's own.
  void look_at(const double* G, int rows, const double* diagonal = nullptr) {
    G_ = G, rows_ = rows, diagonal_ = diagonal;
  }
  int rows() const override { return rows_; }
  const double* matrix() const { return G_; }
  void apply(const double* x, double* y) override;
  void diagonal(double* d) override;
  void set_damping(const double* damping) override;
  void solve(const double* y, double* x) override;
  const BlockIndex* block_index(const ForceSets& sets) override;
  void set_blocks(const double* B) override;
  void respond(const double* x, double* y) override;
  void respond_among(const int* rows, int count, double* A) override;
  int determinant_sign() override { return sign_; }
  std::size_t bytes() const { return (factor_.size() + floors_.size()) * sizeof(double); }

 private:
  const double *G_ = nullptr, *diagonal_ = nullptr;
  int rows_ = 0, sign_ = 1;
  std::vector<double> factor_, floors_;  // of G + ε, rows side by side; least pivots
  BlockIndex index_;
  const double* blocks_ = nullptr;  // B, the caller's
  std::vector<int> active_;         // rows of blocks that are not zero, in order
  std::vector<char> is_active_;     // a row
  std::vector<double> lu_;          // of 1 + G B among active rows
  std::vector<int> pivots_;
  std::vector<double> solution_, forces_;  // an active row; a row: of `respond`
  std::vector<double> unit_, column_;      // a row: of `respond_among`
};

}  // namespace delassus
