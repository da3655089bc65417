#include "simulator/world.h"

#include <algorithm>
#include <string>

#include "errors/typed.h"
#include "state/configuration.h"

namespace delassus {

namespace {

constexpr std::size_t max_contacts =
    200'000;  // of 10,000 boxes in a heap half of it; of balls that are all in each other 600

constexpr double force_difference =
    1e-6;  // of forces that MuJoCo computes [m, rad, and their rates; units of controls]

[[noreturn]] void refuse(std::size_t contacts) {
  fail("CapacityError", "step: " + std::to_string(contacts) + " contacts at once; one step takes " +
                            std::to_string(max_contacts) +
                            " at most. Move bodies that are in each other apart, "
                            "give them fewer shapes, or let pairs not collide (contype and conaffinity, or exclude).");
}

}  // namespace

World::World(std::shared_ptr<const WorldDescription> description, const CollisionSource& collisions,
             const MirrorSource& mirror, int threads, KeptSystems kept)
    : world_(std::move(description)),
      collider_(collisions, world_->model.nq),
      islands_(*world_, kept),
      team_(threads),
      sleep_(*world_),
      tunnelling_(*world_) {
  const auto& m = world_->model;
  q.assign(std::size_t(m.nq), 0.0);
  v.assign(std::size_t(m.nv), 0.0);
  for (auto* x : {&forces_, &motor_forces_, &row_forces}) x->assign(std::size_t(m.nv), 0.0);
  spans_ = make_span_values(world_->spans);
  if (mirror.model != nullptr) mirror_ = std::make_unique<MujocoMirror>(mirror);
  for (auto* x : {&hidden, &next_hidden_, &last_hidden_}) x->assign(std::size_t(mirror.state_size), 0.0);
  for (const auto* list : {&world_->loops, &world_->friction})
    for (const auto& d : *list) row_count_ += std::size_t(d.rows);
  for (const auto& d : world_->loops) {
    in_loops_.resize(std::size_t(m.nv), 0);
    set_velocities(m, d, char(1), in_loops_);
  }
}

StepReport World::step(const StepForces& forces) {
  StageClock clock, whole;
  StepReport report;
  report.collided = start_step(forces);
  if (!report.collided) return report;
  if (sleep_.any() && sleep_.all()) {
    sleep_on(report);
    whole.end(report.times.whole);
    return report;
  }
  report.collided = find_islands();
  if (!report.collided) return report;
  clock.end(report.times.collide);
  const WorldState now{q.data(), v.data(), forces_.data(), forces.external, &spans_, &mocaps_};
  report.islands = int(used_->size());
  report.contacts.outcome = ContactOutcome::solved;
  for (const StepReport& island : team_.step(*used_, now, memory)) add_island(island, report);
  if (!report.regular) return report;
  for (std::size_t k = touches_.size(); k < next_memory_.contacts.size(); ++k)  // of what sleeps
    report.penetration = std::max(report.penetration, -next_memory_.contacts[k].touch.distance);
  finish_step(forces);
  report.sleeping = sleep_.count(memory.rest);
  report.collided = check_tunnelling(report);
  if (!report.collided) undo_step();
  whole.end(report.times.whole);
  return report;
}

std::uint64_t World::graph() const {
  std::uint64_t hash = 0;
  if (used_ == nullptr) return hash;
  for (const Island* island : *used_) hash = hash * 31 + island->graph();
  return hash;
}

void World::take_over(const World& other) {
  q = other.q, v = other.v, hidden = other.hidden, mocap = other.mocap, mocap_goal = other.mocap_goal;
  time = other.time;
  memory = {};
  memory.contacts = other.memory.contacts;
}

StepReport World::pose(const StepForces& forces, std::vector<PosedProblem>& problems) {
  StepReport report;
  report.collided = start_step(forces) && find_islands();
  if (!report.collided) return report;
  const WorldState now{q.data(), v.data(), forces_.data(), forces.external, &spans_, &mocaps_};
  problems.resize(used_->size());
  for (std::size_t k = 0; k < used_->size() && report.regular; ++k)
    (*used_)[k]->pose_problem(now, memory, report, problems[k]);
  return report;
}

const std::vector<double>* World::find_smooth_forces(const double* control) {
  return find_forces({.control = control}, 0.0) ? &forces_ : nullptr;
}

void World::find_tendon_inertia(std::vector<double>& armatures, std::vector<double>& rates) {
  armatures.clear();
  rates.clear();
  find_spans(world_->spans, q.data(), mirror_.get(), spans_);
  for (std::size_t k = 0; k < world_->spans.size(); ++k) {
    const Span& span = world_->spans[k];
    if (!(span.armature > 0)) continue;
    armatures.push_back(span.armature);
    rates.resize(armatures.size() * v.size(), 0.0);
    for (std::size_t j = 0; j < span.velocities.size(); ++j)
      rates[rates.size() - v.size() + std::size_t(span.velocities[j])] =
          spans_.coefficients[std::size_t(spans_.first[k]) + j];
  }
}

const std::string& World::failure() const {
  return mirror_ && !mirror_->failure().empty() ? mirror_->failure() : collider_.failure();
}

// Forces on joints at q and v, and the rest of the state after a step. False: MuJoCo could not go on.
bool World::find_forces(const StepForces& forces, double dt) {
  find_joint_forces(*world_, dt, q.data(), v.data(), forces.tau, forces.control, motor_forces_, forces_);
  next_hidden_ = hidden;
  return !mirror_ || mirror_->add_forces({q.data(), v.data(), hidden.data(), mocap.data(), forces.control, time},
                                         forces_, next_hidden_);
}

bool World::look_again() { return collider_.collide(looked_at_.data(), again_, nullptr); }

bool World::find_force_rates(const double* control, int controls, ForceRates& ours, MirrorRates& others) {
  delassus::find_force_rates(*world_, world_->options.timestep, q.data(), v.data(), control, motor_forces_, ours);
  for (auto* x : {&others.by_q, &others.by_v, &others.by_control}) x->clear();
  if (!mirror_) return true;
  const std::size_t n = v.size(), nu = std::size_t(controls);
  others.by_q.resize(n * n), others.by_v.resize(n * n), others.by_control.resize(n * nu);
  std::vector<double> place = q, speed = v, u(nu, 0.0), way(n, 0.0), side[2] = {way, way}, next = hidden;
  if (control) std::copy_n(control, nu, u.data());
  const auto differ = [&](auto&& displace, std::vector<double>& rates, std::size_t columns, std::size_t column) {
    for (int k = 0; k < 2; ++k) {
      std::fill(side[k].begin(), side[k].end(), 0.0);
      displace(k == 0 ? force_difference : -force_difference);
      const bool fine =
          mirror_->add_forces({place.data(), speed.data(), hidden.data(), mocap.data(), u.data(), time}, side[k], next);
      if (!fine) return false;
    }
    displace(0.0);
    for (std::size_t i = 0; i < n; ++i)
      rates[i * columns + column] = (side[0][i] - side[1][i]) / (2 * force_difference);
    return true;
  };
  for (std::size_t j = 0; j < n; ++j) {
    const auto move = [&](double h) {
      way[j] = h;
      integrate(world_->model, q.data(), way.data(), 1.0, place.data());
      way[j] = 0;
    };
    if (!differ(move, others.by_q, n, j)) return false;
    if (!differ([&](double h) { speed[j] = v[j] + h; }, others.by_v, n, j)) return false;
  }
  for (std::size_t j = 0; j < nu; ++j) {
    const double given = u[j];
    if (!differ([&](double h) { u[j] = given + h; }, others.by_control, nu, j)) return false;
  }
  return true;
}

// Forces on joints, and who sleeps unless something touches it.
bool World::start_step(const StepForces& forces) {
  if (!find_forces(forces, world_->options.timestep)) return false;
  find_mocap_motions(world_->options, mocap, mocap_goal, next_mocap_, mocaps_);
  collider_.set_mocap(mocap);
  find_spans(world_->spans, q.data(), mirror_.get(), spans_);
  // what moves by itself may meet anything: nothing sleeps then
  const bool moved = std::any_of(mocaps_.begin(), mocaps_.end(), [](const MocapMotion& m) { return m.moves(); });
  if (sleep_.allowed()) sleep_.recall(moved ? RestMemory{} : memory.rest, forces_, forces.external);
  return true;
}

// A step in which everything sleeps.
void World::sleep_on(StepReport& report) {
  last_hidden_ = hidden, last_time_ = time, slept_ = true;
  hidden = next_hidden_;
  report.contacts.outcome = ContactOutcome::solved;
  report.sleeping = int(world_->model.roots.size());
  for (const auto& c : memory.contacts) report.penetration = std::max(report.penetration, -c.touch.distance);
  time += world_->options.timestep;
}

// Contacts of this step with their warm starts, and the islands that they form; sleeping islands that something touches
// are woken first. Returns false if MuJoCo failed to find contacts.
bool World::find_islands() {
  do {
    if (!find_contacts()) return false;
    islands_.group(next_memory_.contacts);
  } while (sleep_.any() && islands_.wake(sleep_.asleep()));
  used_ = &islands_.find(next_memory_.contacts, sleep_.asleep());
  return true;
}

// Contacts of what is awake, then those of what sleeps as they were.
bool World::find_contacts() {
  const bool sleeping = sleep_.any();
  find_looked_at(looked_at_);
  const std::vector<char>* still = sleeping ? &sleep_.find_still() : nullptr;
  if (!collider_.collide(looked_at_.data(), touches_, still)) return false;
  if (touches_.size() > max_contacts) refuse(touches_.size());
  order_sides(world_->model, touches_);
  persistence_.keep_points(memory.contacts, collider_, touches_);
  patches_.flatten(collider_, touches_);
  collider_.find_surfaces(touches_);
  match_contacts(touches_, memory.contacts, persistence_.pairs(), next_memory_.contacts);
  if (sleeping)
    for (const auto& c : memory.contacts)
      if (sleep_.holds(c)) next_memory_.contacts.push_back(c);
  return true;
}

// Where contacts are looked for: q, and of trees in loops q ⊕ ½ dt v.
void World::find_looked_at(std::vector<double>& looked_at) const {
  looked_at.assign(q.begin(), q.end());
  if (in_loops_.empty()) return;
  const auto& m = world_->model;
  integrate(m, q.data(), v.data(), 0.5 * world_->options.timestep, looked_at.data());
  for (const int r : m.roots) {
    const auto &root = m.links[std::size_t(r)], &last = m.links[std::size_t(root.end - 1)];
    const int end = last.iq + configuration_size(last.type);
    if (!in_loops_[std::size_t(root.iv)]) std::copy(q.begin() + root.iq, q.begin() + end, looked_at.begin() + root.iq);
  }
}

// q⁺, v⁺, what the next step starts from, and what falls asleep.
void World::finish_step(const StepForces& forces) {
  last_q_ = q, last_v_ = v, last_hidden_ = hidden, last_mocap_ = mocap, last_time_ = time;
  slept_ = false;
  next_memory_.clear_rows(row_count_, world_->limits.size(), world_->spans.size(), islands_.trees());
  for (const Island* island : *used_) island->give(q.data(), v.data(), row_forces.data(), next_memory_);
  hidden = next_hidden_, mocap = next_mocap_;
  time += world_->options.timestep;
  if (sleep_.allowed()) {
    sleep_.keep_rows(memory, next_memory_);
    if (sleep_.count_rest(*used_, team_.reports(), memory.rest, last_q_.data(), q.data(), v.data(),
                          next_memory_.rest)) {
      find_forces(forces, world_->options.timestep);
      sleep_.note_forces(forces_, forces.external, next_memory_.rest);
    }
  }
  std::swap(memory, next_memory_);
}

bool World::is_finite() const {
  constexpr double largest = 1e100;  // [m, m/s, rad, rad/s]
  const auto small = [](double x) { return std::abs(x) <= largest; };
  return std::all_of(q.begin(), q.end(), small) && std::all_of(v.begin(), v.end(), small);
}

void World::undo_step() {
  std::swap(hidden, last_hidden_);
  time = last_time_;
  if (slept_) return;  // nothing else changed
  std::swap(q, last_q_), std::swap(v, last_v_), std::swap(memory, next_memory_), std::swap(mocap, last_mocap_);
}

// False: MuJoCo could not look.
bool World::check_tunnelling(StepReport& report) {
  if (!tunnelling_.possible(q.data(), v.data())) return true;
  find_looked_at(next_looked_at_);
  const std::vector<char>* still = sleep_.any() ? &sleep_.find_still() : nullptr;
  const int passed = tunnelling_.count(collider_, touches_, looked_at_.data(), next_looked_at_.data(), still);
  report.tunnelled = std::max(passed, 0);
  if (passed > 0) report.blame(StepFlaw::tunnelling);
  return passed >= 0;
}

}  // namespace delassus
