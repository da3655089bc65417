// The Delassus matrix G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹ as dense matrices, by every algorithm there is for them.
//
// Kinematics and articulated inertias are those of the matrix-free operator (delassus.h); each algorithm has a file in explicit/, with its equation, cost and source.
// The recursive ones take rows that act on one link each.
#pragma once

#include <memory>

#include "operators/delassus.h"
#include "operators/explicit/cost.h"
#include "operators/explicit/efpa.h"
#include "operators/explicit/kjr.h"
#include "operators/explicit/ltl.h"
#include "operators/explicit/oscm.h"
#include "operators/explicit/pv_osimf.h"
#include "operators/explicit/pv_osimr.h"

namespace delassus {

template <class T>
class ExplicitDelassus {
 public:
  using Real = real_of<T>;

  ExplicitDelassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout);
  ExplicitDelassus(const Model<Real>& model, ConstraintSet<Real> constraints)
      : ExplicitDelassus(model, std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<T>)) {}

  int rows() const { return set_.rows; }
  const Layout<Real>& layout() const { return G_.layout(); }
  std::size_t bytes() const;

  // Whether a method can do these constraints: the recursive ones refuse rows on more than one link, and rows of joints.
  bool supports(MatrixMethod method) const { return rows_.tree.alone || method == MatrixMethod::ltl || method == MatrixMethod::columns; }
  bool supports(InverseMethod method) const { return rows_.tree.alone || method == InverseMethod::ltl || method == InverseMethod::lcaba; }

  // What a method is expected to take (explicit/cost.h), and the supported ones that take the least.
  const Cost& cost(MatrixMethod method) const { return costs_(method); }
  const Cost& cost(InverseMethod method) const { return costs_(method); }
  MatrixMethod best_matrix() const { return best_matrix_; }
  InverseMethod best_inverse() const { return best_inverse_; }

  // The operator whose kinematics and factors these are; up to date after any method but ltl.
  Delassus<T>& matrix_free() { return G_; }

  void set_compliance(const T* compliance);
  const T* compliance() const { return compliance_.data(); }

  // G at q, rows × rows, row-major, both triangles. Returns whether M is regular. Memory that only some methods need is taken when they first run.
  bool matrix(MatrixMethod method, const T* q, T* G);

  // (G + ε)⁻¹ at q for a damping ε, one number a row; damping plus compliance is positive in every row. Where the lemma behind caba_osim, caba_osimf and pv_osimf would leave
  // fewer than nine digits (three in single precision), the matrix by pv_osim is inverted instead; where even that has no positive pivots, columns are solved and refined.
  bool inverse(InverseMethod method, const T* q, const T* damping, T* X);

 private:
  // Memory of a method, taken when it first runs.
  template <class Work>
  Work& taken(std::unique_ptr<Work>& work) {
    if (!work) {
      work = std::make_unique<Work>();
      work->resize(rows_);
    }
    return *work;
  }
  void find_lemma_limit();
  void write_rows_alone(T* X);
  const std::vector<T>& identity();
  bool ltl_upper(const T* q);
  bool inverse_by_cholesky(const T* damping, Real least, T* X);
  bool inverse_by_columns(const T* damping, T* X);

  const Model<Real>& model_;
  Delassus<T> G_;
  const ConstraintSet<Real>& set_;
  RowWork<T> rows_;
  std::vector<T> compliance_, shift_, zero_, size_, identity_;  // a row: C, C + ε, nothing; a link: of the inertia it carries
  std::unique_ptr<LtlWork<T>> ltl_;
  std::unique_ptr<KjrWork<T>> kjr_;
  std::unique_ptr<EfpaWork<T>> efpa_;
  std::unique_ptr<PvOsimrWork<T>> pv_osimr_;
  std::unique_ptr<OscmWork<T>> oscm_;
  std::unique_ptr<PvOsimfWork<T>> pv_osimf_;
  DenseWork<T> dense_;
  Costs costs_;
  MatrixMethod best_matrix_;
  InverseMethod best_inverse_;
  Real lemma_limit_;  // damping plus compliance below which caba_osim and caba_osimf lose digits
};

// compiled in explicit.cpp
extern template class ExplicitDelassus<double>;
extern template class ExplicitDelassus<float>;

}  // namespace delassus
