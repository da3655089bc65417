// A world of rigid bodies that touch, and its steps in time. One step:
//
//   collide      contacts at q, with gaps φ
//   constrain    rows of loops, dry friction, limits that are near, contacts
//   free motion  v_f = v + dt M̂⁻¹ (τ − h − K (q − q₀) − (D + dt K) v),   M̂ = M + dt D + dt² K: springs, dampers and servos act at the end of the step
//   solve        λ in its set, σ = G λ + J v_f + max(φ − slop, 0) / dt: Signorini and Coulomb on velocities, G = J M̂⁻¹ Jᵀ
//   bounce       restitution in two phases: what compression took is given back times e, then nothing may go in again
//   correct      positions alone, where bodies are in each other or loops are open: u = M̂⁻¹ Jᵀ µ with 0 ≤ µ_n ⊥ J u + φ⁺ / dt ≥ 0; it moves q and no velocity, so it adds no motion
//   integrate    v ← v_f + M̂⁻¹ Jᵀ λ,   q ← q ⊕ dt (v + u)
//
// Free bodies of one link turn by the midpoint rule on the rotation group, which keeps their angular momentum and, but for rounding of order dt³, their energy.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>

#include "constraints/compiled.h"
#include "dynamics/rnea.h"
#include "operators/strips.h"
#include "operators/verbs.h"
#include "simulator/collider.h"
#include "solvers/contacts/newton.h"
#include "state/configuration.h"

namespace delassus {

// What of a mechanism never changes during a simulation.
struct WorldDescription {
  struct Limit {
    int coordinate, velocity;
    double lower, upper;
  };
  struct Motor {
    int coordinate, velocity;   // −1: no coordinate
    double gear, gain, bias[3], control[2], force[2];
  };
  Model<double> model;          // its armature holds that of M̂
  std::vector<ConstraintDescription> loops, friction;
  std::vector<double> friction_loss;             // a row of `friction` [N or N m]
  std::vector<double> stiffness, damping, rest;  // a velocity; rest: a coordinate
  std::vector<int> sprung;                       // coordinates of velocities that have a spring, else −1
  std::vector<Limit> limits;
  std::vector<Motor> motors;
  double timestep = 1e-3;
  double restitution = 0, bounce = 0.05;         // e, and the speed below which nothing bounces [m/s]
  double tolerance = 1e-6;
  int most = 1000;
  bool newton = false;
  bool midpoint = true;         // h at half of the step's velocity, else at its start
  double slop = 1e-5;           // gap, and penetration, that is taken for touching [m]: gaps of a patch that differ by less would leave three of its points alone with the load
};

// Seconds of the parts of a step.
struct StepTimes {
  double collide = 0, constrain = 0, operate = 0, solve = 0, correct = 0, all = 0;
};

struct StepReport {
  ContactReport contacts;       // of the velocities
  int corrections = 0;          // iterations for positions
  bool regular = true;
  double penetration = 0, loop_error = 0;  // before the step [m]
  StepTimes times;
};

class World {
 public:
  World(std::shared_ptr<const WorldDescription> description, std::unique_ptr<Collider> collider)
      : world_(std::move(description)), collider_(std::move(collider)), motions_(world_->model.links.size()) {
    const std::size_t nv = std::size_t(world_->model.nv);
    q.assign(std::size_t(world_->model.nq), 0.0);
    for (auto* x : {&v, &tau_, &free_, &change_, &push_, &half_, &before_}) x->assign(nv, 0.0);
    for (const auto& d : world_->loops) loop_rows_ += d.rows;
    alone_.assign(nv, 0);
    for (const int root : world_->model.roots) {
      const auto& link = world_->model.links[std::size_t(root)];
      const bool alone = link.type == Joint::free && link.end == root + 1;
      if (alone) std::fill_n(alone_.begin() + link.iv, 6, 1);
      whirls_ = whirls_ || !alone;
    }
  }

  const WorldDescription& description() const { return *world_; }
  std::vector<double> q, v;
  double time = 0;

