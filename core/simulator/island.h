// Bodies that touch or are tied to each other, and no others: a problem of its own, with its own penalty, its own stop
// and its own symbolic work.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>

#include "dynamics/rnea.h"
#include "operators/strips.h"
#include "operators/verbs.h"
#include "simulator/closure.h"
#include "simulator/description.h"
#include "solvers/contacts/interior.h"
#include "solvers/contacts/newton.h"
#include "state/configuration.h"

namespace delassus {

// The normal, and two tangents.
inline std::array<Vec3<double>, 3> contact_frame(const Vec3<double>& n) {
  const double a = std::abs(n.x), b = std::abs(n.y), c = std::abs(n.z);
  const Vec3<double> e = a <= b && a <= c ? Vec3<double>{1, 0, 0}
                         : b <= c         ? Vec3<double>{0, 1, 0}
                                          : Vec3<double>{0, 0, 1};
  Vec3<double> t = cross(e, n);
  t = t * (1 / std::sqrt(dot(t, t)));
  return {n, t, cross(n, t)};
}

// The problem of an island's velocities, as it is given to the solver, with its matrix.
struct PosedProblem {
  std::vector<double> matrix, g, start;  // (m, m), (m,), (m,) impulses that the solver starts from
  ForceSets sets;
  std::array<int, 4> kinds{};                       // rows of loops, of dry friction, of limits; contacts
  std::vector<const Contact*> contacts;             // of the world, until its next step
  std::vector<std::array<Vec3<double>, 3>> frames;  // a contact: its normal and tangents
};

// What all islands of a world use in turn.
struct ContactTools {
  Admm admm;
  Newton newton;
  Interior interior;
  std::vector<double> history, matrix, unit, spare;
};

class Island {
 public:
  Island(const WorldDescription& whole, const std::vector<int>& trees, ContactTools& tools)
      : part_(whole, trees), world_(part_.world), tools_(tools), motions_(world_.model.links.size()) {
    const std::size_t nv = std::size_t(world_.model.nv);
    q_.assign(std::size_t(world_.model.nq), 0.0);
    external_.assign(6 * world_.model.bodies.size(), 0.0);
    for (auto* x : {&v_, &forces_, &tau_, &free_, &change_, &push_, &half_, &before_}) x->assign(nv, 0.0);
    ahead_.assign(nv, 1.0);
    if (!world_.loops.empty()) know_loops();
    alone_.assign(nv, 0);
    for (const int root : world_.model.roots) {
      const auto& link = world_.model.links[std::size_t(root)];
      const bool alone = link.type == Joint::free && link.end == root + 1 && ahead_[std::size_t(link.iv)] == 1;
      if (alone) std::fill_n(alone_.begin() + link.iv, 6, 1);
      whirls_ = whirls_ || !alone;
    }
  }
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;

  std::size_t used = 0;            // when it was used last
  std::vector<Contact*> contacts;  // of this step; impulses to start from on entry, impulses on exit
  int systems() const { return int(systems_.size()); }

  // Impulses and corrections of rows other than contacts, and penalties: what to start from, what was found. By the
  // numbers of the whole; nothing known: empty.
  struct Others {
    std::vector<double> rows, row_corrections;  // loops and friction
    std::vector<std::array<double, 2>> limits;  // of every end
    std::vector<std::array<double, 2>> rho;     // a tree: of velocities, of positions
  };

  // One step from q and v with forces on joints and wrenches on bodies (null: none), all of the whole. What is found
  // stays here until `give`.
  void step(const double* q, const double* v, const double* forces, const double* external, const Others& before,
            const std::vector<int>& trees, StepReport& report) {
    Lap lap;
    const auto& m = world_.model;
    const double dt = world_.timestep;
    System* posed = pose(q, v, forces, external, before, trees, report, lap);
    if (!posed) return;
    System& s = *posed;
    const int rows = s.layout->set.rows;
    found_ = {};
    if (rows > 0)
      solve_velocities(s);
    else
      found_.outcome = ContactOutcome::solved;
    lap(report.times.solve);

    before_ = v_;
    std::copy(free_.begin(), free_.end(), v_.begin());
    std::fill(push_.begin(), push_.end(), 0.0);
    if (rows > 0) {
      if (loop_rows_ > 0 && loop_rows_ < rows) closure_.purify(lambda_.data());
      add_response(s, lambda_.data(), v_.data());
      correct_positions(s, report);
    }
    for (std::size_t k = 0; k < v_.size(); ++k) push_[k] += ahead_[k] * v_[k];
    // free bodies turn by the mean of what they had and what they would have without contacts: then angular momentum
    // stays
    for (const int root : m.roots) {
      const auto& link = m.links[std::size_t(root)];
      if (!alone_[std::size_t(link.iv)]) continue;
      for (int k = link.iv + 3; k < link.iv + 6; ++k)
        push_[std::size_t(k)] -= 0.5 * (free_[std::size_t(k)] - before_[std::size_t(k)]);
    }
    if (loop_rows_ > 0)
      arrive_closed(s, report);
    else
      integrate(m, q_.data(), push_.data(), dt, q_.data());
    check_limits(report);
    add(report.contacts, found_);
    lap(report.times.correct);
  }

