// Some trees of a world as a world of their own, and which number in it is which in the whole.
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

struct WorldPart {
  WorldDescription world;   // without springs and motors, which act on each velocity by itself
  std::vector<int> bodies;  // per body of the whole: its number here, −1 where it is not
  std::vector<int> limits;  // per limit here: its number in the whole
  std::vector<int> rows;    // per row of loops, then of friction, here: its number in the whole
  // Per tree: where its coordinates and velocities are.
  struct Range {
    int whole_q, q, nq, whole_v, v, nv;
  };
  std::vector<Range> ranges;

  WorldPart(const WorldDescription& whole, const std::vector<int>& trees);

 private:
  // Links, coordinates and velocities of a tree are ranges: by how much the numbers of each differ from the whole's.
  struct Shift {
    int link, q, v;
  };
  struct Shifts {
    std::vector<Shift> of_tree;  // of the whole
    std::vector<char> taken;     // whether the tree is here
  };
  Shifts take_trees(const Model<double>& whole, const std::vector<int>& trees);
  void take_limits(const WorldDescription& whole, const Shifts& shifts);
  void take_constraints(const WorldDescription& whole, const Shifts& shifts);
};

}  // namespace delassus