  // Contacts of the last step, and their impulses [N s], three rows each in the frame of `frames`.
  const std::vector<Touch>& touches() const { return touches_; }
  const double* impulses() const { return lambda_.data() + first_contact_; }
  const std::array<Vec3<double>, 3>& frame(int contact) const { return frames_[std::size_t(contact)]; }
  int systems() const { return int(systems_.size()); }

  // What the next step starts from besides q and v: contacts and forces of the last, and ρ.
  struct Memory {
    struct Known {
      Touch touch;
      Vec3<double> impulse, correction;  // in world axes
    };
    std::vector<Known> contacts;
    std::vector<double> others, other_corrections;  // rows of loops and friction
    std::vector<std::array<double, 2>> limits;      // of every end: impulse, correction
    double rho = 0, correction_rho = 0;
  };
  Memory memory;

  // tau: forces on joints, control: of motors, external: wrenches on bodies; null for none.
  StepReport step(const double* tau, const double* control, const double* external) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto last = start;
    auto lap = [&](double& part) {
      const auto now = Clock::now();
      part += std::chrono::duration<double>(now - last).count();
      last = now;
    };
    const auto& m = world_->model;
    const double dt = world_->timestep;
    StepReport report;

    collider_->collide(q.data(), touches_);
    lap(report.times.collide);

    System& s = assemble();
    const int rows = s.layout->set.rows;
    for (auto* x : {&g_, &lambda_, &sigma_, &error_, &mu_, &bounce_}) x->resize(std::size_t(rows));
    lap(report.times.constrain);

    report.regular = s.G->update(q.data());
    if (!report.regular) return report;
    find_free_motion(s, tau, control, external);
    s.G->jacobian(free_.data(), 1, g_.data());
    find_errors(s, report);
    lap(report.times.operate);

    solve_velocities(s, report);
    lap(report.times.solve);

    before_ = v;
    std::copy(free_.begin(), free_.end(), v.begin());
    add_response(s, lambda_.data(), v.data());
    correct_positions(s, report);
    remember(s);
    lap(report.times.correct);

    for (std::size_t k = 0; k < v.size(); ++k) push_[k] += v[k];
    // free bodies turn by the mean of what they had and what they would have without contacts: then angular momentum stays
    for (const int root : m.roots) {
      const auto& link = m.links[std::size_t(root)];
      if (!alone_[std::size_t(link.iv)]) continue;
      for (int k = link.iv + 3; k < link.iv + 6; ++k) push_[std::size_t(k)] -= 0.5 * (free_[std::size_t(k)] - before_[std::size_t(k)]);
    }
    integrate(m, q.data(), push_.data(), dt, q.data());
    time += dt;
    report.times.all = std::chrono::duration<double>(Clock::now() - start).count();
    return report;
  }

 private:
  // Rows that stay the same while the same links touch.
  struct System {
    std::shared_ptr<Layout<double>> layout;
    std::unique_ptr<MovingOperator<double>> G;
    ForceSets sets, positions;      // of impulses; of corrections, which have no friction
    std::vector<int> point;         // a contact: which of the points
    int first_limit, first_contact;
    std::size_t used = 0;

    System(const Model<double>& model, ConstraintSet<double> set) : layout(std::make_shared<Layout<double>>(model, std::move(set), strip_lanes<double>)), G(make_moving_operator<double>(model, layout)) {}
  };

