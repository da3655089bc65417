#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "held_operator.h"
#include "rooms.h"
#include "solvers/operational.h"
#include "solvers/verbs.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// All methods are one class to Python.
template <class T>
void bind_method(nb::module_& m, DynamicsMethod method, const std::string& name) {
  m.def(
      name.c_str(),
      [method](std::shared_ptr<const HeldModel> held, const std::vector<ConstraintDescription>& list) {
        const auto& model = held->in<T>();
        auto solver = make_dynamics_solver(method, model, make_constraints(model, list));
        return new Held<DynamicsSolver<T>>{std::move(held), std::move(solver), "this solver"};
      },
      "model"_a, "constraints"_a);
}

template <class T>
void bind_solver(nb::module_& m, const char* name) {
  using Self = Held<DynamicsSolver<T>>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  with_stopwatch(nb::class_<Self>(m, name))
      .def_prop_ro("nbytes", [](const Self& s) { return s.core->bytes(); })
      .def_prop_ro("suits_rows", [](const Self& s) { return s.core->suits_rows(); })
      .def(
          "give_way", [](Self& s, bool yes) { s.work([&] { s.core->give_way(yes); }); }, "yes"_a)
      .def("set_compliance", &take_compliance<T, Self>, "compliance"_a.none())
      .def(
          "solve",
          [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle bias,
             nb::handle damping, int max_iterations, double tolerance, nb::handle start, nb::handle acceleration,
             nb::handle forces, nb::handle history) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            In v_(v, "v", {s.nv()}), t_(tau, "tau", {s.nv()}, true),
                e_(external, "external_forces", {s.bodies(), 6}, true), b_(bias, "bias", {s.rows()}, true),
                d_(damping, "mu", {s.rows()}), l_(start, "warm_start", {s.rows()}, true);
            Out a(acceleration, {s.nv()}), f(forces, {s.rows()}), h(history, {std::size_t(max_iterations)});
            a.apart_from(q_, v_, t_, e_, b_, d_, l_);
            f.apart_from(q_, v_, t_, e_, b_, d_, l_);
            Report<T> report{};
            s.work([&] {
              for (std::size_t r = 0; r < s.rows(); ++r) f.data[r] = l_.data ? l_.data[r] : T(0);
              s.core->solve(q_.data, v_.data, t_.data, e_.data, b_.data, d_.data, max_iterations, T(tolerance), f.data,
                            a.data, &report, h.data);
            });
            return nb::make_tuple(a.finite("constrained_dynamics"), f.finite("constrained_dynamics"),
                                  int(report.outcome), report.iterations, double(report.primal), double(report.change),
                                  double(report.least_squares), double(report.dynamics), double(report.constraints),
                                  report.repaired);
          },
          "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "bias"_a.none(), "damping"_a.none(),
          "max_iterations"_a, "tolerance"_a, "warm_start"_a.none(), "acceleration"_a.none(), "forces"_a.none(),
          "history"_a.none());
}

template <class T>
struct HeldBatchSolver : Held<BatchDynamicsSolver<T>> {
  std::vector<Report<T>> reports;

  HeldBatchSolver(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list, int batch,
                  int threads, bool repairs)
      : Held<BatchDynamicsSolver<T>>{m,
                                     make_batch_dynamics_solver(m->in<T>(), make_constraints(m->in<T>(), list), batch,
                                                                threads, repairs),
                                     "this solver"},
        reports(std::size_t(batch)) {}
};

template <class T>
void bind_batch(nb::module_& m, const char* name) {
  using Self = HeldBatchSolver<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  nb::class_<Self>(m, name)
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&, int, int, bool>(),
           "model"_a, "constraints"_a, "batch_size"_a, "threads"_a, "repairs"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core->bytes(); })
      .def(
          "give_way", [](Self& s, bool yes) { s.work([&] { s.core->give_way(yes); }); }, "yes"_a)
      .def(
          "solve",
          [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle bias,
             nb::handle damping, nb::handle compliance, int max_iterations, double tolerance, nb::handle start,
             nb::handle acceleration, nb::handle forces, nb::handle numbers) {
            const std::size_t n = std::size_t(s.core->batch());
            auto q_ = door::configurations(s.held->template in<T>(), q, n);
            In v_(v, "v", {n, s.nv()}), t_(tau, "tau", {n, s.nv()}, true),
                e_(external, "external_forces", {n, s.bodies(), 6}, true), b_(bias, "bias", {n, s.rows()}, true),
                d_(damping, "mu", {n, s.rows()}), c_(compliance, "compliance", {n, s.rows()}),
                l_(start, "warm_start", {n, s.rows()}, true);
            Out a(acceleration, {n, s.nv()}), f(forces, {n, s.rows()}), r(numbers, {8, n});
            a.apart_from(q_, v_, t_, e_, b_, d_, c_, l_);
            f.apart_from(q_, v_, t_, e_, b_, d_, c_, l_);
            s.work([&] {
              for (std::size_t k = 0; k < n * s.rows(); ++k) f.data[k] = l_.data ? l_.data[k] : T(0);
              s.core->solve(q_.data, v_.data, t_.data, e_.data, b_.data, d_.data, c_.data, max_iterations, T(tolerance),
                            f.data, a.data, s.reports.data());
              for (std::size_t k = 0; k < n; ++k) {
                const auto& report = s.reports[k];
                const T row[8] = {T(int(report.outcome)), T(report.iterations), report.primal,      report.change,
                                  report.least_squares,   report.dynamics,      report.constraints, T(report.repaired)};
                for (std::size_t c = 0; c < 8; ++c) r.data[c * n + k] = row[c];
              }
            });
            return nb::make_tuple(a.finite("constrained_dynamics"), f.finite("constrained_dynamics"), r.object);
          },
          "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "bias"_a.none(), "damping"_a.none(),
          "compliance"_a.none(), "max_iterations"_a, "tolerance"_a, "warm_start"_a.none(), "acceleration"_a.none(),
          "forces"_a.none(), "numbers"_a.none());
}

