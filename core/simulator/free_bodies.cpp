#include "simulator/free_bodies.h"

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_turn_iterations = 8;

// I⁻¹ b
Vec3<double> solve_inertia(const Sym3<double>& I, const Vec3<double>& b) {
  const double c0 = I.yy * I.zz - I.yz * I.yz, c1 = I.xz * I.yz - I.xy * I.zz, c2 = I.xy * I.yz - I.xz * I.yy;
  const double det = I.xx * c0 + I.xy * c1 + I.xz * c2;
  const double d0 = I.xx * I.zz - I.xz * I.xz, d1 = I.xy * I.xz - I.xx * I.yz, e = I.xx * I.yy - I.xy * I.xy;
  return Vec3<double>{c0 * b.x + c1 * b.y + c2 * b.z, c1 * b.x + d0 * b.y + d1 * b.z, c2 * b.x + d1 * b.y + e * b.z} *
         (1 / det);
}

// e x e⁻¹
Vec3<double> rotated(const Quaternion<double>& e, const Vec3<double>& x) {
  const Vec3<double> u{e.x, e.y, e.z}, t = cross(u, x) * 2.0;
  return x + t * e.w + cross(u, t);
}

}  // namespace

FreeBodies::FreeBodies(const WorldDescription& world, const std::vector<double>& remaining)
    : world_(world), owned_(std::size_t(world.model.nv), 0) {
  for (const int root : world.model.roots) {
    const auto& link = world.model.links[std::size_t(root)];
    if (link.type != Joint::free || link.end != root + 1 || remaining[std::size_t(link.iv)] != 1) continue;
    roots_.push_back(root);
    std::fill_n(owned_.begin() + link.iv, 6, 1);
  }
}

void FreeBodies::turn(const double* q, const double* v, std::vector<double>& free) const {
  const double dt = world_.options.timestep;
  for (const int root : roots_) {
    const auto& link = world_.model.links[std::size_t(root)];
    const auto& I = link.inertial.inertia;
    const double* x = v + link.iv + 3;
    const Vec3<double> w{x[0], x[1], x[2]}, L = I * w;
    // fixed-point iteration from the step of first order
    const Vec3<double> first_order = w + solve_inertia(I, cross(L, w)) * dt;
    Vec3<double> next = first_order;
    for (int n = 0; n < max_turn_iterations; ++n) {
      const Vec3<double> half = (w + next) * (-0.5 * dt);
      const Vec3<double> better = solve_inertia(I, rotated(exponential(half), L));
      const Vec3<double> d = better - next;
      next = better;
      if (dot(d, d) <= 1e-30 * (1 + dot(next, next))) break;
    }
    const Vec3<double> d = next - first_order;
    double* to = free.data() + link.iv;
    to[3] += d.x, to[4] += d.y, to[5] += d.z;
    // the origin moves so that the centre of mass keeps its way: −R (d × c)
    const double* p = q + link.iq + 3;
    const Vec3<double> shift = rotated(normalized(p), cross(d, link.inertial.center));
    to[0] -= shift.x, to[1] -= shift.y, to[2] -= shift.z;
  }
}

void FreeBodies::average(const std::vector<double>& v, const std::vector<double>& free, std::vector<double>& w) const {
  for (const int root : roots_) {
    const std::size_t first = std::size_t(world_.model.links[std::size_t(root)].iv);
    for (std::size_t k = first + 3; k < first + 6; ++k) w[k] -= 0.5 * (free[k] - v[k]);
  }
}

}  // namespace delassus
