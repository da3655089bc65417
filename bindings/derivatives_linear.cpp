#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "derivatives/batch_dynamics.h"
#include "derivatives/linearization.h"
#include "held.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;
using Out = door::Output<double>;

using door::Columns;

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

// One state, or a batch of them: arguments and results then have the batch before.
struct States {
  const Model<double>& model;
  std::size_t m;
  int batch;  // zero: one state

  int count() const { return batch > 0 ? batch : 1; }
  In in(nb::handle value, const char* name, std::size_t numbers, bool optional = false) const {
    return batch > 0 ? In(value, name, {std::size_t(batch), numbers}, optional) : In(value, name, {numbers}, optional);
  }
  In wrenches(nb::handle value) const {
    const std::size_t bodies = model.bodies.size();
    return batch > 0 ? In(value, "external_forces", {std::size_t(batch), bodies, 6}, true)
                     : In(value, "external_forces", {bodies, 6}, true);
  }
  In configurations(nb::handle value) const {
    return batch > 0 ? door::configurations(model, value, std::size_t(batch)) : door::configuration(model, value);
  }
  Out out(nb::handle value, std::size_t numbers) const {
    return batch > 0 ? Out(value, {std::size_t(batch), numbers}) : Out(value, {numbers});
  }
  Out matrix(nb::handle value, std::size_t rows) const {
    const std::size_t n = std::size_t(model.nv);
    return batch > 0 ? Out(value, {std::size_t(batch), rows, n}) : Out(value, {rows, n});
  }
};

// ∂ν̇ and ∂λ by q, v and τ, in arrays of the caller's or new ones.
struct MatrixResults {
  Out a_q, a_v, a_tau, f_q, f_v, f_tau;

  MatrixResults(const States& k, nb::handle out)
      : MatrixResults(k, std::size_t(k.model.nv), nb::borrow<nb::tuple>(out)) {}
  MatrixResults(const States& k, std::size_t n, const nb::tuple& out)
      : a_q(k.matrix(out[0], n)),
        a_v(k.matrix(out[1], n)),
        a_tau(k.matrix(out[2], n)),
        f_q(k.matrix(out[3], k.m)),
        f_v(k.matrix(out[4], k.m)),
        f_tau(k.matrix(out[5], k.m)) {}
  DynamicsDerivatives data() const { return {a_q.data, a_v.data, a_tau.data, f_q.data, f_v.data, f_tau.data}; }
  // Results lie apart from arguments.
  void check(std::initializer_list<const In*> arguments) const {
    for (const Out* o : {&a_q, &a_v, &a_tau, &f_q, &f_v, &f_tau})
      for (const In* in : arguments)
        if (in->data && in->data < o->data + o->array.size() && o->data < in->data + in->array.size())
          door::raise("ArgumentError", "out: it shares memory with " + std::string(in->name) +
                                           ". Give the result of an earlier call, or none.");
  }
  nb::tuple finite(const char* name) const {
    return nb::make_tuple(a_q.finite(name), a_v.finite(name), a_tau.finite(name), f_q.finite(name), f_v.finite(name),
                          f_tau.finite(name));
  }
};

struct HeldDynamicsMatrices : SingleUser {
  std::shared_ptr<const HeldModel> held;
  BatchDynamicsMatrices core;

  HeldDynamicsMatrices(std::shared_ptr<const HeldModel> model, const std::vector<ConstraintDescription>& list,
                       int threads)
      : SingleUser("this linearization"),
        held(std::move(model)),
        core(held->wide, make_constraints(held->wide, list), threads) {}
  States states(int batch) const { return {held->wide, std::size_t(core.rows()), batch}; }
};

void raise_singular_state(const char* name, const States& k, int state) {
  door::raise_singular(k.batch > 0 ? (std::string(name) + ", state " + std::to_string(state)).c_str() : name);
}

