// Mocap bodies, which the user moves: no force moves them, and contacts and loops see their velocity.
//
// The user sets a goal pose. The body moves there within a step, at no more than 10 m/s and 50 rad/s, so that a distant
// goal is a fast motion and not an impact:
//
//   x⁺ = x + dt ẋ,   R⁺ = exp(dt ω) R,   velocity of its point p: ẋ + ω × (p − x)
//
// Rows on such a body subtract this velocity: contacts that of the contact point, loops the change of their error
// between the two poses.
#pragma once

#include <vector>

#include "simulator/description.h"

namespace delassus {

// One of them within a step.
struct MocapMotion {
  Pose<double> now, next;
  Vec3<double> linear, angular;  // [m/s], [rad/s], world axes
  bool moves() const { return dot(linear, linear) + dot(angular, angular) > 0; }
  Vec3<double> velocity(const Vec3<double>& point) const { return linear + cross(angular, point - now.p); }
};

// From poses now, and goals, as MuJoCo has them: positions of all, then unit quaternions of all. next: the same of the
// end of the step.
void find_mocap_motions(const StepOptions& options, const std::vector<double>& now, const std::vector<double>& goals,
                        std::vector<double>& next, std::vector<MocapMotion>& motions);

}  // namespace delassus
