// All that belongs to blocks of stiffness B, a square one for each constraint, of an operator: the factor of
// M + Jᵀ B J and the memory of its elimination.
#pragma once

#include "operators/block_elimination.h"
#include "operators/block_rows.h"

namespace delassus {

template <class T>
struct BlockDamping {
  BlockRows<T> rows;
  BlockFactor<T> factor;
  std::vector<Twin6<T>> H, coupling;  // a link; two links
  std::vector<T> joint_stiffness;     // a velocity

  BlockDamping(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout)
      : rows(layout),
        H(model.links.size()),
        coupling(std::size_t(layout.coupled.slot_count)),
        joint_stiffness(std::size_t(model.nv)) {
    factor.resize(std::size_t(model.nv), layout.coupled);
  }
  std::size_t bytes() const {
    return rows.bytes() + factor.bytes() + (H.size() + coupling.size()) * sizeof(Twin6<T>) +
           joint_stiffness.size() * sizeof(T);
  }
};

}  // namespace delassus
