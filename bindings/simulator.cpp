#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "held.h"
#include "rooms.h"
#include "simulator/step_linearization.h"
#include "simulator_plan.h"
#include "simulator_records.h"

namespace delassus {

using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;

// ---- what a simulation is made of ----

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
  function("mj_comPos", l.com_pos), function("mj_tendon", l.tendon), function("mj_transmission", l.transmission);
  function("mj_fwdPosition", l.forward_position), function("mj_fwdVelocity", l.forward_velocity);
  function("mj_fwdActuation", l.forward_actuation), function("mj_Euler", l.euler);
  function("mj_tendonBias", l.tendon_bias);
  function("mj_camlight", l.camera_light), function("mj_flex", l.flex);
  function("mj_makeM", l.make_M), function("mj_factorM", l.factor_M), function("mj_solveM", l.solve_M);
  function("mj_addContact", l.add_contact), function("mj_makeConstraint", l.make_constraint);
  function("mj_energyPos", l.energy_position), function("mj_energyVel", l.energy_velocity);
  function("mj_subtreeVel", l.subtree_velocity), function("mj_fwdAcceleration", l.forward_acceleration);
  function("mj_rnePostConstraint", l.forces_between_bodies), function("mj_sensorPos", l.sensor_position);
  function("mj_sensorVel", l.sensor_velocity), function("mj_sensorAcc", l.sensor_acceleration);
  function("mj_getState", l.get_state), function("mj_setState", l.set_state);
  function("_mjPRIVATE_setTlsLogHandler", l.set_log);
  function("_mjPRIVATE__get_tls_error_fn", l.get_error), function("_mjPRIVATE__set_tls_error_fn", l.set_error);
  function("_mjPRIVATE__get_tls_warning_fn", l.get_warning), function("_mjPRIVATE__set_tls_warning_fn", l.set_warning);
  l.data = {
      at("mjData.qpos"),          at("mjData.xpos"),         at("mjData.xmat"),         at("mjData.contact"),
      at("mjData.ncon"),          at("mjData.dropped"),      at("mjData.rows_dropped"), at("mjData.qvel"),
      at("mjData.qacc"),          at("mjData.ctrl"),         at("mjData.time"),         at("mjData.qfrc_passive"),
      at("mjData.qfrc_actuator"), at("mjData.ten_J"),        at("mjData.ten_length"),   at("mjData.xipos"),
      at("mjData.qfrc_applied"),  at("mjData.xfrc_applied"), at("mjData.qfrc_smooth"),  at("mjData.qfrc_constraint"),
      at("mjData.nefc"),          at("mjData.efc_type"),     at("mjData.efc_id"),       at("mjData.efc_force"),
      at("mjData.sensordata"),    at("mjData.geom_xpos"),    at("mjData.geom_xmat")};
  l.contact = {at("mjContact"),          at("mjContact.dist"),   at("mjContact.pos"),    at("mjContact.frame"),
               at("mjContact.friction"), at("mjContact.geom"),   at("mjContact.dim"),    at("mjContact.includemargin"),
               at("mjContact.geom1"),    at("mjContact.geom2"),  at("mjContact.flex"),   at("mjContact.elem"),
               at("mjContact.vert"),     at("mjContact.solref"), at("mjContact.solimp"), at("mjContact.efc_address")};
  l.model = {
      at("mjModel"),           at("mjModel.narena"),         at("mjModel.enableflags"), at("mjModel.disableflags"),
      at("mjModel.gravity"),   at("mjModel.geom_friction"),  at("mjModel.body_mass"),   at("mjModel.body_subtreemass"),
      at("mjModel.body_ipos"), at("mjModel.body_sameframe"), at("mjModel.geom_solref"), at("mjModel.geom_solimp"),
      at("mjModel.geom_size"), at("mjModel.geom_rbound"),    at("mjModel.geom_aabb"),   int(at("mjDSBL_MIDPHASE"))};
  l.sleep = {int(at("mjENBL_SLEEP")), at("mjData.body_awake"), at("mjData.nbody_awake"), int(at("mjS_ASLEEP")),
             int(at("mjS_AWAKE"))};
  l.message = {at("mjLogMessage.level"), at("mjLogMessage.subject"), int(at("mjLOG_ERROR"))};
  return l;
}

