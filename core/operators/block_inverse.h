// Inverses of small square matrices S, the blocks of damping of a constraint, with rows that may be of different units.
//
//   inverse      B = S⁻¹ by L and U with rows exchanged
//   condition    ‖S̃‖ ‖S̃⁻¹‖ in Frobenius norms, S̃ = diag(r) S diag(c) with the largest number of every row and column
//                one: that of a diagonal is its number of rows, whatever its units
//   limited      S = U Σ Vᵀ,   B = V max(Σ, floor)⁻¹ Uᵀ: as little stiffness as a damping of `floor` has; of a
//                symmetric S ≥ 0 the block with its eigenvalues raised to floor
//
// Singular values are those of one-sided Jacobi rotations (Demmel and Veselić, 1992), which finds small ones of badly
// scaled matrices too.
#pragma once

#include <vector>

namespace delassus {

template <class Real>
struct BlockInverseMemory {
  std::vector<Real> A, V, scale;
  std::vector<int> pivots;

  // for blocks of at most so many rows
  void resize(int rows) {
    A.resize(std::size_t(rows) * rows);
    V.resize(std::size_t(rows) * rows);
    scale.resize(std::size_t(2 * rows));
    pivots.resize(std::size_t(rows));
  }
  std::size_t bytes() const {
    return (A.size() + V.size() + scale.size()) * sizeof(Real) + pivots.size() * sizeof(int);
  }
};

// S, B: n × n, row-major, apart. Returns the condition, infinite where S is singular to working precision: B is of no
// use then.
template <class Real>
Real invert_block(int n, const Real* S, Real* B, BlockInverseMemory<Real>& memory);
template <class Real>
void invert_block_limited(int n, const Real* S, Real floor, Real* B, BlockInverseMemory<Real>& memory);

}  // namespace delassus
