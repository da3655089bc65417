// Link accelerations from joint accelerations, a_i = a_p + S ν̇, and the sums of the magnitudes of their terms: O(n).
#pragma once

#include <vector>

#include "dynamics/kinematics.h"
#include "solvers/equations.h"
#include "solvers/quad.h"

namespace delassus {

// Magnitudes of accelerations of several joints, the linear ones at the frame of a link.
template <class T>
struct Reach {
  T linear, angular;
};

template <class T>
struct LinkMotion {
  using Real = real_of<T>;

  // Of a link.
  struct Chain {
    Quad<T> offset;  // from the frame of the link it hangs on to its own, and its length
    Reach<T> reach;  // of all joints from the base to this link
    T distance;      // length of all offsets from the base
  };

  PerLink<Vec6, T> a;  // about the tree's origin, without gravity
  std::vector<Chain> chain;

  explicit LinkMotion(const Model<Real>& model) : chain(model.links.size()) { a.resize(link_slots<T>(model)); }
  std::size_t bytes() const { return a.bytes() + chain.size() * sizeof(Chain); }

  void find(const Model<Real>& model, const Placement<T>& w, const T* vdot) {
    constexpr int width = PerLink<Vec6, T>::width;
    Vec6<T> acceleration{};
    Vec3<T> frame{};
    Chain c{};
    for (int i = 0; i < int(model.links.size()); ++i) {
      const auto& link = model.links[i];
      const T* place = w.pose.lane(i) + 9 * width;
      const Vec3<T> here{place[0], place[width], place[2 * width]};
      if (link.parent < 0) {
        acceleration = Vec6<T>{};
        c = Chain{};
      } else {
        if (link.parent != i - 1) {
          acceleration = a[link.parent];
          frame = w.pose[link.parent].p;
          c = chain[std::size_t(link.parent)];
        }
        const Vec3<T> offset = here - frame;
        const T length = size_of(offset);
        c.offset = {offset, length};
        c.reach.linear += c.reach.angular * length;
        c.distance += length;
      }
      acceleration += joint_motion(link, w.S.data(), vdot);
      if (link.type == Joint::hinge)
        c.reach.angular += magnitude(vdot[link.iv]);
      else
        for (int k = 0; k < link.nv; ++k)
          (moves_along(link.type, k) ? c.reach.linear : c.reach.angular) += magnitude(vdot[link.iv + k]);
      a.set(i, acceleration);
      chain[std::size_t(i)] = c;
      frame = here;
    }
  }

  // Of the joints between link `common`, −1: the ground, and link i.
  Reach<T> reach_above(int i, int common) const {
    Reach<T> reach = chain[std::size_t(i)].reach;
    if (common < 0) return reach;
    const Chain &to = chain[std::size_t(i)], &from = chain[std::size_t(common)];
    reach.linear =
        larger(T(reach.linear - from.reach.linear - from.reach.angular * (to.distance - from.distance)), T{});
    reach.angular = larger(T(reach.angular - from.reach.angular), T{});
    return reach;
  }
};

}  // namespace delassus