void bind_description(nb::module_& m) {
  nb::class_<StepOptions>(m, "StepOptions")
      .def(nb::init<double, double, double, double, int, int, double, double, bool, int, double>(), nb::kw_only(),
           "timestep"_a, "restitution"_a, "bounce_speed"_a, "tolerance"_a, "max_iterations"_a, "solver"_a,
           "time_limit"_a, "slop"_a, "midpoint"_a, "sleep_steps"_a, "sleep_speed"_a)
      .def_ro("timestep", &StepOptions::timestep)
      .def_ro("restitution", &StepOptions::restitution)
      .def_ro("bounce_speed", &StepOptions::bounce_speed)
      .def_ro("tolerance", &StepOptions::tolerance)
      .def_ro("max_iterations", &StepOptions::max_iterations)
      .def_ro("solver", &StepOptions::solver)
      .def_ro("time_limit", &StepOptions::time_limit)
      .def_ro("slop", &StepOptions::slop)
      .def_ro("midpoint", &StepOptions::midpoint)
      .def_ro("sleep_steps", &StepOptions::sleep_steps)
      .def_ro("sleep_speed", &StepOptions::sleep_speed);
  nb::class_<JointLimit>(m, "JointLimit")
      .def(nb::init<int, int, double, double, double>(), nb::kw_only(), "coordinate"_a, "velocity"_a, "lower"_a,
           "upper"_a, "margin"_a);
  nb::class_<Span>(m, "Span").def(
      "__init__",
      [](Span* self, int kind, std::vector<int> velocities, int coordinate, std::array<int, 2> tendons,
         std::array<double, 2> rest, std::array<double, 5> polynomial, std::array<std::vector<int>, 2> places,
         double lower, double upper, double friction_loss, double armature) {
        new (self) Span{kind,  coordinate, tendons,       rest,    polynomial, std::move(velocities), std::move(places),
                        lower, upper,      friction_loss, armature};
      },
      nb::kw_only(), "kind"_a, "velocities"_a, "coordinate"_a, "tendons"_a, "rest"_a, "polynomial"_a, "places"_a,
      "lower"_a, "upper"_a, "friction_loss"_a, "armature"_a);
  nb::class_<Motor>(m, "Motor")
      .def(nb::init<int, int, int, double, double, std::array<double, 3>, std::array<double, 2>,
                    std::array<double, 2>>(),
           nb::kw_only(), "control"_a, "coordinate"_a, "velocity"_a, "gear"_a, "gain"_a, "bias"_a, "control_range"_a,
           "force_range"_a);
  nb::class_<CollisionShape>(m, "CollisionShape")
      .def(
          "__init__",
          [](CollisionShape* self, int body, double half_width, double radius, double lever,
             const std::array<double, 3>& c,
             int geom) { new (self) CollisionShape{body, half_width, radius, lever, {c[0], c[1], c[2]}, geom}; },
          nb::kw_only(), "body"_a, "half_width"_a, "radius"_a, "lever"_a, "center"_a, "geom"_a);
  nb::class_<WorldDescription>(m, "WorldDescription")
      .def(
          "__init__",
          [](WorldDescription* self, const HeldModel& model, const StepOptions& options) {
            new (self) WorldDescription{};
            self->model = model.wide;
            self->options = options;
          },
          "model"_a, "options"_a)
      .def_prop_rw(
          "armature", [](const WorldDescription& w) { return w.model.armature; },
          [](WorldDescription& w, Numbers x) { w.model.armature = std::move(x); })
      .def_rw("loops", &WorldDescription::loops)
      .def_rw("friction", &WorldDescription::friction)
      .def_rw("friction_loss", &WorldDescription::friction_loss)
      .def_rw("stiffness", &WorldDescription::stiffness)
      .def_rw("damping", &WorldDescription::damping)
      .def_rw("spring_rest", &WorldDescription::spring_rest)
      .def_rw("spring_coordinate", &WorldDescription::spring_coordinate)
      .def_rw("limits", &WorldDescription::limits)
      .def_rw("spans", &WorldDescription::spans)
      .def_rw("mocap_bodies", &WorldDescription::mocap_bodies)
      .def_rw("motors", &WorldDescription::motors)
      .def_rw("motor_ranges", &WorldDescription::motor_ranges)
      .def_rw("shapes", &WorldDescription::shapes)
      .def_rw("contact_reach", &WorldDescription::contact_reach);
  nb::class_<MocapBody>(m, "MocapBody")
      .def(
          "__init__",
          [](MocapBody* self, const WorldDescription& world, int body, int mocap, int carrier) {
            const auto &own = world.model.bodies[std::size_t(body)].placement,
                       &of = world.model.bodies[std::size_t(carrier)].placement;
            const Mat3<double> back = transpose(of.R);
            new (self) MocapBody{body, mocap, {back * own.R, back * (own.p - of.p)}};
          },
          "world"_a, nb::kw_only(), "body"_a, "mocap"_a, "carrier"_a);
  nb::class_<MujocoLibrary>(m, "MujocoLibrary")
      .def(
          "__init__",
          [](MujocoLibrary* self, const std::map<std::string, std::size_t>& places) {
            new (self) MujocoLibrary(library_of(places));
          },
          "places"_a);
  nb::class_<HeldCollisions>(m, "CollisionSource")
      .def(
          "__init__",
          [](HeldCollisions* self, const MujocoLibrary& library, nb::object model, std::size_t address,
             std::vector<int> geom_bodies, std::vector<int> geom_parts, Numbers restitution,
             std::vector<int> round_shapes, int mocap_signature, double margin_shift, Numbers surfaces) {
            new (self) HeldCollisions{
                {library, reinterpret_cast<const void*>(address), std::move(geom_bodies), std::move(geom_parts),
                 std::move(restitution), std::move(round_shapes), mocap_signature, margin_shift, std::move(surfaces)},
                std::move(model)};
          },
          "library"_a, "model"_a, nb::kw_only(), "address"_a, "geom_bodies"_a, "geom_parts"_a, "restitution"_a,
          "round_shapes"_a, "mocap_signature"_a, "margin_shift"_a, "surfaces"_a);
  nb::class_<HeldMirror>(m, "MirrorSource")
      .def(
          "__init__",
          [](HeldMirror* self, const MujocoLibrary& library, nb::object model, std::size_t address, int nq, int nv,
             int nu, int bodies, int signature, Numbers start, int mocap_signature, Numbers mocap, bool needs_contacts,
             bool advances, bool tendon_inertia) {
            new (self) HeldMirror{{library, reinterpret_cast<const void*>(address), nq, nv, nu, bodies, signature,
                                   int(start.size()), mocap_signature, needs_contacts, advances, tendon_inertia},
                                  std::move(model),
                                  std::move(start),
                                  std::move(mocap)};
          },
          "library"_a, "model"_a.none(), nb::kw_only(), "address"_a, "nq"_a, "nv"_a, "nu"_a, "bodies"_a, "signature"_a,
          "start"_a, "mocap_signature"_a, "mocap"_a, "needs_contacts"_a, "advances"_a, "tendon_inertia"_a);
  nb::class_<WorldPlan>(m, "WorldPlan")
      .def(
          "__init__",
          [](WorldPlan* self, const WorldDescription& world, const HeldCollisions& collisions, const HeldMirror& mirror,
             int controls) {
            new (self) WorldPlan{std::make_shared<const WorldDescription>(world), collisions, mirror, controls};
          },
          "world"_a, "collisions"_a, "mirror"_a, "controls"_a);
}

