// Blocks of stiffness B, a square one for each constraint, on links: where their numbers are, and the memory of the
// elimination of M + Jᵀ B J. Factors of it are kept by who asks for them.
#pragma once

#include <optional>

#include "operators/block_rows.h"
#include "operators/column_elimination.h"

namespace delassus {

template <class T>
struct BlockStiffness {
  BlockRows<T> rows;
  std::vector<Mat6<T>> start;            // a link: H without blocks, at a configuration
  bool started = false;                  // whether at the present one
  std::vector<Twin6<T>> H, coupling;     // a link; two links
  std::vector<char> used;                // a coupling: something was added to it
  std::vector<T> joint_stiffness;        // a velocity
  std::optional<BlockFactor<T>> factor;  // of blocks that somebody set
  ColumnProgress progress;               // of large eliminations

  BlockStiffness(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout)
      : rows(layout),
        start(model.links.size()),
        H(model.links.size()),
        coupling(std::size_t(layout.coupled.slot_count)),
        used(coupling.size()),
        joint_stiffness(std::size_t(model.nv)) {
    if (layout.coupled.large()) progress.resize(layout.coupled.steps.size());
  }
  std::size_t bytes() const {
    return rows.bytes() + (factor ? factor->bytes() : 0) + (H.size() + coupling.size()) * sizeof(Twin6<T>) +
           start.size() * sizeof(Mat6<T>) + used.size() + joint_stiffness.size() * sizeof(T) + progress.bytes();
  }
};

}  // namespace delassus
