#include <nanobind/stl/vector.h>

#include <optional>

#include "derivatives/contact_modes.h"
#include "derivatives/smoothed_contacts.h"
#include "held_operator.h"
#include "rooms.h"
#include "solvers/contacts/problem.h"
#include "solvers_sets.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;
using Out = door::Output<double>;

using door::Columns;

// A contact problem to first order, and G: a matrix, of which this has a copy, or an operator, which has to stay at its
// numbers.
template <class Core>
struct HeldContactDerivatives : SingleUser {
  ForceSets sets;
  Core core;
  std::vector<double> numbers, d;  // of the matrix; a row: inverse mass
  DenseMap matrix;
  nb::object kept;  // the operator
  HeldOperator<double>* held = nullptr;
  std::optional<OperatorMap> map;
  std::size_t version = 0, block_use = 0;
  bool found = false;

  HeldContactDerivatives(int rows, const SetTable& cones, const SetTable& intervals)
      : SingleUser("these contact derivatives"), sets(read_sets(rows, cones, intervals)), d(std::size_t(rows)) {}

  std::size_t rows() const { return d.size(); }
  std::size_t cones() const { return sets.cones.size(); }
  std::size_t intervals() const { return sets.intervals.size(); }
  ContactMap& G() { return held ? static_cast<ContactMap&>(*map) : matrix; }

  // One user of these and of the operator.
  template <class F>
  void work_with(F&& f) {
    if (!held) return work(f);
    door::Occupied occupied(busy, name);
    held->work(f);
  }
  // G, and d: as given, or what the rows feel. Then f, which tells whether numbers are finite.
  template <class F>
  bool begin(nb::object operators, nb::handle inverse_masses, F&& f) {
    const std::size_t m = rows();
    const In masses(inverse_masses, "inverse_masses", {m}, true);
    found = false;
    map.reset();
    held = nullptr;
    if (nb::try_cast(operators, held, false)) {
      if (held->rows() != m) door::raise("ArgumentError", "G: its rows are not those of the sets.");
      kept = operators;
      map.emplace(*held->core, sets);
      version = held->numbers;
    } else {
      const In dense(operators, "G", {m, m});
      kept = nb::none();
      numbers.assign(dense.data, dense.data + m * m);
      matrix.look_at(numbers.data(), int(m));
    }
    bool done = false;
    work_with([&] {
      if (held) block_use = ++held->block_use;
      if (masses.data)
        std::copy_n(masses.data, m, d.data());
      else
        find_inverse_masses(sets, G(), d.data());
      done = f();
    });
    return found = done;
  }
  // Work on directions: with the factor anew if others used the operator's since.
  template <class F>
  void solve(F&& f) {
    if (!found) door::raise("StaleError", "these contact derivatives have no solution yet.");
    if (held && (!held->fresh || held->numbers != version))
      door::raise("StaleError", "G: the operator was updated since the derivatives were made. Make them anew.");
    work_with([&] {
      if (held && held->block_use != block_use && !core.is_dense()) {
        block_use = ++held->block_use;
        core.factor();
      }
      f();
    });
  }
};

constexpr const char* name = "contact derivatives";
using Modes = HeldContactDerivatives<ContactModes>;
using Smooth = HeldContactDerivatives<SmoothedContacts>;

template <class Self>
nb::class_<Self> bind(nb::module_& module, const char* called) {
  return nb::class_<Self>(module, called)
      .def(nb::init<int, const SetTable&, const SetTable&>(), "rows"_a, "cones"_a, "intervals"_a)
      .def_prop_ro("dense", [](const Self& s) { return s.core.is_dense(); })
      .def_prop_ro("inverse_masses", [](const Self& s) {
        Out d(nb::none(), {s.rows()});
        std::copy_n(s.d.data(), s.rows(), d.data);
        return d.object;
      });
}

