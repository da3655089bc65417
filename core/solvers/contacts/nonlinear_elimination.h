// Repairs a poor Newton step: the few contacts responsible for it follow their exact law, all others the linearised
// one.
//
// The step (semismooth.h) solves (E + β C G) Δr = −f with the factor of M + Jᵀ B J, B = E⁻¹ β C. Additional forces z at
// some contacts change it, with the same factor, by
//
//   Δσ += A z,   Δr += z − B A z,   A = J (M + Jᵀ B J)⁻¹ Jᵀ
//
// and at all other contacts Δr and Δσ still solve their linear equations. z is chosen so that the selected contacts
// solve
//
//   φ(z) = δ Δr + f(r + Δr, σ + Δσ) = 0
//
// with the map f itself, with its kinks and discs, instead of its tangent. That is a small dense problem: it only has
// the rows and columns of A of the selected contacts, and one more substitution gives the effect of z on the others. It
// is again solved by Newton's method, with C' = P' at the current point:
//
//   (E' + Q A) Δz = −φ,   E' = 1 + δ − C',   Q = β C' − E' B
//
// Q is zero where a contact follows its linearised law. The idea to eliminate the most nonlinear equations is that of
// Cai and Keyes, "Nonlinearly preconditioned inexact Newton algorithms", 2002.
#pragma once

#include <array>

#include "solvers/contacts/sets.h"

namespace delassus {

class NonlinearElimination {
 public:
  static constexpr int most_contacts = 4, most_rows = most_contacts * max_cone_rows;

  // A chosen contact: what its law needs. Numbers of rows, B row-major.
  struct Contact {
    int cone, rows;
    double friction, beta, delta, d;
    double r[max_cone_rows], sigma[max_cone_rows];  // after the linear step
    double dr[max_cone_rows];                       // of it
    double B[max_cone_rows * max_cone_rows];
  };

  // The contacts with the largest d ‖f‖, up to nearly all of the whole length ‖d f‖. How many.
  int choose(const ForceSets& K, const double* d, const double* f, double length);
  int contacts() const { return contacts_; }
  Contact& contact(int k) { return chosen_[std::size_t(k)]; }
  int rows() const { return rows_; }
  const int* row() const { return row_.data(); }  // their numbers

  double* A() { return A_.data(); }  // rows × rows, row-major
  // z, from zero. Whether it brought the laws nearer.
  bool solve();
  const double* z() const { return z_.data(); }

 private:
  double evaluate(const double* z);
  void set_matrix();

  int contacts_ = 0, rows_ = 0;
  std::array<Contact, most_contacts> chosen_;
  std::array<double, most_contacts> weight_;
  std::array<int, most_rows> row_, pivots_;
  std::array<double, most_rows> z_, trial_, step_, phi_;
  std::array<double, most_rows * max_cone_rows> C_;  // C' of a contact after another, by rows
  std::array<double, most_rows * most_rows> A_, matrix_;
};

}  // namespace delassus
