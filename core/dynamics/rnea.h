// Inverse dynamics τ = M(q) ν̇ + c(q, ν) − Jᵀf by the recursive Newton–Euler algorithm, O(n).
//
//   v_i = v_p + S ν,   a_i = a_p + S ν̇ + v_i × S ν,   f_i = I a_i + v_i ×* I v_i − f_ext,
//       τ = Sᵀ f_i + armature ν̇,   f_p += f_i
//
// Featherstone, Rigid Body Dynamics Algorithms, table 5.1; here in world axes, where f_p += f_i moves no coordinates.
#pragma once

#include "dynamics/kinematics.h"

namespace delassus {

// I a + v ×* I v about the tree's origin: Newton at the centre of mass, Euler in link axes.
template <class T, class C>
inline Vec6<T> inertial_force(const Inertial<C>& link, const Pose<T>& X, const Vec6<T>& v, const Vec6<T>& a) {
  const Vec3<T> c = X * link.center;
  const Vec3<T> vc = v.lin + cross(v.ang, c);
  const Vec3<T> force = (a.lin + cross(a.ang, c) + cross(v.ang, vc)) * link.mass;
  const Vec3<T> w = transpose_times(X.R, v.ang);
  const Vec3<T> moment = X.R * (link.inertia * transpose_times(X.R, a.ang) + cross(w, link.inertia * w));
  return {force, moment + cross(c, force)};
}

template <class T>
inline void inertial_forces(const Placement<T>& w, Motions<T>& m) {
  for (int b = 0; b < m.f.blocks(); ++b)
    m.f.block(b) = inertial_force(w.inertial[b], w.pose.block(b), m.v.block(b), m.a.block(b));
}

// The same where all accelerations are larger by `up`.
template <class T>
inline void inertial_forces(const Placement<T>& w, Motions<T>& m, const Vec3<real_of<T>>& up) {
  for (int b = 0; b < m.f.blocks(); ++b) {
    auto a = m.a.block(b);
    a.lin = a.lin + up;
    m.f.block(b) = inertial_force(w.inertial[b], w.pose.block(b), m.v.block(b), a);
  }
}

// Wrenches on bodies, [force; torque] in world axes at each body's centre of mass, taken off the link forces.
template <class T>
inline void subtract_external(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m, const T* external) {
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const auto& body = model.bodies[b];
    if (body.link < 0) continue;
    const T* e = external + 6 * b;
    const Vec3<T> force{e[0], e[1], e[2]}, torque{e[3], e[4], e[5]};
    const Vec6<T> wrench{force, torque + cross(w.pose[body.link] * body.center, force)};
    m.f.set(body.link, m.f[body.link] - wrench);
  }
}

// A run of ranks, the leaves first: forces on links projected on the joints, the rest handed to the parent.
template <class T>
[[gnu::always_inline]] inline void project_ranks(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m,
                                                 const T* vdot, T* tau, int begin, int end) {
  using P = LinkPack<T>;
  Vec6<P> f{};
  for (int r = end - 1; r >= begin; --r) {
    const auto& rank = w.ranks.ranks[r];
    f += m.f.block(rank.block);
    P torque = dot(w.rank_S[r], f);
    if (vdot) torque += gather_lanes(vdot, rank.armature) * gather_lanes(model.armature.data(), rank.armature);
    for (int l = 0; l < link_lanes<T>; ++l)
      if (rank.has(l)) tau[rank.iv[l]] = torque[l];
    if (rank.joined) continue;
    for (int l = 0; l < link_lanes<T>; ++l)
      if (rank.leaves(l)) m.f.add(rank.parent[l], get_lane(f, l));
    f = rank.kept(f);
  }
}

// A run of single links, the leaves first.
template <class T>
[[gnu::always_inline]] inline void project_links(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m,
                                                 const T* vdot, T* tau, int begin, int end) {
  const int* single = w.ranks.single.data();
  Vec6<T> handed{};  // by the next link, if it hangs on this one
  for (int n = end - 1; n >= begin; --n) {
    const auto& link = model.links[single[n]];
    const Vec6<T> f = m.f[single[n]] + handed;
    for (int k = link.iv; k < link.iv + link.nv; ++k)
      tau[k] = vdot ? dot(w.S[k], f) + vdot[k] * model.armature[k] : dot(w.S[k], f);
    handed = Vec6<T>{};
    if (link.parent >= 0 && n > begin && link.parent == single[n - 1])
      handed = f;
    else if (link.parent >= 0)
      m.f.add(link.parent, f);
  }
}

// Backward: torques of all joints. vdot may be null (zero); tau may be vdot.
template <class T>
void joint_forces(const Model<real_of<T>>& model, const Placement<T>& w, Motions<T>& m, const T* vdot, T* tau) {
  for (auto part = w.ranks.parts.rbegin(); part != w.ranks.parts.rend(); ++part) {
    if constexpr (link_lanes<T> > 1)
      if (part->abreast) {
        project_ranks(model, w, m, vdot, tau, part->begin, part->end);
        continue;
      }
    project_links(model, w, m, vdot, tau, part->begin, part->end);
  }
}

// vdot may be null (zero), external may be null (none); tau may be vdot or v.
template <class T>
void rnea(const Model<real_of<T>>& model, Workspace<T>& w, const T* v, const T* vdot, const T* external, T* tau) {
  // forward: motions and the force each link needs; gravity is an upward acceleration of the ground
  const Vec3<T> up{constant<T>(-model.gravity.x), constant<T>(-model.gravity.y), constant<T>(-model.gravity.z)};
  motions(model, w, w, v, vdot, up);
  inertial_forces(w, w);
  if (external) subtract_external(model, w, w, external);
  joint_forces(model, w, w, vdot, tau);
}

}  // namespace delassus
