// The Delassus matrix column by column, O(m (n + m)): the matrix-free operator on the identity, a register of columns
// at once. Any rows.
//
//   G = G 1
//
// "Matrix-Free Delassus Operations", section IV.
#pragma once

#include "operators/delassus.h"
#include "operators/explicit/symmetric.h"

namespace delassus {

// The operator is up to date. Columns are right to rounding each; the upper triangle stands for both.
template <class T>
void columns(Delassus<T>& G, const std::vector<T>& identity, T* out) {
  G.apply(identity.data(), G.rows(), out);
  mirror_upper(G.rows(), out);
}

}  // namespace delassus
