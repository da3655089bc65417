// Contacts, limits and dry friction of a mechanism with loops, after elimination of the loop rows. Loop impulses are
// unbounded, so they follow from those of the other rows c,
//
//   λ_l = −(G_ll + ε)⁻¹ (G_lc λ_c + g_l)
//   σ_c = (G_cc − G_cl W) λ_c + g_c − Wᵀ g_l,   W = (G_ll + ε)⁻¹ G_lc
//
// so the contact solver only sees the other rows: half as many if a robot with loops stands on its feet. ε is the
// softness of loop_closure.h; the error that it leaves is closed afterwards with λ_c fixed. Used where the matrix of
// all rows was formed.
#pragma once

#include <vector>

#include "simulator/loop_closure.h"
#include "solvers/contacts/problem.h"

namespace delassus {

class LoopElimination {
 public:
  // The problem of the other rows, of a problem of all of them with this g. loops: the first rows.
  ContactProblem eliminate(const RowMatrix& matrix, const ForceSets& sets, const double* g, int loops,
                           LoopClosure& closure);

  // λ_l, after λ_c were found: closes loops as far as any motion does, and σ = G λ + g of all rows.
  void recover(const RowMatrix& matrix, const double* g, LoopClosure& closure, double* lambda, double* sigma);

 private:
  int loops_ = 0, others_ = 0;
  std::vector<double> W_;         // loops × others
  std::vector<double> G_, g_;     // of the other rows
  std::vector<double> with_, l_;  // per row: g with the impulses of the others; impulses of loops alone
  ForceSets sets_;
  DenseMap map_;
};

}  // namespace delassus
