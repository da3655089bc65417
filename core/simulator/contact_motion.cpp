#include "simulator/contact_motion.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace delassus {

namespace {

constexpr double displacement = 1e-5;  // of differences [m], [rad]
constexpr double same_place = 1e-3;    // of a contact that is found again [m]
constexpr double one_height = 1e-9;    // of points in one plane, after they were put there [m]
enum Role : char { either, displaced, still };

Vec3<double> unit(int axis) { return {axis == 0 ? 1.0 : 0.0, axis == 1 ? 1.0 : 0.0, axis == 2 ? 1.0 : 0.0}; }

double component(const Vec6<double>& x, int k) {
  const Vec3<double>& v = k < 3 ? x.lin : x.ang;
  return k % 3 == 0 ? v.x : k % 3 == 1 ? v.y : v.z;
}
double& component(Vec6<double>& x, int k) {
  Vec3<double>& v = k < 3 ? x.lin : x.ang;
  return k % 3 == 0 ? v.x : k % 3 == 1 ? v.y : v.z;
}

// Fills a motion from dc ↦ change, dc = d + ω × arm being how a point of the other body moves.
template <class F>
void fill(ContactMotion& motion, const Vec3<double>& arm, F&& change) {
  for (int a = 0; a < 3; ++a) {
    motion.by[a] = change(unit(a));
    motion.by[3 + a] = change(cross(unit(a), arm));
  }
}

}  // namespace

ContactMotion::Change ContactMotion::change(const Vec6<double>* moved) const {
  const Vec6<double>& carried = moved[base];
  const Vec6<double> relative = moved[1 - base] - carried;
  Change sum{carried.lin, carried.ang, 0};
  for (int k = 0; k < 6; ++k) {
    const double x = component(relative, k);
    sum.place += by[k].place * x, sum.turn += by[k].turn * x, sum.gap += by[k].gap * x;
  }
  if (fixed_axes) sum.turn += normal * (lean * dot(tangent, sum.turn) - dot(normal, sum.turn));
  return sum;
}

void ContactMotion::adjoint(const Change& given, Vec6<double>* moved) const {
  Vec6<double>&carried = moved[base], &other = moved[1 - base];
  Change bar = given;
  if (fixed_axes) bar.turn += (tangent * lean - normal) * dot(normal, given.turn);
  carried = {bar.place, bar.turn};
  for (int k = 0; k < 6; ++k)
    component(other, k) = dot(by[k].place, bar.place) + dot(by[k].turn, bar.turn) + by[k].gap * bar.gap;
  carried = carried - other;
}

bool ContactMotions::all_known() const {
  return std::all_of(motions_.begin(), motions_.end(), [](const ContactMotion& m) { return m.known; });
}

bool ContactMotions::looks(const Collider& collider, const std::vector<Touch>& touches) {
  ContactMotion motion;
  return std::any_of(touches.begin(), touches.end(),
                     [&](const Touch& t) { return t.kept || !find_closed(collider, t, motion); });
}

bool ContactMotions::find(const Model<double>& model, Collider& collider, const std::vector<Contact>& before,
                          const std::vector<Touch>& touches) {
  motions_.assign(touches.size(), {});
  group(touches);
  bool all = true;
  for (Pair& pair : pairs_) {
    pair.closed = true;
    for (std::size_t i = pair.first; i < pair.past; ++i) {
      const std::size_t k = std::size_t(order_[i]);
      pair.closed = pair.closed && find_closed(collider, touches[k], motions_[k]);
    }
    pair.found = pair.closed;
    if (pair.closed) level(touches, pair);
    all = all && pair.closed;
  }
  for (std::size_t k = 0; k < touches.size(); ++k)
    if (const Touch& t = touches[k]; dot(t.tangent, t.tangent) > 0) fix_axes(t, motions_[k]);
  return all || find_by_differences(model, collider, before, touches);
}

// y − n (n · y) made a unit is the first tangent, y being an axis of the world: the second one, if the normal is not
// near to it, else the third.
void ContactMotions::fix_axes(const Touch& t, ContactMotion& motion) const {
  const ContactFrame frame = contact_frame(t);
  const double up = std::abs(t.normal.y) < 0.5 ? t.normal.y : t.normal.z;
  motion.fixed_axes = true;
  motion.normal = frame[0], motion.tangent = frame[1];
  motion.lean = up / std::sqrt(std::max(1 - up * up, 1e-300));
}

// Contacts of the same two bodies one after the other.
void ContactMotions::group(const std::vector<Touch>& touches) {
  order_.resize(touches.size());
  for (std::size_t k = 0; k < touches.size(); ++k) order_[k] = int(k);
  const auto key = [&](int k) {
    const Touch& t = touches[std::size_t(k)];
    return std::tuple(t.body[0], t.body[1], k);
  };
  std::sort(order_.begin(), order_.end(), [&](int a, int b) { return key(a) < key(b); });
  const auto bodies = [&](std::size_t i) {
    const Touch& t = touches[std::size_t(order_[i])];
    return std::pair(t.body[0], t.body[1]);
  };
  pairs_.clear();
  for (std::size_t first = 0, past = 0; first < order_.size(); first = past) {
    while (past < order_.size() && bodies(past) == bodies(first)) ++past;
    pairs_.push_back({first, past, false, false});
  }
}

