#include "simulator_records.h"

#include <algorithm>

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "simulator/judge.h"

namespace delassus {

namespace {

constexpr std::int64_t row_stride = sizeof(ContactRow) / sizeof(double);
static_assert(sizeof(ContactRow) == 19 * sizeof(double));

door::Array table(nb::handle owner, Numbers& x, std::size_t rows, std::size_t columns) {
  return view(owner, x.data(), {rows, columns}, std::int64_t(columns));
}

// Columns of the contacts that a record keeps, read-only.
template <class Record>
void bind_contact_columns(nb::class_<Record>& c) {
  const auto column = [&](const char* name, auto ContactRow::*member) {
    c.def_prop_ro(name, [member](nb::handle self) {
      using Column = std::remove_reference_t<decltype(std::declval<ContactRow&>().*member)>;
      using Number = const std::remove_all_extents_t<Column>;
      const auto& rows = nb::cast<Record&>(self).contacts;
      auto* first = rows.empty() ? nullptr : reinterpret_cast<Number*>(&(rows[0].*member));
      if constexpr (std::is_array_v<Column>)
        return view(self, first, {rows.size(), std::extent_v<Column>}, row_stride);
      else
        return view(self, first, {rows.size()}, row_stride);
    });
  };
  column("contact_position", &ContactRow::position);
  column("contact_normal", &ContactRow::normal);
  column("contact_force", &ContactRow::force);
  column("contact_friction", &ContactRow::friction);
  column("contact_distance", &ContactRow::distance);
  column("contact_bodies", &ContactRow::bodies);
  column("contact_geoms", &ContactRow::geoms);
  column("contact_torque", &ContactRow::torque);
  column("contact_rows", &ContactRow::rows);
}

void bind_problem(nb::module_& m) {
  nb::class_<PosedProblem>(m, "IslandProblem")
      .def_prop_ro("matrix",
                   [](nb::handle self) {
                     auto& p = nb::cast<PosedProblem&>(self);
                     return table(self, p.matrix, p.g.size(), p.g.size());
                   })
      .def_prop_ro("g", column_of(&PosedProblem::g))
      .def_prop_ro("warm_start", column_of(&PosedProblem::warm_start))
      .def_ro("loop_rows", &PosedProblem::loop_rows)
      .def_ro("friction_rows", &PosedProblem::friction_rows)
      .def_ro("limit_rows", &PosedProblem::limit_rows)
      // rows: [row, friction, rows]; [row, lower, upper]
      .def_prop_ro("cones",
                   [](const PosedProblem& p) {
                     std::vector<std::array<double, 3>> rows;
                     for (const auto& k : p.sets.cones) rows.push_back({double(k.row), k.friction, double(k.rows)});
                     return rows;
                   })
      .def_prop_ro("intervals",
                   [](const PosedProblem& p) {
                     std::vector<std::array<double, 3>> rows;
                     for (const auto& i : p.sets.intervals) rows.push_back({double(i.row), i.lower, i.upper});
                     return rows;
                   })
      // a contact
      .def_prop_ro("positions",
                   [](const PosedProblem& p) {
                     std::vector<std::array<double, 3>> rows;
                     for (const auto& c : p.contacts)
                       rows.push_back({c.touch.position.x, c.touch.position.y, c.touch.position.z});
                     return rows;
                   })
      .def_prop_ro("frames",
                   [](const PosedProblem& p) {
                     std::vector<std::array<double, 9>> rows;
                     for (const auto& [n, t, b] : p.frames)
                       rows.push_back({n.x, n.y, n.z, t.x, t.y, t.z, b.x, b.y, b.z});
                     return rows;
                   })
      .def_prop_ro("gaps",
                   [](const PosedProblem& p) {
                     Numbers gaps;
                     for (const auto& c : p.contacts) gaps.push_back(c.touch.distance);
                     return gaps;
                   })
      .def_prop_ro("bodies", [](const PosedProblem& p) {
        std::vector<std::array<int, 2>> rows;
        for (const auto& c : p.contacts) rows.push_back({c.touch.body[0], c.touch.body[1]});
        return rows;
      });
}

}  // namespace

void RunRecord::add(const StepReport& r, const World& w) {
  q.insert(q.end(), w.q.begin(), w.q.end());
  v.insert(v.end(), w.v.begin(), w.v.end());
  add_loop_forces(w, loop_rows, loop_forces);
  contact_counts.push_back(std::int64_t(w.memory.contacts.size()));
  add_contacts(w, contacts);
  status.push_back(step_status(r));
  iterations.push_back(r.contacts.iterations);
  sleeping.push_back(r.sleeping);
  residual.push_back(r.contacts.residuals.natural);
  loop_error.push_back(r.loop_error);
  penetration.push_back(r.penetration);
}

std::vector<std::string> names_of(const StepGaps& g) {
  std::vector<std::string> gaps;
  const std::pair<bool, const char*> named[] = {
      {g.contradiction, "contradiction"}, {g.open_loops, "open_loops"}, {g.tendons, "tendons"},
      {g.moved_bodies, "moved_bodies"},   {g.bounce, "bounce"},         {g.contacts, "contacts"},
      {g.singular, "singular"},           {g.isolated, "isolated"},     {g.smoothing, "smoothing"}};
  for (const auto& [is, name] : named)
    if (is) gaps.emplace_back(name);
  return gaps;
}

void bind_records(nb::module_& m) {
  nb::class_<StepRecord> step(m, "StepRecord");
  const auto number = [&](const char* name, auto get) {
    step.def_prop_ro(name, [get](const StepRecord& s) { return get(s.report); });
  };
  step.def_ro("time", &StepRecord::time)
      .def_ro("worst_coordinate", &StepRecord::worst_coordinate)
      .def_ro("worst_tendon", &StepRecord::worst_tendon)
      .def_prop_ro("q", column_of(&StepRecord::q))
      .def_prop_ro("v", column_of(&StepRecord::v))
      .def_prop_ro("hidden", column_of(&StepRecord::hidden))
      .def_prop_ro("mocap", column_of(&StepRecord::mocap))
      .def_prop_ro("row_forces", column_of(&StepRecord::row_forces))
      .def_prop_ro("loop_forces", column_of(&StepRecord::loop_forces))
      .def_prop_ro("joint_limit_forces", column_of(&StepRecord::joint_limit_forces))
      .def_prop_ro("tendon_limit_forces", column_of(&StepRecord::tendon_limit_forces))
      .def_prop_ro("timings", [](const StepRecord& s) {
        const StageTimes& t = s.report.times;
        nb::typed<nb::dict, nb::str, double> seconds;
        seconds["collide"] = t.collide, seconds["constrain"] = t.constrain, seconds["operate"] = t.operate;
        seconds["solve"] = t.solve, seconds["correct"] = t.correct, seconds["step"] = t.whole;
        return seconds;
      });
  bind_contact_columns(step);
  number("status", [](const StepReport& r) { return step_status(r); });
  number("islands", [](const StepReport& r) { return r.islands; });
  number("sleeping", [](const StepReport& r) { return r.sleeping; });
  number("iterations", [](const StepReport& r) { return r.contacts.iterations; });
  number("factorizations", [](const StepReport& r) { return r.contacts.factorizations; });
  number("corrections", [](const StepReport& r) { return r.corrections; });
  number("residual", [](const StepReport& r) { return r.contacts.residuals.natural; });
  number("penetration", [](const StepReport& r) { return r.penetration; });
  number("penetration_after", [](const StepReport& r) { return r.penetration_after; });
  number("loop_error", [](const StepReport& r) { return r.loop_error; });
  number("loop_error_after", [](const StepReport& r) { return r.loop_error_after; });
  number("limit_error", [](const StepReport& r) { return r.limit_error_after; });
  number("tunnelled", [](const StepReport& r) { return r.tunnelled; });

  nb::class_<RunRecord> run(m, "RunRecord");
  const auto states = [](Numbers RunRecord::*member, std::size_t RunRecord::*width) {
    return [=](nb::handle self) {
      auto& r = nb::cast<RunRecord&>(self);
      return table(self, r.*member, r.status.size(), r.*width);
    };
  };
  run.def_prop_ro("q", states(&RunRecord::q, &RunRecord::nq))
      .def_prop_ro("v", states(&RunRecord::v, &RunRecord::nv))
      .def_prop_ro("loop_forces", states(&RunRecord::loop_forces, &RunRecord::loop_rows))
      .def_prop_ro("contact_counts", column_of(&RunRecord::contact_counts))
      .def_ro("status", &RunRecord::status)
      .def_prop_ro("iterations", column_of(&RunRecord::iterations))
      .def_prop_ro("sleeping", column_of(&RunRecord::sleeping))
      .def_prop_ro("residual", column_of(&RunRecord::residual))
      .def_prop_ro("loop_error", column_of(&RunRecord::loop_error))
      .def_prop_ro("penetration", column_of(&RunRecord::penetration))
      .def_ro("finite", &RunRecord::finite);
  bind_contact_columns(run);
  bind_problem(m);
}

}  // namespace delassus
