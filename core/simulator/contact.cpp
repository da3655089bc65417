#include "simulator/contact.h"

#include <cmath>

namespace delassus {

// The first tangent is across the axis that is least along the normal.
ContactFrame contact_frame(const Vec3<double>& n) {
  const double a = std::abs(n.x), b = std::abs(n.y), c = std::abs(n.z);
  const Vec3<double> e = a <= b && a <= c ? Vec3<double>{1, 0, 0}
                         : b <= c         ? Vec3<double>{0, 1, 0}
                                          : Vec3<double>{0, 0, 1};
  Vec3<double> t = cross(e, n);
  t = t * (1 / std::sqrt(dot(t, t)));
  return {n, t, cross(n, t)};
}

ContactFrame contact_frame(const Touch& touch) {
  const Vec3<double>& n = touch.normal;
  const Vec3<double> t = touch.tangent - n * dot(n, touch.tangent);
  const double length = std::sqrt(dot(t, t));
  if (!(length > 0.1)) return contact_frame(n);
  return {n, t * (1 / length), cross(n, t) * (1 / length)};
}

}  // namespace delassus