  // The problem that `step` would solve first, without solving it: G, g, sets and what the solver starts from.
  void pose_problem(const double* q, const double* v, const double* forces, const double* external,
                    const Others& before, const std::vector<int>& trees, StepReport& report, PosedProblem& to) {
    Lap lap;
    System* s = pose(q, v, forces, external, before, trees, report, lap);
    if (!s) return;
    const std::size_t n = g_.size();
    to.g = g_;
    to.start = lambda_;
    to.sets = s->sets;
    to.kinds = {loop_rows_, s->first_limit - loop_rows_, s->first_contact - s->first_limit, int(contacts.size())};
    to.frames = frames_;
    to.contacts.assign(contacts.begin(), contacts.end());
    to.matrix.resize(n * n);
    std::vector<double> unit(n * n, 0.0);
    for (std::size_t r = 0; r < n; ++r) unit[r * n + r] = 1;
    if (n > 0) s->G->apply(unit.data(), int(n), to.matrix.data());
  }

  // q, v and what the next step may start from, to the whole.
  void give(double* q, double* v, Others& after, const std::vector<int>& trees) const {
    for (const auto& r : part_.ranges) {
      std::copy_n(q_.data() + r.q, r.nq, q + r.whole_q);
      std::copy_n(v_.data() + r.v, r.nv, v + r.whole_v);
    }
    for (std::size_t r = 0; r < part_.others.size(); ++r) {
      after.rows[std::size_t(part_.others[r])] = lambda_[r];
      after.row_corrections[std::size_t(part_.others[r])] = mu_[r];
    }
    const std::size_t first = part_.others.size();
    for (std::size_t k = 0; k < near_.size(); ++k)
      after.limits[whole_end(near_[k])] = {lambda_[first + k], mu_[first + k]};
    for (const int tree : trees) after.rho[std::size_t(tree)] = {found_.rho, correction_rho_};
    const std::size_t first_contact = first + near_.size();
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const double* l = lambda_.data() + first_contact + 3 * k;
      const auto& f = frames_[k];
      contacts[k]->impulse = f[0] * l[0] + f[1] * l[1] + f[2] * l[2];
      contacts[k]->correction = f[0] * mu_[first_contact + 3 * k];
    }
  }

 private:
  // Rows that stay the same while the same links touch.
  struct System {
    std::shared_ptr<Layout<double>> layout;
    std::unique_ptr<MovingOperator<double>> G;
    ForceSets sets, positions;  // of impulses; of corrections, which have no friction
    std::vector<int> point;     // a contact: which of the points
    int first_limit, first_contact;
    std::size_t used = 0;

    System(const Model<double>& model, ConstraintSet<double> set)
        : layout(std::make_shared<Layout<double>>(model, std::move(set), strip_lanes<double>)),
          G(make_moving_operator<double>(model, layout)) {}
  };

  // Seconds since the one before.
  struct Lap {
    using Clock = std::chrono::steady_clock;
    Clock::time_point last = Clock::now();
    void operator()(double& part) {
      const auto now = Clock::now();
      part += std::chrono::duration<double>(now - last).count();
      last = now;
    }
  };

  // Rows at q, velocities g that they have without forces and with gaps, and impulses to start from.
  // Null: the mass matrix is singular.
  System* pose(const double* q, const double* v, const double* forces, const double* external, const Others& before,
               const std::vector<int>& trees, StepReport& report, Lap& lap) {
    for (const auto& r : part_.ranges) {
      std::copy_n(q + r.whole_q, r.nq, q_.data() + r.q);
      std::copy_n(v + r.whole_v, r.nv, v_.data() + r.v);
      std::copy_n(forces + r.whole_v, r.nv, forces_.data() + r.v);
    }
    if (external)
      for (std::size_t b = 0; b < part_.bodies.size(); ++b)
        if (part_.bodies[b] >= 0) std::copy_n(external + 6 * b, 6, external_.data() + 6 * part_.bodies[b]);

    if (loop_rows_ > 0) go_half_way(report);
    System& s = assemble();
    for (auto* x : {&g_, &lambda_, &sigma_, &error_, &mu_, &bounce_, &gap_, &closing_, &start_})
      x->resize(std::size_t(s.layout->set.rows));
    lap(report.times.constrain);

    report.regular = s.G->update(q_.data());
    if (!report.regular) return nullptr;
    find_free_motion(s, external ? external_.data() : nullptr);
    s.G->jacobian(free_.data(), 1, g_.data());
    if (loop_rows_ > 0) aim_loops();
    find_errors(s, report);
    lap(report.times.operate);
    recall(s, before, trees);
    return &s;
  }

  int body(const Touch& t, int which) const { return part_.bodies[std::size_t(t.body[which])]; }
  int link(const Touch& t, int which) const { return world_.model.bodies[std::size_t(body(t, which))].link; }
  std::size_t whole_end(int end) const { return std::size_t(2 * part_.limits[std::size_t(end / 2)] + end % 2); }

  // Of several problems: the worst of each number, and all factorizations.
  static void add(ContactReport& all, const ContactReport& one) {
    all.outcome = std::max(all.outcome, one.outcome);
    all.iterations = std::max(all.iterations, one.iterations);
    all.factorizations += one.factorizations;
    all.left = worse(all.left, one.left);
  }

