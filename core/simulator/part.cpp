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

// What some trees have of one kind, ascending.
std::vector<int> gather(const TreeContents& contents, const std::vector<int>& trees,
                        std::vector<int> TreeContents::Tree::*kind) {
  std::vector<int> all;
  for (const int tree : trees) {
    const auto& own = contents.trees[std::size_t(tree)].*kind;
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TreeContents::TreeContents(const WorldDescription& world) : trees(world.model.roots.size()) {
  const auto& m = world.model;
  for (std::size_t b = 0; b < m.bodies.size(); ++b)
    if (const int link = m.bodies[b].link; link >= 0)
      trees[std::size_t(m.links[std::size_t(link)].tree)].bodies.push_back(int(b));
  for (std::size_t k = 0; k < world.limits.size(); ++k)
    trees[std::size_t(tree_of(m, world.limits[k].velocity))].limits.push_back(int(k));
  for (std::size_t k = 0; k < world.spans.size(); ++k)
    trees[std::size_t(tree_of(m, world.spans[k].velocities[0]))].spans.push_back(int(k));
  int row = 0;
  const auto take = [&](const std::vector<ConstraintDescription>& list, std::vector<int> Tree::*kind,
                        std::vector<int>& rows) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (!trees.empty()) (trees[std::size_t(some_tree(m, list[k]))].*kind).push_back(int(k));
      rows.push_back(row);
      row += list[k].rows;
    }
  };
  take(world.loops, &Tree::loops, loop_rows);
  take(world.friction, &Tree::friction, friction_rows);
}

WorldPart::WorldPart(const WorldDescription& whole, const TreeContents& contents, const std::vector<int>& trees) {
  world.options = whole.options;
  const std::vector<int> loops = gather(contents, trees, &TreeContents::Tree::loops),
                         friction = gather(contents, trees, &TreeContents::Tree::friction);
  // the world, bodies of the trees, and fixed ones that constraints are about
  bodies = gather(contents, trees, &TreeContents::Tree::bodies);
  bodies.push_back(0);
  for (const int k : loops)
    for (const int b : whole.loops[std::size_t(k)].bodies)
      if (whole.model.bodies[std::size_t(b)].link < 0) bodies.push_back(b);
  std::sort(bodies.begin(), bodies.end());
  bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());

  take_trees(whole.model, trees);
  limits = gather(contents, trees, &TreeContents::Tree::limits);
  take_limits(whole, trees);
  spans = gather(contents, trees, &TreeContents::Tree::spans);
  take_spans(whole, trees);
  take_constraints(whole.model, trees, whole.loops, loops, contents.loop_rows, world.loops);
  const std::size_t loop_rows = rows.size();
  take_constraints(whole.model, trees, whole.friction, friction, contents.friction_rows, world.friction);
  world.friction_loss.resize(rows.size() - loop_rows);
  take_friction_loss(whole);
}

void WorldPart::take_friction_loss(const WorldDescription& whole) {
  int first = 0;  // row of dry friction in the whole
  if (!world.friction_loss.empty())
    for (const auto& d : whole.loops) first += d.rows;
  const int* row = rows.data() + (rows.size() - world.friction_loss.size());
  for (double& loss : world.friction_loss) loss = whole.friction_loss[std::size_t(*row++ - first)];
}

void WorldPart::read_numbers(const WorldDescription& whole) {
  world.options = whole.options;
  Model<double>& m = world.model;
  m.gravity = whole.model.gravity;
  for (const Range& r : ranges) {
    const int links = whole.model.links[std::size_t(r.whole_link)].end - r.whole_link;
    for (int i = 0; i < links; ++i)
      m.links[std::size_t(r.link + i)].inertial = whole.model.links[std::size_t(r.whole_link + i)].inertial;
    std::copy_n(whole.model.armature.data() + r.whole_v, r.nv, m.armature.data() + r.v);
  }
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const auto& from = whole.model.bodies[std::size_t(bodies[b])];
    m.bodies[b].mass = from.mass, m.bodies[b].center = from.center;
  }
  take_friction_loss(whole);
}

void WorldPart::take_trees(const Model<double>& m, const std::vector<int>& trees) {
  world.model = part(m, trees, bodies);
  ranges.reserve(trees.size());
  for (std::size_t k = 0; k < trees.size(); ++k) {
    const int root = m.roots[std::size_t(trees[k])];
    const auto& here = world.model.links[std::size_t(world.model.roots[k])];
    const auto &there = m.links[std::size_t(root)], &last = m.links[std::size_t(there.end - 1)];
    ranges.push_back({root, world.model.roots[k], there.iq, here.iq, last.iq + configuration_size(last.type) - there.iq,
                      there.iv, here.iv, there.end_v - there.iv});
  }
}

void WorldPart::take_limits(const WorldDescription& whole, const std::vector<int>& trees) {
  for (const int k : limits) {
    JointLimit limit = whole.limits[std::size_t(k)];
    const Range& range = range_of(tree_of(whole.model, limit.velocity), trees);
    limit.coordinate += range.q - range.whole_q;
    limit.velocity += range.v - range.whole_v;
    world.limits.push_back(limit);
  }
}

void WorldPart::take_spans(const WorldDescription& whole, const std::vector<int>& trees) {
  for (const int k : spans) {
    Span& span = world.spans.emplace_back(whole.spans[std::size_t(k)]);
    const Range& first = range_of(tree_of(whole.model, span.velocities[0]), trees);
    span.coordinate += first.q - first.whole_q;
    for (int& v : span.velocities) {
      const Range& range = range_of(tree_of(whole.model, v), trees);
      v += range.v - range.whole_v;
    }
  }
}

void WorldPart::take_constraints(const Model<double>& m, const std::vector<int>& trees,
                                 const std::vector<ConstraintDescription>& from, const std::vector<int>& chosen,
                                 const std::vector<int>& first_rows, std::vector<ConstraintDescription>& to) {
  for (const int k : chosen) {
    auto& d = to.emplace_back(from[std::size_t(k)]);
    for (auto& b : d.bodies) b = body(b);
    for (auto& j : d.joints) {
      const bool link = d.kind == Kind::coupling;
      const Range& range = range_of(link ? m.links[std::size_t(j)].tree : tree_of(m, j), trees);
      j += link ? range.link - range.whole_link : range.v - range.whole_v;
    }
    for (int r = 0; r < d.rows; ++r) rows.push_back(first_rows[std::size_t(k)] + r);
  }
}

const WorldPart::Range& WorldPart::range_of(int tree, const std::vector<int>& trees) const {
  return ranges[std::size_t(std::lower_bound(trees.begin(), trees.end(), tree) - trees.begin())];
}

int WorldPart::body(int whole) const {
  return int(std::lower_bound(bodies.begin(), bodies.end(), whole) - bodies.begin());
}

}  // namespace delassus
