#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "derivatives/linearization.h"
#include "held.h"
#include "rooms.h"

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

template <class Core>
struct HeldFirstOrder : SingleUser {
  std::shared_ptr<const HeldModel> held;
  Core core;
  std::size_t n, m;

  HeldFirstOrder(std::shared_ptr<const HeldModel> model, const std::vector<ConstraintDescription>& list)
      : SingleUser("this linearization"),
        held(std::move(model)),
        core(held->wide, make_constraints(held->wide, list)),
        n(std::size_t(held->wide.nv)),
        m(std::size_t(core.rows())) {}
};

void bind_dynamics_linearization(nb::module_& module) {
  using Self = HeldFirstOrder<Linearization>;
  constexpr const char* name = "linearize";
  nb::class_<Self>(module, "Linearization64")
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&>(), "model"_a,
           "constraints"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core.bytes(); })
      .def_prop_ro("redundant", [](const Self& s) { return s.core.redundant(); })
      .def(
          "update",
          [](Self& s, nb::handle q, nb::handle v, nb::handle acceleration, nb::handle forces, nb::handle external,
             nb::handle compliance, nb::handle damping) {
            auto q_ = door::configuration(s.held->wide, q);
            In v_(v, "v", {s.n}), a(acceleration, "acceleration", {s.n}), f(forces, "forces", {s.m}),
                e(external, "external_forces", {s.held->wide.bodies.size(), 6}, true),
                c(compliance, "compliance", {s.m}), d(damping, "mu", {s.m});
            bool regular = false;
            s.work([&] { regular = s.core.update(q_.data, v_.data, a.data, f.data, e.data, c.data, d.data); });
            if (!regular) door::raise_singular(name);
          },
          "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "forces"_a.none(), "external_forces"_a.none(),
          "compliance"_a.none(), "damping"_a.none())
      .def(
          "tangents",
          [](Self& s, nb::handle dq, nb::handle dv, nb::handle dtau, int columns, bool vector) {
            const Columns k{columns, vector};
            const In q = k.in(dq, "dq", s.n), v = k.in(dv, "dv", s.n), t = k.in(dtau, "dtau", s.n);
            Out a = k.out(s.n), f = k.out(s.m);
            s.work([&] { s.core.tangents(q.data, v.data, t.data, columns, a.data, f.data); });
            return nb::make_tuple(a.finite(name), f.finite(name));
          },
          "dq"_a.none(), "dv"_a.none(), "dtau"_a.none(), "columns"_a, "vector"_a)
      .def(
          "adjoints",
          [](Self& s, nb::handle a_bar, nb::handle f_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In a = k.in(a_bar, "acceleration_bar", s.n), f = k.in(f_bar, "forces_bar", s.m);
            Out q = k.out(s.n), v = k.out(s.n), t = k.out(s.n);
            s.work([&] { s.core.adjoints(a.data, f.data, columns, q.data, v.data, t.data); });
            return nb::make_tuple(q.finite(name), v.finite(name), t.finite(name));
          },
          "acceleration_bar"_a.none(), "forces_bar"_a.none(), "columns"_a, "vector"_a);
}

void bind_operator_derivatives(nb::module_& module) {
  using Self = HeldFirstOrder<OperatorDerivatives>;
  constexpr const char* name = "operator derivatives";
  static constexpr Accuracy<double> wanted{3, 1e-15};
  nb::class_<Self>(module, "OperatorDerivatives64")
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&>(), "model"_a,
           "constraints"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core.bytes(); })
      .def(
          "update",
          [](Self& s, nb::handle q, nb::handle compliance, nb::handle damping) {
            auto q_ = door::configuration(s.held->wide, q);
            In c(compliance, "compliance", {s.m}), d(damping, "damping", {s.m}, true);
            bool regular = false;
            s.work([&] { regular = s.core.update(q_.data, c.data, d.data); });
            if (!regular) door::raise_singular(name);
          },
          "q"_a.none(), "compliance"_a.none(), "damping"_a.none())
      .def(
          "apply_tangents",
          [](Self& s, nb::handle x, nb::handle dq, nb::handle dx, int columns, bool vector) {
            const Columns k{columns, vector};
            const In x_(x, "x", {s.m}), q = k.in(dq, "dq", s.n), d = k.in(dx, "dx", s.m);
            Out y(nb::none(), {s.m}), dy = k.out(s.m);
            s.work([&] {
              s.core.apply(x_.data, y.data);
              s.core.apply_tangents(q.data, d.data, columns, dy.data);
            });
            return nb::make_tuple(y.finite(name), dy.finite(name));
          },
          "x"_a.none(), "dq"_a.none(), "dx"_a.none(), "columns"_a, "vector"_a)
      .def(
          "apply_adjoints",
          [](Self& s, nb::handle x, nb::handle y_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In x_(x, "x", {s.m}), b = k.in(y_bar, "y_bar", s.m);
            Out y(nb::none(), {s.m}), q = k.out(s.n), xb = k.out(s.m);
            s.work([&] {
              s.core.apply(x_.data, y.data);
              s.core.apply_adjoints(b.data, columns, q.data, xb.data);
            });
            return nb::make_tuple(q.finite(name), xb.finite(name));
          },
          "x"_a.none(), "y_bar"_a.none(), "columns"_a, "vector"_a)
      .def(
          "solve_tangents",
          [](Self& s, nb::handle y, nb::handle dq, nb::handle dy, nb::handle ddamping, int columns, bool vector) {
            const Columns k{columns, vector};
            const In y_(y, "y", {s.m}), q = k.in(dq, "dq", s.n), d = k.in(dy, "dy", s.m),
                                        e = k.in(ddamping, "ddamping", s.m);
            Out x(nb::none(), {s.m}), dx = k.out(s.m);
            s.work([&] {
              s.core.solve(y_.data, x.data, wanted);
              s.core.solve_tangents(q.data, d.data, e.data, columns, dx.data, wanted);
            });
            return nb::make_tuple(x.finite(name), dx.finite(name));
          },
          "y"_a.none(), "dq"_a.none(), "dy"_a.none(), "ddamping"_a.none(), "columns"_a, "vector"_a)
      .def(
          "solve_adjoints",
          [](Self& s, nb::handle y, nb::handle x_bar, int columns, bool vector) {
            const Columns k{columns, vector};
            const In y_(y, "y", {s.m}), b = k.in(x_bar, "x_bar", s.m);
            Out x(nb::none(), {s.m}), q = k.out(s.n), yb = k.out(s.m), db = k.out(s.m);
            s.work([&] {
              s.core.solve(y_.data, x.data, wanted);
              s.core.solve_adjoints(b.data, columns, q.data, yb.data, db.data, wanted);
            });
            return nb::make_tuple(q.finite(name), yb.finite(name), db.finite(name));
          },
          "y"_a.none(), "x_bar"_a.none(), "columns"_a, "vector"_a);
}

}  // namespace

void bind_linearization(nb::module_& m) {
  bind_dynamics_linearization(m);
  bind_operator_derivatives(m);
}

}  // namespace delassus