  // Touching points as constraints: contact frames, who is first, which limits are near; the system for them, made if there is none.
  System& assemble() {
    const auto& m = world_->model;
    const double dt = world_->timestep;
    key_.clear();
    near_.clear();
    for (std::size_t k = 0; k < world_->limits.size(); ++k) {
      const auto& limit = world_->limits[k];
      const double x = q[std::size_t(limit.coordinate)], reach = 4 * dt * std::abs(v[std::size_t(limit.velocity)]) + 1e-3;
      if (x - limit.lower < reach) near_.push_back(int(2 * k));
      if (limit.upper - x < reach) near_.push_back(int(2 * k + 1));
    }
    key_.insert(key_.end(), near_.begin(), near_.end());
    key_.push_back(-2);
    // contacts of what never moves against itself are no contacts; the ground comes second
    std::size_t count = 0;
    frames_.clear();
    for (auto t : touches_) {
      int link[2] = {m.bodies[std::size_t(t.body[0])].link, m.bodies[std::size_t(t.body[1])].link};
      if (link[0] == link[1]) continue;
      if (link[0] < 0) {
        std::swap(link[0], link[1]);
        std::swap(t.body[0], t.body[1]);
        std::swap(t.geom[0], t.geom[1]);
        std::swap(t.local[0], t.local[1]);
        t.normal = t.normal * -1.0;
      }
      touches_[count++] = t;
    }
    touches_.resize(count);
    keep_points();
    for (const auto& t : touches_) {
      key_.push_back(m.bodies[std::size_t(t.body[0])].link);
      key_.push_back(m.bodies[std::size_t(t.body[1])].link);
      frames_.push_back(frame_of(t.normal));
    }
    auto found = systems_.find(key_);
    if (found == systems_.end()) {
      if (systems_.size() == most_systems) forget_oldest();
      found = systems_.emplace(key_, make_system()).first;
    }
    System& s = *found->second;
    s.used = ++uses_;
    place_points(s);
    return s;
  }

  // Points of the step before, where a pair that still touches lists fewer than it did: faces that rest on each other are found as one point or as four by a rounding. A point
  // stays for as long as its two places are opposite to each other, and no new one is near.
  void keep_points() {
    kept_.clear();
    std::size_t known = 0;
    const auto& old = memory.contacts;
    const auto same = [](const Touch& a, const Touch& b) { return a.geom[0] == b.geom[0] && a.geom[1] == b.geom[1]; };
    for (std::size_t first = 0; first < touches_.size();) {
      std::size_t last = first + 1;
      while (last < touches_.size() && same(touches_[first], touches_[last])) ++last;
      kept_.insert(kept_.end(), touches_.begin() + std::ptrdiff_t(first), touches_.begin() + std::ptrdiff_t(last));
      // both lists are in the same order but for pairs that came or went
      std::size_t begin = known, looked = 0;
      while (looked < old.size() && !same(old[begin % old.size()].touch, touches_[first])) ++begin, ++looked;
      if (looked < old.size()) {
        begin %= old.size();
        std::size_t end = begin;
        while (end < old.size() && same(old[end].touch, touches_[first])) ++end;
        known = end % old.size();
        std::size_t count = last - first;
        const std::size_t before = end - begin;
        for (std::size_t k = begin; k < end && count < before && count < 4; ++k) {
          Touch t = old[k].touch;
          const Vec3<double> a = collider_->place(t.geom[0], t.local[0]), b = collider_->place(t.geom[1], t.local[1]), apart = a - b;
          const double along = dot(apart, t.normal);
          const Vec3<double> aside = apart - t.normal * along;
          t.distance = t.base + along;
          t.position = (a + b) * 0.5;
          bool stays = dot(aside, aside) < 1e-8 && std::abs(along) < 1e-4 && dot(t.normal, touches_[first].normal) > 0.9999;
          for (std::size_t n = first; n < last && stays; ++n) {
            const Vec3<double> d = touches_[n].position - t.position;
            stays = dot(d, d) > match * match / 4;
          }
          if (!stays) continue;
          kept_.push_back(t);
          ++count;
        }
      }
      first = last;
    }
    touches_.swap(kept_);
  }

  static std::array<Vec3<double>, 3> frame_of(const Vec3<double>& n) {
    const double a = std::abs(n.x), b = std::abs(n.y), c = std::abs(n.z);
    const Vec3<double> e = a <= b && a <= c ? Vec3<double>{1, 0, 0} : b <= c ? Vec3<double>{0, 1, 0} : Vec3<double>{0, 0, 1};
    Vec3<double> t = cross(e, n);
    t = t * (1 / std::sqrt(dot(t, t)));
    return {n, t, cross(n, t)};
  }

