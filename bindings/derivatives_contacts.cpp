#include <nanobind/stl/vector.h>

#include <optional>

#include "contact_sets.h"
#include "derivatives/contact_modes.h"
#include "held_operator.h"
#include "rooms.h"
#include "solvers/contacts/problem.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;
using Out = door::Output<double>;

// A direction, or some side by side.
struct Columns {
  int count;
  bool vector;

  In in(nb::handle value, const char* name, std::size_t rows) const {
    return vector ? In(value, name, {rows}, true) : In(value, name, {rows, std::size_t(count)}, true);
  }
  Out out(std::size_t rows) const {
    return vector ? Out(nb::none(), {rows}) : Out(nb::none(), {rows, std::size_t(count)});
  }
};

// Modes of a problem, and G: a matrix, of which this has a copy, or an operator, which has to stay at its numbers.
struct HeldContactModes : SingleUser {
  ForceSets sets;
  ContactModes core;
  std::vector<double> numbers, d;  // of the matrix; a row: inverse mass
  DenseMap matrix;
  nb::object kept;  // the operator
  HeldOperator<double>* held = nullptr;
  std::optional<OperatorMap> map;
  std::size_t version = 0, block_use = 0;
  int max_dense = 0;
  bool found = false;

  HeldContactModes(int rows, const SetTable& cones, const SetTable& intervals)
      : SingleUser("these contact derivatives"), sets(read_sets(rows, cones, intervals)), d(std::size_t(rows)) {}

  std::size_t rows() const { return d.size(); }
  std::size_t cones() const { return sets.cones.size(); }
  std::size_t intervals() const { return sets.intervals.size(); }

  // One user of these and of the operator.
  template <class F>
  void work_with(F&& f) {
    if (!held) return work(f);
    door::Occupied occupied(busy, name);
    held->work(f);
  }
  ContactMap& G() { return held ? static_cast<ContactMap&>(*map) : matrix; }

  void find(nb::object operators, nb::handle forces, nb::handle velocities, int dense, nb::handle inverse_masses) {
    const std::size_t m = rows();
    const In lambda(forces, "forces", {m}), sigma(velocities, "velocities", {m}),
        masses(inverse_masses, "inverse_masses", {m}, true);
    found = false, max_dense = dense;
    map.reset();
    held = nullptr;
    if (nb::try_cast(operators, held, false)) {
      if (held->rows() != m) door::raise("ArgumentError", "G: its rows are not those of the sets.");
      kept = operators;
      map.emplace(*held->core, sets);
    } else {
      const In dense_numbers(operators, "G", {m, m});
      kept = nb::none();
      numbers.assign(dense_numbers.data, dense_numbers.data + m * m);
      matrix.look_at(numbers.data(), int(m));
    }
    bool finite = false;
    work_with([&] {
      if (masses.data)
        std::copy_n(masses.data, m, d.data());
      else
        find_inverse_masses(sets, G(), d.data());
      core.find(sets, lambda.data, sigma.data, d.data());
      finite = factor();
    });
    if (!finite) door::raise("NotFiniteError", "G: every number must be finite. Check what computed it.");
    found = true;
  }
  bool factor() {
    if (held) version = held->version, block_use = ++held->block_use;
    return core.factor(G(), max_dense);
  }
  // Work on directions: with the factor anew if others used the operator's since.
  template <class F>
  void solve(F&& f) {
    if (!found) door::raise("StaleError", "these contact derivatives have no solution yet: call find first.");
    if (held && (!held->fresh || held->version != version))
      door::raise(
          "StaleError",
          "G: the operator was updated, or its damping changed, since the derivatives were made. Make them anew.");
    work_with([&] {
      if (held && held->block_use != block_use && !core.is_dense()) factor();
      f();
    });
  }
};

}  // namespace

void bind_contact_derivatives(nb::module_& module) {
  using Self = HeldContactModes;
  constexpr const char* name = "contact derivatives";
  nb::class_<Self>(module, "ContactModes64")
      .def(nb::init<int, const SetTable&, const SetTable&>(), "rows"_a, "cones"_a, "intervals"_a)
      .def("find", &Self::find, "G"_a, "forces"_a, "velocities"_a, "max_dense"_a = ContactEquation::max_dense_rows,
           "inverse_masses"_a = nb::none())
      .def_prop_ro("inverse_masses",
                   [](const Self& s) {
                     Out d(nb::none(), {s.rows()});
                     std::copy_n(s.d.data(), s.rows(), d.data);
                     return d.object;
                   })
      .def_prop_ro("modes",
                   [](const Self& s) { return std::vector<int>(s.core.modes().begin(), s.core.modes().end()); })
      .def_prop_ro("kinks",
                   [](const Self& s) { return std::vector<bool>(s.core.kinks().begin(), s.core.kinks().end()); })
      .def_prop_ro("redundant", [](const Self& s) { return s.core.redundant(); })
      .def_prop_ro("dense", [](const Self& s) { return s.core.is_dense(); })
      .def(
          "tangents",
          [](Self& s, nb::handle ds, nb::handle dfriction, nb::handle dbound, int columns, bool vector) {
            const Columns k{columns, vector};
            const In ds_ = k.in(ds, "dg", s.rows()), df = k.in(dfriction, "dfriction", s.cones()),
                     db = k.in(dbound, "dbounds", s.intervals());
            Out forces = k.out(s.rows()), velocities = k.out(s.rows());
            s.solve([&] { s.core.tangents(ds_.data, df.data, db.data, columns, forces.data, velocities.data); });
            return nb::make_tuple(forces.finite(name), velocities.finite(name));
          },
          "ds"_a.none(), "dfriction"_a.none(), "dbounds"_a.none(), "columns"_a, "vector"_a)
      .def(
          "adjoints",
          [](Self& s, nb::handle forces_bar, nb::handle velocities_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In lambda = k.in(forces_bar, "forces_bar", s.rows()),
                     sigma = k.in(velocities_bar, "velocities_bar", s.rows());
            Out g = k.out(s.rows()), friction = k.out(s.cones()), bounds = k.out(s.intervals());
            s.solve([&] { s.core.adjoints(lambda.data, sigma.data, columns, g.data, friction.data, bounds.data); });
            return nb::make_tuple(g.finite(name), friction.finite(name), bounds.finite(name));
          },
          "forces_bar"_a.none(), "velocities_bar"_a.none(), "columns"_a, "vector"_a);
}

}  // namespace delassus
