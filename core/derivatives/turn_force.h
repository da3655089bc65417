// Forces that are linear in a rotation ω: B ω = [ω × b; N ω], twelve numbers. They add up along the tree.
//
// The force of a link, f = I a + v ×* I v, changes with its velocity by more than ∂a: for a motion Ψ,
//
//   I (Ψ × v) + Ψ ×* I v + v ×* I Ψ = B Ψ_ang,   b = 2 p,   N = −2 (h× v× + ω× J),   J = ½ tr(I_ang) 1 − I_ang
//
// with momentum p = m v + ω × h: of the 6 × 6 matrix only these columns are not zero, about whatever point. A force F
// and a torque t in world axes at a link's point c do not turn with the link: against a wrench that does, that is
// b = F, N = −t× − c× F×.
#pragma once

#include "dynamics/rnea.h"

namespace delassus {

template <class T>
struct TurnForce {
  Vec3<T> b;
  Mat3<T> N;
};

template <class T>
inline TurnForce<T> operator+(const TurnForce<T>& a, const TurnForce<T>& c) {
  return {a.b + c.b, {a.N.x + c.N.x, a.N.y + c.N.y, a.N.z + c.N.z}};
}
template <class T>
inline TurnForce<T>& operator+=(TurnForce<T>& a, const TurnForce<T>& c) {
  return a = a + c;
}
template <class T>
inline Vec6<T> operator*(const TurnForce<T>& B, const Vec3<T>& turn) {
  return {cross(turn, B.b), B.N * turn};
}
// Bᵀ S: what the force of a turn does along the motion S, as a vector to multiply the turn with
template <class T>
inline Vec3<T> transpose_times(const TurnForce<T>& B, const Vec6<T>& S) {
  return cross(B.b, S.lin) + transpose_times(B.N, S.ang);
}

// B of a rigid inertia that moves with v.
template <class T>
inline TurnForce<T> velocity_turn_force(const Inertia<T>& A, const Vec6<T>& v) {
  const real_of<T> half = real_of<T>(0.5), two = 2;
  const T trace = (A.I.xx + A.I.yy + A.I.zz) * half, hv = dot(A.h, v.lin);
  // columns of h× v× + ω× J, where h× v× = v hᵀ − (h·v) 1
  Vec3<T> x = v.lin * A.h.x + cross(v.ang, Vec3<T>{trace - A.I.xx, -A.I.xy, -A.I.xz});
  Vec3<T> y = v.lin * A.h.y + cross(v.ang, Vec3<T>{-A.I.xy, trace - A.I.yy, -A.I.yz});
  Vec3<T> z = v.lin * A.h.z + cross(v.ang, Vec3<T>{-A.I.xz, -A.I.yz, trace - A.I.zz});
  x.x -= hv, y.y -= hv, z.z -= hv;
  return {(v.lin * A.m + cross(v.ang, A.h)) * two, {x * -two, y * -two, z * -two}};
}

// −t× − c× F×, with c× F× = F cᵀ − (c·F) 1
template <class T>
inline TurnForce<T> fixed_wrench_turn_force(const Vec3<T>& F, const Vec3<T>& t, const Vec3<T>& c) {
  const T cF = dot(c, F);
  return {F,
          {{cF - F.x * c.x, -t.z - F.y * c.x, t.y - F.z * c.x},
           {t.z - F.x * c.y, cF - F.y * c.y, -t.x - F.z * c.y},
           {-t.y - F.x * c.z, t.x - F.y * c.z, cF - F.z * c.z}}};
}

// B of every link, after `world_inertias` and its motions.
template <class T>
inline void velocity_turn_forces(const Placement<T>& w, const Motions<T>& m, PerLink<TurnForce, T>& B) {
  for (int b = 0; b < B.blocks(); ++b) B.block(b) = velocity_turn_force(w.inertia.block(b), m.v.block(b));
}

// The same of external wrenches, [force; torque] in world axes at each body's centre of mass.
template <class T>
inline void external_turn_forces(const Model<real_of<T>>& model, const Placement<T>& w, const T* external,
                                 PerLink<TurnForce, T>& E) {
  for (int b = 0; b < E.blocks(); ++b) E.block(b) = TurnForce<LinkPack<T>>{};
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const auto& body = model.bodies[b];
    if (body.link < 0) continue;
    const T* e = external + 6 * b;
    E.add(body.link, fixed_wrench_turn_force(Vec3<T>{e[0], e[1], e[2]}, Vec3<T>{e[3], e[4], e[5]},
                                             w.pose[body.link] * body.center));
  }
}

}  // namespace delassus
