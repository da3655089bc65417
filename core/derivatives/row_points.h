// Points of bodies for constraint rows: position, velocity, acceleration and rotation in world axes, their tangents
// along a direction of the state, and their adjoints.
//
//   ẋ = v + ω × x,   ẍ = a + α × x + ω × ẋ,   x about the tree's origin; (v, ω), (a, α) of the link, ground at rest
//
// Displacing a link by the twist t = (t, φ) moves x by t + φ × x. T: scalar type of the state; D: of directions, one or
// a pack of them.
#pragma once

#include "constraints/constraints.h"
#include "state/frames.h"

namespace delassus {

template <class T>
struct RowPoint {
  int link;  // −1: the ground, on which all but x is zero
  Vec3<T> x, velocity, acceleration, spin, turning;
};

// The spatial acceleration of a link less that of the ground, which carries gravity.
template <class T>
inline RowPoint<T> row_point(int link, const Vec3<T>& x, const Vec6<T>& v, const Vec6<T>& a, const Vec3<T>& ground) {
  const Vec3<T> velocity = v.lin + cross(v.ang, x);
  return {link, x, velocity, a.lin - ground + cross(a.ang, x) + cross(v.ang, velocity), v.ang, a.ang};
}

// What changes along a direction; `turn` is the rotation of the body.
template <class D>
struct PointTangent {
  Vec3<D> x, turn, velocity, spin, acceleration, turning;
};

// Tangents of links: twist, velocity, acceleration, and force on the link.
template <class D>
struct LinkTangent {
  Vec6<D> twist, v, a, f;
};

template <class T, class D>
inline PointTangent<D> tangent_of(const RowPoint<T>& p, const std::vector<LinkTangent<D>>& links) {
  PointTangent<D> d{};
  if (p.link < 0) return d;
  const LinkTangent<D>& l = links[std::size_t(p.link)];
  d.x = l.twist.lin + cross(l.twist.ang, p.x);
  d.turn = l.twist.ang;
  d.spin = l.v.ang;
  d.velocity = l.v.lin + cross(d.spin, p.x) + cross(p.spin, d.x);
  d.turning = l.a.ang;
  d.acceleration =
      l.a.lin + cross(d.turning, p.x) + cross(p.turning, d.x) + cross(d.spin, p.velocity) + cross(p.spin, d.velocity);
  return d;
}

// A force and a moment that rows put on a point: their tangent is taken off that of the force on the link.
template <class T, class D>
inline void take_off(const RowPoint<T>& p, const Vec3<T>& x, const Vec3<D>& dx, const Vec3<T>& force,
                     const Vec3<D>& dforce, const Vec3<D>& dmoment, std::vector<LinkTangent<D>>& links) {
  if (p.link < 0) return;
  links[std::size_t(p.link)].f -= Vec6<D>{dforce, cross(dx, force) + cross(x, dforce) + dmoment};
}

// Derivatives of a number by all of a point, and by the velocity and spin of a virtual motion.
template <class D>
struct PointAdjoint {
  Vec3<D> x{}, turn{}, velocity{}, spin{}, acceleration{}, turning{}, virtual_velocity{}, virtual_spin{};
};

// Of links: by twist, velocity and acceleration. `w` is the link's virtual motion.
template <class D>
struct LinkAdjoint {
  Vec6<D> w, twist, v, a;
};

// Velocity and spin of a point in the virtual motion.
template <class T, class D>
inline Vec6<D> virtual_motion(const RowPoint<T>& p, const std::vector<LinkAdjoint<D>>& links) {
  if (p.link < 0) return Vec6<D>{};
  const Vec6<D>& w = links[std::size_t(p.link)].w;
  return {w.lin + cross(w.ang, p.x), w.ang};
}

template <class T, class D>
inline void add_adjoint(const RowPoint<T>& p, PointAdjoint<D> d, std::vector<LinkAdjoint<D>>& links) {
  if (p.link < 0) return;
  LinkAdjoint<D>& l = links[std::size_t(p.link)];
  // ẍ = a + α × x + ω × ẋ
  d.turning += cross(p.x, d.acceleration);
  d.spin += cross(p.velocity, d.acceleration);
  d.velocity += cross(d.acceleration, p.spin);
  d.x += cross(d.acceleration, p.turning);
  // ẋ = v + ω × x, in both motions
  d.spin += cross(p.x, d.velocity);
  d.x += cross(d.velocity, p.spin) + cross(d.virtual_velocity, l.w.ang);
  l.v += Vec6<D>{d.velocity, d.spin};
  l.a += Vec6<D>{d.acceleration, d.turning};
  l.twist += Vec6<D>{d.x, cross(p.x, d.x) + d.turn};
}

}  // namespace delassus
