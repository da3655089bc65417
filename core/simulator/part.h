// Some trees of a world as a world of their own, with maps from its indices to those of the whole world.
#pragma once

#include <algorithm>
#include <vector>

#include "simulator/description.h"

namespace delassus {

// The trees that a constraint is about, each given to `visit`.
template <class Visit>
void visit_trees(const Model<double>& m, const ConstraintDescription& d, Visit&& visit) {
  for (const int b : d.bodies)
    if (const int link = m.bodies[std::size_t(b)].link; link >= 0) visit(m.links[std::size_t(link)].tree);
  for (const int j : d.joints)
    visit(m.links[std::size_t(d.kind == Kind::coupling ? j : m.dof_link[std::size_t(j)])].tree);
}

// Writes a value to all velocities of the trees that a constraint is about.
template <class V>
void set_velocities(const Model<double>& m, const ConstraintDescription& d, V value, std::vector<V>& velocities) {
  visit_trees(m, d, [&](int tree) {
    const auto& root = m.links[std::size_t(m.roots[std::size_t(tree)])];
    std::fill(velocities.begin() + root.iv, velocities.begin() + root.end_v, value);
  });
}

// Which elements of a world belong to which of its trees.
struct TreeContents {
  // Numbers of the whole, ascending; loops and dry friction at one of the trees that they are about.
  struct Tree {
    std::vector<int> bodies, limits, spans, loops, friction;
  };
  std::vector<Tree> trees;
  std::vector<int> loop_rows, friction_rows;  // where the rows of each start, those of loops before those of friction

  explicit TreeContents(const WorldDescription& world);
};

// Made in a time that depends on its trees alone, not on the whole.
struct WorldPart {
  WorldDescription world;   // without springs and motors, which act on each velocity by itself
  std::vector<int> bodies;  // per body here: its number in the whole, ascending; of fixed ones those that loops need
  std::vector<int> limits;  // per limit here: its number in the whole
  std::vector<int> spans;   // per span here: likewise
  std::vector<int> rows;    // per row of loops, then of friction, here: its number in the whole
  // Per tree: where its links, coordinates and velocities are.
  struct Range {
    int whole_link, link;
    int whole_q, q, nq, whole_v, v, nv;
  };
  std::vector<Range> ranges;

  // trees: ascending.
  WorldPart(const WorldDescription& whole, const TreeContents& contents, const std::vector<int>& trees);

  // Copies the data of the whole world that may change: options, inertias, armature, gravity, friction loss.
  void read_numbers(const WorldDescription& whole);

 private:
  void take_trees(const Model<double>& whole, const std::vector<int>& trees);
  void take_limits(const WorldDescription& whole, const std::vector<int>& trees);
  void take_friction_loss(const WorldDescription& whole);
  void take_spans(const WorldDescription& whole, const std::vector<int>& trees);
  void take_constraints(const Model<double>& whole, const std::vector<int>& trees,
                        const std::vector<ConstraintDescription>& from, const std::vector<int>& chosen,
                        const std::vector<int>& first_rows, std::vector<ConstraintDescription>& to);
  const Range& range_of(int tree, const std::vector<int>& trees) const;
  int body(int whole) const;
};

}  // namespace delassus
