// Pinocchio's model from the plain numbers of a robot, and the way from our coordinates to its own.
#pragma once

#include <pinocchio/multibody.hpp>
#include <pinocchio/multibody/joint.hpp>

#include <stdexcept>

#include "robot.h"

namespace bench {

namespace pin = pinocchio;
using Vec = Eigen::VectorXd;
using Mat = Eigen::MatrixXd;

inline std::string eigen_version() {
  return std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION);
}

inline Eigen::Vector3d vec(const std::array<double, 3>& a) { return {a[0], a[1], a[2]}; }

// The joint with the fewest operations for the axis: a coordinate axis has its own type.
inline pin::JointModel hinge(const Eigen::Vector3d& axis) {
  if (axis == Eigen::Vector3d::UnitX()) return pin::JointModelRX();
  if (axis == Eigen::Vector3d::UnitY()) return pin::JointModelRY();
  if (axis == Eigen::Vector3d::UnitZ()) return pin::JointModelRZ();
  return pin::JointModelRevoluteUnaligned(axis);
}
inline pin::JointModel slide(const Eigen::Vector3d& axis) {
  if (axis == Eigen::Vector3d::UnitX()) return pin::JointModelPX();
  if (axis == Eigen::Vector3d::UnitY()) return pin::JointModelPY();
  if (axis == Eigen::Vector3d::UnitZ()) return pin::JointModelPZ();
  return pin::JointModelPrismaticUnaligned(axis);
}

struct PinocchioModel {
  struct Coordinates {  // of one joint, in our order, which is also Pinocchio's order of indices
    std::string type;
    int iq, iv;
    double reference;
  };

  pin::Model model;
  std::vector<Coordinates> joints;
  std::vector<pin::JointIndex> carrier;  // a body: the joint that moves it, 0 for the ground
  std::vector<pin::SE3> placement;       // a body: where it sits in that joint's frame

  explicit PinocchioModel(const Robot& robot)
      : carrier(robot.bodies.size(), 0), placement(robot.bodies.size(), pin::SE3::Identity()) {
    model.gravity.linear() = vec(robot.gravity);
    std::size_t next = 0;
    for (std::size_t b = 0; b < robot.bodies.size(); ++b) {
      const auto& body = robot.bodies[b];
      const Eigen::Quaterniond turned(body.quaternion[0], body.quaternion[1], body.quaternion[2], body.quaternion[3]);
      pin::JointIndex joint = b == 0 ? 0 : carrier[body.parent];
      pin::SE3 X = b == 0
                       ? pin::SE3::Identity()
                       : placement[body.parent] * pin::SE3(turned.normalized().toRotationMatrix(), vec(body.position));

      for (; next < robot.joints.size() && robot.joints[next].body == int(b); ++next) {
        const auto& j = robot.joints[next];
        const std::string name = "joint" + std::to_string(next);
        const Eigen::Vector3d axis = vec(j.axis);
        pin::SE3 frame = pin::SE3::Identity();
        if (j.type != "free") frame.translation() = vec(j.anchor);
        const pin::SE3 at = j.type == "free" ? pin::SE3::Identity() : X * frame;
        const pin::JointModel type = j.type == "hinge"   ? hinge(axis)
                                     : j.type == "slide" ? slide(axis)
                                     : j.type == "ball"  ? pin::JointModel(pin::JointModelSpherical())
                                                         : pin::JointModel(pin::JointModelFreeFlyer());
        joint = model.addJoint(joint, type, at, name);
        joints.push_back({j.type, model.joints[joint].idx_q(), model.joints[joint].idx_v(), j.reference});
        X = frame.inverse();
      }

      carrier[b] = joint;
      placement[b] = X;
      const auto& I = body.inertia;
      Eigen::Matrix3d central;
      central << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
      if (joint > 0 && body.mass > 0)
        model.appendBodyToJoint(joint, pin::Inertia(body.mass, vec(body.center), central), X);
    }
    if (std::size_t(model.nv) != robot.armature.size())
      throw std::runtime_error("Pinocchio counts other velocities in " + robot.name);
    model.armature = Eigen::Map<const Vec>(robot.armature.data(), model.nv);
  }

  // Ours to Pinocchio's: coordinates of hinges and slides from their reference, quaternions end with w.
  Vec configuration(const std::vector<double>& q) const {
    Vec out(model.nq);
    for (const auto& j : joints) {
      if (j.type == "hinge" || j.type == "slide") {
        out[j.iq] = q[j.iq] - j.reference;
        continue;
      }
      const int shift = j.type == "free" ? 3 : 0;
      for (int k = 0; k < shift; ++k) out[j.iq + k] = q[j.iq + k];
      const double* c = &q[j.iq + shift];
      out.segment<4>(j.iq + shift) = Eigen::Quaterniond(c[0], c[1], c[2], c[3]).normalized().coeffs();
    }
    return out;
  }

  // T of ν_pinocchio = T ν at a configuration of Pinocchio's: linear parts of a free joint turn into the body's axes.
  // Orthogonal.
  Mat turn(const Vec& q) const {
    Mat T = Mat::Identity(model.nv, model.nv);
    for (const auto& j : joints)
      if (j.type == "free")
        T.block<3, 3>(j.iv, j.iv) =
            Eigen::Quaterniond(q[j.iq + 6], q[j.iq + 3], q[j.iq + 4], q[j.iq + 5]).toRotationMatrix().transpose();
    return T;
  }
  // T ν̇ − ν̇_pinocchio at a velocity of Pinocchio's
  Vec drift(const Vec& v) const {
    Vec out = Vec::Zero(model.nv);
    for (const auto& j : joints)
      if (j.type == "free") out.segment<3>(j.iv) = v.segment<3>(j.iv + 3).cross(v.segment<3>(j.iv));
    return out;
  }
};

}  // namespace bench
