// Joint forces are linear in the inertial parameters of bodies: τ = Y θ + armature ν̇. O(n d).
//
// θ of a body: mass, first moment m c, and the inertia about the body's origin as (xx, xy, yy, xz, yz, zz), both in
// body axes: ten numbers. With ω, α the body's angular velocity and acceleration and d = p̈ − g at its origin, in body
// axes, the force that moves it is
//
//   f = m d + (α× + ω× ω×) m c,   n = m c × d + I α + ω × I ω      (about its origin),      τ_k = S_kᵀ [f; n]
//
// Atkeson, An, Hollerbach, "Estimation of inertial parameters of manipulator loads and links", 1986; the order of θ is
// Pinocchio's.
#pragma once

#include "derivatives/workspace.h"
#include "state/frames.h"

namespace delassus {

// n of the inertia whose entry (row, column) and its mirror image are one: I α + ω × I ω
template <class T>
inline Vec3<T> unit_inertia_moment(int row, int column, const Vec3<T>& omega, const Vec3<T>& alpha) {
  const T turn[3] = {omega.x, omega.y, omega.z}, rate[3] = {alpha.x, alpha.y, alpha.z};
  T momentum[3]{}, moment[3]{};
  momentum[row] = turn[column], moment[row] = rate[column];
  momentum[column] = turn[row], moment[column] = rate[row];
  return Vec3<T>{moment[0], moment[1], moment[2]} + cross(omega, Vec3<T>{momentum[0], momentum[1], momentum[2]});
}

// The force that moves a body, for each of its parameters alone, and the placement of its frame: both in its own axes.
template <class T>
Pose<T> parameter_forces(const Model<real_of<T>>& model, const Placement<T>& w, const Motions<T>& m, std::size_t body,
                         Vec6<T> (&f)[10]) {
  const T o{}, one = constant<T>(1);
  const Vec3<T> unit[3] = {{one, o, o}, {o, one, o}, {o, o, one}};
  constexpr int entry[6][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}};
  const int i = model.bodies[body].link;
  // motion of the body's frame
  const Pose<T> X = w.pose[i] * model.bodies[body].placement;
  const Vec6<T> rate = frame_bias(model, w, m, int(body), Vec3<T>{});
  const Vec3<T> omega = transpose_times(X.R, m.v[i].ang), alpha = transpose_times(X.R, rate.ang),
                d = transpose_times(X.R, rate.lin);
  f[0] = {d, Vec3<T>{}};
  for (int k = 0; k < 3; ++k)
    f[1 + k] = {cross(alpha, unit[k]) + cross(omega, cross(omega, unit[k])), cross(unit[k], d)};
  for (int k = 0; k < 6; ++k) f[4 + k] = {Vec3<T>{}, unit_inertia_moment(entry[k][0], entry[k][1], omega, alpha)};
  return X;
}

// After `motions` with gravity as an acceleration of the ground. Y: nv × 10 bodies, row-major.
template <class T>
void torque_regressor(const Model<real_of<T>>& model, const Placement<T>& w, const Motions<T>& m, T* Y) {
  const std::size_t bodies = model.bodies.size(), row = 10 * bodies;
  for (std::size_t e = 0; e < std::size_t(model.nv) * row; ++e) Y[e] = T{};
  for (std::size_t b = 0; b < bodies; ++b) {
    const int i = model.bodies[b].link;
    if (i < 0) continue;
    Vec6<T> f[10];
    const Pose<T> X = parameter_forces(model, w, m, b, f);

    // on every joint between the body and the ground
    for (int k = model.links[i].iv + model.links[i].nv - 1; k >= 0; k = model.dof_parent[k]) {
      const Vec6<T> S = w.S[k];
      const Vec3<T> lin = transpose_times(X.R, S.lin + cross(S.ang, X.p)), ang = transpose_times(X.R, S.ang);
      T* at = Y + std::size_t(k) * row + 10 * b;
      for (int p = 0; p < 10; ++p) at[p] = dot(lin, f[p].lin) + dot(ang, f[p].ang);
    }
  }
}

// θ̄ += factor Yᵀ µ without Y, O(n): the power of those forces in the motion that µ gives the bodies. θ̄: 10 bodies ×
// columns, µ: nv × columns, of which one column is taken; virtual_motion: room for a link each.
template <class T>
void regressor_adjoint(const Model<T>& model, const Placement<T>& w, const Motions<T>& m, const T* mu, T factor,
                       int columns, int column, std::vector<Vec6<T>>& virtual_motion, T* theta_bar) {
  const std::size_t stride = std::size_t(columns), at = std::size_t(column);
  for (std::size_t i = 0; i < model.links.size(); ++i) {
    const auto& link = model.links[i];
    Vec6<T> W = link.parent >= 0 ? virtual_motion[std::size_t(link.parent)] : Vec6<T>{};
    for (int k = link.iv; k < link.iv + link.nv; ++k) W += w.S[std::size_t(k)] * mu[std::size_t(k) * stride + at];
    virtual_motion[i] = W;
  }
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    if (model.bodies[b].link < 0) continue;
    Vec6<T> f[10];
    const Pose<T> X = parameter_forces(model, w, m, b, f);
    const Vec6<T>& W = virtual_motion[std::size_t(model.bodies[b].link)];
    const Vec3<T> lin = transpose_times(X.R, W.lin + cross(W.ang, X.p)) * factor,
                  ang = transpose_times(X.R, W.ang) * factor;
    for (std::size_t p = 0; p < 10; ++p)
      theta_bar[(10 * b + p) * stride + at] += dot(lin, f[p].lin) + dot(ang, f[p].ang);
  }
}

}  // namespace delassus
