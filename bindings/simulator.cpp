#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "held.h"
#include "operators/team.h"
#include "rooms.h"
#include "simulator/snapshot.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;
using Numbers = std::vector<double>;

// Raises MujocoError; where a callback in Python raised and so stopped MuJoCo, its exception becomes the cause.
[[noreturn]] void raise_mujoco(const std::string& failure) {
  const std::string message = "MuJoCo stopped: " + failure;
  if (!PyErr_Occurred()) door::raise("MujocoError", message);
  nb::python_error cause;
  const nb::object type = nb::module_::import_("delassus.errors").attr("MujocoError");
  cause.restore();
  nb::chain_error(type, "%s", message.c_str());
  throw nb::python_error();
}

// What a simulation is made of, shared by all worlds of it: the description, and how to reach MuJoCo.
struct Plan {
  std::shared_ptr<WorldDescription> world;
  CollisionSource collisions;
  nb::object keep;  // MuJoCo's model, for as long as this lives

  std::unique_ptr<World> make() const { return std::make_unique<World>(world, collisions); }
  std::size_t nq() const { return std::size_t(world->model.nq); }
  std::size_t nv() const { return std::size_t(world->model.nv); }
  std::size_t motors() const { return world->motors.size(); }
  std::size_t bodies() const { return world->model.bodies.size(); }
};

nb::object as_array(const Numbers& x) {
  nb::object a = nb::module_::import_("numpy").attr("empty")(x.size());
  std::copy(x.begin(), x.end(), nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(a).data());
  return a;
}

nb::object as_array(const Numbers& x, std::size_t rows, std::size_t columns) {
  return as_array(x).attr("reshape")(rows, columns);
}

// Fifteen numbers of a step: outcome, iterations, factorizations, natural residual, worst residual, penetration, loop
// error, iterations for positions, whether M was regular, islands, flaw; after the step: loop error, penetration, limit
// error; pairs of shapes that went through each other.
constexpr std::size_t numbers_a_step = 15, times_a_step = 6, numbers_a_contact = 12;
void append(Numbers& to, const StepReport& r) {
  const auto& c = r.contacts;
  to.insert(to.end(),
            {double(int(c.outcome)), double(c.iterations), double(c.factorizations), c.left.natural, c.left.worst(),
             r.penetration, r.loop_error, double(r.corrections), double(r.regular), double(r.islands),
             double(int(r.flaw)), r.loop_error_after, r.penetration_after, r.limit_error_after, double(r.tunnelled)});
}
// Of every contact: position, normal, force on the first body in world axes [N], friction, bodies.
void append_contacts(Numbers& to, const World& w) {
  const double over = 1 / w.description().options.timestep;
  for (const auto& c : w.memory.contacts) {
    const auto& t = c.touch;
    const Vec3<double> force = c.impulse * over;
    to.insert(to.end(), {t.position.x, t.position.y, t.position.z, t.normal.x, t.normal.y, t.normal.z, force.x, force.y,
                         force.z, t.friction, double(t.body[0]), double(t.body[1])});
  }
}

struct HeldWorld {
  std::shared_ptr<Plan> plan;
  std::unique_ptr<World> world;
  std::atomic<bool> busy{false};
  Numbers numbers, contacts, times;

  explicit HeldWorld(std::shared_ptr<Plan> p) : plan(std::move(p)), world(plan->make()) {
    if (const auto& failure = world->collider().failure(); !failure.empty()) raise_mujoco(failure);
  }
};

// Addresses of functions and offsets by name: "mj_collision", "mjData.ncon". What a version has not is left out.
MujocoLibrary library_of(const std::map<std::string, std::size_t>& places) {
  MujocoLibrary l;
  const auto at = [&](const char* name) {
    const auto found = places.find(name);
    return found == places.end() ? std::size_t(0) : found->second;
  };
  const auto function = [&](const char* name, auto& pointer) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at(name));
  };
  function("mj_makeData", l.make_data), function("mj_deleteData", l.delete_data);
  function("mj_kinematics", l.kinematics), function("mj_collision", l.collision);
  function("_mjPRIVATE_setTlsLogHandler", l.set_log);
  function("_mjPRIVATE__get_tls_error_fn", l.get_error), function("_mjPRIVATE__set_tls_error_fn", l.set_error);
  function("_mjPRIVATE__get_tls_warning_fn", l.get_warning), function("_mjPRIVATE__set_tls_warning_fn", l.set_warning);
  l.data = {at("mjData.qpos"),    at("mjData.xpos"), at("mjData.xmat"),
            at("mjData.contact"), at("mjData.ncon"), at("mjData.dropped")};
  l.contact = {at("mjContact"),          at("mjContact.dist"), at("mjContact.pos"), at("mjContact.frame"),
               at("mjContact.friction"), at("mjContact.geom"), at("mjContact.dim")};
  l.model = {at("mjModel"), at("mjModel.narena")};
  l.message = {at("mjLogMessage.level"), at("mjLogMessage.subject"), int(at("mjLOG_ERROR"))};
  return l;
}

}  // namespace

