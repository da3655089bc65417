#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "held_operator.h"
#include "rooms.h"
#include "solvers/contacts/solver.h"
#include "solvers_sets.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using In = door::Input<double>;
using Out = door::Output<double>;

// An operator of Python's: functions of arrays, with the interpreter's lock.
class PythonMap final : public ContactMap {
 public:
  PythonMap(nb::object operators, int rows) : operators_(std::move(operators)), rows_(rows) {}
  int rows() const override { return rows_; }
  void apply(const double* x, double* y) override { call("apply", x, y); }
  void diagonal(double* d) override { call("diagonal", nullptr, d); }
  void set_damping(const double* damping) override { call("set_damping", damping, nullptr); }
  void solve(const double* y, double* x) override { call("solve", y, x); }

 private:
  void call(const char* name, const double* in, double* out) {
    const std::size_t n = std::size_t(rows_);
    nb::object result;
    if (in) {
      nb::object x = nb::module_::import_("numpy").attr("empty")(n);
      std::copy_n(in, n, nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(x).data());
      result = operators_.attr(name)(x);
    } else {
      result = operators_.attr(name)();
    }
    if (!out) return;
    const In y(result, name, {n});
    std::copy_n(y.data, n, out);
  }

  nb::object operators_;
  int rows_;
};

// The damping that an operator has, and its factor, are put aside for as long as this lives.
template <class Real>
class DampingAside {
 public:
  explicit DampingAside(Operator<Real>& G) : G_(G) { G_.exchange_damping(); }
  ~DampingAside() { G_.exchange_damping(); }
  DampingAside(const DampingAside&) = delete;
  DampingAside& operator=(const DampingAside&) = delete;

 private:
  Operator<Real>& G_;
};

// A solution as Python reads it.
struct ContactSolution {
  nb::object forces, velocities, history;
  ContactReport report;
  double tolerance;  // that it was held to
};

// A solver of problems with the same sets by one method, and its memory; one user at a time.
struct HeldContacts {
  const ContactMethod* method;
  ForceSets sets;
  ContactSolver solver;
  DenseMap matrix;
  std::vector<double> history;
  std::atomic<bool> busy{false};

  HeldContacts(const std::string& name, int rows, const SetTable& cones, const SetTable& intervals)
      : method(find_contact_method(name)) {
    if (!method) {
      std::string names;
      for (const auto& known : contact_methods())
        names += (names.empty() ? "'" : ", '") + std::string(known.name) + "'";
      door::raise("UnknownNameError", "method: there is none called '" + name + "'. Available: " + names + ".");
    }
    sets = read_sets(rows, cones, intervals);
    for (const auto& c : sets.cones)
      if (c.rows > 3 && name == "lcp")
        door::raise("ArgumentError",
                    "method: 'lcp' has polygons for tangents only, and a contact has torsional or rolling friction. "
                    "Use 'auto'.");
  }

  // G: an operator of ours, a matrix, or functions of Python's.
  ContactSolution solve(nb::object G, nb::handle g, ContactOptions options, nb::handle start) {
    const std::size_t n = std::size_t(sets.rows);
    const In g_(g, "g", {n}), start_(start, "warm_start", {n}, true);
    Out lambda(nb::none(), {n}), sigma(nb::none(), {n});
    if (start_.data) std::copy_n(start_.data, n, lambda.data);
    options.warm = start_.data != nullptr;
    options.tolerance = held_tolerance(options.tolerance, int(n), g_.data);

    ContactReport report;
    {
      door::Occupied occupied(busy, "this solver");
      if (method->keeps_history) history.resize(std::size_t(options.max_iterations));
      const auto run = [&](ContactMap& map, const double* dense) {
        report = solver.solve(*method, ContactProblem{map, g_.data, sets}, dense, options, lambda.data, sigma.data,
                              history.data());
      };
      // an operator of ours is left as it was
      const auto run_operator = [&]<class Real>(auto& held, Operator<Real>& G_, ContactMap& map) {
        if (held.rows() != n) door::raise("ArgumentError", "G: its rows are not those of the sets.");
        held.work([&] {
          std::optional<DampingAside<Real>> aside;
          if (method->needs_inverse) aside.emplace(G_);
          ++held.block_use;
          run(map, nullptr);
        });
      };
      HeldOperator<double>* wide = nullptr;
      HeldOperator<float>* narrow = nullptr;
      if (nb::try_cast(G, wide, false)) {
        OperatorMap map(*wide->core, sets);
        run_operator(*wide, *wide->core, map);
      } else if (nb::try_cast(G, narrow, false)) {
        SingleOperatorMap map(*narrow->core);
        run_operator(*narrow, *narrow->core, map);
      } else if (nb::hasattr(G, "__array__")) {
        const In dense(G, "G", {n, n});
        matrix.look_at(dense.data, int(n));
        door::Unlocked unlocked;
        run(matrix, dense.data);
      } else {
        PythonMap map(G, int(n));
        run(map, nullptr);
      }
    }
    const std::size_t iterations = std::size_t(std::min(report.iterations, options.max_iterations));
    Out kept(nb::none(), {method->keeps_history ? iterations : 0});
    std::copy_n(history.data(), kept.array.size(), kept.data);
    return {lambda.object, sigma.object, kept.object, report, options.tolerance};
  }
};

