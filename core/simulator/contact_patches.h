// Points where two bodies rest on each other with one face, made to lie in one plane.
//
// Collision detection puts each point halfway into its own gap, so points of a face differ in height by some
// micrometres. Then sticking rows that depend on each other in a plane depend on each other up to these micrometres
// over the width of the face: only forces a thousand times too large would hold them all, and no solver finds the right
// ones. In one plane they depend on each other exactly. Gaps stay what they are.
#pragma once

#include <vector>

#include "simulator/collider.h"

namespace delassus {

class ContactPatches {
 public:
  // Moves points along the normal by a tenth of a millimetre or so at most, and gives those of one plane one normal.
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
