#include <algorithm>
#include <cmath>
#include <cstddef>

#include "check.h"

namespace delassus::inline v0 {

// ---- the caller's contacts, handed to the core as MuJoCo's are: by functions and offsets of its library ----

struct GivenContact {
  double gap, margin;
  double position[3], frame[9], friction[5];
  int shapes[2], rows;
};

struct Collisions;
struct GivenModel {
  Collisions* collisions;
};
struct GivenData {
  double *q, *positions, *axes;
  GivenContact* contacts;
  int count, dropped;
};

// Contacts at a configuration, and the memory of both sides.
struct Collisions {
  const core::Model<double>& model;
  ContactFinder find;
  std::size_t shapes;
  Workspace<double> w;
  std::vector<double> q, positions, axes, X;
  std::vector<WorldContact> room;
  std::vector<GivenContact> contacts;
  GivenModel head{this};
  GivenData data;
  Status status = Status::ok;  // of the caller's function

  Collisions(const core::Model<double>& m, ContactFinder f, const WorldOptions& options)
      : model(m),
        find(std::move(f)),
        shapes(options.shapes.size()),
        w(m),
        q(std::size_t(m.nq)),
        positions(3 * m.bodies.size()),
        axes(9 * m.bodies.size()),
        X(16 * m.bodies.size()),
        room(std::size_t(options.max_contacts)),
        contacts(room.size()),
        data{q.data(), positions.data(), axes.data(), contacts.data(), 0, 0} {}
  Collisions(const Collisions&) = delete;
  Collisions& operator=(const Collisions&) = delete;

  void place() {
    kinematics(model, w, static_cast<const double*>(q.data()));
    for (std::size_t b = 0; b < model.bodies.size(); ++b) {
      const Pose<double> P = body_pose(model, w, int(b));
      const double p[3] = {P.p.x, P.p.y, P.p.z},
                   R[9] = {P.R.x.x, P.R.y.x, P.R.z.x, P.R.x.y, P.R.y.y, P.R.z.y, P.R.x.z, P.R.y.z, P.R.z.z};
      std::copy_n(p, 3, &positions[3 * b]);
      std::copy_n(R, 9, &axes[9 * b]);
      double* rows = &X[16 * b];
      for (int r = 0; r < 3; ++r) std::copy_n(R + 3 * r, 3, rows + 4 * r), rows[4 * r + 3] = p[r];
      rows[15] = 1;
    }
  }

  void collide() {
    data.count = 0;
    status = Status::ok;
    if (!find) return;
    status = contained([&] {
      ContactList list(room);
      find(X, list);
      Check check;
      check.require(!list.overflowed(), Status::capacity);
      for (const WorldContact& c : list.contacts())
        if (check.require(is_contact(c), Status::out_of_range)) take(c);
      return check.status;
    });
    if (status != Status::ok) data.count = 0;
  }

 private:
  bool is_contact(const WorldContact& c) const {
    const double numbers[] = {c.gap, c.friction, c.torsional_friction, c.rolling_friction};
    const double* n = c.normal.data();
    const auto known = [&](int shape) { return shape >= 0 && std::size_t(shape) < shapes; };
    return known(c.shape) && known(c.other) && all_finite(c.position) && all_finite(numbers) &&
           std::abs(std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) - 1) <= quaternion_slack &&
           std::min({c.friction, c.torsional_friction, c.rolling_friction}) >= 0;
  }
  // In the order of MuJoCo: the normal goes from the first shape to the second.
  void take(const WorldContact& c) {
    GivenContact& given = contacts[std::size_t(data.count++)];
    const double rolling = c.rolling_friction;
    given = {c.gap, 0, {}, {}, {c.friction, c.friction, c.torsional_friction, rolling, rolling}, {c.other, c.shape}, 0};
    given.rows = !(c.friction > 0) ? 1 : rolling > 0 ? 6 : c.torsional_friction > 0 ? 4 : 3;
    std::copy_n(c.position.begin(), 3, given.position);
    std::copy_n(c.normal.begin(), 3, given.frame);
  }
};

