// Rows that act on one link each, seen along the tree: who carries them, and where they meet.
//
// A limb is a run of links that carry the same rows: its tip has rows of its own, or is where limbs meet; its other
// links only pass on what comes from the tip. Rows are put in an order in which those of a limb and of all limbs that
// hang on it are a range.
#pragma once

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

  // Rows of points and of terms: where they start in this order.
  struct RowRange {
    int link, source, count, at;  // source: point, or K
  };
  std::vector<RowRange> points, terms;

  int rows() const { return int(row.size()); }
  std::size_t bytes() const {
    return limbs.size() * sizeof(Limb) + (children.size() + velocity.size() + link.size() + row.size()) * sizeof(int) +
           (points.size() + terms.size()) * sizeof(RowRange);
  }
};

// Whether every row acts on one link or on none, and on no joint.
template <class Real>
bool rows_act_on_single_links(const ConstraintSet<Real>& set);

template <class Real>
Limbs find_limbs(const Model<Real>& model, const Layout<Real>& layout);

}  // namespace delassus
