// Points and welds on the ground as Pinocchio places them: on a joint, with the axes of its body.
#pragma once

#include "pinocchio_model.h"

#include <pinocchio/constraints.hpp>

namespace bench {

struct Contact {
  pin::ContactType type;
  pin::JointIndex joint;
  pin::SE3 place;  // in the joint's frame
  int rows() const { return type == pin::CONTACT_6D ? 6 : 3; }
};

inline std::vector<Contact> contacts(const Robot& robot, const PinocchioModel& built) {
  std::vector<Contact> out;
  for (const auto& c : robot.constraints) {
    const std::array<double, 9> world = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    if (c.kind == "friction" || c.other != 0 || c.axes != world)
      throw std::runtime_error("only points and welds on the ground in world axes, got others in " + robot.name);
    out.push_back({c.kind == "weld" ? pin::CONTACT_6D : pin::CONTACT_3D, built.carrier[c.body],
                   pin::SE3(Eigen::Matrix3d::Identity(), built.placement[c.body].act(vec(c.point)))});
  }
  return out;
}

}  // namespace bench
