// Places, velocities, Jacobians and J̇v of points and frames fixed to bodies. World axes throughout.
//
// A frame's velocity is [velocity of its point; angular velocity]; column k of its Jacobian is S_k moved to the point.
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

// Placement of body b in the world.
template <class T>
inline Pose<T> body_pose(const Model<real_of<T>>& model, const Placement<T>& w, int b) {
  const auto& body = model.bodies[b];
  if (body.link < 0) {
    const T o{}, one = constant<T>(1);
    return Pose<T>{{{one, o, o}, {o, one, o}, {o, o, one}}, Vec3<T>{}} * body.placement;
  }
  Pose<T> X = w.pose[body.link] * body.placement;
  X.p += w.origin[model.links[body.link].tree];
  return X;
}

// Where `point` (body coordinates) of a moving body stands, relative to its tree's origin.
template <class T>
inline Vec3<T> point_in_tree(const Model<real_of<T>>& model, const Placement<T>& w, int b, const Vec3<T>& point) {
  const auto& body = model.bodies[b];
  return w.pose[body.link] * (body.placement.R * point + body.placement.p);
}

// J: 6 × nv row-major, zero outside the path to the ground.
template <class T>
void frame_jacobian(const Model<real_of<T>>& model, const Placement<T>& w, int b, const Vec3<T>& point, T* J) {
  const std::size_t nv = model.nv;
  for (std::size_t e = 0; e < 6 * nv; ++e) J[e] = T{};
  const int i = model.bodies[b].link;
  if (i < 0) return;
  const Vec3<T> x = point_in_tree(model, w, b, point);
  for (int k = model.links[i].iv + model.links[i].nv - 1; k >= 0; k = model.dof_parent[k]) {
    const Vec3<T> lin = w.S[k].lin + cross(w.S[k].ang, x), ang = w.S[k].ang;
    J[k] = lin.x, J[nv + k] = lin.y, J[2 * nv + k] = lin.z;
    J[3 * nv + k] = ang.x, J[4 * nv + k] = ang.y, J[5 * nv + k] = ang.z;
  }
}

// Velocity of the frame, after `motions`.
template <class T>
inline Vec6<T> frame_velocity(const Model<real_of<T>>& model, const Placement<T>& w, const Motions<T>& m, int b,
                              const Vec3<T>& point) {
  const int i = model.bodies[b].link;
  if (i < 0) return Vec6<T>{};
  const Vec3<T> x = point_in_tree(model, w, b, point);
  const Vec6<T> v = m.v[i];
  return {v.lin + cross(v.ang, x), v.ang};
}

// J̇ν of the frame, after `motions` without joint accelerations and with the ground at rest.
template <class T>
inline Vec6<T> frame_bias(const Model<real_of<T>>& model, const Placement<T>& w, const Motions<T>& m, int b,
                          const Vec3<T>& point) {
  const int i = model.bodies[b].link;
  if (i < 0) return Vec6<T>{};
  const Vec3<T> x = point_in_tree(model, w, b, point);
  const Vec6<T> v = m.v[i], a = m.a[i];
  return {a.lin + cross(a.ang, x) + cross(v.ang, v.lin + cross(v.ang, x)), a.ang};
}

// Both of a point given in numbers.
template <class T>
struct FrameRates {
  Vec6<T> velocity, bias;
};
template <class T>
[[gnu::always_inline]] inline FrameRates<T> frame_rates(const Model<real_of<T>>& model, const Placement<T>& w,
                                                        const Motions<T>& m, int b, const Vec3<real_of<T>>& point) {
  const auto& body = model.bodies[b];
  if (body.link < 0) return {Vec6<T>{}, Vec6<T>{}};
  const Vec3<T> x = w.pose[body.link] * (body.placement.R * point + body.placement.p);
  const Vec6<T> v = m.v[body.link], a = m.a[body.link];
  const Vec3<T> at = v.lin + cross(v.ang, x);
  return {{at, v.ang}, {a.lin + cross(a.ang, x) + cross(v.ang, at), a.ang}};
}

}  // namespace delassus
