#include "simulator/row_system.h"

#include <algorithm>
#include <limits>

#include "operators/strips.h"

namespace delassus {

namespace {

constexpr std::size_t max_systems = 24;  // kept by a cache
constexpr double unbounded = std::numeric_limits<double>::infinity();

ConstraintDescription limit_row(const JointLimit& limit, bool upper) {
  ConstraintDescription d{};
  d.kind = Kind::joint;
  d.rows = 1;
  d.joints = {limit.velocity};
  d.numbers = {upper ? -1.0 : 1.0};
  return d;
}

}  // namespace

void ActiveRows::find(const WorldDescription& world, const double* q, const double* v) {
  limit_ends.clear();
  for (std::size_t k = 0; k < world.limits.size(); ++k) {
    const auto& limit = world.limits[k];
    const double x = q[limit.coordinate], reach = 4 * world.options.timestep * std::abs(v[limit.velocity]) + 1e-3;
    if (x - limit.lower < reach) limit_ends.push_back(int(2 * k));
    if (limit.upper - x < reach) limit_ends.push_back(int(2 * k + 1));
  }
  frames.clear();
  for (const Contact* c : contacts) frames.push_back(contact_frame(c->touch.normal));
}

bool ActiveRows::add_broken_limits(const WorldDescription& world, const std::vector<double>& q,
                                   const std::vector<double>& v, const std::vector<double>& remaining,
                                   double tolerance) {
  added_ends.clear();
  for (std::size_t k = 0; k < world.limits.size(); ++k) {
    const auto& limit = world.limits[k];
    const std::size_t i = std::size_t(limit.velocity);
    const double x = q[std::size_t(limit.coordinate)] + world.options.timestep * (1 - remaining[i]) * v[i];
    const double below = limit.lower - x, above = x - limit.upper;
    if (!(std::max(below, above) > tolerance)) continue;
    const int end = int(2 * k) + (above > below);
    if (!std::binary_search(limit_ends.begin(), limit_ends.end(), end)) added_ends.push_back(end);
  }
  limit_ends.insert(limit_ends.end(), added_ends.begin(), added_ends.end());
  std::sort(limit_ends.begin(), limit_ends.end());
  return !added_ends.empty();
}

RowSystem::RowSystem(const Model<double>& model, ConstraintSet<double> set)
    : layout(std::make_shared<Layout<double>>(model, std::move(set), strip_lanes<double>)),
      G(make_moving_operator<double>(model, layout)) {}

// By the ends of limits, and the links of every contact.
RowSystem& RowSystemCache::find(const ActiveRows& rows) {
  key_.assign(rows.limit_ends.begin(), rows.limit_ends.end());
  key_.push_back(-2);
  for (const Contact* c : rows.contacts)
    for (int b = 0; b < 2; ++b) key_.push_back(part_.world.model.bodies[std::size_t(body(c->touch, b))].link);
  auto found = systems_.find(key_);
  if (found == systems_.end()) {
    if (systems_.size() == max_systems) drop_oldest();
    found = systems_.emplace(key_, make(rows)).first;
  }
  RowSystem& s = *found->second;
  s.last_use = ++uses_;
  place_points(s, rows);
  return s;
}

void RowSystemCache::drop_oldest() {
  systems_.erase(std::min_element(systems_.begin(), systems_.end(), [](const auto& a, const auto& b) {
    return a.second->last_use < b.second->last_use;
  }));
}

std::unique_ptr<RowSystem> RowSystemCache::make(const ActiveRows& rows) const {
  const WorldDescription& world = part_.world;
  // loops, dry friction, limits, contacts
  std::vector<ConstraintDescription> list = world.loops;
  list.insert(list.end(), world.friction.begin(), world.friction.end());
  for (const int end : rows.limit_ends) list.push_back(limit_row(world.limits[std::size_t(end / 2)], end % 2));
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const Touch& t = rows.contacts[k]->touch;
    ConstraintDescription d{};
    d.kind = Kind::frame;
    d.rows = 3;
    d.bodies = {body(t, 0), body(t, 1)};
    for (const auto& p : t.anchor) d.points.insert(d.points.end(), {p.x, p.y, p.z});
    for (const auto& a : rows.frames[k]) d.matrix.insert(d.matrix.end(), {a.x, a.y, a.z});
    list.push_back(std::move(d));
  }
  auto s = std::make_unique<RowSystem>(world.model, make_constraints(world.model, list));
  add_sets(*s, rows.limit_ends.size());
  // which of the layout's points belongs to which contact
  const auto& points = s->layout->set.points;
  s->contact_points.assign(rows.contacts.size(), -1);
  for (std::size_t p = 0; p < points.size(); ++p)
    if (points[p].row >= s->first_contact)
      s->contact_points[std::size_t(points[p].row - s->first_contact) / 3] = int(p);
  return s;
}

