#include "simulator/row_system.h"

#include <algorithm>
#include <limits>

#include "operators/strips.h"

namespace delassus {

namespace {

constexpr std::size_t max_systems = 24;    // kept by a cache
constexpr std::size_t max_unproven = 4;    // of these, that came up once only
constexpr std::size_t large_key = 4000;    // of a large system: of these two, since the memory of more is cold
constexpr std::size_t max_kept = 100'000;  // links of contacts of all that are kept, but the last two: some 100 MB
constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double near_end = 1e-3;  // of a range: it has a row, however slowly it is approached [m or rad]

std::vector<ConstraintDescription> joined(std::vector<ConstraintDescription> a,
                                          const std::vector<ConstraintDescription>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

void ActiveRows::find(const WorldDescription& world, const double* q, const double* v, const SpanValues& spans) {
  limit_ends.clear();
  for (std::size_t k = 0; k < world.limits.size(); ++k) {
    const auto& limit = world.limits[k];
    const double x = q[limit.coordinate], reach = 4 * world.options.timestep * std::abs(v[limit.velocity]) + near_end;
    if (x - limit.lower < reach) limit_ends.push_back(int(2 * k));
    if (limit.upper - x < reach) limit_ends.push_back(int(2 * k + 1));
  }
  span_rows.clear();
  for (std::size_t k = 0; k < world.spans.size(); ++k) {
    const Span& span = world.spans[k];
    const double reach = 4 * world.options.timestep * std::abs(span_rate(world.spans, spans, k, v)) + near_end;
    const bool kept = span.kind == Span::relation;
    const bool there[] = {!kept && spans.x[k] - span.lower < reach, !kept && span.upper - spans.x[k] < reach,
                          span.friction_loss > 0, kept, span.armature > 0};
    for (int row = 0; row < span_row_count; ++row)
      if (there[row]) span_rows.push_back(int(k) * span_row_count + row);
  }
  frames.clear();
  for (const Contact* c : contacts) frames.push_back(contact_frame(c->touch));
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

RowSystemCache::RowSystemCache(const Model<double>& whole, const WorldPart& part, KeptSystems kept)
    : whole_(whole),
      part_(part),
      kept_(kept),
      maker_(part.world.model, strip_lanes<double>),
      always_(make_constraints(part.world.model, joined(part.world.loops, part.world.friction))) {}

RowSystem& RowSystemCache::find(const ActiveRows& rows, const SpanValues& spans) {
  find_key(rows);
  Kept* found = look_up();
  if (found) {
    found->proven = true;
    if (found->numbers != numbers_read_) read_numbers(found->system);
    place_points(found->system, rows);
    set_spans(found->system, rows, spans);
    found->system.G->read_points();
  } else {
    found = &make_room();
    found->key = key_;
    found->proven = false;
    make(found->system, rows, spans);
  }
  found->numbers = numbers_read_;
  found->last_use = ++uses_;
  return found->system;
}

void RowSystemCache::read_numbers() {
  ++numbers_read_;
  maker_.read_model();
}

// For a system that has other ones: updates bounds, inertias, armature and the limits of dry friction.
void RowSystemCache::read_numbers(RowSystem& s) const {
  maker_.find_bounds(*s.layout);
  s.G->read_model();
  const WorldDescription& world = part_.world;
  for (std::size_t k = 0; k < world.friction_loss.size(); ++k) {
    const double loss = world.friction_loss[k] * world.options.timestep;
    auto& interval = s.sets.intervals[std::size_t(s.first_limit) - world.friction_loss.size() + k];
    interval.lower = -loss, interval.upper = loss;
  }
}

// By the ends of limits, rows of spans, and the links of every contact.
void RowSystemCache::find_key(const ActiveRows& rows) {
  key_.assign(rows.limit_ends.begin(), rows.limit_ends.end());
  key_.push_back(-2);
  key_.insert(key_.end(), rows.span_rows.begin(), rows.span_rows.end());
  key_.push_back(-2);
  for (std::size_t k = 0; k < rows.links.size(); ++k) {
    key_.insert(key_.end(), rows.links[k].begin(), rows.links[k].end());
    if (const Touch& t = rows.contacts[k]->touch; !is_plain(t)) key_.push_back(-t.rows);  // no link has such a number
  }
  hash_ = 0;
  for (const int k : key_) hash_ = (hash_ ^ std::uint64_t(std::uint32_t(k))) * 0x9e3779b97f4a7c15;
}

RowSystemCache::Kept* RowSystemCache::look_up() {
  for (std::size_t k = 0; k < hashes_.size(); ++k)
    if (hashes_[k] == hash_ && systems_[k]->key == key_) return systems_[k].get();
  return nullptr;
}

// Where the next system goes: into the oldest of those that came up once only, if there are many, or of all.
RowSystemCache::Kept& RowSystemCache::make_room() {
  std::size_t unproven = 0, size = 0;
  for (const auto& kept : systems_) unproven += !kept->proven, size += kept->key.size();
  const auto older = [](const auto& a, const auto& b) { return a->last_use < b->last_use; };
  // where they are large, fewer
  while (systems_.size() > 2 && size > max_kept) {
    const auto oldest = std::min_element(systems_.begin(), systems_.end(), older);
    size -= (*oldest)->key.size(), unproven -= !(*oldest)->proven;
    hashes_.erase(hashes_.begin() + (oldest - systems_.begin()));
    systems_.erase(oldest);
  }
  const bool full = systems_.size() == kept_.all || (systems_.size() >= 2 && size + key_.size() > max_kept);
  const bool crowded = unproven >= (key_.size() > large_key ? 2 : kept_.unproven);
  if (!full && !crowded) {
    hashes_.push_back(hash_);
    return *systems_.emplace_back(std::make_unique<Kept>());
  }
  const auto place = std::min_element(systems_.begin(), systems_.end(), [&](const auto& a, const auto& b) {
    return crowded && a->proven != b->proven ? b->proven : older(a, b);
  });
  hashes_[std::size_t(place - systems_.begin())] = hash_;
  return **place;
}

// Rows of loops and dry friction, then limits, spans and contacts; and all that follows from them.
void RowSystemCache::make(RowSystem& s, const ActiveRows& rows, const SpanValues& spans) {
  if (!s.layout) s.layout = std::make_shared<Layout<double>>();
  ConstraintSet<double>& set = s.layout->set;
  set = always_;
  take_limits(rows, set);
  take_spans(rows, s);
  take_contacts(rows, s);
  add_sets(s, rows);
  place_points(s, rows);
  set_spans(s, rows, spans);
  maker_.make(*s.layout);
  if (s.G)
    s.G->remake(s.layout);
  else
    s.G = make_moving_operator<double>(part_.world.model, s.layout);
  soften_inertia(s, rows);
}

// Rows of inertia: G has 1 / a on their diagonal. A new operator, and one that was remade, has no compliance.
void RowSystemCache::soften_inertia(RowSystem& s, const ActiveRows& rows) const {
  s.inertia_rows.clear();
  s.compliance.clear();
  for (std::size_t k = 0; k < rows.span_rows.size(); ++k) {
    if (span_row_kind(rows.span_rows[k]) != span_armature) continue;
    const int row = s.first_span + int(k);
    s.inertia_rows.push_back(row);
    s.compliance.resize(s.rows(), 0.0);
    s.compliance[std::size_t(row)] = 1 / part_.world.spans[span_of(rows.span_rows[k])].armature;
  }
  if (!s.inertia_rows.empty()) s.G->set_compliance(s.compliance.data());
}

void RowSystemCache::take_limits(const ActiveRows& rows, ConstraintSet<double>& set) const {
  for (const int end : rows.limit_ends)
    set.joint_rows.push_back({set.rows++, part_.world.limits[std::size_t(end / 2)].velocity, end % 2 ? -1.0 : 1.0});
}

void RowSystemCache::take_spans(const ActiveRows& rows, RowSystem& s) {
  ConstraintSet<double>& set = s.layout->set;
  s.span_constraints.clear();
  for (const int row : rows.span_rows) {
    const Span& span = part_.world.spans[span_of(row)];
    s.span_constraints.push_back(int(set.constraints.size()));
    ConstraintDescription d{.kind = Kind::combination, .rows = 1};
    d.joints = span.velocities;
    d.numbers.assign(span.velocities.size(), 0.0);
    add_constraint(part_.world.model, d, set, points_);
  }
}

// Coefficients of spans as they are now; rows of upper ends have them the other way round.
void RowSystemCache::set_spans(RowSystem& s, const ActiveRows& rows, const SpanValues& spans) const {
  for (std::size_t r = 0; r < rows.span_rows.size(); ++r) {
    const std::size_t k = span_of(rows.span_rows[r]);
    const double sign = span_row_kind(rows.span_rows[r]) == span_upper ? -1 : 1;
    auto& numbers = s.layout->set.constraints[std::size_t(s.span_constraints[r])].numbers;
    for (std::size_t j = 0; j < numbers.size(); ++j)
      numbers[j] = sign * spans.coefficients[std::size_t(spans.first[k]) + j];
  }
}

void RowSystemCache::take_contacts(const ActiveRows& rows, RowSystem& s) {
  ConstraintSet<double>& set = s.layout->set;
  points_.resize(std::max(points_.size(), always_.points.size()));
  for (const auto& group : always_.groups)
    for (int k = group.first; k < group.first + group.count; ++k) {
      const auto& point = always_.points[std::size_t(k)];
      const Vec3<double>* local = always_.locals.data() + point.local;
      points_[std::size_t(k)] = {group.link, group.other, point, {local[0], local[group.sides() - 1]}};
    }
  // axes and places of contacts are written in every step
  points_.resize(always_.points.size());
  for (auto* list : {&s.contact_rows, &s.contact_points, &s.contact_constraints}) list->clear();
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const Touch& t = rows.contacts[k]->touch;
    s.contact_rows.push_back(set.rows);
    if (is_plain(t))
      add_plain_contact(rows.links[k][0], rows.links[k][1], s);
    else
      add_contact(t, s);
  }
  set_points(part_.world.model.links.size(), points_, set, numbers_);
  for (int& point : s.contact_points)
    if (point >= 0) point = numbers_[std::size_t(point)];
}

void RowSystemCache::add_plain_contact(int link, int other, RowSystem& s) {
  s.contact_points.push_back(int(points_.size()));
  s.contact_constraints.push_back(-1);
  PointRows<double>& p = points_.emplace_back();
  p.link = link, p.other = other, p.point.row = s.layout->set.rows;
  s.layout->set.rows += 3;
}

// A contact whose rows are not those of a point; the ground is body 0.
void RowSystemCache::add_contact(const Touch& t, RowSystem& s) {
  s.contact_points.push_back(-1);
  s.contact_constraints.push_back(int(s.layout->set.constraints.size()));
  ConstraintDescription d{.kind = Kind::contact, .rows = t.rows};
  for (const int body : t.body) {
    const bool ground = whole_.bodies[std::size_t(body)].link < 0;
    d.bodies.push_back(
        ground ? 0 : int(std::lower_bound(part_.bodies.begin(), part_.bodies.end(), body) - part_.bodies.begin()));
  }
  d.points.assign(6, 0.0), d.matrix.assign(9, 0.0), d.numbers.assign(4, 1.0);
  add_constraint(part_.world.model, d, s.layout->set, points_);
}

// Where impulses, and corrections of positions, may be.
void RowSystemCache::add_sets(RowSystem& s, const ActiveRows& rows) const {
  const WorldDescription& world = part_.world;
  const auto add = [](ForceSets& K, int r, double lower, double upper) { K.intervals.push_back({r, lower, upper}); };
  for (auto* K : {&s.sets, &s.position_sets}) K->cones.clear(), K->intervals.clear();
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
  for (std::size_t k = 0; k < rows.limit_ends.size(); ++k, ++row)
    add(s.sets, row, 0, unbounded), add(s.position_sets, row, 0, unbounded);
  s.first_span = row;
  for (const int code : rows.span_rows) {
    const double loss = world.options.timestep * world.spans[span_of(code)].friction_loss;
    const int kind = span_row_kind(code);
    const bool end = kind == span_lower || kind == span_upper, dry = kind == span_friction,
               unmoved = dry || kind == span_armature;  // by corrections
    add(s.sets, row, end ? 0 : dry ? -loss : -unbounded, dry ? loss : unbounded);
    add(s.position_sets, row++, end || unmoved ? 0 : -unbounded, unmoved ? 0 : unbounded);
  }
  s.first_contact = row;
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const int count = rows.contacts[k]->touch.rows;
    s.sets.cones.push_back({row, 0.0, count});
    for (int a = 0; a < count; ++a) add(s.position_sets, row++, 0, a == 0 ? unbounded : 0);
  }
}

// Where contacts are now, their axes and their friction.
void RowSystemCache::place_points(RowSystem& s, const ActiveRows& rows) const {
  auto& set = s.layout->set;
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const Touch& t = rows.contacts[k]->touch;
    const ContactFrame& frame = rows.frames[k];
    s.sets.cones[k].friction = t.friction;
    if (s.contact_points[k] < 0) {
      auto& c = set.constraints[std::size_t(s.contact_constraints[k])];
      for (std::size_t r = 0; r < 3; ++r)
        c.matrix[3 * r] = frame[r].x, c.matrix[3 * r + 1] = frame[r].y, c.matrix[3 * r + 2] = frame[r].z;
      for (std::size_t b = 0; b < 2; ++b) c.points[b] = t.anchor[b];
      for (std::size_t a = 0; a < 4; ++a) c.numbers[a] = t.scales[a];
      continue;
    }
    auto& point = set.points[std::size_t(s.contact_points[k])];
    for (int r = 0; r < 3; ++r) point.axes[r] = frame[std::size_t(r)];
    for (int b = 0; b < 2; ++b) {
      const auto& carrier = whole_.bodies[std::size_t(t.body[b])];
      if (carrier.link >= 0)
        set.locals[std::size_t(point.local) + std::size_t(b)] = carrier.placement.R * t.anchor[b] + carrier.placement.p;
    }
  }
}

void find_row_errors(const WorldDescription& world, const RowSystem& s, const ActiveRows& rows, const SpanValues& spans,
                     const double* q, std::vector<double>& error) {
  error.assign(s.rows(), 0.0);
  if (!world.loops.empty()) errors(world.model, s.layout->set, s.G->placement(), q, error.data());
  for (std::size_t k = 0; k < rows.limit_ends.size(); ++k) {
    const auto& limit = world.limits[std::size_t(rows.limit_ends[k] / 2)];
    const double x = q[limit.coordinate];
    error[std::size_t(s.first_limit) + k] = rows.limit_ends[k] % 2 ? limit.upper - x : x - limit.lower;
  }
  for (std::size_t r = 0; r < rows.span_rows.size(); ++r) {
    const std::size_t k = span_of(rows.span_rows[r]);
    const Span& span = world.spans[k];
    const double x = spans.x[k], errors_of[] = {x - span.lower, span.upper - x, 0, x, 0};
    error[std::size_t(s.first_span) + r] = errors_of[span_row_kind(rows.span_rows[r])];
  }
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) error[s.normal_row(k)] = rows.contacts[k]->touch.distance;
}

void allow_approach(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                    const std::vector<double>& error, const std::vector<double>& impulses, std::vector<double>& g) {
  for_each_push(s, rows, [&](std::size_t r) {
    const bool touched = r >= std::size_t(s.first_contact) && impulses[r] > 0 && error[r] < 2 * options.slop;
    if (!touched) g[r] += std::max(error[r] - options.slop, 0.0) / options.timestep;
  });
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
