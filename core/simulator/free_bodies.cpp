#include "simulator/free_bodies.h"

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_turn_iterations = 20;  // 4 at 10 rad/s and 1 ms

// I⁻¹ b
Vec3<double> solve_inertia(const Sym3<double>& I, const Vec3<double>& b) {
  const double c0 = I.yy * I.zz - I.yz * I.yz, c1 = I.xz * I.yz - I.xy * I.zz, c2 = I.xy * I.yz - I.xz * I.yy;
  const double det = I.xx * c0 + I.xy * c1 + I.xz * c2;
  const double d0 = I.xx * I.zz - I.xz * I.xz, d1 = I.xy * I.xz - I.xx * I.yz, e = I.xx * I.yy - I.xy * I.xy;
  return Vec3<double>{c0 * b.x + c1 * b.y + c2 * b.z, c1 * b.x + d0 * b.y + d1 * b.z, c2 * b.x + d1 * b.y + e * b.z} *
         (1 / det);
}

// e x e⁻¹ − x
Vec3<double> change_by_turn(const Quaternion<double>& e, const Vec3<double>& x) {
  const Vec3<double> u{e.x, e.y, e.z}, t = cross(u, x) * 2.0;
  return t * e.w + cross(u, t);
}

// e x e⁻¹
Vec3<double> rotated(const Quaternion<double>& e, const Vec3<double>& x) { return x + change_by_turn(e, x); }

Vec3<double> read(const double* x) { return {x[0], x[1], x[2]}; }
void write(const Vec3<double>& x, double* to) { to[0] = x.x, to[1] = x.y, to[2] = x.z; }

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

void FreeBodies::move(const double* q, const std::vector<double>& u, std::vector<double>& v,
                      std::vector<double>& way) const {
  const double dt = world_.options.timestep;
  for (const int root : roots_) {
    const auto& link = world_.model.links[std::size_t(root)];
    const Sym3<double>& I = link.inertial.inertia;
    const Vec3<double>& c = link.inertial.center;
    const Quaternion<double> R = normalized(q + link.iq + 3);
    const std::size_t first = std::size_t(link.iv);
    double *velocity = v.data() + first, *to = way.data() + first;
    const Vec3<double> w = read(velocity + 3), L = I * w, u_turn = read(u.data() + first + 3);

    // ω⁺ by fixed-point iteration. It goes with the last ω̄, so that L stays wherever the iteration stops
    Vec3<double> mean = w, next = w;
    for (int n = 0; n < max_turn_iterations; ++n) {
      mean = (w + next) * 0.5;
      const Vec3<double> better = solve_inertia(I, rotated(exponential((mean + u_turn) * -dt), L)), d = better - next;
      next = better;
      if (dot(d, d) <= 1e-30 * (1 + dot(next, next))) break;
    }

    // R⁺ = R exp(dt (ω̄ + u_ω))
    const Vec3<double> turn = mean + u_turn;
    const Quaternion<double> E = exponential(turn * dt);
    write(next, velocity + 3);
    write(turn, to + 3);
    // the centre of mass goes straight on: p⁺ = p + dt (v_c + u_c) − (R⁺ − R) c,  ṗ⁺ = v_c − R⁺ (ω⁺ × c)
    const Vec3<double> v_c = read(velocity) + rotated(R, cross(w, c));
    const Vec3<double> u_c = read(u.data() + first) + rotated(R, cross(u_turn, c));
    write(v_c + u_c - rotated(R, change_by_turn(E, c)) * (1 / dt), to);
    write(v_c - rotated(R, rotated(E, cross(next, c))), velocity);
  }
}

}  // namespace delassus
