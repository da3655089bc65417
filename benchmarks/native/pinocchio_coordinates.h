// How Pinocchio's coordinates of free joints turn with them: what converts its derivatives to ours.
#pragma once

#include "pinocchio_states.h"

namespace bench {

inline Eigen::Matrix3d hat(const Eigen::Vector3d& a) {
  Eigen::Matrix3d A;
  A << 0, -a.z(), a.y(), a.z(), 0, -a.x(), -a.y(), a.x(), 0;
  return A;
}

// ∂(T x)/∂q of a constant x, given y = T x: linear parts of free joints turn with them
inline Mat turned(const PinocchioModel& built, const Vec& y) {
  Mat out = Mat::Zero(y.size(), y.size());
  for (const auto& j : built.joints)
    if (j.type == "free") out.block<3, 3>(j.iv, j.iv + 3) = hat(y.segment<3>(j.iv));
  return out;
}
// ∂drift/∂ν_pinocchio
inline Mat drift_rate(const PinocchioModel& built, const Vec& nu) {
  Mat out = Mat::Zero(nu.size(), nu.size());
  for (const auto& j : built.joints)
    if (j.type == "free") {
      out.block<3, 3>(j.iv, j.iv) = hat(nu.segment<3>(j.iv + 3));
      out.block<3, 3>(j.iv, j.iv + 3) = -hat(nu.segment<3>(j.iv));
    }
  return out;
}

}  // namespace bench
