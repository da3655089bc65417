// Inverses of small square matrices S, the blocks of damping of a constraint, with rows that may be of different units.
//
//   inverse      B = S⁻¹ by Gauss and Jordan's elimination with rows exchanged
//   condition    ‖S̃‖ ‖S̃⁻¹‖ in Frobenius norms, S̃ = diag(r) S diag(c) with the largest number of every row and column
//                one: that of a diagonal is its number of rows, whatever its units
//   limited      S = U Σ Vᵀ,   B = V max(Σ, floor)⁻¹ Uᵀ: as little stiffness as a damping of `floor` has; of a
//                symmetric S ≥ 0 the block with its eigenvalues raised to floor
//
// Singular values are those of one-sided Jacobi rotations (Demmel and Veselić, 1992), which finds small ones of badly
// scaled matrices too.
#pragma once

namespace delassus {

// S, B: n × n, row-major, apart; exchanged: memory, a row. Returns whether no pivot was zero.
template <class Real>
bool invert_block(int n, const Real* S, Real* B, int* exchanged);
// Whether the condition of S, with B its inverse, leaves digits to work with.
template <class Real>
bool is_well_conditioned(int n, const Real* S, const Real* B);
// memory: 2 n² numbers
template <class Real>
void invert_block_limited(int n, const Real* S, Real floor, Real* B, Real* memory);

}  // namespace delassus
