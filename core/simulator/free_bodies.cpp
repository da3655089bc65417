#include "simulator/free_bodies.h"

#include <array>

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_turn_iterations = 20;   // 4 at 10 rad/s and 1 ms
constexpr double difference_step = 1e-5;  // of `find_rates`, over 1 + |x|

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

// Inertia of a point mass, or what moving the point of reference by c changes: m (c · c − c cᵀ).
Sym3<double> point_inertia(double m, const Vec3<double>& c) {
  return {m * (c.y * c.y + c.z * c.z), -m * c.x * c.y, -m * c.x * c.z,
          m * (c.x * c.x + c.z * c.z), -m * c.y * c.z, m * (c.x * c.x + c.y * c.y)};
}
double trace(const Sym3<double>& I) { return I.xx + I.yy + I.zz; }

// m, m c, inertia about the origin (xx, xy, yy, xz, yz, zz); and back.
std::array<double, 10> to_parameters(const Inertial<double>& i) {
  const Sym3<double> p = point_inertia(i.mass, i.center);
  const Sym3<double>& I = i.inertia;
  return {i.mass,      i.mass * i.center.x, i.mass * i.center.y, i.mass * i.center.z, I.xx + p.xx,
          I.xy + p.xy, I.yy + p.yy,         I.xz + p.xz,         I.yz + p.yz,         I.zz + p.zz};
}
Inertial<double> to_inertial(const std::array<double, 10>& x) {
  Inertial<double> i{};
  i.mass = x[0], i.center = Vec3<double>{x[1], x[2], x[3]} * (1 / x[0]);
  const Sym3<double> p = point_inertia(i.mass, i.center);
  i.inertia.xx = x[4] - p.xx, i.inertia.xy = x[5] - p.xy, i.inertia.yy = x[6] - p.yy;
  i.inertia.xz = x[7] - p.xz, i.inertia.yz = x[8] - p.yz, i.inertia.zz = x[9] - p.zz;
  return i;
}

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
  for (const int root : roots_) {
    const auto& link = world_.model.links[std::size_t(root)];
    const std::size_t first = std::size_t(link.iv);
    move_body(link.inertial, normalized(q + link.iq + 3), u.data() + first, v.data() + first, way.data() + first);
  }
}

void FreeBodies::move_body(const Inertial<double>& inertial, const Quaternion<double>& R, const double* u,
                           double* velocity, double* to) const {
  const double dt = world_.options.timestep;
  const Sym3<double>& I = inertial.inertia;
  const Vec3<double>& c = inertial.center;
  const Vec3<double> w = read(velocity + 3), L = I * w, u_turn = read(u + 3);

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
  const Vec3<double> u_c = read(u) + rotated(R, cross(u_turn, c));
  write(v_c + u_c - rotated(R, change_by_turn(E, c)) * (1 / dt), to);
  write(v_c - rotated(R, rotated(E, cross(next, c))), velocity);
}

void FreeBodies::find_rates(const double* q, const std::vector<double>& u, const std::vector<double>& v,
                            std::vector<Rates>& rates) const {
  rates.resize(roots_.size());
  for (std::size_t b = 0; b < roots_.size(); ++b) {
    const auto& link = world_.model.links[std::size_t(roots_[b])];
    const Quaternion<double> R = normalized(q + link.iq + 3);
    Rates& r = rates[b];
    r.first = link.iv, r.link = roots_[b];
    for (int k = 0; k < inputs; ++k) {
      const double x = k < 3 ? 0 : k < 9 ? u[std::size_t(link.iv + k - 3)] : v[std::size_t(link.iv + k - 9)];
      const double h = difference_step * (1 + std::abs(x));
      double end[2][outputs];
      for (int side = 0; side < 2; ++side) {
        const double change = side == 0 ? h : -h;
        double in[inputs] = {};
        for (int j = 0; j < 6; ++j) in[3 + j] = u[std::size_t(link.iv + j)], in[9 + j] = v[std::size_t(link.iv + j)];
        in[k] += change;
        std::copy_n(in + 9, 6, end[side]);
        move_body(link.inertial, R * exponential(read(in)), in + 3, end[side], end[side] + 6);
      }
      for (int o = 0; o < outputs; ++o) r.by[o][k] = (end[0][o] - end[1][o]) / (2 * h);
    }
  }
}

void FreeBodies::find_inertial_rates(const double* q, const std::vector<double>& u, const std::vector<double>& v,
                                     int root, double (&by)[outputs][10]) const {
  const auto& link = world_.model.links[std::size_t(root)];
  const std::size_t first = std::size_t(link.iv);
  const Quaternion<double> R = normalized(q + link.iq + 3);
  const auto about_origin = to_parameters(link.inertial);
  for (std::size_t k = 0; k < 10; ++k) {
    // scales: of mass, of first and of second moments
    const double scale = k == 0  ? about_origin[0]
                         : k < 4 ? std::sqrt(about_origin[0] * trace(link.inertial.inertia))
                                 : trace(link.inertial.inertia);
    const double h = difference_step * scale;
    double end[2][outputs];
    for (int side = 0; side < 2; ++side) {
      auto parameters = about_origin;
      parameters[k] += side == 0 ? h : -h;
      std::copy_n(v.data() + first, 6, end[side]);
      move_body(to_inertial(parameters), R, u.data() + first, end[side], end[side] + 6);
    }
    for (int o = 0; o < outputs; ++o) by[o][k] = (end[0][o] - end[1][o]) / (2 * h);
  }
}

}  // namespace delassus
