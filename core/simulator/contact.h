// Points where bodies touch: where they are, and what they bore.
#pragma once

#include <array>
#include <vector>

#include "spatial/spatial.h"

namespace delassus {

// A point where two shapes touch, or are about to.
struct Touch {
  int geom[2];
  int body[2];      // the normal goes from the second to the first
  double distance;  // negative: penetration [m]
  double base;      // the distance where it was found, at which the two points in `local` coincide [m]
  double friction;
  Vec3<double> position, normal;  // in world axes
  Vec3<double> local[2];          // the position on each body where it was found
  Vec3<double> anchor[2];         // the position on each body now: where its rows act
};

inline bool same_pair(const Touch& a, const Touch& b) { return a.geom[0] == b.geom[0] && a.geom[1] == b.geom[1]; }

// A touch, and what it bore; in world axes.
struct Contact {
  Touch touch;
  Vec3<double> impulse, correction;  // of velocities [N s]; of positions
  bool known;                        // it touched in the step before
};

// The normal, and two tangents.
using ContactFrame = std::array<Vec3<double>, 3>;
ContactFrame contact_frame(const Vec3<double>& normal);

}  // namespace delassus