  // Contact frames, limits that are near; the system for them, made if there is none.
  System& assemble() {
    const double dt = world_.timestep;
    key_.clear();
    near_.clear();
    for (std::size_t k = 0; k < world_.limits.size(); ++k) {
      const auto& limit = world_.limits[k];
      const double x = q_[std::size_t(limit.coordinate)],
                   reach = 4 * dt * std::abs(v_[std::size_t(limit.velocity)]) + 1e-3;
      if (x - limit.lower < reach) near_.push_back(int(2 * k));
      if (limit.upper - x < reach) near_.push_back(int(2 * k + 1));
    }
    key_.insert(key_.end(), near_.begin(), near_.end());
    key_.push_back(-2);
    frames_.clear();
    for (const Contact* c : contacts) {
      key_.push_back(link(c->touch, 0));
      key_.push_back(link(c->touch, 1));
      frames_.push_back(contact_frame(c->touch.normal));
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

  std::unique_ptr<System> make_system() const {
    std::vector<ConstraintDescription> list = world_.loops;
    list.insert(list.end(), world_.friction.begin(), world_.friction.end());
    for (const int end : near_) {
      const auto& limit = world_.limits[std::size_t(end / 2)];
      ConstraintDescription d{};
      d.kind = Kind::joint;
      d.rows = 1;
      d.joints = {limit.velocity};
      d.numbers = {end % 2 ? -1.0 : 1.0};
      list.push_back(d);
    }
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const Touch& t = contacts[k]->touch;
      ConstraintDescription d{};
      d.kind = Kind::frame;
      d.rows = 3;
      d.bodies = {body(t, 0), body(t, 1)};
      for (const auto& p : t.local) d.points.insert(d.points.end(), {p.x, p.y, p.z});
      for (const auto& a : frames_[k]) d.matrix.insert(d.matrix.end(), {a.x, a.y, a.z});
      list.push_back(std::move(d));
    }
    auto s = std::make_unique<System>(world_.model, make_constraints(world_.model, list));
    const auto& set = s->layout->set;
    constexpr double open = std::numeric_limits<double>::infinity();
    int row = 0;
    s->sets.rows = s->positions.rows = set.rows;
    auto take = [&](ForceSets& K, int r, double lower, double upper) { K.intervals.push_back({r, lower, upper}); };
    for (const auto& d : world_.loops)
      for (int r = 0; r < d.rows; ++r, ++row) take(s->sets, row, -open, open), take(s->positions, row, -open, open);
    for (const double loss : world_.friction_loss) {
      take(s->sets, row, -loss * world_.timestep, loss * world_.timestep);
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
    s->point.assign(contacts.size(), -1);
    for (std::size_t p = 0; p < set.points.size(); ++p)
      if (set.points[p].row >= s->first_contact)
        s->point[std::size_t(set.points[p].row - s->first_contact) / 3] = int(p);
    return s;
  }

  void forget_oldest() {
    systems_.erase(std::min_element(systems_.begin(), systems_.end(),
                                    [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
  }

  // Where the points are now, and their friction.
  void place_points(System& s) {
    auto& set = s.layout->set;
    const auto& m = world_.model;
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const Touch& t = contacts[k]->touch;
      auto& point = set.points[std::size_t(s.point[k])];
      for (int r = 0; r < 3; ++r) point.axes[r] = frames_[k][std::size_t(r)];
      for (int b = 0; b < 2; ++b) {
        const auto& carrier = m.bodies[std::size_t(body(t, b))];
        if (carrier.link >= 0)
          set.locals[std::size_t(point.local + b)] = carrier.placement.R * t.local[b] + carrier.placement.p;
      }
      s.sets.cones[k].friction = t.friction;
    }
    s.G->read_points();
  }

  // v_f, with h at half of the step's velocity: where it is taken at v, whatever whirls gains energy.
  void find_free_motion(System& s, const double* external) {
    const double dt = world_.timestep;
    accelerate(s, v_.data(), external);
    if (loop_rows_ > 0) {
      closure_.begin(*s.G, loop_rows_);
      // from nothing: of impulses that redundant rows do not feel, those of the step before would be felt in this one
      pull_.assign(g_.size(), 0.0);
      s.G->jacobian(v_.data(), 1, start_.data());
      find_drift(s, v_.data());
      closure_.soften(drift_.data());
      see_whether_calm();
    }
    if (whirls_ && world_.midpoint) {
      for (std::size_t k = 0; k < v_.size(); ++k) half_[k] = alone_[k] ? v_[k] : v_[k] + 0.5 * dt * change_[k];
      if (loop_rows_ > 0) bend_by_loops(s);
      accelerate(s, half_.data(), external);
      if (loop_rows_ > 0 && !calm_) {
        find_drift(s, half_.data());
        closure_.soften(drift_.data());
        keep_what_costs();
      }
    }
    for (std::size_t k = 0; k < v_.size(); ++k) free_[k] = v_[k] + dt * change_[k];
    turn_free_bodies();
  }
  // change_ ← M̂⁻¹ (forces_ − h(q, x))
  void accelerate(System& s, const double* x, const double* external) {
    const auto& m = world_.model;
    const auto& w = s.G->placement();
    motions(m, w, motions_, x, static_cast<const double*>(nullptr), Vec3<double>{});
    inertial_forces(w, motions_, m.gravity * -1.0);
    if (external) subtract_external(m, w, motions_, external);
    joint_forces(m, w, motions_, static_cast<const double*>(nullptr), tau_.data());
    for (std::size_t k = 0; k < v_.size(); ++k) tau_[k] = forces_[k] - tau_[k];
    s.G->mass_inverse(tau_.data(), 1, change_.data());
  }

  // ---- loops: a step of second order --------------------------------------------------------------------------------
  //
  //   q½ = q ⊕ ½ dt v,   M̂ (v⁺ − v) = dt (τ − h(q½, v½)) + Jᵀ λ,   J v⁺ = −½ dt J̇v,   q⁺ = q½ ⊕ dt (½ v⁺ + u)
  //
  // with M̂, J and contacts at q½. The rows hold at the end of the step, as they held at its start, where J v = ½ dt
  // J̇v. So impulses of loops, whose work is ½ λᵀ J (v + v⁺), take before the middle what they give after it.

  // Which trees these are, and their size.
  void know_loops() {
    const auto& m = world_.model;
    for (const auto& d : world_.loops) {
      loop_rows_ += d.rows;
      PartDescription::trees_of(m, d, [&](int tree) {
        const auto& root = m.links[std::size_t(m.roots[std::size_t(tree)])];
        std::fill(ahead_.begin() + root.iv, ahead_.begin() + root.end_v, 0.5);
      });
      for (std::size_t p = 0; p + 2 < d.points.size(); p += 3)
        size_ = std::max(size_, std::hypot(d.points[p], d.points[p + 1], d.points[p + 2]));
    }
    for (const auto& link : m.links)
      if (link.parent >= 0) size_ = std::max(size_, std::sqrt(dot(link.placement.p, link.placement.p)));
    size_ = size_ > 0 ? std::min(size_, 1.0) : 1.0;
    loops_ = make_constraints(m, world_.loops);
    placed_ = std::make_unique<Placement<double>>(m);
    next_.assign(q_.size(), 0.0);
    for (auto* x : {&loop_error_, &drift_}) x->assign(std::size_t(loop_rows_), 0.0);
  }

  // The largest error of the loops at x, all of them in loop_error_.
  double find_loop_error(const double* x) {
    kinematics(world_.model, *placed_, x);
    errors(world_.model, loops_, *placed_, x, loop_error_.data());
    double most = 0;
    for (const double e : loop_error_) most = std::max(most, std::abs(e));
    return most;
  }

  // q ← q ⊕ ½ dt v of trees in loops
  void go_half_way(StepReport& report) {
    report.loop_error = std::max(report.loop_error, find_loop_error(q_.data()));
    integrate(world_.model, q_.data(), v_.data(), 0.5 * world_.timestep, next_.data());
    for (const auto& r : part_.ranges)
      if (ahead_[std::size_t(r.v)] != 1) std::copy_n(next_.data() + r.q, r.nq, q_.data() + r.q);
  }

  // J̇x of loops, after the motions at x
  void find_drift(System& s, const double* x) {
    rates(world_.model, s.layout->set, s.G->placement(), motions_, q_.data(), x, mu_.data(), sigma_.data());
    std::copy_n(sigma_.data(), loop_rows_, drift_.data());
  }

  // half_ += ½ M̂⁻¹ Jᵀ λ with λ of loops alone, kept in pull_. Without it the velocity of the middle is only of first
  // order.
  void bend_by_loops(System& s) {
    const double dt = world_.timestep;
    for (std::size_t k = 0; k < v_.size(); ++k) free_[k] = v_[k] + dt * change_[k];
    s.G->jacobian(free_.data(), 1, g_.data());
    aim_loops();
    closure_.close(g_.data(), pull_.data(), sigma_.data(), 1e-6);
    s.G->jacobian_transpose(pull_.data(), 1, tau_.data());
    s.G->mass_inverse(tau_.data(), 1, change_.data());
    for (std::size_t k = 0; k < v_.size(); ++k) half_[k] += 0.5 * change_[k];
  }
  // g of loops: J x of the free motion on entry, minus the wanted J v⁺ added on exit.
  //
  //   J v⁺ = −½ dt J̇v − k r,   r = J v − ½ dt J̇v          r: error at the start; k: share of it that is kept
  //
  //
  // k = 1, J v⁺ = −J v, keeps energy exactly, and r, which changes sign in every step, for ever. k = 0 forgets r at
  // once, but near a dead centre it is divided by next to nothing. So k = ½ in calm motion; otherwise k = 0, or 1 where
  // forgetting would add energy. All of this can be reached: the part of J̇v that cannot is left out.
  void aim_loops() {
    const double half = 0.5 * world_.timestep;
    for (std::size_t r = 0; r < drift_.size(); ++r) g_[r] += half * drift_[r] + kept_ * (start_[r] - half * drift_[r]);
  }
  // Calm: r is as small as steps of second order leave it. Among contacts, r below their solver's tolerance is not
  // kept.
  void see_whether_calm() {
    const double half = 0.5 * world_.timestep;
    double off = 0, size = 0;
    for (std::size_t r = 0; r < drift_.size(); ++r) {
      off = std::max(off, std::abs(start_[r] - half * drift_[r]));
      size = std::max(size, half * std::abs(drift_[r]));
    }
    calm_ = off <= std::max(calm_velocity * size_, calm_share * size);
    const bool forget = g_.size() > drift_.size() && off <= 10 * world_.tolerance;
    kept_ = calm_ && !forget ? 0.5 : 0.0;
  }
  // ½ λᵀ (J v − ½ dt J̇v), with λ of loops alone, is the work of forgetting.
  void keep_what_costs() {
    double work = 0;
    for (std::size_t r = 0; r < drift_.size(); ++r) work += pull_[r] * (start_[r] - 0.5 * world_.timestep * drift_[r]);
    kept_ = work > 0 ? 1.0 : 0.0;
  }

  // q ← q ⊕ dt push_; where loops are open there, Newton's steps on their true error, with the rows of the middle.
  void arrive_closed(System& s, StepReport& report) {
    const auto& m = world_.model;
    const double dt = world_.timestep;
    integrate(m, q_.data(), push_.data(), dt, next_.data());
    double open = find_loop_error(next_.data());
    for (int n = 0; n < max_closing && open > std::max(closed * size_, 2 * dt * unreachable_); ++n) {
      std::fill(g_.begin(), g_.end(), 0.0);
      for (int r = 0; r < loop_rows_; ++r) g_[std::size_t(r)] = loop_error_[std::size_t(r)] / dt;
      pull_.assign(g_.size(), 0.0);
      report.corrections = std::max(report.corrections, closure_.close(g_.data(), pull_.data(), sigma_.data()));
      if (!(dt * closure_.largest(sigma_.data()) < 0.5 * open)) break;
      half_ = push_;
      std::fill(push_.begin(), push_.end(), 0.0);
      add_response(s, pull_.data(), push_.data());
      shorten(s);
      for (std::size_t k = 0; k < push_.size(); ++k) push_[k] += half_[k];
      integrate(m, q_.data(), push_.data(), dt, next_.data());
      const double now = find_loop_error(next_.data());
      if (!(now < 0.5 * open)) {
        // it is no better for it: back
        push_ = half_;
        integrate(m, q_.data(), push_.data(), dt, next_.data());
        open = find_loop_error(next_.data());
        break;
      }
      open = now;
    }
    std::swap(q_, next_);
    report.loop_error_after = std::max(report.loop_error_after, open);
    if (!(open <= loop_tolerance * size_)) report.blame(StepFlaw::open_loops);
  }

  // How far coordinates are beyond their limits.
  void check_limits(StepReport& report) const {
    double most = 0;
    for (const auto& limit : world_.limits) {
      const double x = q_[std::size_t(limit.coordinate)];
      most = std::max(most, std::max(limit.lower - x, x - limit.upper));
    }
    report.limit_error_after = std::max(report.limit_error_after, most);
    if (!(most <= limit_tolerance + 2 * world_.slop)) report.blame(StepFlaw::limit_violated);
  }

  // ω of a free body of one link: I ω⁺ = exp(−dt (ω + ω⁺) / 2) I ω instead of I (ω⁺ − ω) = −dt ω × I ω, about its
  // centre of mass.
  void turn_free_bodies() {
    const auto& m = world_.model;
    const double dt = world_.timestep;
    for (const int root : m.roots) {
      const auto& link = m.links[std::size_t(root)];
      if (!alone_[std::size_t(link.iv)]) continue;
      const auto& I = link.inertial.inertia;
      const double* x = v_.data() + link.iv + 3;
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
      const double* p = q_.data() + link.iq + 3;
      const Vec3<double> shift = turned(normalized(p), cross(d, link.inertial.center));
      to[0] -= shift.x, to[1] -= shift.y, to[2] -= shift.z;
    }
  }
  static Vec3<double> solved(const Sym3<double>& I, const Vec3<double>& b) {
    const double c0 = I.yy * I.zz - I.yz * I.yz, c1 = I.xz * I.yz - I.xy * I.zz, c2 = I.xy * I.yz - I.xz * I.yy;
    const double det = I.xx * c0 + I.xy * c1 + I.xz * c2;
    const double d0 = I.xx * I.zz - I.xz * I.xz, d1 = I.xy * I.xz - I.xx * I.yz, e = I.xx * I.yy - I.xy * I.xy;
    return Vec3<double>{c0 * b.x + c1 * b.y + c2 * b.z, c1 * b.x + d0 * b.y + d1 * b.z, c2 * b.x + d1 * b.y + e * b.z} *
           (1 / det);
  }
  // e x e⁻¹
  static Vec3<double> turned(const Quaternion<double>& e, const Vec3<double>& x) {
    const Vec3<double> u{e.x, e.y, e.z}, t = cross(u, x) * 2.0;
    return x + t * e.w + cross(u, t);
  }

  // Gaps and errors of the rows, and what they ask of the velocities.
  void find_errors(System& s, StepReport& report) {
    const auto& set = s.layout->set;
    const double dt = world_.timestep;
    std::fill(error_.begin(), error_.end(), 0.0);
    if (loop_rows_ > 0) errors(world_.model, set, s.G->placement(), q_.data(), error_.data());
    for (std::size_t k = 0; k < near_.size(); ++k) {
      const auto& limit = world_.limits[std::size_t(near_[k] / 2)];
      const double x = q_[std::size_t(limit.coordinate)];
      error_[std::size_t(s.first_limit) + k] = near_[k] % 2 ? limit.upper - x : x - limit.lower;
    }
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      error_[std::size_t(s.first_contact) + 3 * k] = contacts[k]->touch.distance;
      report.penetration = std::max(report.penetration, -contacts[k]->touch.distance);
    }
    // what is apart may come together within the step
    for (std::size_t r = std::size_t(s.first_limit); r < error_.size(); ++r) {
      const bool normal = int(r) < s.first_contact || (int(r) - s.first_contact) % 3 == 0;
      if (normal) g_[r] += std::max(error_[r] - world_.slop, 0.0) / dt;
    }
  }

  void solve_velocities(System& s) {
    if (loop_rows_ == int(g_.size()) && loops_hold(s)) return;
    ContactOptions options{world_.tolerance, world_.most, warm_, start_rho_[0], true, 1.0};
    OperatorMap map(*s.G, s.sets);
    const ContactProblem problem{map, g_.data(), s.sets};
    tools_.history.resize(std::size_t(world_.most));
    const bool bounces = world_.restitution > 0 && find_bouncing(s);
    found_ = solve(s, problem, options, lambda_.data(), sigma_.data());
    if (found_.outcome != ContactOutcome::solved) found_.rho = 0;  // no penalty to start from again
    if (!bounces) return;
    // decompression: (1 + e) of what compression took, then nothing may go in again
    for (std::size_t r = 0; r < lambda_.size(); ++r) bounce_[r] = lambda_[r] * (1 + bounce_[r]);
    s.G->apply(bounce_.data(), 1, sigma_.data());
    for (std::size_t r = 0; r < lambda_.size(); ++r) sigma_[r] += g_[r];
    std::swap(g_, sigma_);
    options.warm = false;
    options.rho = found_.rho;
    std::vector<double>& again = mu_;
    // loops and dry friction have their say once more, within what is left of their sets
    ForceSets rest = s.sets;
    for (auto& i : rest.intervals) i.lower -= bounce_[std::size_t(i.row)], i.upper -= bounce_[std::size_t(i.row)];
    for (std::size_t k = 0; k < near_.size(); ++k) rest.intervals[std::size_t(s.first_limit) + k].lower = 0;
    const ContactReport second = solve(s, ContactProblem{map, g_.data(), rest}, options, again.data(), sigma_.data());
    // friction while it springs back may feed on the normal impulse: as far from compression to the end as takes no
    // energy from nowhere, ½ λᵀ G λ + λᵀ J v_f ≤ 0
    for (std::size_t r = 0; r < lambda_.size(); ++r) bounce_[r] += again[r] - lambda_[r];
    s.G->jacobian(free_.data(), 1, s_velocity_.data());
    s.G->apply(lambda_.data(), 1, sigma_.data());
    s.G->apply(bounce_.data(), 1, mu_.data());
    const int rows = int(lambda_.size());
    const double c = inner(rows, lambda_.data(), s_velocity_.data()) + 0.5 * inner(rows, lambda_.data(), sigma_.data());
    const double b = inner(rows, bounce_.data(), s_velocity_.data()) + inner(rows, bounce_.data(), sigma_.data()),
                 a = 0.5 * inner(rows, bounce_.data(), mu_.data());
    double share = 1;
    if (a + b + c > 0)
      share =
          a > 0 && c <= 0 ? std::clamp((-b + std::sqrt(std::max(b * b - 4 * a * c, 0.0))) / (2 * a), 0.0, 1.0) : 0.0;
    for (std::size_t r = 0; r < lambda_.size(); ++r) lambda_[r] += share * bounce_[r];
    found_.iterations += second.iterations;
    found_.factorizations += second.factorizations;
    if (second.outcome != ContactOutcome::solved) found_.outcome = second.outcome;
    found_.left = second.left;
  }
  // Where there are loops alone, what closes them by themselves is the answer, if their rows say so.
  bool loops_hold(System& s) {
    std::copy(pull_.begin(), pull_.end(), lambda_.begin());
    found_.iterations = closure_.close(g_.data(), lambda_.data(), sigma_.data());
    found_.factorizations = 1;
    OperatorMap map(*s.G, s.sets);
    felt_.resize(g_.size());
    feel(s.sets, map, felt_.data());
    found_.left = residuals(s.sets, true, felt_.data(), lambda_.data(), sigma_.data());
    if (!(found_.left.worst(1.0) <= world_.tolerance)) {
      found_ = {};
      return false;
    }
    found_.outcome = ContactOutcome::solved;
    return true;
  }
  // e of the normal rows that come in fast: their gap is not waited for.
  bool find_bouncing(const System& s) {
    bool any = false;
    std::fill(bounce_.begin(), bounce_.end(), 0.0);
    s_velocity_.resize(g_.size());
    s.G->jacobian(v_.data(), 1, s_velocity_.data());
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const std::size_t r = std::size_t(s.first_contact) + 3 * k;
      const double gap = std::max(error_[r] - world_.slop, 0.0) / world_.timestep;
      if (g_[r] >= 0 || s_velocity_[r] > -world_.bounce) continue;
      g_[r] -= gap;
      // of the speed it came with, not of what the step's own forces added
      bounce_[r] = world_.restitution * std::min(s_velocity_[r] / g_[r], 1.0);
      any = true;
    }
    return any;
  }
  // Where few rows come to no end, as bodies that slide on many points may, the matrix is small, and an interior point
  // finds one.
  ContactReport solve(System& s, const ContactProblem& p, ContactOptions options, double* lambda, double* sigma) {
    auto& t = tools_;
    closure_.forget();
    const bool small = p.rows() <= few_rows;
    if (small) options.most = std::min(options.most, few_iterations);
    const ContactReport first = world_.newton ? t.newton.solve(p, options, lambda, sigma, t.history.data())
                                              : t.admm.solve(p, options, lambda, sigma, t.history.data());
    if (!small || first.outcome == ContactOutcome::solved || world_.most <= few_iterations) return first;
    const std::size_t n = std::size_t(p.rows());
    t.spare.assign(lambda, lambda + n);
    t.matrix.resize(n * n);
    t.unit.assign(n * n, 0.0);
    for (std::size_t r = 0; r < n; ++r) t.unit[r * n + r] = 1;
    s.G->apply(t.unit.data(), int(n), t.matrix.data());
    options.most = world_.most - few_iterations;
    ContactReport second = t.interior.solve(p, t.matrix.data(), options, lambda, sigma, t.history.data());
    second.iterations += first.iterations;
    second.factorizations += first.factorizations;
    if (second.outcome == ContactOutcome::solved || second.left.worst() < first.left.worst()) return second;
    std::copy(t.spare.begin(), t.spare.end(), lambda);
    second.left = first.left;
    second.outcome = first.outcome;
    return second;
  }

  // x += M̂⁻¹ Jᵀ λ
  void add_response(System& s, const double* lambda, double* x) {
    s.G->jacobian_transpose(lambda, 1, tau_.data());
    s.G->mass_inverse(tau_.data(), 1, change_.data());
    for (std::size_t k = 0; k < v_.size(); ++k) x[k] += change_[k];
  }

  // u = M̂⁻¹ Jᵀ µ into push_: where the step would end inside of something, or with loops open.
  void correct_positions(System& s, StepReport& report) {
    const double dt = world_.timestep;
    // J w + e / dt with w what v⁺ still moves, and of loops ½ dt J̇w: how they curve on their way
    for (std::size_t k = 0; k < v_.size(); ++k) half_[k] = ahead_[k] * v_[k];
    s.G->jacobian(half_.data(), 1, g_.data());
    if (loop_rows_ > 0) {
      const double* no_acceleration = nullptr;
      motions(world_.model, s.G->placement(), motions_, half_.data(), no_acceleration, Vec3<double>{});
      find_drift(s, half_.data());
      for (int r = 0; r < loop_rows_; ++r) g_[std::size_t(r)] += 0.5 * dt * drift_[std::size_t(r)];
    }
    bool open = false;
    double deep = 0;
    for (const auto& i : s.positions.intervals) {
      const std::size_t r = std::size_t(i.row);
      g_[r] += error_[r] / dt;
      if (i.upper == 0) {
        g_[r] = 0;
      } else if (std::isinf(i.lower)) {
        open = open || std::abs(g_[r]) * dt > 1e-10;
      } else {
        gap_[r] = g_[r] * dt;
        // what is deep inside comes out with a metre or a radian a second, not at once
        g_[r] = std::max(g_[r] + world_.slop / dt, -1.0);
        deep = std::max(deep, -g_[r] * dt);
      }
    }
    std::fill(mu_.begin(), mu_.end(), 0.0);
    unreachable_ = 0;
    separated_ = true;
    if (open || deep > 0.1 * world_.slop) {
      if (open) deep = close_positions(s, report);
      if (deep > 0.1 * world_.slop) separate(s, report);
      shorten(s);
      s.G->jacobian(push_.data(), 1, sigma_.data());
      for (std::size_t r = std::size_t(s.first_limit); r < gap_.size(); ++r) gap_[r] += dt * sigma_[r];
    }
    judge_gaps(s, report);
  }

  // Loops alone: µ, u, and how deep inside of something they then are. What no motion closes is taken for closed.
  double close_positions(System& s, StepReport& report) {
    report.corrections = std::max(report.corrections, closure_.close(g_.data(), mu_.data(), sigma_.data()));
    unreachable_ = closure_.largest(sigma_.data());
    for (int r = 0; r < loop_rows_; ++r) g_[std::size_t(r)] -= sigma_[std::size_t(r)];
    add_response(s, mu_.data(), push_.data());
    double deep = 0;
    for (const auto& i : s.positions.intervals)
      if (i.upper != 0 && !std::isinf(i.lower)) deep = std::max(deep, -sigma_[std::size_t(i.row)] * world_.timestep);
    return deep;
  }

  // Loops, limits and contacts together.
  void separate(System& s, StepReport& report) {
    for (std::size_t r = 0; r < mu_.size(); ++r) closing_[r] = mu_[r], mu_[r] = correction_[r];
    const ContactOptions options{1e-7, world_.most, warm_, start_rho_[1], true, 1.0};
    OperatorMap map(*s.G, s.positions);
    const ContactReport end = tools_.admm.solve(ContactProblem{map, g_.data(), s.positions}, options, mu_.data(),
                                                sigma_.data(), tools_.history.data());
    closure_.forget();
    report.corrections = std::max(report.corrections, end.iterations);
    correction_rho_ = end.rho;
    // shapes that overlap where a loop ties them ask for what cannot be: then only loops are closed, unless most of it
    // helps
    separated_ = end.outcome == ContactOutcome::solved;
    if (!separated_ && !(asked(s, sigma_.data()) < 0.9 * asked(s, g_.data()))) {
      std::copy(closing_.begin(), closing_.end(), mu_.begin());
      return;
    }
    std::fill(push_.begin(), push_.end(), 0.0);
    add_response(s, mu_.data(), push_.data());
  }

  // Near a dead centre a small error asks for a long way, on which nothing is straight: at most a hundred times the
  // error.
  void shorten(System& s) {
    double way = 0;
    for (const double x : push_) way = std::max(way, std::abs(x));
    const double most = (separated_ ? 100 : 2) * asked(s, g_.data());
    if (way > most)
      for (auto& x : push_) x *= most / way;
  }

  // Gaps of contacts at the end of the step, as far as velocities tell: none that is negative may have become deeper.
  void judge_gaps(const System& s, StepReport& report) const {
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const double before = contacts[k]->touch.distance, after = gap_[std::size_t(s.first_contact) + 3 * k];
      report.penetration_after = std::max(report.penetration_after, -after);
      if (!(after >= std::min(before, 0.0) - std::max(2 * world_.slop, 1e-7))) report.blame(StepFlaw::penetrating);
    }
  }
  // The largest velocity that rows of positions still ask for.
  static double asked(const System& s, const double* sigma) {
    double most = 0;
    for (const auto& i : s.positions.intervals)
      if (i.upper != 0) most = std::max(most, std::isinf(i.lower) ? std::abs(sigma[i.row]) : -sigma[i.row]);
    return most;
  }

  // Impulses to start from: of the same rows in the step before, of contacts that touched then.
  void recall(const System& s, const Others& before, const std::vector<int>& trees) {
    correction_.assign(lambda_.size(), 0.0);
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    start_rho_ = {0, 0};
    correction_rho_ = 0;
    warm_ = false;
    if (before.rho.empty()) return;
    for (const int tree : trees)
      for (std::size_t k = 0; k < 2; ++k)
        if (start_rho_[k] == 0) start_rho_[k] = before.rho[std::size_t(tree)][k];
    correction_rho_ = start_rho_[1];
    warm_ = s.first_contact > 0;
    for (std::size_t r = 0; r < part_.others.size(); ++r) {
      lambda_[r] = before.rows[std::size_t(part_.others[r])];
      correction_[r] = before.row_corrections[std::size_t(part_.others[r])];
    }
    for (std::size_t k = 0; k < near_.size(); ++k) {
      const auto& known = before.limits[whole_end(near_[k])];
      lambda_[std::size_t(s.first_limit) + k] = known[0], correction_[std::size_t(s.first_limit) + k] = known[1];
    }
    for (std::size_t k = 0; k < contacts.size(); ++k) {
      const Contact& c = *contacts[k];
      warm_ = warm_ || c.known;
      const std::size_t row = std::size_t(s.first_contact) + 3 * k;
      for (std::size_t r = 0; r < 3; ++r) lambda_[row + r] = dot(frames_[k][r], c.impulse);
      correction_[row] = std::max(0.0, dot(frames_[k][0], c.correction));
    }
  }

  static constexpr std::size_t most_systems = 24;
  static constexpr int few_rows = 100, few_iterations = 200;
  static constexpr int max_closing = 3;            // Newton's steps for loops at the end of a step
  static constexpr double closed = 1e-9;           // error below which there is none, at a size of 1 m [m or rad]
  static constexpr double loop_tolerance = 1e-5;   // error of loops that are closed, likewise
  static constexpr double limit_tolerance = 1e-5;  // [m or rad], and twice the slop
  // largest r of calm motion: at a size of 1 m [m/s], and as a share of ½ dt J̇v
  static constexpr double calm_velocity = 1e-5, calm_share = 0.02;

  PartDescription part_;
  const WorldDescription& world_;  // of the part
  ContactTools& tools_;
  Motions<double> motions_;
  std::map<std::vector<int>, std::unique_ptr<System>> systems_;
  std::size_t uses_ = 0;
  std::vector<int> key_, near_;
  std::vector<std::array<Vec3<double>, 3>> frames_;
  std::vector<double> q_, v_, forces_, tau_, free_, change_, push_, half_, before_,
      external_;             // a coordinate; a velocity; six a body
  std::vector<char> alone_;  // a velocity: of a free body of one link
  bool whirls_ = false;      // there are others
  std::vector<double> g_, lambda_, sigma_, error_, mu_, bounce_, correction_, s_velocity_;  // a row
  std::vector<double> gap_, closing_;  // a row: gap at the end of the step; µ of loops alone
  std::vector<double> ahead_;          // a velocity: share of the step that v⁺ moves: ½ in loops, else 1
  int loop_rows_ = 0;
  double size_ = 0;  // of the mechanism with loops, a metre at most [m]
  ConstraintSet<double> loops_;
  std::unique_ptr<Placement<double>> placed_;
  LoopClosure closure_;
  std::vector<double> next_;                 // a coordinate: q⁺
  std::vector<double> loop_error_, drift_;   // a row of loops
  std::vector<double> pull_, felt_, start_;  // a row: impulses of loops alone, inverse masses, J v
  double unreachable_ = 0;                   // velocity of loops' errors that no motion gives [m/s]
  bool calm_ = true;                         // rows of loops have the velocities they should have
  double kept_ = 0;                          // share of their error that is kept
  bool separated_ = true;                    // the position problem was solved
  bool warm_ = false;
  std::array<double, 2> start_rho_{};  // of the step before: of velocities, of positions
  double correction_rho_ = 0;
  ContactReport found_;
};

}  // namespace delassus
