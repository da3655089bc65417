// Detects shapes that passed through each other between two collision checks.
//
// Shapes farther apart than the contact margin are not detected. One may be on the other side at the next check, if
// some point of it moved by more than half of its width plus the margin. So, from cheap to expensive:
//
//   1  a bound on the way of every shape from the speeds of its joints: mostly it is short, and that is all
//   2  the way itself: it must be long, with something in it, a ball around another shape that the ball around this
//      one sweeps
//   3  contacts at configurations on the way, half a width apart. A pair went through that is inside of each other
//      there, was not seen at the start, and at the end is apart or on the other side
//
// Planes are half-spaces: a shape that entered one is still in it.
#pragma once

#include <cstdint>
#include <vector>

#include "dynamics/kinematics.h"
#include "simulator/collider.h"
#include "simulator/description.h"
#include "simulator/link_speeds.h"

namespace delassus {

class TunnellingCheck {
 public:
  explicit TunnellingCheck(const WorldDescription& world);

  // Sizes of shapes in the description were changed by its owner.
  void read_numbers();

  // Whether any shape may have come far enough within a timestep, moving with v near q.
  bool possible(const double* q, const double* v);

  // How many pairs went through each other between two configurations, with contacts seen at the first; −1: MuJoCo
  // could not go on. still: as the collider takes it.
  int count(Collider& collider, const std::vector<Touch>& seen, const double* from, const double* to,
            const std::vector<char>* still);

 private:
  struct Mover {
    int link;
    double arm;         // from the link's origin to the shape's farthest point [m]
    double safe_speed;  // that does not bring it far enough [m/s]
  };
  struct ShapeMotion {
    Vec3<double> start, end;  // of its centre
    double way;               // of the point that moved most, at most
  };

  double allowed(const CollisionShape& s) const { return s.half_width + world_.contact_reach; }
  Pose<double> pose(const Placement<double>& w, int body) const;
  int find_ways(const double* from, const double* to);
  bool something_in_the_way(std::size_t shape) const;

  const WorldDescription& world_;
  LinkSpeeds speeds_;
  std::vector<Mover> movers_;          // per shape that may move
  std::vector<double> way_, between_;  // per velocity; per coordinate
  std::vector<ShapeMotion> motions_;   // per shape
  std::vector<Touch> touches_, entered_;
  std::vector<std::uint64_t> seen_;  // pairs of shapes that touched at the start, sorted
  Placement<double> start_, end_;
};

}  // namespace delassus
