#include "simulator/step_record.h"

#include <algorithm>

namespace delassus {

namespace {

// Of joints and of tendons: those of the ends of their ranges.
void find_limit_forces(const World& w, std::vector<double>& joints, std::vector<double>& tendons) {
  const WorldDescription& d = w.description();
  const double over = 1 / d.options.timestep;
  const auto add = [](std::vector<double>& to, int place, std::size_t size, double force) {
    to.resize(std::max({to.size(), size, std::size_t(place) + 1}), 0.0);
    to[std::size_t(place)] += force;
  };
  const std::size_t nq = std::size_t(d.model.nq);
  for (std::size_t k = 0; k < d.limits.size(); ++k)
    add(joints, d.limits[k].coordinate, nq, over * (w.memory.limits[2 * k][0] + w.memory.limits[2 * k + 1][0]));
  for (std::size_t k = 0; k < d.spans.size(); ++k) {
    const Span& span = d.spans[k];
    const auto* const rows = w.memory.spans.data() + span_row_count * k;
    const double force = over * (rows[span_lower][0] + rows[span_upper][0]);
    if (span.kind == Span::ball) add(joints, span.coordinate, nq, force);
    if (span.kind == Span::tendon) add(tendons, span.tendon_id[0], 0, force);
  }
}

}  // namespace

std::size_t loop_rows(const WorldDescription& d) {
  std::size_t rows = 0;
  for (const auto& loop : d.loops) rows += std::size_t(loop.rows);
  return rows;
}

void add_contacts(const World& w, std::vector<ContactRow>& to) {
  const double over = 1 / w.description().options.timestep;
  for (const auto& c : w.memory.contacts) {
    const auto &x = c.touch.position, &n = c.touch.normal;
    const Vec3<double> force = c.impulse * over, torque = c.turn * over;
    to.push_back({{x.x, x.y, x.z},
                  {n.x, n.y, n.z},
                  {force.x, force.y, force.z},
                  c.touch.friction,
                  {torque.x, torque.y, torque.z},
                  c.touch.distance,
                  {c.touch.body[0], c.touch.body[1]},
                  {c.touch.geom[0], c.touch.geom[1]},
                  c.touch.rows});
  }
}

// Rows of loops come first among those that a world remembers.
void add_loop_forces(const World& w, std::size_t rows, std::vector<double>& to) {
  const double over = 1 / w.description().options.timestep;
  for (std::size_t r = 0; r < rows; ++r) to.push_back(w.memory.row_impulses[r] * over);
}

void StepRecord::read(const StepReport& r, const World& w) {
  report = r, description = w.shared_description();
  time = w.time, q = w.q, v = w.v, hidden = w.hidden, mocap = w.mocap, row_forces = w.row_forces;
  loop_forces.clear(), joint_limit_forces.clear(), tendon_limit_forces.clear(), contacts.clear();
  if (!w.memory.row_impulses.empty()) add_loop_forces(w, loop_rows(*description), loop_forces);
  if (!w.memory.limits.empty() || !w.memory.spans.empty())
    find_limit_forces(w, joint_limit_forces, tendon_limit_forces);
  worst_coordinate = worst_tendon = -1;
  if (r.worst_limit >= 0) worst_coordinate = description->limits[std::size_t(r.worst_limit)].coordinate;
  if (r.worst_span >= 0) {
    const Span& span = description->spans[std::size_t(r.worst_span)];
    (span.kind == Span::ball ? worst_coordinate : worst_tendon) =
        span.kind == Span::ball ? span.coordinate : span.tendon_id[0];
  }
  contacts.reserve(w.memory.contacts.size());
  add_contacts(w, contacts);
}

}  // namespace delassus
