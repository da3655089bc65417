#include "worlds/worlds.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "rooms.h"
#include "simulator_plan.h"

namespace delassus {

using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;

// Worlds as Python holds them.
struct HeldWorlds : SingleUser {
  std::shared_ptr<WorldPlan> plan;
  HeldSensing sensing;
  Worlds worlds;

  HeldWorlds(std::shared_ptr<WorldPlan> p, ParameterSource parameters, int sensor_values, int count, int threads)
      : SingleUser("these Worlds"),
        plan(std::move(p)),
        worlds(plan->world, plan->collisions.source, plan->mirror.source, {plan->mirror.start, plan->mirror.mocap},
               std::move(parameters), plan->controls, sensor_values, count, threads) {
    raise_failure();
  }

  void raise_failure() const {
    if (!worlds.failure().empty()) raise_mujoco(worlds.failure());
  }
};

// Raises an error about some worlds, of which it names the first ones.
template <class Wrong>
void refuse(const Worlds& w, const char* kind, const std::string& name, const std::string& what, Wrong&& wrong) {
  std::string list;
  int found = 0;
  for (int k = 0; k < w.count(); ++k)
    if (wrong(std::size_t(k)) && ++found <= 8) list += (found > 1 ? ", " : "") + std::to_string(k);
  if (found > 8) list += ", … (" + std::to_string(found) + " in all)";
  door::raise(kind,
              name + ": " + what + ", which those of " + (found == 1 ? "world " : "worlds ") + list + " are not.");
}

// All numbers that a step reads and a user may have written.
void check(const HeldWorlds& s) {
  const Worlds& w = s.worlds;
  const std::pair<const char*, const Rows<double>*> read[] = {{"q", &w.q},
                                                              {"v", &w.v},
                                                              {"time", &w.time},
                                                              {"hidden", &w.hidden},
                                                              {"mocap", &w.mocap_goal},
                                                              {"control", &w.control},
                                                              {"tau", &w.tau},
                                                              {"external_forces", &w.external}};
  for (const auto& [name, rows] : read)
    if (!door::all_finite(rows->numbers.data(), rows->numbers.size()))
      refuse(w, "NotFiniteError", name, "every number must be finite",
             [&numbers = *rows](std::size_t k) { return !door::all_finite(numbers[k], numbers.width); });
  for (const auto& link : s.plan->world->model.links) {
    if (link.type != Joint::ball && link.type != Joint::free) continue;
    const int at = link.iq + (link.type == Joint::free ? 3 : 0);
    const auto wrong = [&](std::size_t k) {
      const double* c = w.q[k] + at;
      const double norm = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
      return !(std::abs(norm - 1) <= door::quaternion_slack<double>);
    };
    bool all = true;
    for (int k = 0; k < w.count(); ++k) all = all && !wrong(std::size_t(k));
    if (!all)
      refuse(w, "QuaternionError", "q",
             "quaternions (w, x, y, z) at q[:, " + std::to_string(at) + ":" + std::to_string(at + 4) +
                 "] must have length 1 (delassus.normalize makes them so)",
             wrong);
  }
}

void step(HeldWorlds& s, const std::vector<int>& which, int steps) {
  check(s);
  s.work([&] { s.worlds.step(which, steps); });
  s.raise_failure();
}

// Of n worlds: states after every step, (n, steps, nq) and (n, steps, nv); how many steps ended otherwise than solved;
// the step at which velocities ceased to be finite, −1 where they did not.
struct RolloutRecord {
  door::Array q, v;
  Integers unsolved, unstable;
};

// Motions from given states: (n, nq), (n, nv).
std::unique_ptr<RolloutRecord> roll(HeldWorlds& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle control,
                                    nb::handle external, int worlds, int steps) {
  const WorldPlan& p = *s.plan;
  const std::size_t n = std::size_t(worlds), T = std::size_t(steps);
  auto q_ = door::configurations(p.world->model, q, n);
  In v_(v, "v", {n, p.nv()}), t(tau, "tau", {n, T, p.nv()}, true), c(control, "control", {n, T, p.nu()}, true),
      e(external, "external_forces", {n, T, p.bodies(), 6}, true);
  door::Output<double> Q(nb::none(), {n, T, p.nq()}), V(nb::none(), {n, T, p.nv()});
  auto record = std::make_unique<RolloutRecord>(RolloutRecord{Q.object, V.object, Integers(n, 0), Integers(n, -1)});
  s.work([&] {
    s.worlds.roll({q_.data, v_.data, t.data, c.data, e.data, worlds, steps, Q.data, V.data, record->unsolved.data(),
                   record->unstable.data()});
  });
  s.raise_failure();
  return record;
}

// Derivatives of the steps of n worlds: states after them (n, nq) and (n, nv), status, whether a mode is about to
// change, whether forces are not unique, and names of the terms that are left out, "all" where there are no
// derivatives.
struct StepsRecord {
  door::Array q, v;
  Integers status, kinks, redundant;
  std::vector<std::vector<std::string>> left_out;
};
struct LinearizedSteps : StepsRecord {
  door::Array A, B;  // (n, 2 nv, 2 nv), (n, 2 nv, nu)
};
struct StepsAdjoint : StepsRecord {
  door::Array by_q, by_v, by_tau, by_control;  // (n, nv), …, (n, nu)
};

// Common part of the derivatives of world steps: checked arguments, the work, and its results.
template <class Work>
void differentiate(HeldWorlds& s, std::size_t n, nb::handle control, nb::handle tau, bool advance, StepsRecord& record,
                   Work&& work) {
  const WorldPlan& p = *s.plan;
  const In c(control, "control", {n, p.nu()}, true), t(tau, "tau", {n, p.nv()}, true);
  check(s);
  door::Output<double> q(nb::none(), {n, p.nq()}), v(nb::none(), {n, p.nv()});
  std::vector<Worlds::StepFound> found;
  s.work([&] { work(Worlds::StepInputs{c.data, t.data, advance}, Worlds::StepsAfter{q.data, v.data, found}); });
  s.raise_failure();
  record.q = q.object, record.v = v.object;
  for (auto* x : {&record.status, &record.kinks, &record.redundant}) x->reserve(n);
  record.left_out.reserve(n);
  for (const auto& f : found) {
    record.status.push_back(f.status), record.kinks.push_back(f.kinks), record.redundant.push_back(f.redundant);
    record.left_out.push_back(f.derived ? names_of(f.gaps) : std::vector<std::string>{"all"});
  }
}

std::unique_ptr<LinearizedSteps> linearize(HeldWorlds& s, const std::vector<int>& which, nb::handle control,
                                           nb::handle tau, bool advance) {
  const std::size_t n = which.size(), nv = s.plan->nv();
  door::Output<double> A(nb::none(), {n, 2 * nv, 2 * nv}), B(nb::none(), {n, 2 * nv, s.plan->nu()});
  auto record = std::make_unique<LinearizedSteps>();
  record->A = A.object, record->B = B.object;
  differentiate(s, n, control, tau, advance, *record, [&](const auto& inputs, const auto& after) {
    s.worlds.linearize(which, inputs, after, A.data, B.data);
  });
  return record;
}

std::unique_ptr<StepsAdjoint> step_adjoints(HeldWorlds& s, const std::vector<int>& which, nb::handle q_bar,
                                            nb::handle v_bar, nb::handle control, nb::handle tau, bool advance) {
  const std::size_t n = which.size(), nv = s.plan->nv();
  const In q(q_bar, "q_bar", {n, nv}, true), v(v_bar, "v_bar", {n, nv}, true);
  door::Output<double> by_q(nb::none(), {n, nv}), by_v(nb::none(), {n, nv}), by_tau(nb::none(), {n, nv}),
      by_control(nb::none(), {n, s.plan->nu()});
  auto record = std::make_unique<StepsAdjoint>();
  record->by_q = by_q.object, record->by_v = by_v.object;
  record->by_tau = by_tau.object, record->by_control = by_control.object;
  differentiate(s, n, control, tau, advance, *record, [&](const auto& inputs, const auto& after) {
    s.worlds.adjoints(which, inputs, q.data, v.data, after, {by_q.data, by_v.data, by_tau.data, by_control.data});
  });
  return record;
}

// A live array of the numbers of all worlds; `shape`: of one world's, empty for a single number.
template <class Number>
door::Array live(nb::handle self, Rows<Number>& rows, std::size_t count, std::initializer_list<std::size_t> shape) {
  static Number nothing{};  // an array without numbers has an address too
  std::vector<std::size_t> sizes{count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Number* const data = rows.numbers.empty() ? &nothing : rows.numbers.data();
  const nb::ndarray<nb::numpy, Number> array(data, sizes.size(), sizes.data(), self);
  return nb::borrow<door::Array>(nb::cast(array));
}

template <class Number>
void bind_rows(nb::class_<HeldWorlds>& c, const char* name, Rows<Number> Worlds::*rows, std::size_t inner = 0) {
  c.def_prop_ro(name, [rows, inner](nb::handle self) {
    auto& s = nb::cast<HeldWorlds&>(self);
    auto& block = s.worlds.*rows;
    const std::size_t n = std::size_t(s.worlds.count());
    if (inner == 1) return live(self, block, n, {});
    return inner == 0 ? live(self, block, n, {block.width}) : live(self, block, n, {block.width / inner, inner});
  });
}

}  // namespace

void bind_worlds(nb::module_& m) {
  nb::class_<ParameterSource>(m, "ParameterSource")
      .def(
          "__init__",
          [](ParameterSource* self, const std::array<Numbers, parameter_count>& values, std::vector<int> dof_joint,
             std::vector<int> motor_actuator, std::vector<int> mujoco_bodies, std::vector<int> mujoco_parents,
             const std::vector<int>& shapes, Numbers radii, Numbers boxes) {
            new (self) ParameterSource{values,
                                       std::move(dof_joint),
                                       std::move(motor_actuator),
                                       std::move(mujoco_bodies),
                                       std::move(mujoco_parents),
                                       {},
                                       std::move(radii),
                                       std::move(boxes)};
            for (const int kind : shapes) self->shapes.push_back(ShapeKind(kind));
          },
          "values"_a, nb::kw_only(), "dof_joint"_a, "motor_actuator"_a, "mujoco_bodies"_a, "mujoco_parents"_a,
          "shapes"_a, "radii"_a, "boxes"_a);
  // The radius of a ball around a shape of a kind, and half widths of a box.
  m.def(
      "shape_bounds",
      [](int kind, const std::array<double, 3>& size) {
        const ShapeBounds bounds = shape_bounds(ShapeKind(kind), size.data());
        return std::pair(bounds.radius, bounds.half_widths);
      },
      "kind"_a, "size"_a);
  nb::class_<HeldWorlds> c(m, "Worlds");
  c.def(
       "__init__",
       [](HeldWorlds* self, std::shared_ptr<WorldPlan> plan, const ParameterSource& parameters, int sensor_values,
          int count,
          int threads) { new (self) HeldWorlds(std::move(plan), parameters, sensor_values, count, threads); },
       "plan"_a, "parameters"_a, nb::kw_only(), "sensor_values"_a, "count"_a, "threads"_a)
      .def("check", &check)
      .def("step", &step, "which"_a, "steps"_a)
      .def("linearize", &linearize, "which"_a, nb::kw_only(), "control"_a.none(), "tau"_a.none(), "advance"_a)
      .def("step_adjoints", &step_adjoints, "which"_a, "q_bar"_a.none(), "v_bar"_a.none(), nb::kw_only(),
           "control"_a.none(), "tau"_a.none(), "advance"_a)
      .def(
          "reset",
          [](HeldWorlds& s, const std::vector<int>& which, nb::handle q, nb::handle v, nb::handle time) {
            const std::size_t n = which.size(), nq = s.plan->nq(), nv = s.plan->nv();
            const auto q_ = door::configurations(s.plan->world->model, q, n);
            const In v_(v, "v", {n, nv}), time_(time, "time", {n, 1});
            door::Occupied occupied(s.busy, s.name);
            for (std::size_t i = 0; i < n; ++i) {
              const std::size_t k = std::size_t(which[i]);
              s.worlds.reset(which[i]);
              std::copy_n(q_.data + i * nq, nq, s.worlds.q[k]);
              std::copy_n(v_.data + i * nv, nv, s.worlds.v[k]);
              *s.worlds.time[k] = time_.data[i];
            }
          },
          "which"_a, "q"_a.none(), "v"_a.none(), "time"_a.none())
      // The state of a world of its own, as numbers, and back.
      .def(
          "save",
          [](HeldWorlds& s, int world) {
            door::Occupied occupied(s.busy, s.name);
            return copied(s.worlds.as_world(world, [](World& w) { return write_snapshot(w); }));
          },
          "world"_a)
      .def(
          "restore",
          [](HeldWorlds& s, int world, nb::handle numbers, std::size_t n) {
            const In x(numbers, "snapshot", {n});
            door::Occupied occupied(s.busy, s.name);
            s.worlds.as_world(world, [&](World& w) { s.plan->restore(w, x.data, n); });
          },
          "world"_a, "snapshot"_a.none(), "size"_a)
      // Parameters of the worlds as live arrays, one flat row per world: which were written since the last call of
      // accept, which values were accepted, and how to accept the new ones.
      .def(
          "parameter",
          [](nb::handle self, int which) {
            auto& s = nb::cast<HeldWorlds&>(self);
            door::Occupied occupied(s.busy, s.name);
            auto& rows = s.worlds.parameter(Parameter(which));
            return live(self, rows, std::size_t(s.worlds.count()), {rows.width});
          },
          "which"_a)
      .def("changed_parameters",
           [](const HeldWorlds& s) {
             std::vector<int> changed;
             for (int p = 0; p < parameter_count; ++p)
               if (s.worlds.changed(Parameter(p))) changed.push_back(p);
             return changed;
           })
      .def(
          "accepted_parameter",
          [](nb::handle self, int which) {
            auto& s = nb::cast<HeldWorlds&>(self);
            auto& rows = s.worlds.accepted_parameter(Parameter(which));
            return live(self, rows, std::size_t(s.worlds.count()), {rows.width});
          },
          "which"_a)
      .def("accept_parameters",
           [](HeldWorlds& s) {
             door::Occupied occupied(s.busy, s.name);
             s.worlds.accept_parameters();
           })
      // Sensors of some worlds, with the current inputs; the first call sets up what they need. Which worlds have
      // parameters that their sensors do not know yet, and the model, given by its address, that has those of a world.
      .def(
          "start_sensing",
          [](HeldWorlds& s, const HeldSensing& source) {
            door::Occupied occupied(s.busy, s.name);
            s.sensing = source;
            s.worlds.start_sensing(s.sensing.source);
          },
          "source"_a)
      .def("unsensed_parameters", [](const HeldWorlds& s) { return s.worlds.unsensed_parameters(); })
      .def(
          "set_sensor_model",
          [](HeldWorlds& s, int world, std::size_t model) {
            door::Occupied occupied(s.busy, s.name);
            s.worlds.set_sensor_model(world, reinterpret_cast<const void*>(model));
          },
          "world"_a, "model"_a)
      .def(
          "sense",
          [](HeldWorlds& s, const std::vector<int>& which) {
            s.work([&] { s.worlds.sense(which); });
            s.raise_failure();
          },
          "which"_a)
      .def("roll", &roll, "q"_a.none(), "v"_a.none(), "tau"_a.none(), "control"_a.none(), "external_forces"_a.none(),
           "worlds"_a, "steps"_a);
  bind_rows(c, "q", &Worlds::q), bind_rows(c, "v", &Worlds::v), bind_rows(c, "time", &Worlds::time, 1);
  bind_rows(c, "hidden", &Worlds::hidden), bind_rows(c, "mocap", &Worlds::mocap);
  bind_rows(c, "mocap_goal", &Worlds::mocap_goal);
  bind_rows(c, "control", &Worlds::control), bind_rows(c, "tau", &Worlds::tau);
  bind_rows(c, "external_forces", &Worlds::external, 6);
  bind_rows(c, "status", &Worlds::status, 1), bind_rows(c, "contacts", &Worlds::contacts, 1);
  bind_rows(c, "residual", &Worlds::residual, 1), bind_rows(c, "penetration", &Worlds::penetration, 1);
  bind_rows(c, "contact_forces", &Worlds::contact_forces, 3), bind_rows(c, "row_forces", &Worlds::row_forces);
  bind_rows(c, "unsolved", &Worlds::unsolved, 1), bind_rows(c, "sensors", &Worlds::sensors);

  nb::class_<StepsRecord>(m, "StepsRecord")
      .def_ro("q", &StepsRecord::q)
      .def_ro("v", &StepsRecord::v)
      .def_prop_ro("status", column_of(&StepsRecord::status))
      .def_prop_ro("kinks", column_of(&StepsRecord::kinks))
      .def_prop_ro("redundant", column_of(&StepsRecord::redundant))
      .def_ro("left_out", &StepsRecord::left_out);
  nb::class_<LinearizedSteps, StepsRecord>(m, "LinearizedSteps")
      .def_ro("A", &LinearizedSteps::A)
      .def_ro("B", &LinearizedSteps::B);
  nb::class_<StepsAdjoint, StepsRecord>(m, "StepsAdjoint")
      .def_ro("by_q", &StepsAdjoint::by_q)
      .def_ro("by_v", &StepsAdjoint::by_v)
      .def_ro("by_tau", &StepsAdjoint::by_tau)
      .def_ro("by_control", &StepsAdjoint::by_control);
  nb::class_<RolloutRecord>(m, "RolloutRecord")
      .def_ro("q", &RolloutRecord::q)
      .def_ro("v", &RolloutRecord::v)
      .def_prop_ro("unsolved", column_of(&RolloutRecord::unsolved))
      .def_prop_ro("unstable", column_of(&RolloutRecord::unstable));
}

}  // namespace delassus
