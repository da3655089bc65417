// Whether a packed block is zero. Most blocks are in the matrices of stacks and chains, and those are skipped. In a
// block that is not zero, the first number usually tells.
#pragma once

#include "dense/vectors.h"

namespace delassus::dense {

template <class Real>
inline bool is_zero(const Real* x, int n) {
  for (int i = 0; i < n; ++i)
    if (x[i] != 0) return false;
  return true;
}

}  // namespace delassus::dense
