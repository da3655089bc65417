// A point on two bodies, or on one and the ground, as Pinocchio's constraint with our rows.
#pragma once

#include "pinocchio_model.h"

#include <pinocchio/constraints.hpp>

namespace bench {

// Pinocchio's rows are the velocity of its second point minus that of its first, in the axes of the first frame, both
// at the second point shifted by the desired offset. Our `other` is hence its first, our axes are those of its first
// frame at the configuration that `data` has placements of, and the offset is the gap there, so that each velocity is
// taken at its own point. On the ground this holds for every configuration.
inline pin::PointContactConstraintModel point_constraint(const PinocchioModel& built, const pin::Data& data,
                                                         const Robot::Constraint& c) {
  const pin::JointIndex first = built.carrier[c.other], second = built.carrier[c.body];
  Eigen::Matrix3d axes;
  for (int r = 0; r < 3; ++r) axes.row(r) << c.axes[3 * r], c.axes[3 * r + 1], c.axes[3 * r + 2];
  const pin::SE3 in_first(data.oMi[first].rotation().transpose() * axes.transpose(),
                          built.placement[c.other].act(vec(c.other_point)));
  const pin::SE3 in_second(Eigen::Matrix3d::Identity(), built.placement[c.body].act(vec(c.point)));
  pin::PointContactConstraintModel made(built.model, first, in_first, second, in_second);
  made.desired_constraint_offset = (data.oMi[first] * in_first).actInv(data.oMi[second] * in_second).translation();
  return made;
}

}  // namespace bench
