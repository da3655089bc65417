// Forms columns of an island's G where there are loops and few rows. Loops couple links, which causes fill in the
// factor of M + Jᵀ R J. Columns of G only need the factor of M, several at a time in the lanes of a register, and cost
// less than one factor with fill. After that, products and solutions are those of a small dense matrix and are faster
// than a sweep over the links. Which columns are formed:
//
//   of all rows   where there are few: one robot and what it touches
//   of loops      where these are few, as in most mechanisms, and other rows are many
//   none          otherwise. Without loops factors do not fill, limbs go side by side, and no matrix is faster
#pragma once

#include <vector>

#include "constraints/constraints.h"
#include "operators/verbs.h"
#include "solvers/contacts/map.h"

namespace delassus {

class RowMatrix {
 public:
  // After G was updated. loops: the first rows of the set.
  void form(Operator<double>& G, const ConstraintSet<double>& set, int loops);

  int columns() const { return columns_; }  // that were formed: those of the first rows
  bool whole() const { return rows_ > 0 && columns_ == rows_; }
  const double* numbers() const { return numbers_.data(); }  // rows × columns, row-major
  // Of the rows whose columns were formed, the velocity that an impulse of one makes. Rows of loops that measure the
  // same in several directions have the largest of these: one of them alone may be felt by nothing, as what is out of
  // the plane of a planar loop.
  const std::vector<double>& diagonal() const { return diagonal_; }

  // G for contact solvers: this matrix where it is whole, else the operator.
  ContactMap& map_or(ContactMap& of_operator) { return whole() ? static_cast<ContactMap&>(map_) : of_operator; }

 private:
  void find_diagonal(const ConstraintSet<double>& set, int loops);

  int rows_ = 0, columns_ = 0;
  std::vector<double> numbers_, units_;  // G; unit vectors that it is found with
  std::vector<double> diagonal_;         // per column
  DenseMap map_;
};

}  // namespace delassus