// Where impulses, and corrections of positions, may be.
void RowSystemCache::add_sets(RowSystem& s, std::size_t limits) const {
  const WorldDescription& world = part_.world;
  const auto add = [](ForceSets& K, int r, double lower, double upper) { K.intervals.push_back({r, lower, upper}); };
  int row = 0;
  s.sets.rows = s.position_sets.rows = int(s.rows());
  for (const auto& d : world.loops)
    for (int r = 0; r < d.rows; ++r, ++row)
      add(s.sets, row, -unbounded, unbounded), add(s.position_sets, row, -unbounded, unbounded);
  for (const double loss : world.friction_loss) {
    add(s.sets, row, -loss * world.options.timestep, loss * world.options.timestep);
    add(s.position_sets, row++, 0, 0);
  }
  s.first_limit = row;
  for (std::size_t k = 0; k < limits; ++k, ++row)
    add(s.sets, row, 0, unbounded), add(s.position_sets, row, 0, unbounded);
  s.first_contact = row;
  for (; row < s.sets.rows; row += 3) {
    s.sets.cones.push_back({row, 0.0});
    add(s.position_sets, row, 0, unbounded);
    add(s.position_sets, row + 1, 0, 0);
    add(s.position_sets, row + 2, 0, 0);
  }
}

// Where the points are now, their axes and their friction.
void RowSystemCache::place_points(RowSystem& s, const ActiveRows& rows) const {
  auto& set = s.layout->set;
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const Touch& t = rows.contacts[k]->touch;
    auto& point = set.points[std::size_t(s.contact_points[k])];
    for (int r = 0; r < 3; ++r) point.axes[r] = rows.frames[k][std::size_t(r)];
    for (int b = 0; b < 2; ++b) {
      const auto& carrier = part_.world.model.bodies[std::size_t(body(t, b))];
      if (carrier.link >= 0)
        set.locals[std::size_t(point.local) + std::size_t(b)] = carrier.placement.R * t.anchor[b] + carrier.placement.p;
    }
    s.sets.cones[k].friction = t.friction;
  }
  s.G->read_points();
}

void find_row_errors(const WorldDescription& world, const RowSystem& s, const ActiveRows& rows, const double* q,
                     std::vector<double>& error) {
  error.assign(s.rows(), 0.0);
  if (!world.loops.empty()) errors(world.model, s.layout->set, s.G->placement(), q, error.data());
  for (std::size_t k = 0; k < rows.limit_ends.size(); ++k) {
    const auto& limit = world.limits[std::size_t(rows.limit_ends[k] / 2)];
    const double x = q[limit.coordinate];
    error[std::size_t(s.first_limit) + k] = rows.limit_ends[k] % 2 ? limit.upper - x : x - limit.lower;
  }
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) error[s.normal_row(k)] = rows.contacts[k]->touch.distance;
}

void allow_approach(const StepOptions& options, const RowSystem& s, const std::vector<double>& error,
                    const std::vector<double>& impulses, std::vector<double>& g) {
  for (std::size_t r = std::size_t(s.first_limit); r < error.size(); ++r) {
    const bool contact = int(r) >= s.first_contact, normal = !contact || (int(r) - s.first_contact) % 3 == 0;
    if (!normal || (contact && impulses[r] > 0 && error[r] < 2 * options.slop)) continue;
    g[r] += std::max(error[r] - options.slop, 0.0) / options.timestep;
  }
}

const std::vector<double>& ImpulseResponse::of(RowSystem& s, const double* lambda) {
  s.G->jacobian_transpose(lambda, 1, forces_.data());
  s.G->mass_inverse(forces_.data(), 1, velocity_.data());
  return velocity_;
}

void ImpulseResponse::add(RowSystem& s, const double* lambda, std::vector<double>& x) {
  const std::vector<double>& response = of(s, lambda);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += response[k];
}

}  // namespace delassus
