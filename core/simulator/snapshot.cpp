#include "simulator/snapshot.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "errors/typed.h"

namespace delassus {

namespace {

void expect(bool good, const char* what) {
  if (good) return;
  fail("ArgumentError",
       std::string("snapshot: its ") + what + " cannot be of this model. Give what save() returned, unchanged.");
}

// The numbers of a snapshot, one after the other.
class Reader {
 public:
  Reader(const double* numbers, std::size_t n) : numbers_(numbers), n_(n) {}

  double number() {
    expect(at_ < n_, "length");
    return numbers_[at_++];
  }
  std::size_t whole(std::size_t below, const char* what) {
    const double value = number();
    expect(value >= 0 && value < double(below) && value == std::floor(value), what);
    return std::size_t(value);
  }
  std::size_t size() { return whole(n_, "sizes"); }
  std::vector<double> list() {
    std::vector<double> values(size());
    for (auto& value : values) value = number();
    return values;
  }
  Vec3<double> vector() {
    const double x = number(), y = number(), z = number();
    return {x, y, z};
  }
  bool ended() const { return at_ == n_; }

 private:
  const double* numbers_;
  std::size_t n_, at_ = 0;
};

Contact read_contact(Reader& from, const CollisionSource& collisions, std::size_t bodies) {
  Contact c{};
  Touch& t = c.touch;
  for (int& geom : t.geom) geom = int(from.whole(collisions.geom_bodies.size(), "shapes"));
  for (int& body : t.body) body = int(from.whole(bodies, "bodies"));
  for (int k = 0; k < 2; ++k) expect(t.body[k] == collisions.geom_bodies[std::size_t(t.geom[k])], "bodies");
  t.distance = from.number(), t.base = from.number(), t.friction = from.number();
  t.restitution = from.number();
  expect(t.restitution >= 0 && t.restitution <= 1, "restitution");
  t.rows = int(from.whole(max_cone_rows + 1, "contacts"));
  expect(t.rows == 3 || t.rows == 4 || t.rows == 6, "contacts");
  for (double& scale : t.scales) {
    scale = from.number();
    expect(scale > 0, "friction");
  }
  for (auto* to : {&t.position, &t.normal, &t.tangent, &t.local[0], &t.local[1], &c.impulse, &c.correction, &c.turn})
    *to = from.vector();
  expect(t.friction >= 0, "friction");
  expect(std::abs(dot(t.normal, t.normal) - 1) < 1e-6, "normals");
  return c;
}

// What sleeps has no velocity.
RestMemory read_rest(Reader& from, const WorldDescription& d, const std::vector<double>& v) {
  const auto& m = d.model;
  const std::size_t limit = std::size_t(d.options.sleep_steps);
  RestMemory rest;
  rest.steps.resize(from.size());
  const bool any = !rest.steps.empty();
  expect(!any || (limit > 0 && rest.steps.size() == m.roots.size()), "trees");
  for (std::size_t t = 0; t < rest.steps.size(); ++t) {
    rest.steps[t] = int(from.whole(limit + 1, "steps at rest"));
    const auto& root = m.links[std::size_t(m.roots[t])];
    const bool still = std::all_of(v.begin() + root.iv, v.begin() + root.end_v, [](double x) { return x == 0; });
    expect(rest.steps[t] < d.options.sleep_steps || still, "velocities");
  }
  rest.forces = from.list(), rest.external = from.list();
  expect(rest.forces.size() == (any ? v.size() : 0), "forces");
  expect(rest.external.size() == (any ? 6 * m.bodies.size() : 0), "forces");
  return rest;
}

}  // namespace

std::vector<double> write_snapshot(const World& w) {
  const StepMemory& memory = w.memory;
  std::vector<double> x{double(w.q.size()), double(w.v.size())};
  // what each list is of: its length and its numbers
  for (const auto* list :
       {&w.q, &w.v, &w.hidden, &w.mocap, &w.mocap_goal, &memory.row_impulses, &memory.row_corrections}) {
    x.push_back(double(list->size()));
    x.insert(x.end(), list->begin(), list->end());
  }
  x.insert(x.end(), {w.time, double(memory.limits.size()), double(memory.penalties.size()),
                     double(memory.contacts.size()), double(memory.spans.size())});
  x.push_back(double(memory.rest.steps.size()));
  x.insert(x.end(), memory.rest.steps.begin(), memory.rest.steps.end());
  for (const auto* list : {&memory.rest.forces, &memory.rest.external}) {
    x.push_back(double(list->size()));
    x.insert(x.end(), list->begin(), list->end());
  }
  for (const auto& l : memory.limits) x.insert(x.end(), {l[0], l[1]});
  for (const auto& s : memory.spans) x.insert(x.end(), {s[0], s[1]});
  for (const auto& p : memory.penalties) x.insert(x.end(), {p.velocities, p.positions});
  for (const auto& c : memory.contacts) {
    const Touch& t = c.touch;
    x.insert(x.end(), {double(t.geom[0]), double(t.geom[1]), double(t.body[0]), double(t.body[1]), t.distance, t.base,
                       t.friction, t.restitution, double(t.rows), t.scales[0], t.scales[1], t.scales[2], t.scales[3]});
    for (const auto* v :
         {&t.position, &t.normal, &t.tangent, &t.local[0], &t.local[1], &c.impulse, &c.correction, &c.turn})
      x.insert(x.end(), {v->x, v->y, v->z});
  }
  return x;
}

SavedState read_snapshot(const World& w, const CollisionSource& collisions, const double* numbers, std::size_t n) {
  const WorldDescription& d = w.description();
  Reader from(numbers, n);
  SavedState saved;
  StepMemory& memory = saved.memory;
  const auto none_or = [](std::size_t size, std::size_t full, const char* what) {
    expect(size == 0 || size == full, what);
  };
  // state and rows
  expect(from.number() == double(w.q.size()) && from.number() == double(w.v.size()), "sizes");
  saved.q = from.list(), saved.v = from.list(), saved.hidden = from.list();
  saved.mocap = from.list(), saved.mocap_goal = from.list();
  memory.row_impulses = from.list(), memory.row_corrections = from.list();
  expect(saved.q.size() == w.q.size() && saved.v.size() == w.v.size() && saved.hidden.size() == w.hidden.size() &&
             saved.mocap.size() == w.mocap.size() && saved.mocap_goal.size() == w.mocap.size(),
         "sizes");
  std::size_t rows = 0;
  for (const auto* list : {&d.loops, &d.friction})
    for (const auto& c : *list) rows += std::size_t(c.rows);
  none_or(memory.row_impulses.size(), rows, "rows");
  none_or(memory.row_corrections.size(), rows, "rows");
  saved.time = from.number();
  // limits, penalties and contacts
  memory.limits.resize(from.size());
  memory.penalties.resize(from.size());
  const std::size_t contacts = from.size();
  memory.spans.resize(from.size());
  none_or(memory.spans.size(), span_row_count * d.spans.size(), "spans");
  none_or(memory.limits.size(), 2 * d.limits.size(), "limits");
  none_or(memory.penalties.size(), d.model.roots.size(), "trees");
  memory.rest = read_rest(from, d, saved.v);
  for (auto& limit : memory.limits) limit = {from.number(), from.number()};
  for (auto& span : memory.spans) span = {from.number(), from.number()};
  for (auto& p : memory.penalties) {
    p = {from.number(), from.number()};
    expect(p.velocities >= 0 && p.positions >= 0, "penalties");
  }
  for (std::size_t k = 0; k < contacts; ++k)
    memory.contacts.push_back(read_contact(from, collisions, d.model.bodies.size()));
  expect(from.ended(), "length");
  return saved;
}

}  // namespace delassus
