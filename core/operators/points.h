// Points of constraints, the most common rows there are: what a pack of them needs at a configuration, and their
// stiffness added up.
#pragma once

#include "operators/strips.h"

namespace delassus {

// Points of one group side by side in a register.
template <class T>
struct PointPack {
  using P = StripPack<T>;
  Vec3<P> axes[3];          // zero in empty lanes
  Vec3<P> place[2];         // at the present kinematics
  P full;                   // one in lanes that are not empty
  int row[strip_lanes<T>];  // empty lanes repeat the first
  int count;
};

// Points of stiffness r on two links: m = Σ r, h = Σ r p and P = Σ r p pᵀ on each, Q = Σ r p₁ p₂ᵀ between them.
template <class N>
struct PointSums {
  N m;
  Vec3<N> h[2];
  Sym3<N> P[2];
  Mat3<N> Q;

  void add(const N& r, const Vec3<N>& p, const Vec3<N>& o, bool two) {
    const Vec3<N> rp = p * r;
    m += r;
    h[0] += rp;
    add_outer(P[0], p, rp);
    if (!two) return;
    const Vec3<N> ro = o * r;
    h[1] += ro;
    add_outer(P[1], o, ro);
    Q.x += p * ro.x;
    Q.y += p * ro.y;
    Q.z += p * ro.z;
  }
};

}  // namespace delassus
