#include "simulator/contact_persistence.h"

#include <cmath>
#include <utility>

namespace delassus {

namespace {

constexpr std::size_t max_points = 4;      // of a pair
constexpr double new_point_radius = 0.01;  // within which an old point gives way to a new one [m]

// Moves an old point to where its two places are now, with the normal that its pair has now; whether they are opposite
// to each other still. Its rows act at one place on both bodies, as those of new points do: with two places a little
// apart, rows of a patch would contradict each other by a little, and only huge forces would hold them.
bool follow(const Collider& collider, const Vec3<double>& normal, Touch& t) {
  const Vec3<double> a = collider.place(t.geom[0], t.local[0]), b = collider.place(t.geom[1], t.local[1]),
                     apart = a - b;
  const bool turned = dot(t.normal, normal) <= 0.9999;
  t.normal = normal;
  const double along = dot(apart, t.normal);
  const Vec3<double> aside = apart - t.normal * along;
  t.distance = t.base + along;
  t.raised = 0;
  t.kept = true;
  t.position = (a + b) * 0.5;
  for (int k = 0; k < 2; ++k) t.anchor[k] = collider.local(t.geom[k], t.position);
  return dot(aside, aside) < 1e-8 && std::abs(along) < 1e-4 && !turned;
}

}  // namespace

void order_sides(const Model<double>& m, std::vector<Touch>& touches) {
  std::size_t count = 0;
  for (auto t : touches) {
    const int link[2] = {m.bodies[std::size_t(t.body[0])].link, m.bodies[std::size_t(t.body[1])].link};
    if (link[0] == link[1]) continue;
    if (link[0] < 0) {
      std::swap(t.body[0], t.body[1]);
      std::swap(t.geom[0], t.geom[1]);
      std::swap(t.local[0], t.local[1]);
      std::swap(t.anchor[0], t.anchor[1]);
      t.normal = t.normal * -1.0;
    }
    touches[count++] = t;
  }
  touches.resize(count);
}

void ContactPersistence::keep_points(const std::vector<Contact>& before, const Collider& collider,
                                     std::vector<Touch>& touches) {
  kept_.clear();
  pairs_.look_at(before);
  std::size_t from = 0;
  for (std::size_t first = 0; first < touches.size();) {
    // the new points of a pair
    std::size_t last = first + 1;
    while (last < touches.size() && same_pair(touches[first], touches[last])) ++last;
    kept_.insert(kept_.end(), touches.begin() + std::ptrdiff_t(first), touches.begin() + std::ptrdiff_t(last));
    // its old points, for as long as there were more of them
    const PairRange old = pairs_.find(touches[first], from);
    if (old.begin < old.end) from = old.end;
    std::size_t count = last - first;
    for (std::size_t k = old.begin; k < old.end && count < old.end - old.begin && count < max_points; ++k) {
      Touch t = before[k].touch;
      bool stays = follow(collider, touches[first].normal, t);
      for (std::size_t n = first; n < last && stays; ++n) {
        const Vec3<double> d = touches[n].position - t.position;
        stays = dot(d, d) > new_point_radius * new_point_radius;
      }
      if (!stays) continue;
      kept_.push_back(t);
      ++count;
    }
    first = last;
  }
  touches.swap(kept_);
}

}  // namespace delassus
