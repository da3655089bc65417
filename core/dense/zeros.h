// Whether packed numbers are all zero: matrices of stacks and chains have few blocks that are not, and those that are
// take no arithmetic. Of others the first number says so.
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
