// Closes loops as far as limits and contacts allow. For loops that may be impossible to close: those that are far open,
// and those that a driven body moves to where the joints cannot follow.
//
//   u = M̂⁻¹ Jᵀ µ,   J u + g = −ε µ               loops, equalities of tendons
//                    0 ≤ µ ⊥ J u + g ≥ 0          limits and normals of contacts
//
// which minimises ½ uᵀ M̂ u + Σ (J u + g)² / 2 ε over u that limits and contacts allow. So a solution exists whenever
// limits and contacts are compatible. ε is a fraction of the row's inverse mass: 1e-3 where loops may stay open, which
// also keeps u small near singular configurations, and almost zero where they may not.
#pragma once

#include <vector>

#include "simulator/contact_solvers.h"
#include "simulator/loop_closure.h"
#include "simulator/row_system.h"

namespace delassus {

class LoopReach {
 public:
  static constexpr double open_softness = 1e-3, closed_softness = 1e-8;  // ε over the row's inverse mass

  // Whether a system is small enough.
  static bool takes(const RowSystem& s) { return s.rows() <= std::size_t(DenseMap::max_block_rows); }
  // softness: per row, zero of limits and contacts. After G was updated.
  void begin(RowSystem& s, const std::vector<double>& softness);

  // µ: where to start from on entry. On exit σ = J u + g.
  ContactReport solve(const StepOptions& options, ContactSolvers& solvers, const ForceSets& sets, const double* g,
                      SolveStart start, std::vector<double>& mu, std::vector<double>& sigma);

  // c, how errors of loops change because of what leads them, without what joints, limits and contacts do not let them
  // follow.
  // error: per row, gaps of limits and contacts.
  void follow(const StepOptions& options, ContactSolvers& solvers, RowSystem& s, const std::vector<double>& error,
              std::vector<double>& c);

 private:
  bool is_free(RowSystem& s, int loops, double leads);

  LoopClosure closure_;                           // of `follow`: loops by themselves
  DenseMap map_;                                  // of G + ε
  std::vector<double> matrix_, identity_;         // (m, m)
  std::vector<double> epsilon_;                   // per row
  std::vector<double> softness_;                  // likewise, of `follow`
  std::vector<double> g_, shifted_, mu_, sigma_;  // per row, of `follow`
};

}  // namespace delassus