// ---- a world ----

// A world as Python holds it.
struct HeldWorld : SingleUser {
  std::shared_ptr<WorldPlan> plan;
  std::unique_ptr<World> world;
  std::unique_ptr<StepLinearization> linearization;  // of the last step that was asked for; null: nobody asked
  Numbers row_forces;                                // before that step

  HeldWorld(std::shared_ptr<WorldPlan> p, int threads)
      : SingleUser("this Simulator"), plan(std::move(p)), world(plan->make(threads)) {
    if (const auto& failure = world->failure(); !failure.empty()) raise_mujoco(failure);
  }

  // Arguments of a step, checked.
  struct Forces {
    In tau, control, external;
    Forces(const WorldPlan& p, nb::handle t, nb::handle c, nb::handle e)
        : tau(t, "tau", {p.nv()}, true),
          control(c, "control", {p.nu()}, true),
          external(e, "external_forces", {p.bodies(), 6}, true) {}
    operator StepForces() const { return {tau.data, control.data, external.data}; }
  };

  // Work of the core; where its report tells of trouble, the error is raised.
  template <class F>
  StepReport work(const char* what, F&& f) {
    StepReport report;
    SingleUser::work([&] { report = f(*world); });
    if (!report.collided) raise_mujoco(world->failure());
    if (!report.regular) door::raise_singular(what);
    return report;
  }
};

