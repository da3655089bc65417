// A world of rigid bodies that touch, and its steps in time. One step:
//
//   collide      contacts at q, with gaps φ; islands: trees that contacts and loops tie together,
//                each a problem of its own
//   constrain    rows of loops, dry friction, limits that are near, contacts
//   free motion  v_f = v + dt M̂⁻¹ (τ − h − K (q − q₀) − (D + dt K) v),
//                M̂ = M + dt D + dt² K: springs, dampers and servos act at the end of the step
//   solve        λ in its set, σ = G λ + J v_f + max(φ − slop, 0) / dt: Signorini and Coulomb on velocities,
//                G = J M̂⁻¹ Jᵀ
//   bounce       restitution in two phases: what compression took is given back times e, then nothing may go in again
//   correct      positions alone, where bodies are in each other or loops are open:
//                u = M̂⁻¹ Jᵀ µ with 0 ≤ µ_n ⊥ J u + φ⁺ / dt ≥ 0; it moves q and no velocity, so it adds no motion
//   integrate    v ← v_f + M̂⁻¹ Jᵀ λ,   q ← q ⊕ dt (v + u)
//   judge        loops, limits and gaps as they are now, and whether anything went through something on its way
//
// Trees in loops are looked at in the middle of the step, q½ = q ⊕ ½ dt v, and q ← q½ ⊕ dt (½ v⁺ + u): a step of second
// order. Free bodies of one link turn by the midpoint rule on the rotation group, which keeps their angular momentum
// and, but for errors of order dt³, their energy.
#pragma once

#include <string>

#include "errors/typed.h"
#include "simulator/island.h"
#include "simulator/sweep.h"

namespace delassus {

class World {
 public:
  World(std::shared_ptr<const WorldDescription> description, std::unique_ptr<Collider> collider)
      : world_(std::move(description)), collider_(std::move(collider)), sweep_(*world_) {
    const auto& m = world_->model;
    q.assign(std::size_t(m.nq), 0.0);
    v.assign(std::size_t(m.nv), 0.0);
    forces_.assign(std::size_t(m.nv), 0.0);
    tied_.resize(m.roots.size());
    for (std::size_t t = 0; t < tied_.size(); ++t) tied_[t] = int(t);
    const auto tie = [&](const ConstraintDescription& d) {
      int first = -1;
      PartDescription::trees_of(m, d, [&](int tree) { first < 0 ? void(first = tree) : unite(tied_, first, tree); });
      other_rows_ += std::size_t(d.rows);
    };
    for (const auto& d : world_->loops) {
      tie(d);
      looped_.resize(std::size_t(m.nv), 0);
      PartDescription::trees_of(m, d, [&](int tree) {
        const auto& root = m.links[std::size_t(m.roots[std::size_t(tree)])];
        std::fill(looped_.begin() + root.iv, looped_.begin() + root.end_v, 1);
      });
    }
    for (const auto& d : world_->friction) tie(d);
  }

  const WorldDescription& description() const { return *world_; }
  const Collider& collider() const { return *collider_; }
  std::vector<double> q, v;
  double time = 0;

  // What the next step starts from besides q and v: contacts of the last, forces and penalties.
  struct Memory {
    std::vector<Contact> contacts;
    Island::Others others;
  };
  Memory memory;

  int systems() const {
    int sum = 0;
    for (const auto& i : islands_) sum += i.second->systems();
    return sum;
  }

  // tau: forces on joints, control: of motors, external: wrenches on bodies; null for none.
  StepReport step(const double* tau, const double* control, const double* external) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    StepReport report;
    report.collided = find_contacts();
    if (!report.collided) return report;
    report.times.collide = std::chrono::duration<double>(Clock::now() - start).count();
    find_islands();
    drive(tau, control);
    report.islands = int(used_.size());
    report.contacts.outcome = ContactOutcome::solved;
    for (std::size_t k = 0; k < used_.size() && report.regular; ++k)
      used_[k]->step(q.data(), v.data(), forces_.data(), external, memory.others, trees_[k], report);
    if (!report.regular) return report;
    next_.others.rows.assign(other_rows_, 0.0);
    next_.others.row_corrections.assign(other_rows_, 0.0);
    next_.others.limits.assign(2 * world_->limits.size(), {0.0, 0.0});
    next_.others.rho.assign(tied_.size(), {0.0, 0.0});
    for (std::size_t k = 0; k < used_.size(); ++k) used_[k]->give(q.data(), v.data(), next_.others, trees_[k]);
    std::swap(memory, next_);
    time += world_->timestep;
    if (sweep_.may_pass(q.data(), v.data())) {
      go_where_looked(after_);
      const int passed = sweep_.passed(*collider_, touches_, at_.data(), after_.data());
      report.collided = passed >= 0;
      report.tunnelled = std::max(passed, 0);
      if (passed > 0) report.blame(StepFlaw::tunnelling);
    }
    report.times.all = std::chrono::duration<double>(Clock::now() - start).count();
    return report;
  }

