// Puts the contact points of two faces that rest on each other into one plane.
//
// Collision detection places each point in the middle of its own gap, so the points of a face differ in height by a few
// micrometres. Sticking rows that would be linearly dependent in a plane are then nearly dependent: they can only all
// hold with forces a thousand times too large, and no solver finds the right ones. In one plane they are exactly
// dependent. Gaps are not changed.
#pragma once

#include <vector>

#include "simulator/collider.h"

namespace delassus {

class ContactPatches {
 public:
  // Moves points along the normal, by at most about a tenth of a millimetre, and gives points of one plane the same
  // normal.
  void flatten(const Collider& collider, std::vector<Touch>& touches);

 private:
  struct Plane {
    Vec3<double> normal;
    double height, sum;  // of its first point, of all of them together, relative to the first
    int count;
  };
  std::vector<int> order_, plane_of_;  // touches by pairs of bodies; a touch: its plane
  std::vector<Plane> planes_;
};

}  // namespace delassus