// The next step; null where velocities are no longer finite: the world is then as it was before it.
std::unique_ptr<StepRecord> step(HeldWorld& s, nb::handle tau, nb::handle control, nb::handle external) {
  const HeldWorld::Forces forces(*s.plan, tau, control, external);
  std::unique_ptr<StepRecord> record;
  s.work("step", [&](World& w) {
    poll(2e4);
    const StepReport report = w.step(forces);
    if (report.collided && report.regular) {
      if (w.is_finite())
        record = recorded(report, w);
      else
        w.undo_step();
    }
    return report;
  });
  return record;
}

// Steps with the same forces, every `every`-th of which is kept; fewer where velocities are no longer finite: the world
// is then as it was before that step.
std::unique_ptr<RunRecord> run(HeldWorld& s, int steps, int every, nb::handle tau, nb::handle control,
                               nb::handle external) {
  const HeldWorld::Forces forces(*s.plan, tau, control, external);
  auto record = std::make_unique<RunRecord>();
  record->nq = s.plan->nq(), record->nv = s.plan->nv(), record->loop_rows = loop_rows(*s.plan->world);
  s.work("step", [&](World& w) {
    StepReport report;
    for (int k = 1; k <= steps && report.regular && record->finite; ++k) {
      poll(2e4);
      report = w.step(forces);
      if (!report.collided || !report.regular) break;
      record->finite = w.is_finite();
      if (!record->finite) {
        w.undo_step();
        break;
      }
      if (k % every == 0) record->add(report, w);
    }
    return report;
  });
  return record;
}

// ---- the step to first order ----

// The step with these forces, and its derivatives, which stay until the next; the state after it, or as it was. Null
// where velocities are no longer finite.
std::unique_ptr<StepRecord> linearize(HeldWorld& s, nb::handle tau, nb::handle control, nb::handle external,
                                      double smoothing, bool advance) {
  const HeldWorld::Forces forces(*s.plan, tau, control, external);
  std::unique_ptr<StepRecord> record;
  s.work("linearize", [&](World& w) {
    poll(4e4);
    if (!s.linearization) s.linearization = std::make_unique<StepLinearization>(w, int(s.plan->nu()));
    s.row_forces = w.row_forces;
    const StepReport report = s.linearization->update(forces, smoothing);
    const bool stepped = report.collided && report.regular;
    if (stepped && w.is_finite()) record = recorded(report, w);
    if (!advance || !record) {
      if (stepped) w.undo_step();
      w.row_forces = s.row_forces;
    }
    return report;
  });
  return record;
}