  // The problems of velocities that the next step would solve first, an island each; state and memory stay as they are.
  // The report tells whether MuJoCo found contacts, and whether the mass matrix is regular.
  StepReport pose(const double* tau, const double* control, const double* external,
                  std::vector<PosedProblem>& problems) {
    StepReport report;
    report.collided = find_contacts();
    if (!report.collided) return report;
    find_islands();
    drive(tau, control);
    problems.resize(used_.size());
    for (std::size_t k = 0; k < used_.size() && report.regular; ++k)
      used_[k]->pose_problem(q.data(), v.data(), forces_.data(), external, memory.others, trees_[k], report,
                             problems[k]);
    return report;
  }

 private:
  // Nothing has changed yet.
  [[noreturn]] void refuse() const {
    fail("CapacityError",
         "step: " + std::to_string(touches_.size()) + " contacts at once; one step takes " +
             std::to_string(max_contacts) +
             " at most. Move bodies that are in each other apart, "
             "give them fewer shapes, or let pairs not collide (contype and conaffinity, or exclude).");
  }

  // Where contacts are looked for: q, and of trees in loops q ⊕ ½ dt v.
  void go_where_looked(std::vector<double>& to) {
    to.assign(q.begin(), q.end());
    if (looped_.empty()) return;
    const auto& m = world_->model;
    integrate(m, q.data(), v.data(), 0.5 * world_->timestep, to.data());
    for (const int r : m.roots) {
      const auto &root = m.links[std::size_t(r)], &last = m.links[std::size_t(root.end - 1)];
      const int end = last.iq + configuration_size(last.type);
      if (!looped_[std::size_t(root.iv)]) std::copy(q.begin() + root.iq, q.begin() + end, to.begin() + root.iq);
    }
  }

  // False: MuJoCo could not.
  bool find_contacts() {
    go_where_looked(at_);
    if (!collider_->collide(at_.data(), touches_)) return false;
    if (touches_.size() > max_contacts) refuse();
    settle_sides();
    keep_points();
    meet();
    return true;
  }

  // Contacts of what never moves against itself are no contacts; the ground comes second.
  void settle_sides() {
    const auto& m = world_->model;
    std::size_t count = 0;
    for (auto t : touches_) {
      const int link[2] = {m.bodies[std::size_t(t.body[0])].link, m.bodies[std::size_t(t.body[1])].link};
      if (link[0] == link[1]) continue;
      if (link[0] < 0) {
        std::swap(t.body[0], t.body[1]);
        std::swap(t.geom[0], t.geom[1]);
        std::swap(t.local[0], t.local[1]);
        t.normal = t.normal * -1.0;
      }
      touches_[count++] = t;
    }
    touches_.resize(count);
  }

  // Points of the step before, where a pair that still touches lists fewer than it did: faces that rest on each other
  // are found as one point or as four by a rounding. A point stays for as long as its two places are opposite to each
  // other, and no new one is near.
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
          const Vec3<double> a = collider_->place(t.geom[0], t.local[0]), b = collider_->place(t.geom[1], t.local[1]),
                             apart = a - b;
          const double along = dot(apart, t.normal);
          const Vec3<double> aside = apart - t.normal * along;
          t.distance = t.base + along;
          t.position = (a + b) * 0.5;
          bool stays =
              dot(aside, aside) < 1e-8 && std::abs(along) < 1e-4 && dot(t.normal, touches_[first].normal) > 0.9999;
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

  // Contacts of this step, and what they start from: the impulse of the nearest point of the same pair in the step
  // before.
  void meet() {
    next_.contacts.clear();
    std::size_t from = 0;
    const std::size_t n = memory.contacts.size();
    for (const auto& t : touches_) {
      // contacts keep MuJoCo's order: look from where the last one was found
      const Contact* best = nullptr;
      double nearest = match * match;
      for (std::size_t look = 0; look < n; ++look) {
        const std::size_t i = (from + look) % n;
        const auto& known = memory.contacts[i];
        const bool same = known.touch.geom[0] == t.geom[0] && known.touch.geom[1] == t.geom[1];
        if (!same && best) break;
        if (!same) continue;
        const Vec3<double> d = known.touch.local[0] - t.local[0];
        if (dot(d, d) < nearest) nearest = dot(d, d), best = &known, from = i;
      }
      next_.contacts.push_back(best ? Contact{t, best->impulse, best->correction, true} : Contact{t, {}, {}, false});
    }
  }

