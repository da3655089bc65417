// The symbolic part of an operator: which links couple, their order of elimination, and the memory layout.
#pragma once

#include <span>

#include "constraints/constraints.h"
#include "operators/planner.h"

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
  // Where rows find the couplings of their links in a plan.
  struct Places {
    std::span<const Touching> touching;
    std::span<const Product> products;
  };

  ConstraintSet<Real> set;
  EliminationPlan loose, coupled;  // of M, of M + Jᵀ R J
  std::vector<PlannedLink> links;  // of both, where the second is large
  bool same_strips = false;        // of both
  std::vector<Touching> touching;  // a group of points
  std::vector<EliminationPlan::Holder>
      pointless;  // links that hold inertia when M + Jᵀ R J is eliminated, and no group of points acts on
  std::vector<Product> products;  // of terms on different links
  std::vector<int> summed;        // rows that are neither a point's nor a joint's
  Real bound = 0;                 // at least ‖J M⁻¹ Jᵀ‖, whatever q; infinite where nothing is known
  std::vector<Real> pivot_bound;  // a velocity: at least SᵀIᶜS, whatever q; infinite where slides have no end

  Layout() = default;
  // Strips have up to `lanes` links.
  Layout(const Model<Real>& model, ConstraintSet<Real> constraints, int lanes);
  Places places() const { return {touching, products}; }
  std::size_t bytes() const;
};

// Of the plan that the planner made last: where a group of points, and terms, find their couplings.
template <class Real>
void find_coupling(const EliminationPlanner& planner, const EliminationPlan& plan, const PointGroup& group,
                   typename Layout<Real>::Touching& touching);
template <class Real>
void find_products(const EliminationPlanner& planner, const EliminationPlan& plan, const ConstraintSet<Real>& set,
                   std::vector<typename Layout<Real>::Product>& products);

// Makes layouts of one model, one after another, for rows that change all the time. What the model alone decides is
// found once, and the plan of M anew only where other links carry constraints. Layouts may be made again in their
// memory.
template <class Real>
class LayoutMaker {
 public:
  LayoutMaker(const Model<Real>& model, int lanes);

  // All the rest of a layout whose set is given. Operators of it are to be made again.
  void make(Layout<Real>& layout);

  // Takes inertias and armature of the model anew, whose owner may change these. Whether joints of a free link have
  // armature at all stays as it was.
  void read_model();
  // Of a layout, what depends on these numbers: its bounds.
  void find_bounds(Layout<Real>& layout) const;

 private:
  void find_links(const ConstraintSet<Real>& set);
  void plan(Layout<Real>& layout);
  void find_touching(Layout<Real>& layout);
  void find_summed(Layout<Real>& layout);

  const Model<Real>& model_;
  int lanes_;
  std::vector<PlannedLink> bare_links_;       // without constraints
  std::vector<PlannedLink> links_;            // with those of the set
  std::vector<PlannedLink> loose_links_;      // of the last plan of M
  EliminationPlan loose_;                     // that
  std::vector<Real> pivot_bound_;             // a velocity
  std::vector<double> lightness_, ease_;      // a link: bounds of its inverse mass and inverse moments
  std::vector<double> reach_, mass_, trace_;  // a link: of what a bound of its pivots is made
  LinkLists groups_;                          // links that constraints couple
  EliminationPlanner planner_;
  std::vector<int> kept_;      // a link: where the inertia is kept that it starts with
  std::vector<char> written_;  // a row: a point's or a joint's
};

}  // namespace delassus
