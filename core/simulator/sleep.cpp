#include "simulator/sleep.h"

#include <algorithm>
#include <cmath>

#include "state/configuration.h"

namespace delassus {

Sleep::Sleep(const WorldDescription& world) : world_(world), speeds_(world.model) {
  if (!allowed()) return;
  const auto& m = world.model;
  read_numbers();
  // whose rows, limits and bodies these are; what ties trees together sleeps with all of them
  for (const auto* list : {&world.loops, &world.friction})
    for (const auto& d : *list) {
      int tree = 0;
      visit_trees(m, d, [&](int t) { tree = t; });
      row_tree_.insert(row_tree_.end(), std::size_t(d.rows), tree);
    }
  for (const auto& limit : world.limits)
    limit_tree_.push_back(m.links[std::size_t(m.dof_link[std::size_t(limit.velocity)])].tree);
  for (const auto& span : world.spans)
    span_tree_.push_back(m.links[std::size_t(m.dof_link[std::size_t(span.velocities[0])])].tree);
  for (const auto& b : m.bodies) body_tree_.push_back(b.link < 0 ? -1 : m.links[std::size_t(b.link)].tree);
  asleep_.assign(m.roots.size(), 0);
  fell_ = asleep_;
  still_.assign(m.bodies.size(), 0);
  way_.assign(std::size_t(m.nv), 0.0);
}

// The farthest points of links: of their shapes, at least their centres of mass.
void Sleep::read_numbers() {
  if (!allowed()) return;
  const auto& m = world_.model;
  arms_.resize(m.links.size());
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    const Vec3<double>& center = m.links[i].inertial.center;
    arms_[i] = std::sqrt(dot(center, center));
  }
  for (const auto& shape : world_.shapes) {
    const auto& carrier = m.bodies[std::size_t(shape.body)];
    if (carrier.link < 0) continue;
    const Vec3<double> center = carrier.placement * shape.center;
    double& arm = arms_[std::size_t(carrier.link)];
    arm = std::max(arm, std::sqrt(dot(center, center)) + shape.radius);
  }
}

bool Sleep::any() const { return std::find(asleep_.begin(), asleep_.end(), 1) != asleep_.end(); }
bool Sleep::all() const { return std::find(asleep_.begin(), asleep_.end(), 0) == asleep_.end(); }

const std::vector<char>& Sleep::find_still() {
  for (std::size_t b = 0; b < still_.size(); ++b) still_[b] = body_tree_[b] < 0 || asleep_[std::size_t(body_tree_[b])];
  return still_;
}

bool Sleep::sleeps(const RestMemory& rest, std::size_t tree) const {
  return tree < rest.steps.size() && rest.steps[tree] >= world_.options.sleep_steps;
}

void Sleep::recall(const RestMemory& rest, const std::vector<double>& forces, const double* external) {
  const auto& m = world_.model;
  for (std::size_t t = 0; t < asleep_.size(); ++t) {
    const auto& root = m.links[std::size_t(m.roots[t])];
    asleep_[t] = sleeps(rest, t) &&
                 std::equal(forces.begin() + root.iv, forces.begin() + root.end_v, rest.forces.begin() + root.iv);
  }
  if (!any()) return;
  for (std::size_t b = 0; b < body_tree_.size(); ++b) {
    if (body_tree_[b] < 0) continue;
    for (std::size_t k = 6 * b; k < 6 * b + 6; ++k)
      if ((external ? external[k] : 0.0) != rest.external[k]) asleep_[std::size_t(body_tree_[b])] = 0;
  }
}

void Sleep::keep_rows(const StepMemory& before, StepMemory& after) const {
  const auto sleeping = [&](int tree) { return asleep_[std::size_t(tree)] != 0; };
  for (std::size_t r = 0; r < before.row_impulses.size(); ++r)
    if (sleeping(row_tree_[r]))
      after.row_impulses[r] = before.row_impulses[r], after.row_corrections[r] = before.row_corrections[r];
  for (std::size_t k = 0; k < before.limits.size(); ++k)
    if (sleeping(limit_tree_[k / 2])) after.limits[k] = before.limits[k];
  for (std::size_t k = 0; k < before.spans.size(); ++k)
    if (sleeping(span_tree_[span_of(int(k))])) after.spans[k] = before.spans[k];
  for (std::size_t t = 0; t < before.penalties.size(); ++t)
    if (asleep_[t]) after.penalties[t] = before.penalties[t];
}