  static int leader(const std::vector<int>& ties, int tree) {
    while (ties[std::size_t(tree)] != tree) tree = ties[std::size_t(tree)];
    return tree;
  }
  static void unite(std::vector<int>& ties, int a, int b) {
    a = leader(ties, a), b = leader(ties, b);
    ties[std::size_t(std::max(a, b))] = std::min(a, b);
  }
  int tree(const Touch& t, int which) const {
    const int link = world_->model.bodies[std::size_t(t.body[which])].link;
    return link < 0 ? -1 : world_->model.links[std::size_t(link)].tree;
  }

  // Trees that touch each other, by their lowest tree, and whose contacts are whose.
  void find_islands() {
    now_ = tied_;
    for (const auto& c : next_.contacts)
      if (tree(c.touch, 1) >= 0) unite(now_, tree(c.touch, 0), tree(c.touch, 1));
    std::size_t count = 0;
    which_.resize(now_.size());
    for (std::size_t t = 0; t < now_.size(); ++t) {
      const int first = leader(now_, int(t));
      if (std::size_t(first) == t) {
        which_[t] = int(count++);
        if (trees_.size() < count) trees_.emplace_back();
        trees_[count - 1].clear();
      }
      trees_[std::size_t(which_[std::size_t(first)])].push_back(int(t));
    }
    ++uses_;
    used_.clear();
    for (std::size_t k = 0; k < count; ++k) {
      auto found = islands_.find(trees_[k]);
      if (found == islands_.end()) {
        if (islands_.size() >= 2 * now_.size() + most_islands) forget_oldest();
        found = islands_.emplace(trees_[k], std::make_unique<Island>(*world_, trees_[k], tools_)).first;
      }
      found->second->used = uses_;
      found->second->contacts.clear();
      used_.push_back(found->second.get());
    }
    for (auto& c : next_.contacts)
      used_[std::size_t(which_[std::size_t(leader(now_, tree(c.touch, 0)))])]->contacts.push_back(&c);
  }
  void forget_oldest() {
    islands_.erase(std::min_element(islands_.begin(), islands_.end(),
                                    [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
  }

  // forces_ ← τ − K (q + dt v − q₀) − D v, and what motors give
  void drive(const double* tau, const double* control) {
    const double dt = world_->timestep;
    for (std::size_t k = 0; k < v.size(); ++k) {
      const int at = world_->sprung[k];
      const double spring =
          at < 0 ? 0 : world_->stiffness[k] * (q[std::size_t(at)] + dt * v[k] - world_->rest[std::size_t(at)]);
      forces_[k] = (tau ? tau[k] : 0.0) - spring - world_->damping[k] * v[k];
    }
    for (std::size_t k = 0; k < world_->motors.size(); ++k) {
      const auto& a = world_->motors[k];
      const double u = std::clamp(control ? control[k] : 0.0, a.control[0], a.control[1]);
      const double speed = v[std::size_t(a.velocity)];
      const double length = a.coordinate < 0 ? 0 : a.gear * (q[std::size_t(a.coordinate)] + dt * speed);
      forces_[std::size_t(a.velocity)] +=
          a.gear *
          std::clamp(a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * a.gear * speed, a.force[0], a.force[1]);
    }
  }
  static constexpr std::size_t most_islands = 32;
  static constexpr std::size_t max_contacts =
      50'000;                            // some 300 balls that are all in each other: a step takes seconds
  static constexpr double match = 0.02;  // contacts nearer than that are the same [m]

  std::shared_ptr<const WorldDescription> world_;
  std::unique_ptr<Collider> collider_;
  ContactTools tools_;
  std::map<std::vector<int>, std::unique_ptr<Island>> islands_;
  std::vector<Island*> used_;            // of this step
  std::vector<std::vector<int>> trees_;  // of each of these
  std::size_t uses_ = 0, other_rows_ = 0;
  std::vector<int> tied_, now_, which_;  // a tree: a lower one that is tied to it by loops; by loops and contacts; its
                                         // island, if it is the lowest
  std::vector<Touch> touches_, kept_;
  std::vector<double> forces_;      // a velocity
  std::vector<char> looped_;        // a velocity: of a tree in loops; empty: there is none
  std::vector<double> at_, after_;  // a coordinate: where contacts were looked for, and will be
  Sweep sweep_;
  Memory next_;
};

}  // namespace delassus
