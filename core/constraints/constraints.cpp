#include "constraints/constraints.h"

namespace delassus {

template <class Real>
ConstraintSet<Real> make_constraints(const Model<Real>& model, const std::vector<ConstraintDescription>& list) {
  ConstraintSet<Real> set;
  for (const auto& d : list) {
    Constraint<Real> c{};
    c.kind = d.kind;
    c.row = set.rows;
    c.rows = d.rows;
    c.term = int(set.terms.size());
    c.axes_on = d.axes_on;
    c.bodies = d.bodies;
    for (std::size_t p = 0; p + 2 < d.points.size(); p += 3) c.points.push_back({Real(d.points[p]), Real(d.points[p + 1]), Real(d.points[p + 2])});
    c.matrix.assign(d.matrix.begin(), d.matrix.end());
    c.joints = d.joints;
    c.numbers.assign(d.numbers.begin(), d.numbers.end());
    c.measured = d.measured;
    c.target.assign(d.target.begin(), d.target.end());
    c.kp = Real(d.kp), c.kd = Real(d.kd);

    // one term a link, the ground none
    auto term = [&](int link) {
      if (link < 0) return -1;
      for (int t = 0; t < c.terms; ++t)
        if (set.terms[c.term + t].link == link) return t;
      set.terms.push_back({link, int(set.K_size)});
      set.K_size += std::size_t(c.rows);
      return c.terms++;
    };
    if (c.kind == Kind::joint) {
      for (std::size_t r = 0; r < c.joints.size(); ++r) set.joint_rows.push_back({c.row + int(r), c.joints[r], c.numbers[r]});
    } else if (c.kind == Kind::coupling) {
      for (const int link : c.joints) {
        c.term_of.push_back(term(link));
        c.term_of.push_back(term(model.links[link].parent));
      }
    } else if (c.kind == Kind::center) {
      for (std::size_t i = 0; i < model.links.size(); ++i)
        if (model.links[i].inertial.mass > 0) term(int(i));
    } else {
      for (const int body : c.bodies) c.term_of.push_back(term(model.bodies[body].link));
    }
    set.rows += c.rows;
    set.constraints.push_back(std::move(c));
  }
  return set;
}

template ConstraintSet<double> make_constraints(const Model<double>&, const std::vector<ConstraintDescription>&);
template ConstraintSet<float> make_constraints(const Model<float>&, const std::vector<ConstraintDescription>&);

}  // namespace delassus
