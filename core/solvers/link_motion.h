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

  explicit LinkMotion(std::size_t links) : chain(links) { a.resize(links); }
  std::size_t bytes() const { return a.bytes() + chain.size() * sizeof(Chain); }

  // Links in blocks as a and the poses have them, `width` of them side by side.
  void find(const Model<Real>& model, const Placement<T>& w, const T* vdot) {
    constexpr int width = PerLink<Vec6, T>::width;
    Vec6<T> acceleration{};
    Vec3<T> frame{};
    Chain c{};
    for (int b = 0, i = 0; b < a.blocks(); ++b) {
      const T* place = reinterpret_cast<const T*>(&w.pose.block(b).p);
      T* out = reinterpret_cast<T*>(&a.block(b));
      for (int l = 0; l < width && i < int(model.links.size()); ++l, ++i) {
        const auto& link = model.links[i];
        const Vec3<T> here{place[l], place[width + l], place[2 * width + l]};
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
        for (int k = 0; k < 3; ++k) {
          out[k * width + l] = (&acceleration.lin.x)[k];
          out[(3 + k) * width + l] = (&acceleration.ang.x)[k];
        }
        chain[std::size_t(i)] = c;
        frame = here;
      }
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