nb::tuple step_tangents(HeldWorld& s, nb::handle dq, nb::handle dv, nb::handle dtau, nb::handle dcontrol,
                        nb::handle dfriction, nb::handle drestitution, int columns, bool vector) {
  const door::Columns k{columns, vector};
  const std::size_t n = s.plan->nv();
  StepLinearization& linear = *s.linearization;
  const In q = k.in(dq, "dq", n), v = k.in(dv, "dv", n), t = k.in(dtau, "dtau", n),
           u = k.in(dcontrol, "dcontrol", s.plan->nu()), f = k.in(dfriction, "dfriction", linear.contacts()),
           e = k.in(drestitution, "drestitution", linear.contacts());
  auto next_q = k.out(n), next_v = k.out(n);
  s.SingleUser::work(
      [&] { linear.tangents({q.data, v.data, t.data, u.data, f.data, e.data, columns}, next_q.data, next_v.data); });
  return nb::make_tuple(next_q.finite("linearize"), next_v.finite("linearize"));
}

// By q, v, forces, controls and friction; with `parameters` also by inertial parameters, armature and restitution.
nb::tuple step_adjoints(HeldWorld& s, nb::handle q_bar, nb::handle v_bar, int columns, bool vector, bool parameters) {
  const door::Columns k{columns, vector};
  const std::size_t n = s.plan->nv();
  StepLinearization& linear = *s.linearization;
  const In q = k.in(q_bar, "q_bar", n), v = k.in(v_bar, "v_bar", n);
  auto by_q = k.out(n), by_v = k.out(n), by_tau = k.out(n), by_control = k.out(s.plan->nu()),
       by_friction = k.out(linear.contacts());
  constexpr const char* name = "linearize";
  if (!parameters) {
    s.SingleUser::work([&] {
      linear.adjoints(
          q.data, v.data,
          {by_q.data, by_v.data, by_tau.data, by_control.data, by_friction.data, nullptr, nullptr, nullptr, columns});
    });
    return nb::make_tuple(by_q.finite(name), by_v.finite(name), by_tau.finite(name), by_control.finite(name),
                          by_friction.finite(name));
  }
  auto by_inertial = k.out(10 * s.plan->bodies()), by_armature = k.out(n), by_restitution = k.out(linear.contacts());
  s.SingleUser::work([&] {
    linear.adjoints(q.data, v.data,
                    {by_q.data, by_v.data, by_tau.data, by_control.data, by_friction.data, by_inertial.data,
                     by_armature.data, by_restitution.data, columns});
  });
  return nb::make_tuple(by_q.finite(name), by_v.finite(name), by_tau.finite(name), by_control.finite(name),
                        by_friction.finite(name), by_inertial.finite(name), by_armature.finite(name),
                        by_restitution.finite(name));
}

// Modes and kinks of contacts, whether another row is about to change its mode, and names of the terms that are left
// out.
nb::tuple linearized_modes(HeldWorld& s) {
  const StepLinearization& linear = *s.linearization;
  std::vector<int> modes(linear.contact_modes().begin(), linear.contact_modes().end()),
      kinks(linear.contact_kinks().begin(), linear.contact_kinks().end());
  return nb::make_tuple(modes, kinks, linear.row_kinks(), linear.correction_kink(), linear.redundant(),
                        names_of(linear.gaps()));
}

void restore(HeldWorld& s, nb::handle numbers, std::size_t n) {
  const In x(numbers, "snapshot", {n});
  door::Occupied occupied(s.busy, s.name);
  s.plan->restore(*s.world, x.data, n);
}

// The state of a world of the same model with other loops.
void take_over(HeldWorld& s, HeldWorld& other) {
  door::Occupied here(s.busy, s.name), there(other.busy, other.name);
  s.world->take_over(*other.world);
}

