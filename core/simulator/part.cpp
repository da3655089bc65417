#include "simulator/part.h"

namespace delassus {

namespace {

int tree_of(const Model<double>& m, int velocity) {
  return m.links[std::size_t(m.dof_link[std::size_t(velocity)])].tree;
}

// One of the trees that a constraint is about; the first of all where it is about none.
int some_tree(const Model<double>& m, const ConstraintDescription& d) {
  int tree = 0;
  visit_trees(m, d, [&](int t) { tree = t; });
  return tree;
}

}  // namespace

WorldPart::WorldPart(const WorldDescription& whole, const std::vector<int>& trees) {
  world.options = whole.options;
  const Shifts shifts = take_trees(whole.model, trees);
  take_limits(whole, shifts);
  take_constraints(whole, shifts);
}

WorldPart::Shifts WorldPart::take_trees(const Model<double>& m, const std::vector<int>& trees) {
  world.model = part(m, trees, bodies);
  Shifts shifts{std::vector<Shift>(m.roots.size()), std::vector<char>(m.roots.size(), 0)};
  for (std::size_t k = 0; k < trees.size(); ++k) {
    const std::size_t tree = std::size_t(trees[k]), root = std::size_t(m.roots[tree]);
    const auto& here = world.model.links[std::size_t(world.model.roots[k])];
    const auto &there = m.links[root], &last = m.links[std::size_t(there.end - 1)];
    shifts.taken[tree] = 1;
    shifts.of_tree[tree] = {world.model.roots[k] - int(root), here.iq - there.iq, here.iv - there.iv};
    ranges.push_back({there.iq, here.iq, last.iq + configuration_size(last.type) - there.iq, there.iv, here.iv,
                      there.end_v - there.iv});
  }
  return shifts;
}

void WorldPart::take_limits(const WorldDescription& whole, const Shifts& shifts) {
  for (std::size_t k = 0; k < whole.limits.size(); ++k) {
    JointLimit limit = whole.limits[k];
    const std::size_t tree = std::size_t(tree_of(whole.model, limit.velocity));
    if (!shifts.taken[tree]) continue;
    limit.coordinate += shifts.of_tree[tree].q;
    limit.velocity += shifts.of_tree[tree].v;
    world.limits.push_back(limit);
    limits.push_back(int(k));
  }
}

void WorldPart::take_constraints(const WorldDescription& whole, const Shifts& shifts) {
  const auto& m = whole.model;
  int row = 0;
  const auto shift_of_tree = [&](int tree) { return shifts.of_tree[std::size_t(tree)]; };
  const auto take = [&](const std::vector<ConstraintDescription>& from, std::vector<ConstraintDescription>& to) {
    for (auto d : from) {
      const int first = row;
      row += d.rows;
      if (!shifts.taken[std::size_t(some_tree(m, d))]) continue;
      for (auto& b : d.bodies) b = bodies[std::size_t(b)];
      for (auto& j : d.joints)
        j += d.kind == Kind::coupling ? shift_of_tree(m.links[std::size_t(j)].tree).link
                                      : shift_of_tree(tree_of(m, j)).v;
      for (int r = 0; r < d.rows; ++r) rows.push_back(first + r);
      to.push_back(std::move(d));
    }
  };
  take(whole.loops, world.loops);
  const std::size_t loop_rows = rows.size();
  const int whole_loop_rows = row;
  take(whole.friction, world.friction);
  for (std::size_t r = loop_rows; r < rows.size(); ++r)
    world.friction_loss.push_back(whole.friction_loss[std::size_t(rows[r] - whole_loop_rows)]);
}

}  // namespace delassus