void bind_simulator(nb::module_& m) {
  nb::class_<MujocoLibrary>(m, "MujocoLibrary")
      .def(
          "__init__",
          [](MujocoLibrary* self, const std::map<std::string, std::size_t>& places) {
            new (self) MujocoLibrary(library_of(places));
          },
          "places"_a);
  nb::class_<Plan>(m, "WorldPlan")
      .def(
          "__init__",
          [](Plan* self, std::shared_ptr<const HeldModel> held, const Numbers& armature,
             const std::vector<ConstraintDescription>& loops, const std::vector<ConstraintDescription>& friction,
             const Numbers& friction_loss, const Numbers& stiffness, const Numbers& damping, const Numbers& rest,
             const std::vector<int>& sprung, const std::vector<std::array<double, 4>>& limits,
             const std::vector<std::array<double, 11>>& motors, const std::array<double, 8>& options,
             const MujocoLibrary& library, std::size_t mujoco_model, const std::vector<int>& geom_bodies,
             const std::vector<int>& geom_parts, const std::vector<std::array<double, 7>>& shapes, double reach,
             nb::object keep) {
            auto w = std::make_shared<WorldDescription>();
            w->model = held->wide;
            w->model.armature = armature;
            w->loops = loops, w->friction = friction, w->friction_loss = friction_loss;
            w->stiffness = stiffness, w->damping = damping, w->spring_rest = rest, w->spring_coordinate = sprung;
            for (const auto& l : limits) w->limits.push_back({int(l[0]), int(l[1]), l[2], l[3]});
            for (const auto& x : shapes) w->shapes.push_back({int(x[0]), x[1], x[2], x[3], {x[4], x[5], x[6]}});
            w->contact_reach = reach;
            for (const auto& a : motors)
              w->motors.push_back({int(a[0]), int(a[1]), a[2], a[3], {a[4], a[5], a[6]}, {a[7], a[8]}, {a[9], a[10]}});
            w->options = {options[0],      options[1],      options[2], options[3],
                          int(options[4]), options[5] != 0, options[6], options[7] != 0};
            new (self) Plan{std::move(w),
                            {library, reinterpret_cast<const void*>(mujoco_model), geom_bodies, geom_parts},
                            std::move(keep)};
          },
          "model"_a, "armature"_a, "loops"_a, "friction"_a, "friction_loss"_a, "stiffness"_a, "damping"_a, "rest"_a,
          "sprung"_a, "limits"_a, "motors"_a, "options"_a, "library"_a, "mujoco_model"_a, "geom_bodies"_a,
          "geom_parts"_a, "shapes"_a, "reach"_a, "keep"_a);

  nb::class_<HeldWorld>(m, "World")
      .def(
          "__init__", [](HeldWorld* self, std::shared_ptr<Plan> plan) { new (self) HeldWorld(std::move(plan)); },
          "plan"_a)
      .def(
          "set_state",
          [](HeldWorld& s, nb::handle q, nb::handle v, double time) {
            auto q_ = door::configuration(s.world->description().model, q);
            In v_(v, "v", {s.plan->nv()});
            door::Occupied occupied(s.busy, "this Simulator");
            s.world->q.assign(q_.data, q_.data + s.plan->nq());
            s.world->v.assign(v_.data, v_.data + s.plan->nv());
            s.world->time = time;
            s.world->memory = {};
          },
          "q"_a.none(), "v"_a.none(), "time"_a)
      .def_prop_ro("q", [](HeldWorld& s) { return as_array(s.world->q); })
      .def_prop_ro("v", [](HeldWorld& s) { return as_array(s.world->v); })
      .def_prop_ro("time", [](HeldWorld& s) { return s.world->time; })
      .def_prop_ro("systems", [](HeldWorld& s) { return s.world->systems(); })
      .def("save", [](HeldWorld& s) { return as_array(write_snapshot(*s.world)); })
      .def(
          "restore",
          [](HeldWorld& s, nb::handle numbers, std::size_t n) {
            In x(numbers, "snapshot", {n});
            door::Occupied occupied(s.busy, "this Simulator");
            SavedState saved = read_snapshot(*s.world, s.plan->collisions, x.data, n);
            door::check_quaternions(s.world->description().model, saved.q.data(), "snapshot's q");
            s.world->q.swap(saved.q), s.world->v.swap(saved.v);
            s.world->time = saved.time;
            s.world->memory = std::move(saved.memory);
          },
          "snapshot"_a.none(), "size"_a)
      // The problems of the next step, an island each: matrix, g, start, cones (row, friction), intervals (row, lower,
      // upper), rows of each kind, and of every contact position, frame, gap and bodies.
      .def(
          "contact_problem",
          [](HeldWorld& s, nb::handle tau, nb::handle control, nb::handle external) {
            In t(tau, "tau", {s.plan->nv()}, true), c(control, "control", {s.plan->motors()}, true),
                e(external, "external_forces", {s.plan->bodies(), 6}, true);
            door::Occupied occupied(s.busy, "this Simulator");
            std::vector<PosedProblem> problems;
            StepReport report;
            {
              nb::gil_scoped_release unlocked;
              report = s.world->pose({t.data, c.data, e.data}, problems);
            }
            if (!report.collided) raise_mujoco(s.world->collider().failure());
            if (!report.regular) door::raise_singular("contact_problem");
            nb::list islands;
            for (const auto& p : problems) {
              Numbers cones, intervals, contacts;
              for (const auto& k : p.sets.cones) cones.insert(cones.end(), {double(k.row), k.friction});
              for (const auto& i : p.sets.intervals)
                intervals.insert(intervals.end(), {double(i.row), i.lower, i.upper});
              for (std::size_t k = 0; k < p.contacts.size(); ++k) {
                const auto& touch = p.contacts[k].touch;
                contacts.insert(contacts.end(), {touch.position.x, touch.position.y, touch.position.z});
                for (const auto& axis : p.frames[k]) contacts.insert(contacts.end(), {axis.x, axis.y, axis.z});
                contacts.insert(contacts.end(), {touch.distance, double(touch.body[0]), double(touch.body[1])});
              }
              const std::size_t n = p.g.size();
              islands.append(nb::make_tuple(
                  as_array(p.matrix, n, n), as_array(p.g), as_array(p.warm_start),
                  as_array(cones, p.sets.cones.size(), 2), as_array(intervals, p.sets.intervals.size(), 3),
                  std::array<int, 4>{p.loop_rows, p.friction_rows, p.limit_rows, int(p.contacts.size())},
                  as_array(contacts, p.contacts.size(), 15)));
            }
            return islands;
          },
          "tau"_a.none(), "control"_a.none(), "external_forces"_a.none())
      // Steps with the same forces, or with a row of them each; every `every`-th state is kept. Returns states before
      // the first step and after the kept ones, numbers, contacts and times.
      .def(
          "run",
          [](HeldWorld& s, int steps, int every, nb::handle tau, nb::handle control, nb::handle external, bool rows) {
            const std::size_t n = std::size_t(steps), nv = s.plan->nv(), nu = s.plan->motors(), nb_ = s.plan->bodies();
            In t(tau, "tau", rows ? door::Shape{n, nv} : door::Shape{nv}, true),
                c(control, "control", rows ? door::Shape{n, nu} : door::Shape{nu}, true),
                e(external, "external_forces", {nb_, 6}, true);
            door::Occupied occupied(s.busy, "this Simulator");
            Numbers q, v, numbers, contacts, counts, times;
            bool regular = true, finite = true, collided = true;
            {
              door::Unlocked unlocked;
              World& w = *s.world;
              for (std::size_t k = 0; k < n && regular && finite; ++k) {
                poll(2e4);
                const StepReport r = w.step({t.data ? t.data + (rows ? k * nv : 0) : nullptr,
                                             c.data ? c.data + (rows ? k * nu : 0) : nullptr, e.data});
                collided = r.collided;
                if (!collided) break;
                regular = r.regular;
                finite = door::all_finite(w.v.data(), nv);
                append(numbers, r);
                const auto& x = r.times;
                times.insert(times.end(), {x.collide, x.constrain, x.operate, x.solve, x.correct, x.whole});
                if (int(k + 1) % every) continue;
                q.insert(q.end(), w.q.begin(), w.q.end());
                v.insert(v.end(), w.v.begin(), w.v.end());
                const std::size_t before = contacts.size();
                append_contacts(contacts, w);
                counts.push_back(double((contacts.size() - before) / numbers_a_contact));
              }
            }
            if (!collided) raise_mujoco(s.world->collider().failure());
            if (!regular) door::raise_singular("step");
            const std::size_t kept = counts.size(), done = times.size() / times_a_step;
            return nb::make_tuple(as_array(q, kept, s.plan->nq()), as_array(v, kept, nv),
                                  as_array(numbers, done, numbers_a_step),
                                  as_array(contacts, contacts.size() / numbers_a_contact, numbers_a_contact),
                                  as_array(counts), as_array(times, done, times_a_step), finite);
          },
          "steps"_a, "every"_a, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none(), "rows"_a);

  // Worlds of their own from given states: (n, nq), (n, nv) → after every step, (n, steps, nq) and (n, steps, nv), and
  // how many steps ended otherwise than solved.
  m.def(
      "rollout",
      [](std::shared_ptr<Plan> plan, nb::handle q, nb::handle v, nb::handle tau, nb::handle control, int worlds,
         int steps, int threads) {
        const std::size_t n = std::size_t(worlds), T = std::size_t(steps), nq = plan->nq(), nv = plan->nv(),
                          nu = plan->motors();
        auto q_ = door::configurations(plan->world->model, q, n);
        In v_(v, "v", {n, nv}), t(tau, "tau", {n, T, nv}, true), c(control, "control", {n, T, nu}, true);
        door::Output<double> Q(nb::none(), {n, T, nq}), V(nb::none(), {n, T, nv}), unsolved(nb::none(), {n}),
            broken(nb::none(), {n});
        std::string failure;
        {
          door::Unlocked unlocked;
          Team team(threads);
          std::vector<std::unique_ptr<World>> own(static_cast<std::size_t>(team.size()));
          for (auto& w : own) w = plan->make();
          std::atomic<bool> stopped{false};  // by MuJoCo: the worlds that follow are not stepped
          team.each(worlds, [&](int k) {
            World& w = *own[std::size_t(team.whose(k, worlds))];
            const std::size_t i = std::size_t(k);
            w.q.assign(q_.data + i * nq, q_.data + (i + 1) * nq);
            w.v.assign(v_.data + i * nv, v_.data + (i + 1) * nv);
            w.time = 0;
            w.memory = {};
            unsolved.data[i] = 0;
            broken.data[i] = -1;
            for (std::size_t s = 0; s < T && !stopped; ++s) {
              poll(2e4);
              if (broken.data[i] < 0) {
                const StepReport r = w.step({t.data ? t.data + (i * T + s) * nv : nullptr,
                                             c.data ? c.data + (i * T + s) * nu : nullptr, nullptr});
                if (!r.collided) {
                  if (!stopped.exchange(true)) failure = w.collider().failure();
                  break;
                }
                unsolved.data[i] += !r.solved();
                if (!r.regular || !door::all_finite(w.v.data(), nv)) broken.data[i] = double(s);
              }
              std::copy(w.q.begin(), w.q.end(), Q.data + (i * T + s) * nq);
              std::copy(w.v.begin(), w.v.end(), V.data + (i * T + s) * nv);
            }
          });
        }
        if (!failure.empty()) raise_mujoco(failure);
        return nb::make_tuple(Q.object, V.object, unsolved.object, broken.object);
      },
      "plan"_a, "q"_a.none(), "v"_a.none(), "tau"_a.none(), "control"_a.none(), "worlds"_a, "steps"_a, "threads"_a);
}

}  // namespace delassus