void bind_structs(nb::module_& m) {
  nb::class_<ContactMethod>(m, "ContactMethod")
      .def_ro("name", &ContactMethod::name)
      .def_ro("max_iterations", &ContactMethod::max_iterations)
      .def_ro("needs_matrix", &ContactMethod::needs_matrix)
      .def_ro("needs_inverse", &ContactMethod::needs_inverse);
  m.def("contact_methods", [] {
    const auto all = contact_methods();
    return std::vector<ContactMethod>(all.begin(), all.end());
  });

  nb::class_<ContactOptions>(m, "ContactOptions")
      .def(
          "__init__",
          [](ContactOptions* self, double tolerance, int max_iterations, double rho, int directions, double seconds) {
            new (self) ContactOptions{.tolerance = tolerance,
                                      .max_iterations = max_iterations,
                                      .rho = rho,
                                      .directions = directions,
                                      .seconds = seconds};
          },
          nb::kw_only(), "tolerance"_a, "max_iterations"_a, "rho"_a = 0.0, "directions"_a = 8,
          "seconds"_a = std::numeric_limits<double>::infinity())
      .def_ro("tolerance", &ContactOptions::tolerance)
      .def_ro("max_iterations", &ContactOptions::max_iterations)
      .def_ro("rho", &ContactOptions::rho)
      .def_ro("directions", &ContactOptions::directions)
      .def_ro("seconds", &ContactOptions::seconds);

  nb::class_<ContactResiduals>(m, "ContactResiduals")
      .def_ro("primal", &ContactResiduals::primal)
      .def_ro("dual", &ContactResiduals::dual)
      .def_ro("complementarity", &ContactResiduals::complementarity)
      .def_ro("natural", &ContactResiduals::natural);

  nb::class_<ContactSolution>(m, "ContactSolution")
      .def_ro("forces", &ContactSolution::forces)
      .def_ro("velocities", &ContactSolution::velocities)
      .def_ro("history", &ContactSolution::history)
      .def_ro("tolerance", &ContactSolution::tolerance)
      .def_prop_ro("outcome", [](const ContactSolution& s) { return int(s.report.outcome); })
      .def_prop_ro("iterations", [](const ContactSolution& s) { return s.report.iterations; })
      .def_prop_ro("factorizations", [](const ContactSolution& s) { return s.report.factorizations; })
      .def_prop_ro("rho", [](const ContactSolution& s) { return s.report.rho; })
      .def_prop_ro("residuals", [](const ContactSolution& s) { return s.report.residuals; })
      .def_prop_ro("own_residual", [](const ContactSolution& s) { return s.report.own; });
}

}  // namespace

void bind_contacts(nb::module_& m) {
  bind_structs(m);
  nb::class_<HeldContacts>(m, "ContactSolver")
      // cones: (c, 2) first row, friction; intervals (i, 3): row, lower, upper, where NaN stands for an open end
      .def(nb::init<const std::string&, int, const SetTable&, const SetTable&>(), "method"_a, "rows"_a, "cones"_a,
           "intervals"_a)
      .def("solve", &HeldContacts::solve, "G"_a, "g"_a.none(), "options"_a, "warm_start"_a.none());
}

}  // namespace delassus
