#include "simulator/contact_patches.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace delassus {

namespace {

constexpr double same_height = 2e-4;  // [m]
constexpr double same_normal = 1e-8;  // 1 − cos of the angle

}  // namespace

void ContactPatches::flatten(const Collider& collider, std::vector<Touch>& touches) {
  // touches of a pair of bodies one after the other
  const std::size_t n = touches.size();
  order_.resize(n);
  plane_of_.assign(n, -1);
  for (std::size_t k = 0; k < n; ++k) order_[k] = int(k);
  const auto key = [&](int k) {
    const Touch& t = touches[std::size_t(k)];
    return std::tuple(t.body[0], t.body[1], k);
  };
  std::sort(order_.begin(), order_.end(), [&](int a, int b) { return key(a) < key(b); });

  for (std::size_t first = 0; first < n;) {
    const Touch& pair = touches[std::size_t(order_[first])];
    const Vec3<double> origin = pair.position;
    std::size_t last = first;
    planes_.clear();
    // which plane a touch is in: the first that fits
    for (; last < n; ++last) {
      const Touch& t = touches[std::size_t(order_[last])];
      if (t.body[0] != pair.body[0] || t.body[1] != pair.body[1]) break;
      int& plane = plane_of_[std::size_t(order_[last])];
      for (std::size_t p = 0; p < planes_.size() && plane < 0; ++p) {
        const double height = dot(t.position - origin, planes_[p].normal) - planes_[p].height;
        if (1 - dot(t.normal, planes_[p].normal) > same_normal || std::abs(height) > same_height) continue;
        plane = int(p);
        planes_[p].sum += height, ++planes_[p].count;
      }
      if (plane >= 0) continue;
      plane = int(planes_.size());
      planes_.push_back({t.normal, dot(t.position - origin, t.normal), 0, 1});
    }
    // all of its points at their mean height
    for (std::size_t k = first; k < last; ++k) {
      Touch& t = touches[std::size_t(order_[k])];
      const Plane& plane = planes_[std::size_t(plane_of_[std::size_t(order_[k])])];
      if (plane.count == 1) continue;
      const double height = plane.height + plane.sum / plane.count;
      t.normal = plane.normal;
      t.raised = height - dot(t.position - origin, t.normal);
      t.position += t.normal * t.raised;
      for (int b = 0; b < 2; ++b) t.anchor[b] = collider.local(t.geom[b], t.position);
    }
    first = last;
  }
}

}  // namespace delassus