// Operational space of an operator that Python holds too: it works as that does, one user at a time.
template <class T>
struct HeldOperationalSpace {
  HeldOperator<T>& held;
  nb::object operator_;  // keeps `held`
  OperationalSpace<T> space;

  // A map times x, (rows,) or (rows, columns); None where the operator has no inverse.
  door::MaybeArray apply(OperationalMap map, bool transposed, nb::handle x, int columns, bool vector) {
    if (!held.factored) return door::MaybeArray::none();
    if (held.by_blocks)
      door::raise("ArgumentError",
                  "G: an operational space is symmetric and takes damping of a number per row, but this operator has "
                  "blocks. Set G.damping to a number, for instance 1e-6.");
    std::size_t from = std::size_t(space.columns_of(map)), to = std::size_t(space.rows_of(map));
    if (transposed) std::swap(from, to);
    using In = door::Input<T>;
    using Out = door::Output<T>;
    const std::size_t k = std::size_t(columns);
    const In in = vector ? In(x, "x", {from}) : In(x, "x", {from, k});
    Out out = vector ? Out(nb::none(), {to}) : Out(nb::none(), {to, k});
    T error{};
    held.work_briefly(
        [&] { error = space.apply(map, transposed, held.version, in.data, columns, out.data, held.accuracy); });
    door::check_accuracy(double(error), double(held.accuracy.limit));
    return out.finite("operational space");
  }
};

template <class T>
void bind_operational_space(nb::module_& m, const char* name) {
  using Self = HeldOperationalSpace<T>;
  auto map = [](OperationalMap which, bool transposed) {
    return [which, transposed](Self& s, nb::handle x, int columns, bool vector) {
      return s.apply(which, transposed, x, columns, vector);
    };
  };
  nb::class_<Self>(m, name)
      .def(
          "__init__",
          [](Self* self, nb::object G, int iterations) {
            auto& held = nb::cast<HeldOperator<T>&>(G);
            new (self) Self{held, G, OperationalSpace<T>(*held.core, int(held.nv()), iterations)};
          },
          "G"_a, "iterations"_a)
      .def("inertia", map(OperationalMap::inertia, false), "x"_a.none(), "columns"_a, "vector"_a)
      .def("pseudo_inverse", map(OperationalMap::pseudo_inverse, false), "x"_a.none(), "columns"_a, "vector"_a)
      .def("pseudo_inverse_transpose", map(OperationalMap::pseudo_inverse, true), "x"_a.none(), "columns"_a, "vector"_a)
      .def("null_space", map(OperationalMap::null_space, false), "x"_a.none(), "columns"_a, "vector"_a)
      .def("null_space_transpose", map(OperationalMap::null_space, true), "x"_a.none(), "columns"_a, "vector"_a);
}

// G's own diagonal at one configuration.
template <class T>
void bind_diagonal(nb::module_& m, const char* name) {
  m.def(
      name,
      [](std::shared_ptr<const HeldModel> held, const std::vector<ConstraintDescription>& list, nb::handle q) {
        const auto& model = held->in<T>();
        const auto set = make_constraints(model, list);
        auto q_ = door::configuration(model, q);
        door::Output<T> d(nb::none(), {std::size_t(set.rows)});
        {
          door::Unlocked unlocked;
          find_diagonal(model, set, q_.data, d.data);
        }
        return d.object;
      },
      "model"_a, "constraints"_a, "q"_a.none());
}

}  // namespace

void bind_solvers(nb::module_& m) {
  bind_solver<double>(m, "DynamicsSolver64");
  bind_solver<float>(m, "DynamicsSolver32");
  bind_diagonal<double>(m, "delassus_diagonal64");
  bind_operational_space<double>(m, "OperationalSpace64");
  bind_operational_space<float>(m, "OperationalSpace32");
  const std::pair<DynamicsMethod, std::string> methods[] = {{DynamicsMethod::automatic, "Automatic"},
                                                            {DynamicsMethod::kkt, "Kkt"},
                                                            {DynamicsMethod::lcaba, "ConstrainedDynamics"},
                                                            {DynamicsMethod::prox_ltl, "ProxLtl"},
                                                            {DynamicsMethod::prox_ltls, "ProxLtls"},
                                                            {DynamicsMethod::pv, "Pv"},
                                                            {DynamicsMethod::prox_pv, "ProxPv"},
                                                            {DynamicsMethod::pv_early, "PvEarly"}};
  for (const auto& [method, name] : methods) {
    bind_method<double>(m, method, name + "64");
    bind_method<float>(m, method, name + "32");
  }
  bind_batch<double>(m, "BatchConstrainedDynamics64");
  bind_batch<float>(m, "BatchConstrainedDynamics32");
}

}  // namespace delassus
