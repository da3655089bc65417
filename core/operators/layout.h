// The symbolic part of an operator: who couples with whom, in which order they go, where numbers are kept.
#pragma once

#include "constraints/constraints.h"
#include "operators/plan.h"

namespace delassus {

template <class Real>
struct Layout {
  struct Product {
    int first, second;  // terms
    int block;          // coupling with the rows of the second's link
    int row, rows;
  };
  struct Touching {
    int block;     // coupling of the two links of a group of points, −1: the other is the ground
    bool flipped;  // its rows are those of `link`, not of `other`
    int kept[2];   // where the inertia is kept that its links start with, −1: none
  };

  ConstraintSet<Real> set;
  EliminationPlan loose, coupled;  // of M, of M + Jᵀ R J
  bool same_strips;                // of both
  std::vector<Touching> touching;  // a group of points
  std::vector<EliminationPlan::Holder>
      pointless;  // links that hold inertia when M + Jᵀ R J is eliminated, and no group of points acts on
  std::vector<Product> products;  // of terms on different links
  std::vector<int> summed;        // rows that are neither a point's nor a joint's
  Real bound;                     // at least ‖J M⁻¹ Jᵀ‖, whatever q; infinite where nothing is known
  std::vector<Real> pivot_bound;  // a velocity: at least SᵀIᶜS, whatever q; infinite where slides have no end

  // Strips have up to `lanes` links.
  Layout(const Model<Real>& model, ConstraintSet<Real> constraints, int lanes);
  std::size_t bytes() const;
};

}  // namespace delassus