// False: there is no closed form here.
bool ContactMotions::find_closed(const Collider& collider, const Touch& t, ContactMotion& motion) {
  const RoundShape a = collider.round_shape(t.geom[0]), b = collider.round_shape(t.geom[1]);
  if (a == RoundShape::face || b == RoundShape::face) {
    // a corner or the end of a ball on a plane; the normal goes from the second body to the first
    motion.base = b == RoundShape::face ? 1 : 0;
    if ((motion.base == 1 ? a : b) == RoundShape::other) return false;
    if (t.kept) {
      follow(collider, t, motion);
      return true;
    }
    const int other = 1 - motion.base;
    const Vec3<double> n = t.normal * (other == 0 ? 1.0 : -1.0);  // from the base
    const Vec3<double> arm = n * (collider.radius(t.geom[other]) + 0.5 * t.separation) - t.normal * t.raised;
    fill(motion, arm, [&](const Vec3<double>& dc) {
      const double gap = dot(n, dc);
      return ContactMotion::Change{dc - n * (0.5 * gap), {}, gap};
    });
    return true;
  }
  if (a != RoundShape::ball || b != RoundShape::ball || t.kept) return false;
  motion.base = 1;
  const Vec3<double> n = t.normal;
  const double r = collider.radius(t.geom[1]), R = collider.radius(t.geom[0]), half = 0.5 * t.separation,
               length = r + R + t.separation;
  fill(motion, n * (R + half - t.raised), [&](const Vec3<double>& dc) {
    const double gap = dot(n, dc);
    const Vec3<double> dn = (dc - n * gap) * (1 / length);
    return ContactMotion::Change{dn * (r + half) + n * (0.5 * gap), cross(n, dn), gap};
  });
  return true;
}

// A point of the step before: halfway between its two places, with the normal of the base's face.
void ContactMotions::follow(const Collider& collider, const Touch& t, ContactMotion& motion) {
  const int other = 1 - motion.base;
  const Vec3<double> n = t.normal * (other == 0 ? 1.0 : -1.0);
  const Vec3<double> arm = collider.place(t.geom[other], t.local[other]) - t.position;
  fill(motion, arm, [&](const Vec3<double>& da) { return ContactMotion::Change{da * 0.5, {}, dot(n, da)}; });
}

// Points of one face stay at their mean height. Relative to the base, a motion of the other body that is (d, ω) at the
// place of contact k is (d + ω × (p_l − p_k), ω) at that of contact l.
void ContactMotions::level(const std::vector<Touch>& touches, const Pair& pair) {
  heights_.resize(touches.size());
  const auto in_one_plane = [&](const Touch& a, const Touch& b) {
    const Vec3<double> d = a.normal - b.normal;
    return dot(d, d) == 0 && std::abs(dot(a.position - b.position, a.normal)) < one_height;
  };
  for (std::size_t i = pair.first; i < pair.past; ++i) {
    const Touch& t = touches[std::size_t(order_[i])];
    auto& height = heights_[std::size_t(order_[i])];
    height.fill(0.0);
    int count = 0;
    for (std::size_t j = pair.first; j < pair.past; ++j) {
      const Touch& other = touches[std::size_t(order_[j])];
      if (!in_one_plane(t, other)) continue;
      ++count;
      const auto& by = motions_[std::size_t(order_[j])].by;
      const auto rises = [&](const Vec3<double>& d) {
        return dot(t.normal, by[0].place * d.x + by[1].place * d.y + by[2].place * d.z);
      };
      for (int a = 0; a < 3; ++a) {
        height[std::size_t(a)] += rises(unit(a));
        height[std::size_t(3 + a)] +=
            dot(t.normal, by[3 + a].place) + rises(cross(unit(a), other.position - t.position));
      }
    }
    for (double& h : height) h /= count;
  }
  for (std::size_t i = pair.first; i < pair.past; ++i) {
    const std::size_t k = std::size_t(order_[i]);
    const Vec3<double>& n = touches[k].normal;
    for (std::size_t a = 0; a < 6; ++a) {
      Vec3<double>& place = motions_[k].by[a].place;
      place += n * (heights_[k][a] - dot(n, place));
    }
  }
}

