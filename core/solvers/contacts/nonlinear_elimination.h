// The few contacts that spoil a Newton step get their exact law, all others keep the linear one.
//
// The step (semismooth.h) solves (E + β C G) Δr = −f with the factor of M + Jᵀ B J, B = E⁻¹ β C. Forces z that are
// added at some contacts change it, with the same factor, by
//
//   Δσ += A z,   Δr += z − B A z,   A = J (M + Jᵀ B J)⁻¹ Jᵀ
//
// and of all others Δr and Δσ still solve their linear equations. At the chosen contacts z is such that they solve
//
//   φ(z) = δ Δr + f(r + Δr, σ + Δσ) = 0
//
// f being the map itself, with its corners and discs, and not its tangent. That is a small dense problem: only the rows
// and columns of A that are the chosen contacts' are in it, and one more substitution spreads z to the others. Newton's
// method again, with C' = P' at the present place:
//
//   (E' + Q A) Δz = −φ,   E' = 1 + δ − C',   Q = β C' − E' B
//
// Q is zero where a contact does what the linear law says. Cai and Keyes, "Nonlinearly preconditioned inexact Newton
// algorithms", 2002, have the idea of eliminating what is most nonlinear.
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
