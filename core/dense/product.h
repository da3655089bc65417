// Matrix products, O(2 m n k), and their subtraction from another matrix, on which the factorizations of this module
// are built.
#pragma once

#include "dense/tile.h"

namespace delassus::dense {

enum class Part { all, upper };

// C ← C − A B. A: m × k by its entries; B: k × n and C: m × n, rows `b_stride` and `c_stride` apart, which may be
// negative. Part::upper: C is square, and entries below its diagonal are overwritten.
template <class Real>
void subtract_product(int m, int n, int k, const Entries<Real>& A, const Real* B, std::ptrdiff_t b_stride, Real* C,
                      std::ptrdiff_t c_stride, Part part = Part::all);

}  // namespace delassus::dense
