// Points of one group side by side in a register: what a pack of them is, and its forces, projections and stiffness.
// The arithmetic is that of one point (points.h).
#pragma once

#include <span>

#include "operators/strips.h"

namespace delassus {

template <class T>
struct PointPack {
  using P = StripPack<T>;
  Vec3<P> axes[3];          // zero in empty lanes
  Vec3<P> position[2];      // on the group's link and on the other, at the present kinematics
  P full;                   // one in lanes that are not empty
  int row[strip_lanes<T>];  // empty lanes repeat the first
  int count;
};

// Force of points on their link, and its moments on both links.
template <class T>
struct PointForce {
  Vec6<T> force;
  Vec3<T> other_moment;
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

// The numbers of the points of a pack, `r` after their first rows.
template <class T>
inline StripPack<T> gather_rows(const PointPack<T>& pack, const T* rows, int r) {
  return StripPack<T>{rows[pack.row[0] + r], rows[pack.row[1] + r], rows[pack.row[2] + r], rows[pack.row[3] + r]};
}

// And back.
template <class T>
[[gnu::always_inline]] inline void scatter_rows(const PointPack<T>& pack, StripPack<T> y, T* rows, int r) {
  // last to first: empty lanes repeat the first one's row
  rows[pack.row[3] + r] = y[3];
  rows[pack.row[2] + r] = y[2];
  rows[pack.row[1] + r] = y[1];
  rows[pack.row[0] + r] = y[0];
}

// Σ Aᵀ λ and its moments
template <class T>
inline PointForce<T> sum_forces(std::span<const PointPack<T>> packs, const T* lambda, bool two) {
  using P = StripPack<T>;
  Vec3<P> total{}, moment{}, other{};
  for (const auto& pack : packs) {
    const Vec3<P> force = pack.axes[0] * gather_rows(pack, lambda, 0) + pack.axes[1] * gather_rows(pack, lambda, 1) +
                          pack.axes[2] * gather_rows(pack, lambda, 2);
    total += force;
    moment += cross(pack.position[0], force);
    if (two) other += cross(pack.position[1], force);
  }
  const P sums[12] = {total.x, total.y, total.z, moment.x, moment.y, moment.z, other.x, other.y, other.z};
  T all[12];
  sum_lanes<T>(sums, all);
  return {{{all[0], all[1], all[2]}, {all[3], all[4], all[5]}}, {all[6], all[7], all[8]}};
}

// Rows of points on links that accelerate by a and b: A (v₁ + ω₁ × p₁ − v₂ − ω₂ × p₂)
template <class T>
inline void project_packs(std::span<const PointPack<T>> packs, const Vec6<T>& a, const Vec6<T>& b, bool two, T* rows) {
  using P = StripPack<T>;
  const Vec3<T> lin = a.lin - b.lin;
  for (const auto& pack : packs) {
    Vec3<P> v = cross(a.ang, pack.position[0]) + lin;
    if (two) v -= cross(b.ang, pack.position[1]);
    for (int r = 0; r < 3; ++r) scatter_rows<T>(pack, dot(pack.axes[r], v), rows, r);
  }
}

// Point masses of all packs; `swapped`: the second link first.
template <class T>
inline void sum_stiffness(std::span<const PointPack<T>> packs, const T* stiffness, bool swapped, bool two,
                          PointSums<T>& sums) {
  using P = StripPack<T>;
  PointSums<P> all{};
  for (const auto& pack : packs)
    all.add(gather_rows(pack, stiffness, 0) * pack.full, pack.position[swapped], pack.position[1 - swapped], two);
  sum_lanes<T>(reinterpret_cast<const P(&)[28]>(all), reinterpret_cast<T(&)[28]>(sums));
}

}  // namespace delassus