  std::unique_ptr<System> make_system() const {
    std::vector<ConstraintDescription> list = world_->loops;
    list.insert(list.end(), world_->friction.begin(), world_->friction.end());
    for (const int end : near_) {
      const auto& limit = world_->limits[std::size_t(end / 2)];
      ConstraintDescription d{};
      d.kind = Kind::joint;
      d.rows = 1;
      d.joints = {limit.velocity};
      d.numbers = {end % 2 ? -1.0 : 1.0};
      list.push_back(d);
    }
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      const auto& t = touches_[k];
      ConstraintDescription d{};
      d.kind = Kind::frame;
      d.rows = 3;
      d.bodies = {t.body[0], t.body[1]};
      for (const auto& p : t.local) d.points.insert(d.points.end(), {p.x, p.y, p.z});
      for (const auto& a : frames_[k]) d.matrix.insert(d.matrix.end(), {a.x, a.y, a.z});
      list.push_back(std::move(d));
    }
    auto s = std::make_unique<System>(world_->model, make_constraints(world_->model, list));
    const auto& set = s->layout->set;
    constexpr double open = std::numeric_limits<double>::infinity();
    int row = 0;
    s->sets.rows = s->positions.rows = set.rows;
    auto take = [&](ForceSets& K, int r, double lower, double upper) { K.intervals.push_back({r, lower, upper}); };
    for (const auto& d : world_->loops)
      for (int r = 0; r < d.rows; ++r, ++row) take(s->sets, row, -open, open), take(s->positions, row, -open, open);
    for (const double loss : world_->friction_loss) {
      take(s->sets, row, -loss * world_->timestep, loss * world_->timestep);
      take(s->positions, row++, 0, 0);
    }
    s->first_limit = row;
    for (std::size_t k = 0; k < near_.size(); ++k, ++row) take(s->sets, row, 0, open), take(s->positions, row, 0, open);
    s->first_contact = row;
    for (; row < set.rows; row += 3) {
      s->sets.cones.push_back({row, 0.0});
      take(s->positions, row, 0, open);
      take(s->positions, row + 1, 0, 0);
      take(s->positions, row + 2, 0, 0);
    }
    s->point.assign(touches_.size(), -1);
    for (std::size_t p = 0; p < set.points.size(); ++p)
      if (set.points[p].row >= s->first_contact) s->point[std::size_t(set.points[p].row - s->first_contact) / 3] = int(p);
    return s;
  }

  void forget_oldest() {
    systems_.erase(std::min_element(systems_.begin(), systems_.end(), [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
  }

  // Where the points are now, and their friction.
  void place_points(System& s) {
    auto& set = s.layout->set;
    const auto& m = world_->model;
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      const auto& t = touches_[k];
      auto& point = set.points[std::size_t(s.point[k])];
      for (int r = 0; r < 3; ++r) point.axes[r] = frames_[k][std::size_t(r)];
      for (int b = 0; b < 2; ++b) {
        const auto& body = m.bodies[std::size_t(t.body[b])];
        if (body.link >= 0) set.locals[std::size_t(point.local + b)] = body.placement.R * t.local[b] + body.placement.p;
      }
      s.sets.cones[k].friction = t.friction;
    }
    s.G->read_points();
    first_contact_ = s.first_contact;
  }

  // v_f, with h at half of the step's velocity: where it is taken at v, whatever whirls gains energy.
  void find_free_motion(System& s, const double* tau, const double* control, const double* external) {
    const double dt = world_->timestep;
    drive(tau, control);
    accelerate(s, v.data(), external);
    if (whirls_ && world_->midpoint) {
      for (std::size_t k = 0; k < v.size(); ++k) half_[k] = alone_[k] ? v[k] : v[k] + 0.5 * dt * change_[k];
      accelerate(s, half_.data(), external);
    }
    for (std::size_t k = 0; k < v.size(); ++k) free_[k] = v[k] + dt * change_[k];
    turn_free_bodies();
  }
  // push_ ← τ − K (q + dt v − q₀) − D v, and what motors give
  void drive(const double* tau, const double* control) {
    const double dt = world_->timestep;
    for (std::size_t k = 0; k < v.size(); ++k) {
      const int at = world_->sprung[k];
      const double spring = at < 0 ? 0 : world_->stiffness[k] * (q[std::size_t(at)] + dt * v[k] - world_->rest[std::size_t(at)]);
      push_[k] = (tau ? tau[k] : 0.0) - spring - world_->damping[k] * v[k];
    }
    for (std::size_t k = 0; k < world_->motors.size(); ++k) {
      const auto& a = world_->motors[k];
      const double u = std::clamp(control ? control[k] : 0.0, a.control[0], a.control[1]);
      const double speed = v[std::size_t(a.velocity)];
      const double length = a.coordinate < 0 ? 0 : a.gear * (q[std::size_t(a.coordinate)] + dt * speed);
      push_[std::size_t(a.velocity)] += a.gear * std::clamp(a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * a.gear * speed, a.force[0], a.force[1]);
    }
  }
  // change_ ← M̂⁻¹ (push_ − h(q, x))
  void accelerate(System& s, const double* x, const double* external) {
    const auto& m = world_->model;
    const auto& w = s.G->placement();
    motions(m, w, motions_, x, static_cast<const double*>(nullptr), Vec3<double>{});
    inertial_forces(w, motions_, m.gravity * -1.0);
    if (external) subtract_external(m, w, motions_, external);
    joint_forces(m, w, motions_, static_cast<const double*>(nullptr), tau_.data());
    for (std::size_t k = 0; k < v.size(); ++k) tau_[k] = push_[k] - tau_[k];
    s.G->mass_inverse(tau_.data(), 1, change_.data());
  }

  // ω of a free body of one link: I ω⁺ = exp(−dt (ω + ω⁺) / 2) I ω instead of I (ω⁺ − ω) = −dt ω × I ω, about its centre of mass.
  void turn_free_bodies() {
    const auto& m = world_->model;
    const double dt = world_->timestep;
    for (const int root : m.roots) {
      const auto& link = m.links[std::size_t(root)];
      if (!alone_[std::size_t(link.iv)]) continue;
      const auto& I = link.inertial.inertia;
      const double* x = v.data() + link.iv + 3;
      const Vec3<double> w{x[0], x[1], x[2]}, L = I * w;
      const Vec3<double> explicitly = w + solved(I, cross(L, w)) * dt;
      Vec3<double> next = explicitly;
      for (int n = 0; n < 8; ++n) {
        const Vec3<double> half = (w + next) * (-0.5 * dt);
        const Vec3<double> better = solved(I, turned(exponential(half), L));
        const Vec3<double> d = better - next;
        next = better;
        if (dot(d, d) <= 1e-30 * (1 + dot(next, next))) break;
      }
      const Vec3<double> d = next - explicitly;
      double* to = free_.data() + link.iv;
      to[3] += d.x, to[4] += d.y, to[5] += d.z;
      // the origin moves so that the centre of mass keeps its way: −R (d × c)
      const double* p = q.data() + link.iq + 3;
      const Vec3<double> shift = turned(normalized(p), cross(d, link.inertial.center));
      to[0] -= shift.x, to[1] -= shift.y, to[2] -= shift.z;
    }
  }
  static Vec3<double> solved(const Sym3<double>& I, const Vec3<double>& b) {
    const double c0 = I.yy * I.zz - I.yz * I.yz, c1 = I.xz * I.yz - I.xy * I.zz, c2 = I.xy * I.yz - I.xz * I.yy;
    const double det = I.xx * c0 + I.xy * c1 + I.xz * c2;
    const double d0 = I.xx * I.zz - I.xz * I.xz, d1 = I.xy * I.xz - I.xx * I.yz, e = I.xx * I.yy - I.xy * I.xy;
    return Vec3<double>{c0 * b.x + c1 * b.y + c2 * b.z, c1 * b.x + d0 * b.y + d1 * b.z, c2 * b.x + d1 * b.y + e * b.z} * (1 / det);
  }
  // e x e⁻¹
  static Vec3<double> turned(const Quaternion<double>& e, const Vec3<double>& x) {
    const Vec3<double> u{e.x, e.y, e.z}, t = cross(u, x) * 2.0;
    return x + t * e.w + cross(u, t);
  }

  // Gaps and errors of the rows, and what they ask of the velocities.
  void find_errors(System& s, StepReport& report) {
    const auto& set = s.layout->set;
    const double dt = world_->timestep;
    std::fill(error_.begin(), error_.end(), 0.0);
    if (!world_->loops.empty()) {
      errors(world_->model, set, s.G->placement(), q.data(), error_.data());
      for (int r = 0; r < loop_rows_; ++r) report.loop_error = std::max(report.loop_error, std::abs(error_[std::size_t(r)]));
    }
    for (std::size_t k = 0; k < near_.size(); ++k) {
      const auto& limit = world_->limits[std::size_t(near_[k] / 2)];
      const double x = q[std::size_t(limit.coordinate)];
      error_[std::size_t(s.first_limit) + k] = near_[k] % 2 ? limit.upper - x : x - limit.lower;
    }
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      error_[std::size_t(s.first_contact) + 3 * k] = touches_[k].distance;
      report.penetration = std::max(report.penetration, -touches_[k].distance);
    }
    // what is apart may come together within the step
    for (std::size_t r = std::size_t(s.first_limit); r < error_.size(); ++r) {
      const bool normal = int(r) < s.first_contact || (int(r) - s.first_contact) % 3 == 0;
      if (normal) g_[r] += std::max(error_[r] - world_->slop, 0.0) / dt;
    }
  }

  void solve_velocities(System& s, StepReport& report) {
    recall(s);
    ContactOptions options{world_->tolerance, world_->most, warm_, memory.rho, true, 1.0};
    OperatorMap map(*s.G, s.sets);
    const ContactProblem problem{map, g_.data(), s.sets};
    history_.resize(std::size_t(world_->most));
    const bool bounces = world_->restitution > 0 && find_bouncing(s);
    report.contacts = solve(problem, options, lambda_.data(), sigma_.data());
    rho_ = report.contacts.outcome == ContactOutcome::solved ? report.contacts.rho : 0;
    if (!bounces) return;
    // decompression: (1 + e) of what compression took, then nothing may go in again
    for (std::size_t r = 0; r < lambda_.size(); ++r) bounce_[r] = lambda_[r] * (1 + bounce_[r]);
    s.G->apply(bounce_.data(), 1, sigma_.data());
    for (std::size_t r = 0; r < lambda_.size(); ++r) sigma_[r] += g_[r];
    std::swap(g_, sigma_);
    options.warm = false;
    options.rho = report.contacts.rho;
    std::vector<double>& again = mu_;
    // loops and dry friction have their say once more, within what is left of their sets
    ForceSets rest = s.sets;
    for (auto& i : rest.intervals) i.lower -= bounce_[std::size_t(i.row)], i.upper -= bounce_[std::size_t(i.row)];
    for (std::size_t k = 0; k < near_.size(); ++k) rest.intervals[std::size_t(s.first_limit) + k].lower = 0;
    const ContactReport second = solve(ContactProblem{map, g_.data(), rest}, options, again.data(), sigma_.data());
    // friction while it springs back may feed on the normal impulse: as far from compression to the end as takes no energy from nowhere, ½ λᵀ G λ + λᵀ J v_f ≤ 0
    for (std::size_t r = 0; r < lambda_.size(); ++r) bounce_[r] += again[r] - lambda_[r];
    s.G->jacobian(free_.data(), 1, s_velocity_.data());
    s.G->apply(lambda_.data(), 1, sigma_.data());
    s.G->apply(bounce_.data(), 1, mu_.data());
    const int rows = int(lambda_.size());
    const double c = inner(rows, lambda_.data(), s_velocity_.data()) + 0.5 * inner(rows, lambda_.data(), sigma_.data());
    const double b = inner(rows, bounce_.data(), s_velocity_.data()) + inner(rows, bounce_.data(), sigma_.data()), a = 0.5 * inner(rows, bounce_.data(), mu_.data());
    double share = 1;
    if (a + b + c > 0) share = a > 0 && c <= 0 ? std::clamp((-b + std::sqrt(std::max(b * b - 4 * a * c, 0.0))) / (2 * a), 0.0, 1.0) : 0.0;
    for (std::size_t r = 0; r < lambda_.size(); ++r) lambda_[r] += share * bounce_[r];
    report.contacts.iterations += second.iterations;
    report.contacts.factorizations += second.factorizations;
    if (second.outcome != ContactOutcome::solved) report.contacts.outcome = second.outcome;
    report.contacts.left = second.left;
  }
  // e of the normal rows that come in fast: their gap is not waited for.
  bool find_bouncing(const System& s) {
    bool any = false;
    std::fill(bounce_.begin(), bounce_.end(), 0.0);
    s_velocity_.resize(g_.size());
    s.G->jacobian(v.data(), 1, s_velocity_.data());
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      const std::size_t r = std::size_t(s.first_contact) + 3 * k;
      const double gap = std::max(error_[r] - world_->slop, 0.0) / world_->timestep;
      if (g_[r] >= 0 || s_velocity_[r] > -world_->bounce) continue;
      g_[r] -= gap;
      // of the speed it came with, not of what the step's own forces added
      bounce_[r] = world_->restitution * std::min(s_velocity_[r] / g_[r], 1.0);
      any = true;
    }
    return any;
  }
  ContactReport solve(const ContactProblem& p, const ContactOptions& options, double* lambda, double* sigma) {
    return world_->newton ? newton_.solve(p, options, lambda, sigma, history_.data()) : admm_.solve(p, options, lambda, sigma, history_.data());
  }

  // x += M̂⁻¹ Jᵀ λ
  void add_response(System& s, const double* lambda, double* x) {
    s.G->jacobian_transpose(lambda, 1, tau_.data());
    s.G->mass_inverse(tau_.data(), 1, change_.data());
    for (std::size_t k = 0; k < v.size(); ++k) x[k] += change_[k];
  }

  // u = M̂⁻¹ Jᵀ µ into push_: where the step would end inside of something, or with loops open.
  void correct_positions(System& s, StepReport& report) {
    std::fill(push_.begin(), push_.end(), 0.0);
    const double dt = world_->timestep;
    const int rows = s.layout->set.rows;
    if (rows == 0) return;
    // J v⁺ + e / dt, and of loops ½ dt J̇v⁺: how they curve within the step
    s.G->jacobian(v.data(), 1, g_.data());
    if (!world_->loops.empty()) {
      const auto& m = world_->model;
      motions(m, s.G->placement(), motions_, v.data(), static_cast<const double*>(nullptr), Vec3<double>{});
      rates(m, s.layout->set, s.G->placement(), motions_, q.data(), v.data(), mu_.data(), sigma_.data());
      for (int r = 0; r < loop_rows_; ++r) g_[std::size_t(r)] += 0.5 * dt * sigma_[std::size_t(r)];
    }
    double worst = 0;
    for (const auto& i : s.positions.intervals) {
      const std::size_t r = std::size_t(i.row);
      g_[r] += error_[r] / dt;
      if (i.upper == 0) {
        g_[r] = 0;
      } else if (std::isinf(i.lower)) {
        worst = std::max(worst, std::abs(g_[r]) * dt > 1e-10 ? 1.0 : 0.0);
      } else {
        // what is deep inside comes out with a metre or a radian a second, not at once
        g_[r] = std::max(g_[r] + world_->slop / dt, -1.0);
        worst = std::max(worst, -g_[r] * dt - 0.1 * world_->slop);
      }
    }
    if (!(worst > 0)) {
      std::fill(mu_.begin(), mu_.end(), 0.0);
      return;
    }
    for (std::size_t r = 0; r < mu_.size(); ++r) mu_[r] = correction_[r];
    const ContactOptions options{1e-7, world_->most, warm_, memory.correction_rho, true, 1.0};
    OperatorMap map(*s.G, s.positions);
    const ContactReport end = admm_.solve(ContactProblem{map, g_.data(), s.positions}, options, mu_.data(), sigma_.data(), history_.data());
    report.corrections = end.iterations;
    memory.correction_rho = end.rho;
    if (end.outcome == ContactOutcome::stalled && !(end.left.worst() < 1.0)) return;
    add_response(s, mu_.data(), push_.data());
    // near a dead centre a small error asks for a long way, on which nothing is straight: no farther than a hundred times the error
    double asked = 0, way = 0;
    for (const auto& i : s.positions.intervals)
      if (i.upper != 0) asked = std::max(asked, std::isinf(i.lower) ? std::abs(g_[std::size_t(i.row)]) : -g_[std::size_t(i.row)]);
    for (const double x : push_) way = std::max(way, std::abs(x));
    if (way > 100 * asked)
      for (auto& x : push_) x *= 100 * asked / way;
  }

  // Impulses to start from: of the same rows in the step before, of contacts that were near.
  void recall(const System& s) {
    correction_.assign(lambda_.size(), 0.0);
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    const std::size_t others = memory.others.size();
    warm_ = !memory.others.empty() || !memory.contacts.empty() || !memory.limits.empty();
    if (!warm_) return;
    for (std::size_t r = 0; r < others && r < std::size_t(s.first_limit); ++r) lambda_[r] = memory.others[r], correction_[r] = memory.other_corrections[r];
    for (std::size_t k = 0; k < near_.size(); ++k) {
      const auto& known = memory.limits[std::size_t(near_[k])];
      lambda_[std::size_t(s.first_limit) + k] = known[0], correction_[std::size_t(s.first_limit) + k] = known[1];
    }
    std::size_t from = 0;
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      const auto& t = touches_[k];
      // contacts keep MuJoCo's order: look from where the last one was found
      const Memory::Known* best = nullptr;
      double nearest = match * match;
      const std::size_t n = memory.contacts.size();
      for (std::size_t look = 0; look < n; ++look) {
        const std::size_t i = (from + look) % n;
        const auto& known = memory.contacts[i];
        const bool same = known.touch.geom[0] == t.geom[0] && known.touch.geom[1] == t.geom[1];
        if (!same && best) break;
        if (!same) continue;
        const Vec3<double> d = known.touch.local[0] - t.local[0];
        if (dot(d, d) < nearest) nearest = dot(d, d), best = &known, from = i;
      }
      if (!best) continue;
      for (int r = 0; r < 3; ++r) {
        lambda_[std::size_t(s.first_contact) + 3 * k + std::size_t(r)] = dot(frames_[k][std::size_t(r)], best->impulse);
        if (r == 0) correction_[std::size_t(s.first_contact) + 3 * k] = std::max(0.0, dot(frames_[k][0], best->correction));
      }
    }
  }
  void remember(const System& s) {
    const std::size_t first = std::size_t(s.first_limit);
    memory.others.assign(lambda_.begin(), lambda_.begin() + std::ptrdiff_t(first));
    memory.other_corrections.assign(mu_.begin(), mu_.begin() + std::ptrdiff_t(first));
    memory.limits.assign(2 * world_->limits.size(), {0.0, 0.0});
    for (std::size_t k = 0; k < near_.size(); ++k) memory.limits[std::size_t(near_[k])] = {lambda_[first + k], mu_[first + k]};
    memory.contacts.clear();
    for (std::size_t k = 0; k < touches_.size(); ++k) {
      const auto& t = touches_[k];
      const double* l = lambda_.data() + s.first_contact + 3 * k;
      const auto& f = frames_[k];
      memory.contacts.push_back({t, f[0] * l[0] + f[1] * l[1] + f[2] * l[2], f[0] * mu_[std::size_t(s.first_contact) + 3 * k]});
    }
    memory.rho = rho_;
  }

  static constexpr std::size_t most_systems = 24;
  static constexpr double match = 0.02;  // contacts nearer than that are the same [m]

  std::shared_ptr<const WorldDescription> world_;
  std::unique_ptr<Collider> collider_;
  Motions<double> motions_;
  std::map<std::vector<int>, std::unique_ptr<System>> systems_;
  std::size_t uses_ = 0;
  std::vector<int> key_, near_;
  std::vector<Touch> touches_, kept_;
  std::vector<std::array<Vec3<double>, 3>> frames_;
  std::vector<double> tau_, free_, change_, push_, half_, before_;  // a velocity
  std::vector<char> alone_;              // a velocity: of a free body of one link
  bool whirls_ = false;                  // there are others
  std::vector<double> g_, lambda_, sigma_, error_, mu_, bounce_, correction_, s_velocity_, history_;  // a row
  int first_contact_ = 0, loop_rows_ = 0;
  bool warm_ = false;
  double rho_ = 0;                       // of the last solve
  Admm admm_;
  Newton newton_;
};

}  // namespace delassus
