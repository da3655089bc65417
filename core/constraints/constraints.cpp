#include "constraints/compiled.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace delassus {

namespace {

// Three rows along the world's axes between two links, or a link and the ground.
template <class Real>
struct Touch {
  int link, other;
  Point<Real> point;
  Vec3<Real> local[2];  // the point on each link
};

template <class Real>
Touch<Real> touch(const Model<Real>& model, const Constraint<Real>& c) {
  Touch<Real> t{};
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
ConstraintSet<Real> make_constraints(const Model<Real>& model, const std::vector<ConstraintDescription>& list) {
  ConstraintSet<Real> set;
  std::vector<Touch<Real>> touches;
  for (const auto& d : list) {
    Constraint<Real> c{};
    c.kind = d.kind;
    c.row = set.rows;
    c.rows = d.rows;
    c.block = -1;
    c.axes_on = d.axes_on;
    c.bodies = d.bodies;
    for (std::size_t p = 0; p + 2 < d.points.size(); p += 3)
      c.points.push_back({Real(d.points[p]), Real(d.points[p + 1]), Real(d.points[p + 2])});
    c.matrix.assign(d.matrix.begin(), d.matrix.end());
    c.joints = d.joints;
    c.numbers.assign(d.numbers.begin(), d.numbers.end());
    c.measured = d.measured;
    c.target.assign(d.target.begin(), d.target.end());
    c.kp = Real(d.kp), c.kd = Real(d.kd);

    // points between different links, and rows with terms: one a link, the ground none
    const bool point =
        c.kind == Kind::frame && c.axes_on < 0 && model.bodies[c.bodies[0]].link != model.bodies[c.bodies[1]].link;
    if (point) touches.push_back(touch(model, c));
    Block block{c.row + 3 * point, c.rows - 3 * point, int(set.terms.size()), 0};
    auto term = [&](int link) {
      if (link < 0) return -1;
      for (int t = 0; t < block.terms; ++t)
        if (set.terms[block.term + t].link == link) return t;
      set.terms.push_back({link, int(set.K_size)});
      set.K_size += std::size_t(block.rows);
      return block.terms++;
    };
    if (c.kind == Kind::joint) {
      for (std::size_t r = 0; r < c.joints.size(); ++r)
        set.joint_rows.push_back({c.row + int(r), c.joints[r], c.numbers[r]});
    } else if (c.kind == Kind::coupling) {
      for (const int link : c.joints) {
        c.term_of.push_back(term(link));
        c.term_of.push_back(term(model.links[link].parent));
      }
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

  // points of the same two links beside each other
  std::stable_sort(touches.begin(), touches.end(), [](const auto& a, const auto& b) {
    return std::pair(a.link, a.other) < std::pair(b.link, b.other);
  });
  std::vector<char> touched(model.links.size(), 0);
  auto first = [&](int link) { return link >= 0 && !std::exchange(touched[link], 1); };
  for (const auto& t : touches) {
    if (set.groups.empty() || set.groups.back().link != t.link || set.groups.back().other != t.other)
      set.groups.push_back(
          {t.link, t.other, int(set.points.size()), 0, int(set.locals.size()), {first(t.link), first(t.other)}});
    ++set.groups.back().count;
    set.points.push_back(t.point);
    set.points.back().local = int(set.locals.size());
    set.locals.insert(set.locals.end(), t.local, t.local + set.groups.back().sides());
  }
  return set;
}

DELASSUS_ROWS(, double)
DELASSUS_ROWS(, float)
template ConstraintSet<double> make_constraints(const Model<double>&, const std::vector<ConstraintDescription>&);
template ConstraintSet<float> make_constraints(const Model<float>&, const std::vector<ConstraintDescription>&);

}  // namespace delassus
