// Whether shapes went through each other from one look at contacts to the next.
//
// A shape farther from another than the reach of contacts is not seen. It may be on the other side when contacts are
// looked for again, if some point of it moved by more than half of its width and the reach. So, from cheap to dear:
//
//   1  a bound on the way of every shape from the speeds of its joints: mostly it is short, and that is all
//   2  the way itself: it must be long, with something in it,
//      a ball around another shape that the ball around this one
//      sweeps
//   3  contacts at places on the way, half a width apart. A pair went through that is inside of each other there, was
//      not seen at the start, and at the end is apart or on the other side
//
// Planes are half-spaces: what went into one is still in it.
#pragma once

#include "dynamics/kinematics.h"
#include "simulator/description.h"
#include "state/configuration.h"

namespace delassus {

class Sweep {
 public:
  explicit Sweep(const WorldDescription& world) : world_(world), start_(world.model), end_(world.model) {
    speeds_.resize(world.model.links.size());
    way_.resize(std::size_t(world.model.nv));
    between_.resize(std::size_t(world.model.nq));
    places_.resize(world.shapes.size());
    const auto length = [](const Vec3<double>& x) { return std::sqrt(dot(x, x)); };
    for (const auto& link : world.model.links) lengths_.push_back(length(link.placement.p));
    for (const auto& shape : world.shapes) {
      const auto& body = world.model.bodies[std::size_t(shape.body)];
      const double arm = length(body.placement.p) + length(shape.center) + shape.lever;
      if (body.link >= 0) movers_.push_back({body.link, arm, allowed(shape) / world.timestep});
    }
  }

  // Whether any shape may have come far enough within a timestep, moving with v near q.
  bool may_pass(const double* q, const double* v) {
    const auto& m = world_.model;
    const auto length = [](const double* x) { return std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]); };
    // bounds on speeds: of a link's origin, and of turning
    for (std::size_t i = 0; i < m.links.size(); ++i) {
      const auto& link = m.links[i];
      const double* x = v + link.iv;
      Speeds s{};
      if (link.parent >= 0) {
        const Speeds& p = speeds_[std::size_t(link.parent)];
        const double slid = link.type == Joint::slide ? std::abs(q[link.iq]) : 0.0;
        s = {p.linear + p.angular * (lengths_[i] + slid), p.angular};
      }
      if (link.type == Joint::hinge)
        s.angular += std::abs(x[0]);
      else if (link.type == Joint::slide)
        s.linear += std::abs(x[0]);
      else if (link.type == Joint::ball)
        s.angular += length(x);
      else
        s = {length(x), length(x + 3)};
      speeds_[i] = s;
    }
    for (const auto& mover : movers_) {
      const Speeds& s = speeds_[std::size_t(mover.link)];
      if (s.linear + s.angular * mover.arm > mover.slow) return true;
    }
    return false;
  }

  // How many pairs passed through each other between two configurations, with contacts seen at the first; −1: MuJoCo
  // could not go on.
  int passed(Collider& collider, const std::vector<Touch>& seen, const double* from, const double* to) {
    const int places = ways(from, to);
    if (places == 0) return 0;
    entered_.clear();
    const auto& m = world_.model;
    difference(m, from, to, way_.data());
    for (int k = 1; k <= places; ++k) {
      integrate(m, from, way_.data(), double(k) / places, between_.data());
      if (!collider.collide(k < places ? between_.data() : to, touches_)) return -1;
      for (const auto& t : touches_)
        if (t.distance < -world_.slop && !find(seen, t) && !find(entered_, t)) entered_.push_back(t);
    }
    int count = 0;
    for (const auto& t : entered_) {
      const Touch* end = find(touches_, t);
      count += !end || dot(end->normal, t.normal) < 0.5;  // the other side, or no side to be told
    }
    return count;
  }

 private:
  struct Speeds {
    double linear, angular;
  };
  struct Mover {
    int link;
    double arm, slow;  // from the link's origin to its farthest point; a speed that does not bring it far enough
  };
  struct Place {
    Vec3<double> start, end;
    double way;  // of the point that moved most, at most
  };
  static constexpr int max_places = 256;

  double allowed(const WorldDescription::Shape& s) const { return s.half_width + world_.reach; }
  static const Touch* find(const std::vector<Touch>& list, const Touch& t) {
    const auto [a, b] = std::minmax(t.geom[0], t.geom[1]);
    for (const auto& x : list)
      if (std::min(x.geom[0], x.geom[1]) == a && std::max(x.geom[0], x.geom[1]) == b) return &x;
    return nullptr;
  }
  Pose<double> pose(const Placement<double>& w, int body) const {
    const auto& b = world_.model.bodies[std::size_t(body)];
    if (b.link < 0) return b.placement;
    Pose<double> X = body_pose(world_.model, w, body);
    X.p += w.origin[std::size_t(world_.model.links[std::size_t(b.link)].tree)];
    return X;
  }

  // Ways of all shapes; returns how many places to look at, for those that came far with something in their way.
  int ways(const double* from, const double* to) {
    const auto& m = world_.model;
    kinematics(m, start_, from);
    kinematics(m, end_, to);
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const auto& shape = world_.shapes[k];
      const Pose<double> a = pose(start_, shape.body), b = pose(end_, shape.body);
      const Vec3<double> x = a * shape.center, y = b * shape.center, d = y - x;
      const Vec3<double> c[3] = {b.R.x - a.R.x, b.R.y - a.R.y, b.R.z - a.R.z};
      // ‖R₂ − R₁‖, the largest way of a unit vector that is turned
      const double turn = std::sqrt(0.5 * (dot(c[0], c[0]) + dot(c[1], c[1]) + dot(c[2], c[2])));
      places_[k] = {x, y, std::sqrt(dot(d, d)) + turn * shape.lever};
    }
    double most = 0;
    for (std::size_t k = 0; k < places_.size(); ++k)
      if (places_[k].way > allowed(world_.shapes[k]) && something_in_the_way(k))
        most = std::max(most, places_[k].way / world_.shapes[k].half_width);
    return int(std::min(std::ceil(most), double(max_places)));
  }
  bool something_in_the_way(std::size_t k) const {
    const auto& [start, end, way] = places_[k];
    const Vec3<double> d = end - start;
    const double length = dot(d, d);
    for (std::size_t n = 0; n < places_.size(); ++n) {
      if (world_.shapes[n].body == world_.shapes[k].body) continue;
      const Vec3<double> to = places_[n].start - start;
      const double share = length > 0 ? std::clamp(dot(to, d) / length, 0.0, 1.0) : 0.0;
      const Vec3<double> apart = to - d * share;
      const double reach = world_.shapes[k].radius + world_.shapes[n].radius + places_[n].way;
      if (dot(apart, apart) <= reach * reach) return true;
    }
    return false;
  }

  const WorldDescription& world_;
  std::vector<double> lengths_;        // a link: from its parent
  std::vector<Speeds> speeds_;         // a link
  std::vector<Mover> movers_;          // a shape that may move
  std::vector<double> way_, between_;  // a velocity; a coordinate
  std::vector<Place> places_;          // a shape
  std::vector<Touch> touches_, entered_;
  Placement<double> start_, end_;
};

}  // namespace delassus
