// Contact points: their geometry, and their impulses in the previous step.
#pragma once

#include <array>
#include <vector>

#include "spatial/spatial.h"

namespace delassus {

// A point where two shapes touch, or are about to.
struct Touch {
  int geom[2];
  int body[2];        // the normal goes from the second to the first
  double distance;    // negative: penetration [m]
  double base;        // the distance where it was found, at which the two points in `local` coincide [m]
  double separation;  // of the shapes themselves where it was found, margins not counted [m]
  double raised;      // along the normal, to the plane of its face (contact_patches.h) [m]
  bool kept;          // it was not found now, but in a step before
  double friction;
  double restitution;             // e, from 0 to 1
  int rows;                       // 3: normal and tangents; 4: also spin; 6: also rolling about both tangents
  double scales[4];               // of rows after the first tangent: its coefficient of friction over that of the first
  Vec3<double> position, normal;  // in world axes
  Vec3<double> tangent;           // the first, where friction differs between directions; else zero
  Vec3<double> local[2];          // the position on each body where it was found
  Vec3<double> anchor[2];         // the position on each body now: where its rows act
  // how surfaces that move by themselves do so there, the first relative to the second [m/s], [rad/s], world axes
  Vec3<double> surface, surface_spin;
};

inline bool same_pair(const Touch& a, const Touch& b) { return a.geom[0] == b.geom[0] && a.geom[1] == b.geom[1]; }

// A contact and its impulse, in world axes.
struct Contact {
  Touch touch;
  Vec3<double> impulse, correction;  // of velocities [N s]; of positions
  Vec3<double> turn;                 // torque of friction times the step [N m s]
  bool known;                        // it touched in the step before
};

// What row r of a contact is scaled by: rows of other coefficients than the first tangent's are felt that much more.
inline double row_scale(const Touch& t, int r) { return r < 2 ? 1 : t.scales[r - 2]; }

// Whether all its friction is Coulomb's, the same in all directions: then its rows are those of a point.
inline bool is_plain(const Touch& t) { return t.rows == 3 && t.scales[0] == 1; }

// The normal, and two tangents.
using ContactFrame = std::array<Vec3<double>, 3>;
ContactFrame contact_frame(const Vec3<double>& normal);
ContactFrame contact_frame(const Touch& touch);

}  // namespace delassus