// Rounds of differences: in each, some links are displaced along and about the axes of the world, all at once, and
// contacts with links that stand still tell how they move.
bool ContactMotions::find_by_differences(const Model<double>& model, Collider& collider,
                                         const std::vector<Contact>& before, const std::vector<Touch>& touches) {
  const auto look = [&](const Vec6<double>& by, std::vector<Touch>& found) {
    if (!collider.collide_displaced(model, moved_, by, found)) return false;
    order_sides(model, found);
    persistence_.keep_points(before, collider, found);
    patches_.flatten(collider, found);
    return true;
  };
  while (choose_links(model, touches)) {
    for (int a = 0; a < 6; ++a) {
      Vec6<double> by{};
      component(by, a) = displacement;
      if (!look(by, ahead_) || !look(by * -1.0, behind_)) return false;
      for (const Pair& pair : pairs_) {
        if (pair.found || !is_chosen(model, touches[std::size_t(order_[pair.first])])) continue;
        for (std::size_t i = pair.first; i < pair.past; ++i) {
          const std::size_t k = std::size_t(order_[i]);
          take_difference(model, collider, touches, k, a);
        }
      }
    }
    for (Pair& pair : pairs_) pair.found = pair.found || is_chosen(model, touches[std::size_t(order_[pair.first])]);
  }
  collider.put_back();
  return true;
}

// Column `a` of a contact's motion. The rotation was about the link's own centre, so the displacement that it causes is
// subtracted.
void ContactMotions::take_difference(const Model<double>& model, const Collider& collider,
                                     const std::vector<Touch>& touches, std::size_t k, int a) {
  ContactMotion& motion = motions_[k];
  const Touch &t = touches[k], *plus = same(touches, ahead_, k), *minus = same(touches, behind_, k);
  const int other = moved_[std::size_t(std::max(link_of(model, t, 0), 0))] && link_of(model, t, 0) >= 0 ? 0 : 1;
  motion.base = 1 - other;
  if (!plus || !minus) motion.known = false;
  if (!motion.known) {
    // a corner of the other body on a face of the base, where it is
    const Vec3<double> d = a < 3 ? unit(a) : Vec3<double>{};
    const Vec3<double> n = t.normal * (other == 0 ? 1.0 : -1.0);
    motion.by[a] = {d - n * (0.5 * dot(n, d)), {}, dot(n, d)};
    return;
  }
  const double over = 0.5 / displacement;
  ContactMotion::Change d{(plus->position - minus->position) * over, {}, (plus->distance - minus->distance) * over};
  const Vec3<double> dn = (plus->normal - minus->normal) * over;
  d.turn = cross(t.normal, dn);
  if (a >= 3) {
    const Vec3<double> shift = cross(unit(a - 3), t.position - collider.center(t.geom[other]));
    for (int b = 0; b < 3; ++b) {
      const double x = b == 0 ? shift.x : b == 1 ? shift.y : shift.z;
      d.place -= motion.by[b].place * x, d.turn -= motion.by[b].turn * x, d.gap -= motion.by[b].gap * x;
    }
  }
  motion.by[a] = d;
}

int ContactMotions::link_of(const Model<double>& model, const Touch& t, int side) const {
  return model.bodies[std::size_t(t.body[side])].link;
}

// Whether exactly one of a contact's bodies is displaced.
bool ContactMotions::is_chosen(const Model<double>& model, const Touch& t) const {
  const auto moves = [&](int side) {
    const int link = link_of(model, t, side);
    return link >= 0 && moved_[std::size_t(link)];
  };
  return moves(0) != moves(1);
}

// Links to displace, so that as many as possible of the pairs that are left have one that is, and one that is not.
// False: no pair is left.
bool ContactMotions::choose_links(const Model<double>& model, const std::vector<Touch>& touches) {
  role_.assign(model.links.size(), either);
  bool any = false;
  for (const Pair& pair : pairs_) {
    if (pair.found) continue;
    any = true;
    const Touch& t = touches[std::size_t(order_[pair.first])];
    char ground = still;
    char& a = link_of(model, t, 0) >= 0 ? role_[std::size_t(link_of(model, t, 0))] : ground;
    char& b = link_of(model, t, 1) >= 0 ? role_[std::size_t(link_of(model, t, 1))] : ground;
    if (a == either) a = b == displaced ? still : displaced;
    if (b == either) b = a == displaced ? still : displaced;
  }
  moved_.assign(model.links.size(), 0);
  for (std::size_t i = 0; i < role_.size(); ++i) moved_[i] = role_[i] == displaced;
  return any;
}

// The contact that is the k-th of the step, among those of displaced bodies: of the same shapes, and nearest to it.
const Touch* ContactMotions::same(const std::vector<Touch>& touches, const std::vector<Touch>& found,
                                  std::size_t k) const {
  const Touch& t = touches[k];
  const auto away = [&](const Touch& o) {
    const Vec3<double> d = o.position - t.position;
    return dot(d, d);
  };
  if (found.size() == touches.size() && same_pair(found[k], t) && away(found[k]) < same_place * same_place)
    return &found[k];
  const Touch* nearest = nullptr;
  for (const Touch& o : found)
    if (same_pair(o, t) && away(o) < same_place * same_place && (!nearest || away(o) < away(*nearest))) nearest = &o;
  return nearest;
}

}  // namespace delassus