namespace {

constexpr double no_end = 1e300;  // stands for a range without an end

Collisions& collisions_of(const void* model) { return *static_cast<const GivenModel*>(model)->collisions; }

CollisionSource source_of(Collisions& c, const std::vector<Shape>& shapes, const Model& model) {
  CollisionSource source;
  auto& l = source.library;
  l.make_data = [](const void* head) { return static_cast<void*>(&collisions_of(head).data); };
  l.delete_data = [](void*) {};
  l.kinematics = [](const void* head, void*) { collisions_of(head).place(); };
  l.collision = [](const void* head, void*) { collisions_of(head).collide(); };
  l.set_log = [](MujocoLibrary::LogHandler) { return MujocoLibrary::LogHandler(nullptr); };
  l.data.qpos = offsetof(GivenData, q), l.data.xpos = offsetof(GivenData, positions);
  l.data.xmat = offsetof(GivenData, axes), l.data.contact = offsetof(GivenData, contacts);
  l.data.ncon = offsetof(GivenData, count), l.data.dropped = offsetof(GivenData, dropped);
  l.contact.size = sizeof(GivenContact), l.contact.dist = offsetof(GivenContact, gap);
  l.contact.margin = offsetof(GivenContact, margin), l.contact.pos = offsetof(GivenContact, position);
  l.contact.frame = offsetof(GivenContact, frame), l.contact.friction = offsetof(GivenContact, friction);
  l.contact.geom = offsetof(GivenContact, shapes), l.contact.dim = offsetof(GivenContact, rows);
  l.model.size = sizeof(GivenModel);
  source.model = &c.head;
  for (const Shape& shape : shapes) {
    if (!(shape.restitution >= 0 && shape.restitution <= 1))
      throw ArgumentError("shapes: restitution: expected a number from 0 to 1, got " +
                          std::to_string(shape.restitution) + ".");
    source.geom_bodies.push_back(model.body_index(shape.body));
    source.geom_parts.push_back(source.geom_bodies.back());
    source.restitution.push_back(shape.restitution);
    source.round_shapes.push_back(int(RoundShape::other));
  }
  return source;
}

// ---- what a world is made of ----

// M̂ = M + dt D + dt² K: springs and dampers act at the end of the step.
void drive(const Model& model, double dt, WorldDescription& world) {
  const std::size_t nv = std::size_t(model.nv());
  world.stiffness.assign(nv, 0.0), world.damping.assign(nv, 0.0);
  world.spring_rest = model.neutral();
  world.spring_coordinate.assign(nv, -1);
  for (int j = 0; j < model.njoint(); ++j) {
    const auto& joint = model.joint(j);
    const bool single = joint.type == JointType::hinge || joint.type == JointType::slide;
    const int iq = model.joint_q(j), iv = model.joint_v(j);
    if (single) {
      world.spring_coordinate[std::size_t(iv)] = iq;
      world.stiffness[std::size_t(iv)] = joint.stiffness;
      if (joint.spring_reference) world.spring_rest[std::size_t(iq)] = *joint.spring_reference;
      const double lower = std::clamp(joint.range[0], -no_end, no_end),
                   upper = std::clamp(joint.range[1], -no_end, no_end);
      if (lower > -no_end || upper < no_end) world.limits.push_back(core::JointLimit{iq, iv, lower, upper, 0});
    }
    for (int k = 0; k < velocity_size(core::Joint(int(joint.type))); ++k)
      world.damping[std::size_t(iv + k)] = joint.damping;
  }
  for (std::size_t k = 0; k < nv; ++k)
    world.model.armature[k] = world.model.armature[k] + dt * world.damping[k] + dt * dt * world.stiffness[k];
}

std::shared_ptr<const WorldDescription> describe_world(const Constraints& constraints, const WorldOptions& o) {
  if (!(o.timestep > 0) || std::isinf(o.timestep))
    throw ArgumentError("timestep: expected a positive time in seconds.");
  if (!(o.tolerance > 0) || std::isinf(o.tolerance)) throw ArgumentError("tolerance: expected a positive speed.");
  if (o.max_iterations < 1) throw ArgumentError("max_iterations: expected a positive number.");
  if (o.max_contacts < 0) throw ArgumentError("max_contacts: expected a number that is not negative.");
  if (!(std::min({o.time_limit, o.bounce_speed, o.slop}) >= 0))
    throw ArgumentError("time_limit, bounce_speed, slop: expected numbers that are not negative.");
  const Model& model = constraints.model();
  auto world = std::make_shared<WorldDescription>();
  world->model = model.data().core;
  const auto& data = constraints.data();
  const auto add_friction = [&](const ConstraintData& c) {
    world->friction.push_back(c.core);
    world->friction_loss.insert(world->friction_loss.end(), std::size_t(c.core.rows), c.friction);
  };
  for (std::size_t k = 0; k < data.list.size(); ++k) {
    const auto& c = data.list[k];
    if (c.set == ForceSet::free)
      world->loops.push_back(c.core);
    else if (c.set == ForceSet::box)
      add_friction(c);
    else
      throw ArgumentError("loops[" + std::to_string(k) +
                          "]: a world finds contacts and limits itself: expected a loop or dry friction. Contacts come "
                          "from find_contacts, limits from the ranges of joints.");
  }
  Constraints losses(model);
  for (int j = 0; j < model.njoint(); ++j)
    if (model.joint(j).friction_loss > 0) losses.add(JointFriction{.joint = model.joint(j).name});
  for (const auto& c : losses.data().list) add_friction(c);
  drive(model, o.timestep, *world);

  auto& options = world->options;
  options.timestep = o.timestep;
  options.tolerance = o.tolerance, options.max_iterations = o.max_iterations, options.time_limit = o.time_limit;
  options.bounce_speed = o.bounce_speed, options.slop = o.slop;
  for (const Shape& shape : o.shapes) options.restitution = std::max(options.restitution, shape.restitution);
  return world;
}

}  // namespace

