// The damped inverse column by column, O(m (n + m)) where loops couple few links: the matrix-free inverse on the identity, refined. Any rows.
//
//   (G + ε)⁻¹ = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹
//
// "Matrix-Free Delassus Operations", section V, by the loop-constrained articulated-body algorithm.
#pragma once

#include <limits>

#include "operators/delassus.h"

namespace delassus {

// The operator is up to date and has its damping. Columns of an inverse are refined one by one, so the result is symmetric to rounding only: the mean of both triangles is kept.
template <class T>
void lcaba(Delassus<T>& G, const std::vector<T>& identity, T* out) {
  const std::size_t m = std::size_t(G.rows());
  constexpr real_of<T> goal = 1000 * std::numeric_limits<real_of<T>>::epsilon();
  G.solve(identity.data(), G.rows(), out, {.refinements = 8, .goal = goal, .limit = 5 * goal});
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < i; ++j) out[i * m + j] = out[j * m + i] = (out[i * m + j] + out[j * m + i]) * real_of<T>(0.5);
}

}  // namespace delassus