void bind_dynamics_matrices(nb::module_& module) {
  using Self = HeldDynamicsMatrices;
  constexpr const char* name = "constrained_dynamics_derivatives";
  nb::class_<Self>(module, "DynamicsMatrices64")
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&, int>(), "model"_a,
           "constraints"_a, "threads"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core.bytes(); })
      // The outcome and state of the first failure (0, −1: none), ν̇, λ, and their derivatives.
      .def(
          "solve",
          [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle compliance,
             nb::handle damping, nb::handle solver_damping, int max_iterations, double tolerance,
             nb::handle acceleration, nb::handle forces, nb::handle out, int batch) {
            const States k = s.states(batch);
            const std::size_t n = std::size_t(s.held->wide.nv);
            const In q_ = k.configurations(q), v_ = k.in(v, "v", n), t = k.in(tau, "tau", n, true),
                     e = k.wrenches(external), c(compliance, "compliance", {k.m}), d(damping, "mu", {k.m}),
                     f(solver_damping, "mu", {k.m});
            const Out a = k.out(acceleration, n), l = k.out(forces, k.m);
            const MatrixResults r(k, out);
            r.check({&q_, &v_, &t, &e});
            DynamicsFailure failure;
            s.work([&] {
              failure = s.core.solve({k.count(), q_.data, v_.data, t.data, e.data, c.data, d.data, f.data},
                                     max_iterations, tolerance, a.data, l.data, r.data());
            });
            if (failure.singular) raise_singular_state(name, k, failure.state);
            const bool failed = failure.state >= 0;
            nb::object matrices = failed ? nb::none() : nb::object(r.finite(name));
            return nb::make_tuple(int(failure.outcome), failure.state, a.object, l.object, matrices);
          },
          "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "compliance"_a.none(),
          "damping"_a.none(), "solver_damping"_a.none(), "max_iterations"_a, "tolerance"_a, "acceleration"_a.none(),
          "forces"_a.none(), "out"_a, "batch"_a)
      .def(
          "differentiate",
          [](Self& s, nb::handle q, nb::handle v, nb::handle acceleration, nb::handle forces, nb::handle external,
             nb::handle compliance, nb::handle damping, nb::handle out, int batch) {
            const States k = s.states(batch);
            const std::size_t n = std::size_t(s.held->wide.nv);
            const In q_ = k.configurations(q), v_ = k.in(v, "v", n), a = k.in(acceleration, "acceleration", n),
                     l = k.in(forces, "forces", k.m), e = k.wrenches(external), c(compliance, "compliance", {k.m}),
                     d(damping, "mu", {k.m});
            const MatrixResults r(k, out);
            r.check({&q_, &v_, &a, &l, &e});
            DynamicsFailure failure;
            s.work([&] {
              failure = s.core.differentiate({k.count(), q_.data, v_.data, nullptr, e.data, c.data, d.data, nullptr},
                                             a.data, l.data, r.data());
            });
            if (failure.singular) raise_singular_state(name, k, failure.state);
            return r.finite(name);
          },
          "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "forces"_a.none(), "external_forces"_a.none(),
          "compliance"_a.none(), "damping"_a.none(), "out"_a, "batch"_a);
}

struct HeldBatchLinearization : SingleUser {
  std::shared_ptr<const HeldModel> held;
  BatchLinearization core;
  std::size_t n, m, batch;

  HeldBatchLinearization(std::shared_ptr<const HeldModel> model, const std::vector<ConstraintDescription>& list,
                         int batch_, int threads)
      : SingleUser("this linearization"),
        held(std::move(model)),
        core(held->wide, make_constraints(held->wide, list), batch_, threads),
        n(std::size_t(held->wide.nv)),
        m(std::size_t(core.rows())),
        batch(std::size_t(batch_)) {}

  // vectors (batch, rows), or columns (batch, rows, k)
  In in(nb::handle value, const char* name, std::size_t rows, int columns, bool vector) const {
    return vector ? In(value, name, {batch, rows}, true) : In(value, name, {batch, rows, std::size_t(columns)}, true);
  }
  Out out(std::size_t rows, int columns, bool vector) const {
    return vector ? Out(nb::none(), {batch, rows}) : Out(nb::none(), {batch, rows, std::size_t(columns)});
  }
};

void bind_batch_linearization(nb::module_& module) {
  using Self = HeldBatchLinearization;
  constexpr const char* name = "linearize";
  nb::class_<Self>(module, "BatchLinearization64")
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&, int, int>(), "model"_a,
           "constraints"_a, "batch_size"_a, "threads"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core.bytes(); })
      .def(
          "redundant", [](const Self& s, int state) { return s.core.redundant(state); }, "state"_a)
      .def(
          "update",
          [](Self& s, nb::handle q, nb::handle v, nb::handle acceleration, nb::handle forces, nb::handle external,
             nb::handle compliance, nb::handle damping) {
            const States k{s.held->wide, s.m, int(s.batch)};
            const In q_ = k.configurations(q), v_ = k.in(v, "v", s.n), a = k.in(acceleration, "acceleration", s.n),
                     f = k.in(forces, "forces", s.m), e = k.wrenches(external), c(compliance, "compliance", {s.m}),
                     d(damping, "mu", {s.m});
            int singular = -1;
            s.work([&] {
              singular =
                  s.core.update({k.batch, q_.data, v_.data, nullptr, e.data, c.data, d.data, nullptr}, a.data, f.data);
            });
            if (singular >= 0) raise_singular_state(name, k, singular);
          },
          "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "forces"_a.none(), "external_forces"_a.none(),
          "compliance"_a.none(), "damping"_a.none())
      .def(
          "tangents",
          [](Self& s, nb::handle dq, nb::handle dv, nb::handle dtau, int columns, bool vector) {
            const In q = s.in(dq, "dq", s.n, columns, vector), v = s.in(dv, "dv", s.n, columns, vector),
                     t = s.in(dtau, "dtau", s.n, columns, vector);
            const Out a = s.out(s.n, columns, vector), f = s.out(s.m, columns, vector);
            s.work([&] { s.core.tangents(q.data, v.data, t.data, columns, a.data, f.data); });
            return nb::make_tuple(a.finite(name), f.finite(name));
          },
          "dq"_a.none(), "dv"_a.none(), "dtau"_a.none(), "columns"_a, "vector"_a)
      .def(
          "adjoints",
          [](Self& s, nb::handle a_bar, nb::handle f_bar, int columns, bool vector) {
            const In a = s.in(a_bar, "acceleration_bar", s.n, columns, vector),
                     f = s.in(f_bar, "forces_bar", s.m, columns, vector);
            const Out q = s.out(s.n, columns, vector), v = s.out(s.n, columns, vector), t = s.out(s.n, columns, vector);
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
  bind_dynamics_matrices(m);
  bind_batch_linearization(m);
  bind_operator_derivatives(m);
}

}  // namespace delassus