void bind_world(nb::module_& m) {
  nb::class_<HeldWorld>(m, "World")
      .def(
          "__init__",
          [](HeldWorld* self, std::shared_ptr<WorldPlan> plan, int threads) {
            new (self) HeldWorld(std::move(plan), threads);
          },
          "plan"_a, nb::kw_only(), "threads"_a)
      .def(
          "set_state",
          [](HeldWorld& s, nb::handle q, nb::handle v, double time) {
            auto q_ = door::configuration(s.world->description().model, q);
            In v_(v, "v", {s.plan->nv()});
            door::Occupied occupied(s.busy, s.name);
            s.world->q.assign(q_.data, q_.data + s.plan->nq());
            s.world->v.assign(v_.data, v_.data + s.plan->nv());
            s.plan->begin(*s.world);
            s.world->time = time;
          },
          "q"_a.none(), "v"_a.none(), "time"_a)
      .def_prop_rw(
          "hidden", [](HeldWorld& s) { return copied(s.world->hidden); },
          [](HeldWorld& s, nb::handle x) {
            In x_(x, "hidden", {s.world->hidden.size()});
            door::Occupied occupied(s.busy, s.name);
            s.world->hidden.assign(x_.data, x_.data + s.world->hidden.size());
          })
      .def_prop_ro("mocap", [](HeldWorld& s) { return copied(s.world->mocap); })
      .def_prop_rw(
          "mocap_goal", [](HeldWorld& s) { return copied(s.world->mocap_goal); },
          [](HeldWorld& s, nb::handle x) {
            In x_(x, "mocap", {s.world->mocap.size()});
            door::Occupied occupied(s.busy, s.name);
            s.world->mocap_goal.assign(x_.data, x_.data + s.world->mocap.size());
          })
      // Where they are at once, without a motion in between.
      .def("place_mocap",
           [](HeldWorld& s) {
             door::Occupied occupied(s.busy, s.name);
             s.world->mocap = s.world->mocap_goal;
           })
      .def(
          "smooth_forces",
          [](HeldWorld& s, nb::handle control) {
            In u(control, "control", {s.plan->nu()}, true);
            const Numbers* forces = nullptr;
            s.SingleUser::work([&] { forces = s.world->find_smooth_forces(u.data); });
            if (!forces) raise_mujoco(s.world->failure());
            return copied(*forces);
          },
          "control"_a.none())
      // armatures (k,) and rates (k nv,), where smooth_forces was called last
      .def("tendon_inertia",
           [](HeldWorld& s) {
             Numbers armatures, rates;
             s.SingleUser::work([&] { s.world->find_tendon_inertia(armatures, rates); });
             return nb::make_tuple(copied(armatures), copied(rates));
           })
      .def_prop_ro("q", [](HeldWorld& s) { return copied(s.world->q); })
      .def_prop_ro("v", [](HeldWorld& s) { return copied(s.world->v); })
      .def_prop_ro("time", [](HeldWorld& s) { return s.world->time; })
      // A record of the present state, with what the last step found.
      .def("record", [](HeldWorld& s) { return recorded({}, *s.world); })
      .def_prop_ro("systems", [](HeldWorld& s) { return s.world->systems(); })
      .def("save", [](HeldWorld& s) { return copied(write_snapshot(*s.world)); })
      .def("restore", &restore, "snapshot"_a.none(), "size"_a)
      .def("step", &step, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none(),
           nb::sig("def step(self, tau: object | None, control: object | None, external_forces: object | None) -> "
                   "StepRecord | None"))
      // The step to first order, and products with its derivatives, which stay until the world does anything else.
      .def("linearize", &linearize, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none(), "smoothing"_a,
           "advance"_a)
      .def("tangents", &step_tangents, "dq"_a.none(), "dv"_a.none(), "dtau"_a.none(), "dcontrol"_a.none(),
           "dfriction"_a.none(), "drestitution"_a.none(), "columns"_a, "vector"_a)
      .def("adjoints", &step_adjoints, "q_bar"_a.none(), "v_bar"_a.none(), "columns"_a, "vector"_a, "parameters"_a)
      .def("linearized_modes", &linearized_modes)
      .def("run", &run, "steps"_a, "every"_a, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none())
      .def("take_over", &take_over, "other"_a)
      // The problems of the next step, an island each.
      .def(
          "contact_problem",
          [](HeldWorld& s, nb::handle tau, nb::handle control, nb::handle external) {
            const HeldWorld::Forces forces(*s.plan, tau, control, external);
            std::vector<PosedProblem> problems;
            s.work("contact_problem", [&](World& w) { return w.pose(forces, problems); });
            return problems;
          },
          "tau"_a.none(), "control"_a.none(), "external_forces"_a.none());
}

