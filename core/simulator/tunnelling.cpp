#include "simulator/tunnelling.h"

#include <algorithm>
#include <cmath>

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_places = 256;  // at which contacts are looked for

// The same for both orders of two shapes.
std::uint64_t pair_key(const Touch& t) {
  const auto [a, b] = std::minmax(t.geom[0], t.geom[1]);
  return std::uint64_t(std::uint32_t(a)) << 32 | std::uint32_t(b);
}

double length(const Vec3<double>& x) { return std::sqrt(dot(x, x)); }

// The touch of the same two shapes, in either order; null if there is none.
const Touch* find_pair(const std::vector<Touch>& list, const Touch& t) {
  for (const auto& x : list)
    if (pair_key(x) == pair_key(t)) return &x;
  return nullptr;
}

}  // namespace

TunnellingCheck::TunnellingCheck(const WorldDescription& world)
    : world_(world), speeds_(world.model), start_(world.model), end_(world.model) {
  way_.resize(std::size_t(world.model.nv));
  between_.resize(std::size_t(world.model.nq));
  motions_.resize(world.shapes.size());
  read_numbers();
}

void TunnellingCheck::read_numbers() {
  movers_.clear();
  for (const auto& shape : world_.shapes) {
    const auto& body = world_.model.bodies[std::size_t(shape.body)];
    const double arm = length(body.placement.p) + length(shape.center) + shape.lever;
    if (body.link >= 0) movers_.push_back({body.link, arm, allowed(shape) / world_.options.timestep});
  }
}

bool TunnellingCheck::possible(const double* q, const double* v) {
  const std::vector<LinkSpeed>& speeds = speeds_.find(q, v, 0, int(world_.model.links.size()));
  for (const auto& mover : movers_) {
    const LinkSpeed& s = speeds[std::size_t(mover.link)];
    if (s.linear + s.angular * mover.arm > mover.safe_speed) return true;
  }
  return false;
}

int TunnellingCheck::count(Collider& collider, const std::vector<Touch>& seen, const double* from, const double* to,
                           const std::vector<char>* still) {
  const int places = find_ways(from, to);
  if (places == 0) return 0;
  // pairs that penetrate somewhere along the path and were not detected before
  entered_.clear();
  seen_.clear();
  for (const auto& t : seen) seen_.push_back(pair_key(t));
  std::sort(seen_.begin(), seen_.end());
  const auto is_new = [&](const Touch& t) { return !std::binary_search(seen_.begin(), seen_.end(), pair_key(t)); };
  const auto& m = world_.model;
  difference(m, from, to, way_.data());
  for (int k = 1; k <= places; ++k) {
    integrate(m, from, way_.data(), double(k) / places, between_.data());
    if (!collider.collide(k < places ? between_.data() : to, touches_, still)) return -1;
    for (const auto& t : touches_)
      if (t.distance < -world_.options.slop && is_new(t) && !find_pair(entered_, t)) entered_.push_back(t);
  }
  // at the end they are apart, on the other side, or on no side to be told
  int count = 0;
  for (const auto& t : entered_) {
    const Touch* end = find_pair(touches_, t);
    count += !end || dot(end->normal, t.normal) < 0.5;
  }
  return count;
}

Pose<double> TunnellingCheck::pose(const Placement<double>& w, int body) const {
  const auto& b = world_.model.bodies[std::size_t(body)];
  if (b.link < 0) return b.placement;
  Pose<double> X = body_pose(world_.model, w, body);
  X.p += w.origin[std::size_t(world_.model.links[std::size_t(b.link)].tree)];
  return X;
}

// Ways of all shapes; returns at how many places to look, for those that came far with something in their way.
int TunnellingCheck::find_ways(const double* from, const double* to) {
  const auto& m = world_.model;
  kinematics(m, start_, from);
  kinematics(m, end_, to);
  for (std::size_t k = 0; k < motions_.size(); ++k) {
    const auto& shape = world_.shapes[k];
    const Pose<double> a = pose(start_, shape.body), b = pose(end_, shape.body);
    const Vec3<double> x = a * shape.center, y = b * shape.center, d = y - x;
    const Vec3<double> c[3] = {b.R.x - a.R.x, b.R.y - a.R.y, b.R.z - a.R.z};
    // ‖R₂ − R₁‖, the largest way of a unit vector that is turned
    const double turn = std::sqrt(0.5 * (dot(c[0], c[0]) + dot(c[1], c[1]) + dot(c[2], c[2])));
    motions_[k] = {x, y, std::sqrt(dot(d, d)) + turn * shape.lever};
  }
  double places = 0;
  for (std::size_t k = 0; k < motions_.size(); ++k)
    if (motions_[k].way > allowed(world_.shapes[k]) && something_in_the_way(k))
      places = std::max(places, motions_[k].way / world_.shapes[k].half_width);
  return int(std::min(std::ceil(places), double(max_places)));
}

bool TunnellingCheck::something_in_the_way(std::size_t shape) const {
  const auto& [start, end, way] = motions_[shape];
  const Vec3<double> d = end - start;
  const double length = dot(d, d);
  for (std::size_t n = 0; n < motions_.size(); ++n) {
    if (world_.shapes[n].body == world_.shapes[shape].body) continue;
    const Vec3<double> to = motions_[n].start - start;
    const double share = length > 0 ? std::clamp(dot(to, d) / length, 0.0, 1.0) : 0.0;
    const Vec3<double> apart = to - d * share;
    const double reach = world_.shapes[shape].radius + world_.shapes[n].radius + motions_[n].way;
    if (dot(apart, apart) <= reach * reach) return true;
  }
  return false;
}

}  // namespace delassus
