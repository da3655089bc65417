#include "constraints/compiled.h"

#include <algorithm>
#include <utility>

namespace delassus {

namespace {

// Three rows along the world's axes.
template <class Real>
PointRows<Real> point_rows(const Model<Real>& model, const Constraint<Real>& c) {
  PointRows<Real> t{};
  t.point.row = c.row;
  for (int r = 0; r < 3; ++r) t.point.axes[r] = {c.matrix[3 * r], c.matrix[3 * r + 1], c.matrix[3 * r + 2]};
  for (int b = 0; b < 2; ++b) {
    const auto& body = model.bodies[c.bodies[b]];
    t.local[b] = body.placement.R * c.points[b] + body.placement.p;
  }
  t.link = model.bodies[c.bodies[0]].link;
  t.other = model.bodies[c.bodies[1]].link;
  if (t.link < 0) {
    // the ground comes second: A (−v₂) = (−A) v₂
    std::swap(t.link, t.other);
    std::swap(t.local[0], t.local[1]);
    for (auto& axis : t.point.axes) axis = axis * Real(-1);
  }
  return t;
}

}  // namespace

template <class Real>
void add_constraint(const Model<Real>& model, const ConstraintDescription& d, ConstraintSet<Real>& set,
                    std::vector<PointRows<Real>>& points) {
  Constraint<Real> c{};
  c.kind = d.kind;
  c.row = set.rows;
  c.rows = d.rows;
  c.block = -1;
  c.axes_on = d.axes_on;
  c.point_rows = d.point_rows;
  c.bodies = d.bodies;
  for (std::size_t p = 0; p + 2 < d.points.size(); p += 3)
    c.points.push_back({Real(d.points[p]), Real(d.points[p + 1]), Real(d.points[p + 2])});
  c.matrix.assign(d.matrix.begin(), d.matrix.end());
  c.joints = d.joints;
  c.numbers.assign(d.numbers.begin(), d.numbers.end());
  c.measured = d.measured;
  c.target.assign(d.target.begin(), d.target.end());
  c.kp = Real(d.kp), c.kd = Real(d.kd);

  // points between different links, and rows with terms: one term per link, none for the ground
  const bool point =
      c.kind == Kind::frame && c.axes_on < 0 && model.bodies[c.bodies[0]].link != model.bodies[c.bodies[1]].link;
  if (point) points.push_back(point_rows(model, c));
  Block block{c.row + 3 * point, c.rows - 3 * point, int(set.terms.size()), 0};
  auto term = [&](int link) {
    if (link < 0) return -1;
    for (int t = 0; t < block.terms; ++t)
      if (set.terms[block.term + t].link == link) return t;
    set.terms.push_back({link, int(set.K_size)});
    set.K_size += std::size_t(block.rows);
    return block.terms++;
  };
  auto link_and_parent = [&](int link) {
    c.term_of.push_back(term(link));
    c.term_of.push_back(term(model.links[link].parent));
  };
  if (c.kind == Kind::joint) {
    for (std::size_t r = 0; r < c.joints.size(); ++r)
      set.joint_rows.push_back({c.row + int(r), c.joints[r], c.numbers[r]});
  } else if (c.kind == Kind::coupling) {
    for (const int link : c.joints) link_and_parent(link);
  } else if (c.kind == Kind::combination) {
    for (const int velocity : c.joints) link_and_parent(model.dof_link[velocity]);
  } else if (c.kind == Kind::center) {
    for (std::size_t i = 0; i < model.links.size(); ++i)
      if (model.links[i].inertial.mass > 0) term(int(i));
  } else if (block.rows > 0) {
    for (const int body : c.bodies) c.term_of.push_back(term(model.bodies[body].link));
  }
  if (block.terms > 0) {
    c.block = int(set.blocks.size());
    set.blocks.push_back(block);
  }
  set.rows += c.rows;
  set.constraints.push_back(std::move(c));
}

template <class Real>
ConstraintSet<Real> make_constraints(const Model<Real>& model, const std::vector<ConstraintDescription>& list) {
  ConstraintSet<Real> set;
  std::vector<PointRows<Real>> points;
  for (const auto& d : list) add_constraint(model, d, set, points);
  std::vector<int> numbers;
  set_points(model.links.size(), points, set, numbers);
  return set;
}

template <class Real>
void set_points(std::size_t links, const std::vector<PointRows<Real>>& points, ConstraintSet<Real>& set,
                std::vector<int>& numbers) {
  // sorted by the other link, then by the link, each time keeping the order of equals; the ground comes first
  std::vector<int> starts(links + 2), by_other(points.size()), order(points.size());
  const auto sort_by = [&](auto&& key, auto&& from, std::vector<int>& to) {
    std::fill(starts.begin(), starts.end(), 0);
    for (const auto& p : points) ++starts[std::size_t(key(p) + 2)];
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (std::size_t k = 0; k < points.size(); ++k) {
      const int p = from(k);
      to[std::size_t(starts[std::size_t(key(points[std::size_t(p)]) + 1)]++)] = p;
    }
  };
  sort_by([](const auto& p) { return p.other; }, [](std::size_t k) { return int(k); }, by_other);
  sort_by([](const auto& p) { return p.link; }, [&](std::size_t k) { return by_other[k]; }, order);

  set.groups.clear(), set.points.clear(), set.locals.clear();
  numbers.resize(points.size());
  std::vector<char> touched(links, 0);
  auto first = [&](int link) { return link >= 0 && !std::exchange(touched[link], 1); };
  for (const int k : order) {
    const auto& p = points[std::size_t(k)];
    if (set.groups.empty() || set.groups.back().link != p.link || set.groups.back().other != p.other)
      set.groups.push_back(
          {p.link, p.other, int(set.points.size()), 0, int(set.locals.size()), {first(p.link), first(p.other)}});
    ++set.groups.back().count;
    numbers[std::size_t(k)] = int(set.points.size());
    set.points.push_back(p.point);
    set.points.back().local = int(set.locals.size());
    set.locals.insert(set.locals.end(), p.local, p.local + set.groups.back().sides());
  }
}

DELASSUS_ROWS(, double)
DELASSUS_ROWS(, float)
template void add_constraint(const Model<double>&, const ConstraintDescription&, ConstraintSet<double>&,
                             std::vector<PointRows<double>>&);
template ConstraintSet<double> make_constraints(const Model<double>&, const std::vector<ConstraintDescription>&);
template ConstraintSet<float> make_constraints(const Model<float>&, const std::vector<ConstraintDescription>&);
template void set_points(std::size_t, const std::vector<PointRows<double>>&, ConstraintSet<double>&, std::vector<int>&);

}  // namespace delassus
