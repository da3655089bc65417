// Rows seen along the tree: who carries them, and where they meet.
//
// A row that acts on several links is several here, one for each of its links, and G_ef = Σ_i Σ_j K_eⁱ Ω_ij K_fʲᵀ is
// the sum over these (`fold_symmetric` of symmetric.h); a row of a joint acts on its link and, backward, on the parent.
// A limb is a run of links that carry the same rows: its tip has rows of its own, or is where limbs meet; its other
// links only pass on what comes from the tip. Rows are put in an order in which those of a limb and of all limbs that
// hang on it are a range.
#pragma once

#include <cstdint>
#include <vector>

#include "operators/layout.h"

namespace delassus {

struct Limb {
  int parent;           // limb that it hangs on, −1: the ground
  int tip;              // link
  int first, past;      // rows that it carries
  int own, own_past;    // those on its tip
  int child, children;  // where its children start in `Limbs::children`
  int dof, dofs;  // where its velocities start in `Limbs::velocity`, from the tip down; without those of a free joint
  int free;       // which free link its last one is, −1: none is. Its six velocities follow
  int base() const { return dof + dofs; }
  int rows() const { return past - first; }
};

struct Limbs {
  std::vector<Limb> limbs;    // those further out first
  std::vector<int> children;  // limbs
  std::vector<int> velocity;  // of the model
  std::vector<int> link;      // a velocity: whose
  std::vector<int> row;       // a row in this order: which it is in the user's
  bool ordered = true;        // they are the same, and none is left out
  bool single_link = true;    // every row acts on one link or on none, and on no joint

  // Rows of one source on one link: where they start in this order.
  enum class Source : std::uint8_t { point, other_point, term, joint, parent_of_joint };
  struct RowRange {
    Source source;
    int link, index, count, at;  // index: point, first K of the term, or joint row
  };
  std::vector<RowRange> ranges;  // in this order
  struct Tree {
    int first, past;  // rows
    int range, past_range;
  };
  std::vector<Tree> trees;  // those that carry rows, in this order

  int rows() const { return int(row.size()); }
  std::size_t bytes() const {
    return limbs.size() * sizeof(Limb) + (children.size() + velocity.size() + link.size() + row.size()) * sizeof(int) +
           ranges.size() * sizeof(RowRange) + trees.size() * sizeof(Tree);
  }
};

// Whether every row acts on one link or on none, and on no joint.
template <class Real>
bool rows_act_on_single_links(const ConstraintSet<Real>& set);

template <class Real>
Limbs find_limbs(const Model<Real>& model, const Layout<Real>& layout);

}  // namespace delassus
