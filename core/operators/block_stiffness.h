// Blocks of stiffness B, one square block per constraint, on links: their memory layout, and the memory of the
// elimination of M + Jᵀ B J. The caller owns the factors.
#pragma once

#include <optional>

#include "operators/active_plan.h"
#include "operators/block_rows.h"
#include "operators/column_elimination.h"
#include "operators/selected_response.h"

namespace delassus {

template <class T>
struct BlockStiffness {
  using Real = real_of<T>;

  BlockRows<T> rows;
  std::vector<Mat6<T>> start;            // a link: H without blocks, at a configuration
  bool started = false;                  // whether at the present one
  std::vector<Twin6<T>> H, coupling;     // a link; two links
  std::vector<char> used;                // a coupling: something was added to it
  std::vector<T> joint_stiffness;        // a velocity
  std::optional<BlockFactor<T>> factor;  // of blocks that somebody set
  std::vector<char> couples;             // a group of points: these blocks couple its links
  ActivePlan<Real> active;               // of these, if some do not
  bool by_active = false;                // whether the factor is in its order
  ColumnProgress progress;               // of large eliminations
  SelectedResponse<T> selected;          // memory of responses among some rows

  BlockStiffness(const Model<Real>& model, const Layout<Real>& layout)
      : rows(layout),
        start(model.links.size()),
        H(model.links.size()),
        joint_stiffness(std::size_t(model.nv)),
        selected(layout) {}

  // Memory of an elimination.
  void resize(const EliminationPlan& plan) {
    coupling.resize(std::size_t(plan.slot_count));
    used.resize(coupling.size());
    if (plan.large()) progress.resize(plan.steps.size());
  }
  std::size_t bytes() const {
    return rows.bytes() + (factor ? factor->bytes() : 0) + (H.size() + coupling.size()) * sizeof(Twin6<T>) +
           start.size() * sizeof(Mat6<T>) + used.size() + joint_stiffness.size() * sizeof(T) + couples.size() +
           active.bytes() + progress.bytes() + selected.bytes();
  }
};

}  // namespace delassus
