// Required accuracy of a solution.
#pragma once

#include <limits>

namespace delassus {

// It is refined until its normwise backward error is at most `goal`, at most `refinements` times; where that leaves
// more than `limit`, Krylov iterations follow (krylov.h). The default: as the factor gives it.
template <class Real>
struct Accuracy {
  int refinements = 0;
  Real goal = 0;
  Real limit = std::numeric_limits<Real>::infinity();
};

}  // namespace delassus
