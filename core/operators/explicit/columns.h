// The Delassus matrix column by column, O(m (n + m)): the matrix-free operator on the identity, a register of columns
// at once. Any rows.
//
//   G = G 1
//
// "Matrix-Free Delassus Operations", section IV.
#pragma once

#include "operators/delassus.h"

namespace delassus {

// The operator is up to date. Columns are right to rounding each; the upper triangle stands for both.
template <class T>
void columns(Delassus<T>& G, const std::vector<T>& identity, T* out) {
  const std::size_t m = std::size_t(G.rows());
  G.apply(identity.data(), G.rows(), out);
  for (std::size_t i = 1; i < m; ++i)
    for (std::size_t j = 0; j < i; ++j) out[i * m + j] = out[j * m + i];
}

}  // namespace delassus