void bind_modes(nb::module_& module) {
  bind<Modes>(module, "ContactModes64")
      .def(
          "find",
          [](Modes& s, nb::object G, nb::handle forces, nb::handle velocities, int max_dense, nb::handle d) {
            const In lambda(forces, "forces", {s.rows()}), sigma(velocities, "velocities", {s.rows()});
            const bool finite = s.begin(G, d, [&] {
              s.core.find(s.sets, lambda.data, sigma.data, s.d.data());
              return s.core.factor(s.G(), max_dense);
            });
            if (!finite) door::raise("NotFiniteError", "G: every number must be finite. Check what computed it.");
          },
          "G"_a, "forces"_a, "velocities"_a, "max_dense"_a = ContactEquation::max_dense_rows,
          "inverse_masses"_a = nb::none())
      .def_prop_ro("modes",
                   [](const Modes& s) { return std::vector<int>(s.core.modes().begin(), s.core.modes().end()); })
      .def_prop_ro("kinks",
                   [](const Modes& s) { return std::vector<bool>(s.core.kinks().begin(), s.core.kinks().end()); })
      .def_prop_ro("redundant", [](const Modes& s) { return s.core.redundant(); })
      .def(
          "tangents",
          [](Modes& s, nb::handle ds, nb::handle dfriction, nb::handle dbound, int columns, bool vector) {
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
          [](Modes& s, nb::handle forces_bar, nb::handle velocities_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In lambda = k.in(forces_bar, "forces_bar", s.rows()),
                     sigma = k.in(velocities_bar, "velocities_bar", s.rows());
            Out g = k.out(s.rows()), friction = k.out(s.cones()), bounds = k.out(s.intervals());
            s.solve([&] { s.core.adjoints(lambda.data, sigma.data, columns, g.data, friction.data, bounds.data); });
            return nb::make_tuple(g.finite(name), friction.finite(name), bounds.finite(name));
          },
          "forces_bar"_a.none(), "velocities_bar"_a.none(), "columns"_a, "vector"_a);
}

void bind_smoothed(nb::module_& module) {
  const auto copy = [](const std::vector<double>& x) {
    Out out(nb::none(), {x.size()});
    std::copy_n(x.data(), x.size(), out.data);
    return out.object;
  };
  bind<Smooth>(module, "SmoothedContacts64")
      .def(
          "find",
          [](Smooth& s, nb::object G, nb::handle g, double kappa, nb::handle forces, int max_dense, nb::handle d) {
            const In g_(g, "g", {s.rows()}), lambda(forces, "forces", {s.rows()});
            return s.begin(
                G, d, [&] { return s.core.solve(s.sets, s.G(), g_.data, s.d.data(), kappa, lambda.data, max_dense); });
          },
          "G"_a, "g"_a, "kappa"_a, "forces"_a, "max_dense"_a = ContactEquation::max_dense_rows,
          "inverse_masses"_a = nb::none())
      .def_prop_ro("forces", [copy](const Smooth& s) { return copy(s.core.forces()); })
      .def_prop_ro("velocities", [copy](const Smooth& s) { return copy(s.core.velocities()); })
      .def_prop_ro("iterations", [](const Smooth& s) { return s.core.iterations(); })
      .def(
          "tangents",
          [](Smooth& s, nb::handle ds, nb::handle dfriction, nb::handle dlower, nb::handle dupper, int columns,
             bool vector) {
            const Columns k{columns, vector};
            const In ds_ = k.in(ds, "dg", s.rows()), df = k.in(dfriction, "dfriction", s.cones()),
                     lower = k.in(dlower, "dbounds", s.intervals()), upper = k.in(dupper, "dbounds", s.intervals());
            Out forces = k.out(s.rows()), velocities = k.out(s.rows());
            s.solve([&] {
              s.core.tangents(ds_.data, df.data, lower.data, upper.data, columns, forces.data, velocities.data);
            });
            return nb::make_tuple(forces.finite(name), velocities.finite(name));
          },
          "ds"_a.none(), "dfriction"_a.none(), "dlower"_a.none(), "dupper"_a.none(), "columns"_a, "vector"_a)
      .def(
          "adjoints",
          [](Smooth& s, nb::handle forces_bar, nb::handle velocities_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In lambda = k.in(forces_bar, "forces_bar", s.rows()),
                     sigma = k.in(velocities_bar, "velocities_bar", s.rows());
            Out g = k.out(s.rows()), friction = k.out(s.cones()), lower = k.out(s.intervals()),
                upper = k.out(s.intervals());
            s.solve([&] {
              s.core.adjoints(lambda.data, sigma.data, columns, g.data, friction.data, lower.data, upper.data);
            });
            return nb::make_tuple(g.finite(name), friction.finite(name), lower.finite(name), upper.finite(name));
          },
          "forces_bar"_a.none(), "velocities_bar"_a.none(), "columns"_a, "vector"_a);
}

}  // namespace

void bind_contact_derivatives(nb::module_& module) {
  bind_modes(module);
  bind_smoothed(module);
}

}  // namespace delassus
