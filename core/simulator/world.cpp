#include "simulator/world.h"

#include <algorithm>
#include <string>

#include "errors/typed.h"
#include "simulator/actuation.h"
#include "state/configuration.h"

namespace delassus {

namespace {

constexpr std::size_t max_contacts =
    200'000;  // of 10,000 boxes in a heap half of it; of balls that are all in each other 600

[[noreturn]] void refuse(std::size_t contacts) {
  fail("CapacityError", "step: " + std::to_string(contacts) + " contacts at once; one step takes " +
                            std::to_string(max_contacts) +
                            " at most. Move bodies that are in each other apart, "
                            "give them fewer shapes, or let pairs not collide (contype and conaffinity, or exclude).");
}

}  // namespace

World::World(std::shared_ptr<const WorldDescription> description, const CollisionSource& collisions)
    : world_(std::move(description)), collider_(collisions, world_->model.nq), islands_(*world_), tunnelling_(*world_) {
  const auto& m = world_->model;
  q.assign(std::size_t(m.nq), 0.0);
  v.assign(std::size_t(m.nv), 0.0);
  forces_.assign(std::size_t(m.nv), 0.0);
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
  report.collided = find_contacts();
  if (!report.collided) return report;
  clock.end(report.times.collide);
  const WorldState now = start_islands(forces);
  report.islands = int(used_->size());
  report.contacts.outcome = ContactOutcome::solved;
  for (Island* island : *used_) {
    island->step(now, memory, report);
    if (!report.regular) return report;
  }
  finish_step();
  report.collided = check_tunnelling(report);
  if (!report.collided) undo_step();
  whole.end(report.times.whole);
  return report;
}

StepReport World::pose(const StepForces& forces, std::vector<PosedProblem>& problems) {
  StepReport report;
  report.collided = find_contacts();
  if (!report.collided) return report;
  const WorldState now = start_islands(forces);
  problems.resize(used_->size());
  for (std::size_t k = 0; k < used_->size() && report.regular; ++k)
    (*used_)[k]->pose_problem(now, memory, report, problems[k]);
  return report;
}

// Contacts of this step, with what they start from. False: MuJoCo could not find them.
bool World::find_contacts() {
  find_looked_at(looked_at_);
  if (!collider_.collide(looked_at_.data(), touches_)) return false;
  if (touches_.size() > max_contacts) refuse(touches_.size());
  order_sides(world_->model, touches_);
  persistence_.keep_points(memory.contacts, collider_, touches_);
  match_contacts(touches_, memory.contacts, persistence_.pairs(), next_memory_.contacts);
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

// Islands of the contacts, and forces on joints.
WorldState World::start_islands(const StepForces& forces) {
  used_ = &islands_.find(next_memory_.contacts);
  find_joint_forces(*world_, q.data(), v.data(), forces.tau, forces.control, forces_);
  return {q.data(), v.data(), forces_.data(), forces.external};
}

// q⁺, v⁺, and what the next step starts from.
void World::finish_step() {
  last_q_ = q, last_v_ = v, last_time_ = time;
  next_memory_.clear_rows(row_count_, world_->limits.size(), islands_.trees());
  for (const Island* island : *used_) island->give(q.data(), v.data(), next_memory_);
  std::swap(memory, next_memory_);
  time += world_->options.timestep;
}

void World::undo_step() {
  std::swap(q, last_q_), std::swap(v, last_v_), std::swap(memory, next_memory_);
  time = last_time_;
}

// False: MuJoCo could not look.
bool World::check_tunnelling(StepReport& report) {
  if (!tunnelling_.possible(q.data(), v.data())) return true;
  find_looked_at(next_looked_at_);
  const int passed = tunnelling_.count(collider_, touches_, looked_at_.data(), next_looked_at_.data());
  report.tunnelled = std::max(passed, 0);
  if (passed > 0) report.blame(StepFlaw::tunnelling);
  return passed >= 0;
}

}  // namespace delassus
