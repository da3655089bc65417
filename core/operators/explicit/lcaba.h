// The damped inverse column by column, O(m (n + m)) where loops couple few links: the matrix-free inverse on the
// identity, refined. Any rows.
//
//   (G + ε)⁻¹ = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹
//
// "Matrix-Free Delassus Operations", section V, by the loop-constrained articulated-body algorithm.
#pragma once

#include <limits>

#include "operators/delassus.h"

namespace delassus {

// The operator is up to date and has its damping. Columns of an inverse are refined one by one, so the result is
// symmetric to rounding only: the mean of both triangles is kept. Returns whether that is a solution too: where G + ε
// is ill-conditioned the triangles differ by more than rounding, and a mean of both solves neither equation.
template <class T>
bool lcaba(Delassus<T>& G, const std::vector<T>& identity, T* out) {
  using Real = real_of<T>;
  const std::size_t m = std::size_t(G.rows());
  constexpr Real goal = 1000 * std::numeric_limits<Real>::epsilon();
  G.solve(identity.data(), G.rows(), out, {.refinements = 8, .goal = goal, .limit = 5 * goal});
  Real largest = 0, difference = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const T a = out[i * m + j], b = out[j * m + i];
      out[i * m + j] = out[j * m + i] = (a + b) * Real(0.5);
      for (int l = 0; l < lanes_of<T>; ++l) {
        largest = std::max(largest, std::abs(lane(a, l)));
        difference = std::max(difference, std::abs(lane(a, l) - lane(b, l)));
      }
    }
  return difference <= goal * largest;
}

}  // namespace delassus
