// Our model and constraints from the plain numbers of a robot or a scene.
#pragma once

#include "constraints/constraints.h"
#include "model/model.h"
#include "robot.h"

namespace bench {

namespace dl = delassus;

inline dl::Description description(const Robot& robot) {
  const auto vec = [](const std::array<double, 3>& a) { return dl::Vec3<double>{a[0], a[1], a[2]}; };
  dl::Description d{};
  for (const auto& b : robot.bodies) {
    const auto& I = b.inertia;
    const auto& r = b.quaternion;
    d.bodies.push_back({b.parent,
                        vec(b.position),
                        {r[0], r[1], r[2], r[3]},
                        b.mass,
                        vec(b.center),
                        {I[0], I[1], I[2], I[3], I[4], I[5]}});
  }
  for (const auto& j : robot.joints) {
    const dl::Joint type = j.type == "hinge"   ? dl::Joint::hinge
                           : j.type == "slide" ? dl::Joint::slide
                           : j.type == "ball"  ? dl::Joint::ball
                                               : dl::Joint::free;
    d.joints.push_back({type, j.body, vec(j.anchor), vec(j.axis), j.reference});
  }
  d.armature = robot.armature;
  d.gravity = vec(robot.gravity);
  return d;
}

inline std::vector<dl::ConstraintDescription> constraint_descriptions(const Robot& robot) {
  std::vector<dl::ConstraintDescription> list;
  for (const auto& c : robot.constraints) {
    dl::ConstraintDescription d{};
    d.rows = c.rows;
    d.axes_on = -1;
    if (c.kind != "friction") {
      d.kind = dl::Kind::frame;
      d.bodies = {c.body, c.other};
      d.points.assign(c.point.begin(), c.point.end());
      d.points.insert(d.points.end(), c.other_point.begin(), c.other_point.end());
      d.matrix.assign(c.axes.begin(), c.axes.end());
    } else {
      d.kind = dl::Kind::joint;
      for (int r = 0; r < c.rows; ++r) d.joints.push_back(c.velocity + r);
      d.numbers.assign(std::size_t(c.rows), 1.0);
    }
    list.push_back(std::move(d));
  }
  return list;
}

}  // namespace bench
