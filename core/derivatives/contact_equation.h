// The linear equation between small changes of contact forces and velocities, and its transpose:
//
//   E dλ + C dσ / d = b,   dσ = G dλ,        A dλ = b,   A = E + C G / d
//
// E, C: one square block per set, with E + C ≈ 1. Where C is zero (and E is one), forces do not depend on velocities;
// where E is zero, velocities are prescribed. d: effective inverse mass of the rows of a set. Modes of contacts give
// such blocks (contact_modes.h), and so does a smoothed law (smoothed_contacts.h).
//
// If contacts are redundant, A is singular. The solution is then that of the pseudo-inverse: among all least-squares
// solutions dλ, the one with the smallest Σ d dλ².
//
// Few rows: dense orthogonal factors (dense/orthogonal.h) of the rows in which C is not zero, the active ones. Many:
// the factor of the operator with blocks of stiffness, as contact solvers use it (solvers/contacts/semismooth.h). With
// E_δ = E + δ, B = E_δ⁻¹ C / d and R = J (M + Jᵀ B J)⁻¹ Jᵀ,
//
//   A_δ⁻¹ = (E_δ + C G / d)⁻¹ = (1 − B R) E_δ⁻¹,   A_δ⁻ᵀ = E_δ⁻ᵀ (1 − Rᵀ Bᵀ)
//
// solves A x = b by refinement, with residuals by G itself, O(n + m). δ A_δ⁻¹ keeps the null space of A and shrinks
// everything else, which shows whether A is singular; then K = 1 − δ A_δ⁻¹ is nearly a projection, and LSQR (Paige and
// Saunders, 1982) on it finds the nearest point of the range of A, or of Aᵀ, in a few steps. If the factor has lost all
// digits, which stiff loops can cause, the dense factors are used, whatever the number of rows.
#pragma once

#include <vector>

#include "dense/orthogonal.h"
#include "solvers/contacts/map.h"

namespace delassus {

class ContactEquation {
 public:
  // active rows up to which the equation is solved densely although G has a factor with blocks
  static constexpr int max_dense_rows = 64;

  // Room for blocks of these sets, which outlive their use here. Blocks are zero.
  void resize(const ForceSets& K);
  // E and C of a cone, rows × rows, row-major; of an interval.
  double* cone_E(std::size_t k) { return E_.data() + begin_[k]; }
  double* cone_C(std::size_t k) { return C_.data() + begin_[k]; }
  double& interval_E(std::size_t k) { return E_[begin_.back() + k]; }
  double& interval_C(std::size_t k) { return C_[begin_.back() + k]; }

  // Factors the blocks written with G, which is used until the next factor; d: a row. max_dense: active rows up to
  // which it is dense; threshold: what counts as singular then. False: numbers are not finite.
  bool factor(ContactMap& G, const double* d, int max_dense = max_dense_rows, double threshold = 1e-9);
  // x ← A⁺ b, x ← A⁺ᵀ b, m numbers each; x may be b.
  void solve(const double* b, double* x);
  void solve_transposed(const double* b, double* x);
  // y ← C x, y ← Cᵀ x, block by block; y is apart from x.
  void apply_blocks(const double* x, double* y) const { multiply(C_, false, x, y); }
  void apply_blocks_transposed(const double* x, double* y) const { multiply(C_, true, x, y); }

  bool is_dense() const { return dense_; }
  // Whether contacts are redundant: forces are not unique.
  bool redundant() const { return redundant_; }

 private:
  void multiply(const std::vector<double>& blocks, bool transposed, const double* x, double* y) const;
  void form_matrix(ContactMap& G);
  bool set_stiffness(ContactMap& G);
  bool factor_densely();
  bool factor_blocks(ContactMap& G);
  bool judge_factor();
  void product_of_all(bool transposed, const double* x, double* y);
  void product(bool transposed, const double* x, double* y);
  void invert(bool transposed, const double* x, double* y);
  bool solve_by_blocks(bool transposed, double* b, double* x);
  void solve_active(bool transposed);
  double refine(bool transposed, const double* b, double* x);
  bool project(bool transposed, double* x);

  const ForceSets* K_ = nullptr;
  ContactMap* G_ = nullptr;
  int rows_ = 0;
  bool dense_ = true, redundant_ = false;
  double delta_ = 0, threshold_ = 0;
  std::vector<std::size_t> begin_;                   // of a cone's block, then of those of intervals
  std::vector<double> E_, C_, inverse_, stiffness_;  // blocks: E, C, E_δ⁻¹, E_δ⁻¹ C
  std::vector<double> real_stiffness_;               // B, where the map wants its numbers
  std::vector<double> unit_;                         // a row: 1 / √d
  std::vector<int> active_, place_;                  // rows of C that are not zero; a row: which of these, or −1
  std::vector<char> is_active_;
  dense::OrthogonalFactor factor_;
  std::vector<double> matrix_;                              // of G in active rows and columns, where it has none
  std::vector<double> packed_, in_, out_, w_, z_, b_, x_;   // active rows; a row
  std::vector<double> rest_, step_, u_, v_, t_, p_, next_;  // a row: of refinement and LSQR
};

}  // namespace delassus
