// Data of one damping ε of an operator: R = (C + ε)⁻¹, the factor of M + Jᵀ R J, and what solutions needed beyond it.
#pragma once

#include <vector>

#include "operators/factor.h"
#include "operators/layout.h"
#include "operators/refinement.h"

namespace delassus {

template <class T>
struct Damping {
  std::vector<T> shift, stiffness;  // a row: C + ε, R
  T largest_shift{};
  Factor<T> factor;
  Fallbacks<T> fallbacks;

  Damping(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout)
      : shift(std::size_t(layout.set.rows)), stiffness(shift.size()) {
    factor.resize(std::size_t(model.nv), layout.coupled);
  }
  std::size_t bytes() const { return 2 * shift.size() * sizeof(T) + factor.bytes() + fallbacks.bytes(); }
};

}  // namespace delassus
