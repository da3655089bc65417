#include "simulator/mocap.h"

#include <algorithm>
#include <cmath>

#include "spatial/quaternion.h"

namespace delassus {

namespace {

constexpr double max_mocap_speed = 10, max_mocap_spin = 50;  // [m/s], [rad/s]

// x, no longer than a length
Vec3<double> limited(const Vec3<double>& x, double length) {
  const double own = std::sqrt(dot(x, x));
  return own > length ? x * (length / own) : x;
}

Pose<double> pose_at(const std::vector<double>& poses, std::size_t k) {
  const double *p = poses.data() + 3 * k, *q = poses.data() + 3 * (poses.size() / 7) + 4 * k;
  return {rotation(q[0], q[1], q[2], q[3]), {p[0], p[1], p[2]}};
}

}  // namespace

void find_mocap_motions(const StepOptions& options, const std::vector<double>& now, const std::vector<double>& goals,
                        std::vector<double>& next, std::vector<MocapMotion>& motions) {
  const double dt = options.timestep;
  const std::size_t n = now.size() / 7;
  next.resize(now.size());
  motions.resize(n);
  for (std::size_t k = 0; k < n; ++k) {
    MocapMotion& m = motions[k];
    m.now = pose_at(now, k);
    const Pose<double> goal = pose_at(goals, k);
    const Vec3<double> way = limited(goal.p - m.now.p, dt * max_mocap_speed);
    const Vec3<double> turn = limited(logarithm(quaternion(goal.R * transpose(m.now.R))), dt * max_mocap_spin);
    m.linear = way * (1 / dt), m.angular = turn * (1 / dt);
    m.next.p = m.now.p + way;
    // exp(turn) q
    const double* q = now.data() + 3 * n + 4 * k;
    const Quaternion<double> e = exponential(turn) * Quaternion<double>{q[0], q[1], q[2], q[3]};
    const double numbers[4] = {e.w, e.x, e.y, e.z};
    const Quaternion<double> turned = normalized(numbers);
    m.next.R = rotation(turned.w, turned.x, turned.y, turned.z);
    double *p_to = next.data() + 3 * k, *q_to = next.data() + 3 * n + 4 * k;
    p_to[0] = m.next.p.x, p_to[1] = m.next.p.y, p_to[2] = m.next.p.z;
    q_to[0] = turned.w, q_to[1] = turned.x, q_to[2] = turned.y, q_to[3] = turned.z;
  }
}

}  // namespace delassus