bool Sleep::count_rest(const std::vector<Island*>& islands, const std::vector<StepReport>& reports,
                       const RestMemory& before, const double* last_q, const double* q, double* v, RestMemory& after) {
  const auto& m = world_.model;
  after.steps.assign(asleep_.size(), 0);
  after.forces.assign(std::size_t(m.nv), 0.0);
  after.external.assign(6 * m.bodies.size(), 0.0);
  // what sleeps goes on
  for (std::size_t t = 0; t < asleep_.size(); ++t) {
    fell_[t] = 0;
    if (!asleep_[t]) continue;
    const auto& root = m.links[std::size_t(m.roots[t])];
    after.steps[t] = before.steps[t];
    std::copy(before.forces.begin() + root.iv, before.forces.begin() + root.end_v, after.forces.begin() + root.iv);
  }
  for (std::size_t b = 0; b < body_tree_.size(); ++b)
    if (body_tree_[b] >= 0 && asleep_[std::size_t(body_tree_[b])])
      std::copy_n(before.external.begin() + std::ptrdiff_t(6 * b), 6, after.external.begin() + std::ptrdiff_t(6 * b));

  bool falls = false, has_way = false;
  for (std::size_t k = 0; k < islands.size(); ++k) {
    if (!reports[k].solved() || !is_slow(*islands[k], q, v)) continue;
    if (!has_way) {
      difference(m, last_q, q, way_.data());
      for (double& x : way_) x /= world_.options.timestep;
      has_way = true;
    }
    if (!is_slow(*islands[k], q, way_.data())) continue;
    // an island is at rest for as long as the last of its trees; who was woken begins anew
    int steps = world_.options.sleep_steps;
    for (const int tree : islands[k]->trees()) {
      const std::size_t t = std::size_t(tree);
      steps = std::min(steps, t < before.steps.size() && !sleeps(before, t) ? before.steps[t] + 1 : 1);
    }
    for (const int tree : islands[k]->trees()) after.steps[std::size_t(tree)] = steps;
    if (steps < world_.options.sleep_steps) continue;
    falls = true;
    for (const int tree : islands[k]->trees()) {
      const auto& root = m.links[std::size_t(m.roots[std::size_t(tree)])];
      std::fill(v + root.iv, v + root.end_v, 0.0);
      fell_[std::size_t(tree)] = 1;
    }
  }
  return falls;
}

// Whether no point of the island is faster than what counts as rest.
bool Sleep::is_slow(const Island& island, const double* q, const double* v) {
  const auto& m = world_.model;
  for (const int tree : island.trees()) {
    const int first = m.roots[std::size_t(tree)], end = m.links[std::size_t(first)].end;
    const std::vector<LinkSpeed>& speeds = speeds_.find(q, v, first, end);
    for (std::size_t i = std::size_t(first); i < std::size_t(end); ++i)
      if (!(speeds[i].linear + speeds[i].angular * arms_[i] <= world_.options.sleep_speed)) return false;
  }
  return true;
}

void Sleep::note_forces(const std::vector<double>& forces, const double* external, RestMemory& after) const {
  const auto& m = world_.model;
  for (std::size_t t = 0; t < fell_.size(); ++t) {
    if (!fell_[t]) continue;
    const auto& root = m.links[std::size_t(m.roots[t])];
    std::copy(forces.begin() + root.iv, forces.begin() + root.end_v, after.forces.begin() + root.iv);
  }
  if (!external) return;
  for (std::size_t b = 0; b < body_tree_.size(); ++b)
    if (body_tree_[b] >= 0 && fell_[std::size_t(body_tree_[b])])
      std::copy_n(external + 6 * b, 6, after.external.begin() + std::ptrdiff_t(6 * b));
}

int Sleep::count(const RestMemory& rest) const {
  return int(std::count_if(rest.steps.begin(), rest.steps.end(),
                           [&](int steps) { return steps >= world_.options.sleep_steps; }));
}

}  // namespace delassus