// ---- sensors ----

// Sensors of a simulator as Python holds them.
struct SensingUser : SingleUser {
  HeldSensing held;
  Sensing sensing;

  explicit SensingUser(const HeldSensing& source)
      : SingleUser("sensors of this Simulator"), held(source), sensing(source.source) {}

  template <class Read>
  void read(nb::handle tau, nb::handle control, nb::handle external, Read&& read) {
    const SensingSource& s = held.source;
    const std::size_t nv = std::size_t(s.nv), nu = std::size_t(s.nu);
    const In t(tau, "tau", {nv}, true), c(control, "control", {nu}, true),
        e(external, "external_forces", {s.bodies.size(), 6}, true);
    bool fine = false;
    work([&] { fine = read(StepForces{t.data, c.data, e.data}); });
    if (!fine) raise_mujoco(sensing.failure());
  }
};

void bind_sensing(nb::module_& m) {
  nb::class_<LimitSensor>(m, "LimitSensor")
      .def(nb::init<bool, int, int, double>(), nb::kw_only(), "of_tendon"_a, "object"_a, "address"_a, "cutoff"_a);
  nb::class_<ModelField>(m, "ModelField")
      .def(nb::init<std::size_t, std::size_t>(), nb::kw_only(), "offset"_a, "bytes"_a);
  nb::class_<HeldSensing>(m, "SensingSource")
      .def(
          "__init__",
          [](HeldSensing* self, const MujocoLibrary& library, nb::object model, std::size_t address, int nq, int nv,
             int nu, int values, int signature, int mocap_signature, bool pyramids, int contact_bit, int joint_limit,
             int tendon_limit, std::vector<int> bodies, std::vector<int> joint_coordinates, int tendons,
             std::vector<std::size_t> found, std::vector<LimitSensor> limit_sensors, std::vector<ModelField> fields) {
            new (self) HeldSensing{
                {library, reinterpret_cast<const void*>(address), nq, nv, nu, values, signature, mocap_signature,
                 pyramids, contact_bit, joint_limit, tendon_limit, std::move(bodies), std::move(joint_coordinates),
                 tendons, std::move(found), std::move(limit_sensors), std::move(fields)},
                std::move(model)};
          },
          "library"_a, "model"_a, nb::kw_only(), "address"_a, "nq"_a, "nv"_a, "nu"_a, "values"_a, "signature"_a,
          "mocap_signature"_a, "pyramids"_a, "contact_bit"_a, "joint_limit"_a, "tendon_limit"_a, "bodies"_a,
          "joint_coordinates"_a, "tendons"_a, "found"_a, "limit_sensors"_a, "fields"_a);
  nb::class_<SensingUser>(m, "Sensing")
      .def(nb::init<const HeldSensing&>(), "source"_a)
      // Values of all sensors after a step.
      .def(
          "values",
          [](SensingUser& s, const StepRecord& record, nb::handle tau, nb::handle control, nb::handle external) {
            const door::Output<double> values(nb::none(), {std::size_t(s.held.source.values)});
            s.read(tau, control, external,
                   [&](const StepForces& applied) { return s.sensing.read(record, applied, values.data); });
            return values.object;
          },
          "record"_a, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none())
      // All that follows from a step into an mjData, given by its address.
      .def(
          "fill",
          [](SensingUser& s, std::size_t data, const StepRecord& record, nb::handle tau, nb::handle control,
             nb::handle external) {
            s.read(tau, control, external, [&](const StepForces& applied) {
              return s.sensing.fill(reinterpret_cast<void*>(data), record, applied);
            });
          },
          "data"_a, "record"_a, "tau"_a.none(), "control"_a.none(), "external_forces"_a.none());
}

}  // namespace

void bind_simulator(nb::module_& m) {
  bind_sensing(m);
  bind_description(m);
  bind_records(m);
  bind_world(m);
}

}  // namespace delassus
