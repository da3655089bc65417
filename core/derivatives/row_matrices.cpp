#include "derivatives/row_matrices.h"

#include <algorithm>

namespace delassus {

namespace {

using V = RowMatrices::V;
constexpr int lanes = RowMatrices::lanes;

// Directions that a link of two is moved along: twist, velocity and acceleration, in lanes.
struct Directions {
  Vec6<V> S, Psi, Chi, Phi;
};

// Lanes of the velocities that carry a link, the others zero.
void set_lane(Vec6<V>& to, int l, const Vec6<double>& x) {
  lane(to.lin.x, l) = x.lin.x, lane(to.lin.y, l) = x.lin.y, lane(to.lin.z, l) = x.lin.z;
  lane(to.ang.x, l) = x.ang.x, lane(to.ang.y, l) = x.ang.y, lane(to.ang.z, l) = x.ang.z;
}

// `V` whose lanes are those of one number of `rows` rows from `first` on
template <class F>
V in_lanes(int first, int rows, F&& number) {
  V x{};
  for (int l = 0; l < lanes && first + l < rows; ++l) lane(x, l) = number(first + l);
  return x;
}

bool is_constant(const Model<double>& model, const Constraint<double>& c) {
  if (c.kind == Kind::contact || c.kind == Kind::center || c.kind == Kind::links) return true;
  if (c.kind != Kind::frame || c.slides() || c.crosses()) return false;
  const bool carried = c.axes_on >= 0 && model.bodies[std::size_t(c.bodies[std::size_t(c.axes_on)])].link >= 0;
  const bool turns_back = c.rows - c.point_rows >= 2 && !c.target.empty() && c.kp != 0;
  return !carried && !turns_back;
}

// k, c and gain of row r of a constraint on one of its points, constant in world axes.
struct Row {
  Vec3<double> k, c;
  double gain;
};
Row constant_row(const Model<double>& model, const Constraint<double>& c, std::size_t side, int r) {
  const auto axis = [&](int e) {
    return Vec3<double>{c.matrix[std::size_t(3 * e)], c.matrix[std::size_t(3 * e + 1)],
                        c.matrix[std::size_t(3 * e + 2)]};
  };
  const double sign = side == 0 ? 1 : -1;
  if (c.kind == Kind::contact) {
    const Vec3<double> n = axis(r % 3) * (sign * contact_scale(c, r));
    if (r >= 3) return {{}, n, 0};
    return {n, {}, r < std::min(c.measured, 1) ? c.kp : 0};
  }
  if (c.kind == Kind::frame) {
    // axes of the world, or of a body that is fixed to it
    Mat3<double> A{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    if (c.axes_on >= 0) A = model.bodies[std::size_t(c.bodies[std::size_t(c.axes_on)])].placement.R;
    const int turns = c.rows - c.point_rows;
    if (r >= c.point_rows) return {{}, (A * axis(3 - turns + r - c.point_rows)) * sign, 0};
    return {(A * axis(r)) * sign, {}, r < c.measured ? c.kp : 0};
  }
  if (c.kind == Kind::center) {
    const double share = model.links[side].inertial.mass * c.numbers[0];
    return {{r == 0 ? share : 0, r == 1 ? share : 0, r == 2 ? share : 0}, {}, c.target.empty() ? 0 : c.kp};
  }
  const double* k = &c.matrix[6 * (side * std::size_t(c.rows) + std::size_t(r))];
  return {{k[0], k[1], k[2]}, {k[3], k[4], k[5]}, 0};
}

}  // namespace

// ---- symbolic: which velocities, which points
// --------------------------------------------------------------------------

void RowMatrices::add_side(Block& b, int link) const {
  Side side{link, {}, {}, {}, {}};
  if (link >= 0) {
    const auto& l = model_.links[std::size_t(link)];
    for (int k = l.iv + l.nv - 1; k >= 0; k = model_.dof_parent[std::size_t(k)]) side.chain.push_back(k);
  }
  b.support.insert(b.support.end(), side.chain.begin(), side.chain.end());
  b.sides.push_back(std::move(side));
}

RowMatrices::Block RowMatrices::make_block(int constraint) const {
  const Constraint<double>& c = set_.constraints[std::size_t(constraint)];
  Block b{Block::Kind::joints, constraint, c.row, c.rows, dense::padded<double>(c.rows), {}, 0, {}, 0, 0};
  if (c.kind == Kind::coupling) {
    for (const int link : c.joints) b.support.push_back(model_.links[std::size_t(link)].iv);
  } else if (c.kind == Kind::joint || c.kind == Kind::combination) {
    b.support = c.joints;
  } else if (c.kind == Kind::center) {
    b.kind = Block::Kind::constant;
    for (std::size_t i = 0; i < model_.links.size(); ++i) {
      add_side(b, int(i));
      b.sides.back().local = model_.links[i].inertial.center;
    }
  } else {
    b.kind = is_constant(model_, c) ? Block::Kind::constant : Block::Kind::two_bodies;
    for (std::size_t e = 0; e < c.bodies.size(); ++e) {
      const auto& body = model_.bodies[std::size_t(c.bodies[e])];
      add_side(b, body.link);
      b.sides.back().local = body.placement.R * c.points[e] + body.placement.p;
    }
  }
  std::sort(b.support.begin(), b.support.end());
  b.support.erase(std::unique(b.support.begin(), b.support.end()), b.support.end());
  for (std::size_t s = 0; s < b.sides.size(); ++s) {
    Side& side = b.sides[s];
    for (const int k : side.chain)
      side.position.push_back(int(std::lower_bound(b.support.begin(), b.support.end(), k) - b.support.begin()));
    if (b.kind != Block::Kind::constant) continue;
    for (int first = 0; first < b.rows; first += lanes) {
      Lever l{};
      const auto number = [&](auto part) {
        return in_lanes(first, b.rows, [&](int r) { return part(constant_row(model_, c, s, r)); });
      };
      l.k = {number([](const Row& r) { return r.k.x; }), number([](const Row& r) { return r.k.y; }),
             number([](const Row& r) { return r.k.z; })};
      l.c = {number([](const Row& r) { return r.c.x; }), number([](const Row& r) { return r.c.y; }),
             number([](const Row& r) { return r.c.z; })};
      l.gain = number([](const Row& r) { return r.gain; });
      side.levers.push_back(l);
    }
  }
  return b;
}

RowMatrices::RowMatrices(const Model<double>& model, const ConstraintSet<double>& set)
    : model_(model), set_(set), feels_(std::size_t(model.nv), 0) {
  std::size_t numbers = 0, turned = 0, K = 0, most = 0;
  bool of_joints = false;
  for (std::size_t i = 0; i < set_.constraints.size(); ++i) {
    Block b = make_block(int(i));
    const Constraint<double>& c = set_.constraints[i];
    b.at = numbers;
    b.turned = turned, b.K = K;
    numbers += b.support.size() * std::size_t(b.padded);
    most = std::max(most, std::size_t(b.padded));
    const bool two = b.kind == Block::Kind::two_bodies;
    if (two) turned += 2 * ((b.support.size() + lanes - 1) / lanes), K += 2 * std::size_t(b.padded / lanes);
    couples_ = couples_ || two;
    all_constant_ = all_constant_ && b.kind == Block::Kind::constant;
    of_joints = of_joints || b.kind == Block::Kind::joints;
    if (two || c.kp != 0 || c.kd != 0)
      for (const int k : b.support) feels_[std::size_t(k)] = 1;
    blocks_.push_back(std::move(b));
  }
  for (auto* x : {&J_, &g_q_, &g_v_}) x->resize(numbers + dense::tile_overhang);  // tiles read past the last row
  for (auto* x : {&unit_, &zero_, &tau_}) x->resize(of_joints ? std::size_t(model.nv) : 0);
  rows_.resize(most);
  turned_.resize(turned);
  if (couples_) tangents_.resize(model.links.size());
  none_.resize(most);
  changes_.resize(most);
  K_.resize(K);
}

std::size_t RowMatrices::bytes() const {
  return 3 * J_.size() * sizeof(double) + tangents_.size() * sizeof(LinkTangent<V>) +
         (turned_.size() + K_.size()) * sizeof(Vec6<V>) + (3 * unit_.size() + rows_.size()) * sizeof(double) +
         2 * none_.size() * sizeof(V);
}

// ---- numeric
// -----------------------------------------------------------------------------------------------------------

void RowMatrices::place(const DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a) {
  for (const Block& b : blocks_) {
    if (b.kind == Block::Kind::constant)
      place_constant(b, w);
    else if (b.kind == Block::Kind::two_bodies)
      place_two_bodies(b, w);
    else
      joint_rows(b, true, q, v, a, rows_.data());
  }
}

void RowMatrices::evaluate(DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a,
                           const double* lambda, const Vec3<double>& ground) {
  for (const Block& b : blocks_) {
    if (b.kind == Block::Kind::constant)
      constant_rows(b, w, lambda + b.row);
    else if (b.kind == Block::Kind::two_bodies)
      two_body_rows(b, w, lambda + b.row, ground);
    else
      joint_rows(b, false, q, v, a, lambda + b.row);
  }
}

namespace {

// Whether several chains write to one support.
bool adds(const RowMatrices::Block& b) {
  int moving = 0;
  for (const auto& side : b.sides) moving += side.link >= 0;
  return moving > 1;
}

void add_or_store(bool adds, double* to, V x) {
  if (adds) x += dense::load<V>(to);
  dense::store(to, x);
}

}  // namespace

void RowMatrices::place_constant(const Block& b, const DerivativeWorkspace<double>& w) {
  double* J = J_.data() + b.at;
  const bool several = adds(b);
  if (several) std::fill_n(J, b.support.size() * std::size_t(b.padded), 0.0);
  for (const Side& side : b.sides) {
    if (side.link < 0) continue;
    const Vec3<double> x = w.pose[side.link] * side.local;
    for (std::size_t p = 0; p < side.levers.size(); ++p) {
      const Lever& l = side.levers[p];
      const Vec6<V> kappa{l.k, cross(x, l.k) + l.c};
      for (std::size_t e = 0; e < side.chain.size(); ++e)
        add_or_store(several, J + std::size_t(side.position[e]) * std::size_t(b.padded) + p * lanes,
                     dot(kappa, w.S[std::size_t(side.chain[e])]));
    }
  }
}

void RowMatrices::drifts(const DerivativeWorkspace<double>& w, double* drift) const {
  for (const Block& b : blocks_) {
    const double kd = set_.constraints[std::size_t(b.constraint)].kd;
    for (std::size_t p = 0; p < std::size_t(b.padded / lanes); ++p) {
      V sum{};
      for (const Side& side : b.sides) {
        if (side.link < 0) continue;
        const Lever& l = side.levers[p];
        const Vec3<double> x = w.pose[side.link] * side.local;
        const Vec6<double> v = w.v[side.link], a = w.a[side.link];
        const Vec3<double> speed = v.lin + cross(v.ang, x), rate = a.lin + cross(a.ang, x) + cross(v.ang, speed);
        sum += dot(l.k, rate + speed * kd) + dot(l.c, a.ang + v.ang * kd);
      }
      dense::store(drift + b.row + int(p) * lanes, sum);  // rows that follow are written after
    }
  }
}

void RowMatrices::constant_rows(const Block& b, DerivativeWorkspace<double>& w, const double* lambda) {
  const std::size_t count = b.support.size() * std::size_t(b.padded);
  double *g_q = g_q_.data() + b.at, *g_v = g_v_.data() + b.at;
  const Constraint<double>& c = set_.constraints[std::size_t(b.constraint)];
  const double kd = c.kd;
  const bool several = adds(b), feels_place = c.kd != 0 || c.kp != 0;
  if (several)
    for (double* x : {g_q, g_v}) std::fill_n(x, count, 0.0);
  for (const Side& side : b.sides) {
    if (side.link < 0) continue;
    const Vec3<double> x = w.pose[side.link] * side.local;
    const Vec6<double> v = w.v[side.link], a = w.a[side.link];
    const Vec3<double> speed = v.lin + cross(v.ang, x), rate = a.lin + cross(a.ang, x) + cross(v.ang, speed);
    Vec3<double> force{}, moment{};
    const auto add_force = [&](std::size_t p, const Lever& l) {
      for (int r = 0; r < lanes && int(p) * lanes + r < b.rows; ++r) {
        const double f = lambda[int(p) * lanes + r];
        force += Vec3<double>{lane(l.k.x, r), lane(l.k.y, r), lane(l.k.z, r)} * f;
        moment += Vec3<double>{lane(l.c.x, r), lane(l.c.y, r), lane(l.c.z, r)} * f;
      }
    };
    for (std::size_t p = 0; p < side.levers.size(); ++p) {
      const Lever& l = side.levers[p];
      const Vec6<V> kappa{l.k, cross(x, l.k) + l.c}, damped = kappa * kd;
      const Vec3<V> h = cross(speed, l.k) * 2.0 + cross(v.ang, l.c);
      const Vec3<V> turn = cross(rate, l.k) + cross(a.ang, l.c) + (cross(speed, l.k) + cross(v.ang, l.c)) * kd;
      const Vec6<V> place{l.k * l.gain, cross(x, l.k) * l.gain};
      if (!feels_place) {
        for (std::size_t e = 0; e < side.chain.size(); ++e) {
          const std::size_t k = std::size_t(side.chain[e]),
                            at = std::size_t(side.position[e]) * std::size_t(b.padded) + p * lanes;
          const Vec3<double> turning = w.S[k].ang;
          add_or_store(several, g_v + at, dot(kappa, w.rates.Phi[k]) + dot(h, turning));
          add_or_store(several, g_q + at, dot(kappa, w.rates.Chi[k]) + dot(h, w.rates.Psi[k].ang) + dot(turn, turning));
        }
        add_force(p, l);
        continue;
      }
      for (std::size_t e = 0; e < side.chain.size(); ++e) {
        const std::size_t k = std::size_t(side.chain[e]),
                          at = std::size_t(side.position[e]) * std::size_t(b.padded) + p * lanes;
        const Vec6<double>&S = w.S[k], &Psi = w.rates.Psi[k], &Chi = w.rates.Chi[k], &Phi = w.rates.Phi[k];
        add_or_store(several, g_v + at, dot(kappa, Phi) + dot(damped, S) + dot(h, S.ang));
        add_or_store(several, g_q + at,
                     dot(kappa, Chi) + dot(damped, Psi) + dot(h, Psi.ang) + dot(turn, S.ang) + dot(place, S));
      }
      add_force(p, l);
    }
    w.f.add(side.link, Vec6<double>{force, cross(x, force) + moment} * -1.0);
    w.E.add(side.link, fixed_wrench_turn_force(force, moment, x));
  }
}

void RowMatrices::differentiate(const Block& b, const DerivativeWorkspace<double>& w, const RowPoint<double>* points,
                                const double* lambda) {
  const Constraint<double>& c = set_.constraints[std::size_t(b.constraint)];
  std::fill(changes_.begin(), changes_.end(), V{});
  if (c.kind == Kind::distance)
    distance_tangents(distance_row(model_, w, c, points[0], points[1]), lambda[0], none_[0], tangents_,
                      changes_.data());
  else
    frame_tangents(model_, w, frame_rows(model_, w, c, points[0], points[1]), lambda, none_.data(), tangents_,
                   changes_.data());
}

// K on each of the two links, by accelerations along unit motions; J of it.
void RowMatrices::place_two_bodies(const Block& b, const DerivativeWorkspace<double>& w) {
  double* J = J_.data() + b.at;
  const std::size_t padded = std::size_t(b.padded);
  RowPoint<double> points[2];
  for (std::size_t s = 0; s < 2; ++s) {
    const int link = b.sides[s].link;
    points[s] = RowPoint<double>{link, {}, {}, {}, {}, {}};
    if (link >= 0) points[s].x = w.pose[link] * b.sides[s].local;
  }
  std::fill_n(J, b.support.size() * padded, 0.0);
  for (std::size_t s = 0; s < 2; ++s) {
    const Side& side = b.sides[s];
    Vec6<V>* K = K_.data() + b.K + s * (padded / lanes);
    std::fill_n(K, padded / lanes, Vec6<V>{});
    if (side.link < 0) continue;
    const Side& other = b.sides[1 - s];
    // a link that is both of them gets all of K by its first side
    if (s == 1 && other.link == side.link) continue;
    for (int first = 0; first < 6; first += lanes) {
      for (const Side& e : b.sides)
        if (e.link >= 0) tangents_[std::size_t(e.link)] = LinkTangent<V>{};
      for (int l = 0; l < lanes && first + l < 6; ++l) {
        double e[6] = {0, 0, 0, 0, 0, 0};
        e[first + l] = 1;
        set_lane(tangents_[std::size_t(side.link)].a, l, {{e[0], e[1], e[2]}, {e[3], e[4], e[5]}});
      }
      differentiate(b, w, points, rows_.data());
      for (int r = 0; r < b.rows; ++r) {
        double* to = reinterpret_cast<double*>(K + r / lanes) + r % lanes;
        for (int l = 0; l < lanes && first + l < 6; ++l) to[(first + l) * lanes] = lane(changes_[std::size_t(r)], l);
      }
    }
    for (std::size_t p = 0; p < padded / lanes; ++p)
      for (std::size_t e = 0; e < side.chain.size(); ++e)
        add_or_store(true, J + std::size_t(side.position[e]) * padded + p * lanes,
                     dot(K[p], w.S[std::size_t(side.chain[e])]));
  }
}

void RowMatrices::two_body_rows(const Block& b, DerivativeWorkspace<double>& w, const double* lambda,
                                const Vec3<double>& ground) {
  double *g_q = g_q_.data() + b.at, *g_v = g_v_.data() + b.at;
  const std::size_t padded = std::size_t(b.padded), count = b.support.size();
  const int links[2] = {b.sides[0].link, b.sides[1].link};
  RowPoint<double> points[2];
  for (int s = 0; s < 2; ++s) {
    points[s] = RowPoint<double>{-1, {}, {}, {}, {}, {}};
    if (links[s] >= 0)
      points[s] =
          row_point(links[s], w.pose[links[s]] * b.sides[std::size_t(s)].local, w.v[links[s]], w.a[links[s]], ground);
  }
  const auto clear = [&] {
    for (const int l : links)
      if (l >= 0) tangents_[std::size_t(l)] = LinkTangent<V>{};
  };
  const auto write = [&](double* to, std::size_t first) {
    for (int l = 0; l < lanes && first + std::size_t(l) < count; ++l)
      for (int r = 0; r < b.rows; ++r)
        to[(first + std::size_t(l)) * padded + std::size_t(r)] = lane(changes_[std::size_t(r)], l);
  };

  // the force of λ
  Vec6<double> wrench[2]{};
  for (std::size_t s = 0; s < 2; ++s) {
    if (links[s] < 0) continue;
    const Vec6<V>* K = K_.data() + b.K + s * (padded / lanes);
    for (int r = 0; r < b.rows; ++r) {
      const double* k = reinterpret_cast<const double*>(K + r / lanes) + r % lanes;
      wrench[s] += Vec6<double>{{k[0], k[lanes], k[2 * lanes]}, {k[3 * lanes], k[4 * lanes], k[5 * lanes]}} * lambda[r];
    }
    w.f.add(links[s], wrench[s] * -1.0);
  }

  // along q and ν, a pack of the support at a time
  for (std::size_t first = 0; first < count; first += lanes) {
    Directions d[2]{};
    for (int s = 0; s < 2; ++s) {
      const Side& side = b.sides[std::size_t(s)];
      for (std::size_t e = 0; e < side.chain.size(); ++e) {
        const std::size_t position = std::size_t(side.position[e]), k = std::size_t(side.chain[e]);
        if (position < first || position >= first + lanes) continue;
        const int l = int(position - first);
        set_lane(d[s].S, l, w.S[k]);
        set_lane(d[s].Psi, l, w.rates.Psi[k]);
        set_lane(d[s].Chi, l, w.rates.Chi[k]);
        set_lane(d[s].Phi, l, w.rates.Phi[k]);
      }
    }
    clear();
    for (int s = 0; s < 2; ++s) {
      if (links[s] < 0) continue;
      const Vec6<double> v = w.v[links[s]], a = w.a[links[s]];
      LinkTangent<V>& t = tangents_[std::size_t(links[s])];
      t.twist = d[s].S;
      t.v = cross_motion(d[s].S, v) + d[s].Psi;
      t.a = cross_motion(d[s].S, a) + cross_motion(d[s].Psi, v) + d[s].Chi;
    }
    differentiate(b, w, points, lambda);
    write(g_q, first);
    for (int s = 0; s < 2; ++s) {
      Vec6<V>& turned = turned_[b.turned + 2 * (first / lanes) + std::size_t(s)];
      turned = Vec6<V>{};
      if (links[s] < 0 || (s == 1 && links[1] == links[0])) continue;
      turned = tangents_[std::size_t(links[s])].f + cross_force(d[s].S, wrench[s]);
    }
    clear();
    for (int s = 0; s < 2; ++s) {
      if (links[s] < 0) continue;
      LinkTangent<V>& t = tangents_[std::size_t(links[s])];
      t.v = d[s].S;
      t.a = cross_motion(d[s].S, w.v[links[s]]) + d[s].Phi;
    }
    differentiate(b, w, points, lambda);
    write(g_v, first);
  }
}

// J, or g_q and g_v.
void RowMatrices::joint_rows(const Block& b, bool acceleration, const double* q, const double* v, const double* a,
                             const double* lambda) {
  const Constraint<double>& c = set_.constraints[std::size_t(b.constraint)];
  const double *zero = zero_.data(), *unit = unit_.data();
  const auto along = [&](const double* dq, const double* dv, const double* da, double* to) {
    std::fill_n(to, b.padded, 0.0);
    joint_tangents(model_, c, q, v, a, dq, dv, da, lambda, zero, to, tau_.data());
  };
  for (std::size_t e = 0; e < b.support.size(); ++e) {
    const std::size_t at = b.at + e * std::size_t(b.padded);
    unit_[std::size_t(b.support[e])] = 1;
    if (acceleration) {
      along(zero, zero, unit, &J_[at]);
    } else {
      along(unit, zero, zero, &g_q_[at]);
      along(zero, unit, zero, &g_v_[at]);
    }
    unit_[std::size_t(b.support[e])] = 0;
  }
}

void RowMatrices::correct(const DerivativeWorkspace<double>& w, const double* q, const double* v, const double* a,
                          const double* lambda, double* F_q) {
  const std::size_t nv = std::size_t(model_.nv);
  for (const Block& b : blocks_) {
    if (b.kind == Block::Kind::two_bodies) {
      for (std::size_t first = 0; first < b.support.size(); first += lanes)
        for (std::size_t s = 0; s < 2; ++s) {
          const Vec6<V>& turned = turned_[b.turned + 2 * (first / lanes) + s];
          for (const int k : b.sides[s].chain) {
            const V x = dot(turned, w.S[std::size_t(k)]);
            double* row = F_q + std::size_t(k) * nv;
            for (int l = 0; l < lanes && first + std::size_t(l) < b.support.size(); ++l)
              row[b.support[first + std::size_t(l)]] += lane(x, l);
          }
        }
    } else if (b.kind == Block::Kind::joints) {
      // forces of a coupling change with its leader
      const Constraint<double>& c = set_.constraints[std::size_t(b.constraint)];
      if (c.kind != delassus::Kind::coupling) continue;
      for (const int k : b.support) {
        unit_[std::size_t(k)] = 1;
        for (const int r : b.support) tau_[std::size_t(r)] = 0;
        double row = 0;
        joint_tangents(model_, c, q, v, a, unit_.data(), zero_.data(), zero_.data(), lambda + b.row, zero_.data(), &row,
                       tau_.data());
        for (const int r : b.support) F_q[std::size_t(r) * nv + std::size_t(k)] += tau_[std::size_t(r)];
        unit_[std::size_t(k)] = 0;
      }
    }
  }
}

}  // namespace delassus