const char* describe(StepFlaw flaw) noexcept {
  constexpr const char* words[] = {"none", "penetrating", "limit_violated", "open_loops", "tunnelling"};
  return words[int(flaw)];
}

ContactList::ContactList(std::span<WorldContact> room) noexcept : room_(room) {}
bool ContactList::add(const WorldContact& contact) noexcept {
  overflowed_ = overflowed_ || count_ == room_.size();
  if (!overflowed_) room_[count_++] = contact;
  return !overflowed_;
}
std::span<const WorldContact> ContactList::contacts() const noexcept { return room_.first(count_); }
bool ContactList::overflowed() const noexcept { return overflowed_; }

struct World::Impl {
  Model model;
  Collisions collisions;
  core::World world;

  Impl(const Constraints& loops, ContactFinder&& find, const WorldOptions& options)
      : model(loops.model()),
        collisions(model.data().core, std::move(find), options),
        world(describe_world(loops, options), source_of(collisions, options.shapes, model), {}) {
    world.q = model.neutral();
  }

  Status step(In tau, In external, core::StepReport& report) {
    report = world.step({or_null(tau), nullptr, or_null(external)});
    if (!report.collided) return collisions.status == Status::ok ? Status::failed : collisions.status;
    if (!report.regular) return Status::singular;
    const Status ended = world.is_finite() ? Status::ok : Status::overflow;
    const Status found = collisions.status == Status::ok ? ended : collisions.status;
    if (found != Status::ok) world.undo_step();
    return found;
  }
};

World::World(const Constraints& loops, ContactFinder find_contacts, const WorldOptions& options)
    : impl_(std::make_unique<Impl>(loops, std::move(find_contacts), options)) {}
World::World(const Model& model, ContactFinder find_contacts, const WorldOptions& options)
    : World(Constraints(model), std::move(find_contacts), options) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

const Model& World::model() const noexcept { return impl_->model; }
std::span<const double> World::q() const noexcept { return impl_->world.q; }
std::span<const double> World::v() const noexcept { return impl_->world.v; }
double World::time() const noexcept { return impl_->world.time; }

Status World::set_state(In q, In v) noexcept {
  auto& w = impl_->world;
  Check check;
  check.size(q, w.q.size()).size(v, w.v.size()).configuration(impl_->model.data().core, q).finite(v);
  if (!check) return check.status;
  return contained([&] {
    std::copy(q.begin(), q.end(), w.q.begin());
    std::copy(v.begin(), v.end(), w.v.begin());
    std::fill(w.row_forces.begin(), w.row_forces.end(), 0.0);
    w.time = 0;
    w.memory = {};
    return Status::ok;
  });
}

StepReport World::step(In tau, In external) noexcept {
  auto& s = *impl_;
  StepReport report;
  Check check;
  check.size_or_none(tau, std::size_t(s.model.nv())).size_or_none(external, 6 * std::size_t(s.model.nbody()));
  check.finite(tau).finite(external);
  report.status = check.status;
  if (!check) return report;
  core::StepReport found;
  report.status = contained([&] { return s.step(tau, external, found); });
  report.outcome = ContactOutcome(int(found.contacts.outcome));
  report.flaw = StepFlaw(int(found.flaw));
  report.iterations = found.contacts.iterations;
  report.islands = found.islands;
  report.contacts = int(s.world.memory.contacts.size());
  report.residual = found.contacts.residuals.natural;
  report.penetration = found.penetration;
  report.loop_error = found.loop_error_after;
  return report;
}

int World::contact_forces(std::span<ContactForce> out) const noexcept {
  const auto& contacts = impl_->world.memory.contacts;
  const double over = 1 / impl_->world.description().options.timestep;
  for (std::size_t k = 0; k < std::min(out.size(), contacts.size()); ++k) {
    const auto& t = contacts[k].touch;
    const auto f = contacts[k].impulse * over;
    out[k] = {t.geom[0], t.geom[1], {t.position.x, t.position.y, t.position.z}, {f.x, f.y, f.z}};
  }
  return int(contacts.size());
}

}  // namespace delassus::inline v0
