#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "held_operator.h"
#include "rooms.h"
#include "solvers/contacts/apgd.h"
#include "solvers/contacts/interior.h"
#include "solvers/contacts/lcp.h"
#include "solvers/contacts/newton.h"
#include "solvers/contacts/pgs.h"

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

// Solvers and their memory; one user at a time.
struct HeldContacts {
  Admm admm;
  Newton newton;
  Apgd apgd;
  Pgs pgs;
  Interior interior;
  Lcp lcp;
  ForceSets sets;
  std::vector<double> felt;
  std::atomic<bool> busy{false};

  // Forces by a method, and their status by the certificate.
  ContactReport run(const std::string& method, const ContactProblem& p, const double* matrix,
                    const ContactOptions& options, int directions, double* lambda, double* sigma, double* history) {
    ContactReport report = find(method, p, matrix, options, directions, lambda, sigma, history);
    felt.resize(std::size_t(p.rows()));
    certify(p, options, method != "lcp" && method != "apgd", felt.data(), lambda, sigma, report);
    return report;
  }

 private:
  ContactReport find(const std::string& method, const ContactProblem& p, const double* matrix,
                     const ContactOptions& options, int directions, double* lambda, double* sigma, double* history) {
    if (method == "lcp") return lcp.solve(p, matrix, options, directions, lambda, sigma);
    if (method == "admm") return admm.solve(p, options, lambda, sigma, history);
    if (method == "newton") return newton.solve(p, options, lambda, sigma, history);
    if (method == "apgd") return apgd.solve(p, options, lambda, sigma, history);
    if (method == "interior") return interior.solve(p, matrix, options, lambda, sigma, history);
    return pgs.solve(p, matrix, options, lambda, sigma, history);
  }
};

}  // namespace

void bind_contacts(nb::module_& m) {
  nb::class_<HeldContacts>(m, "ContactSolver")
      .def(nb::init<>())
      // cones: rows (c, 2): first row, friction; intervals (i, 3): row, lower, upper, where NaN stands for an open end
      .def(
          "set_sets",
          [](HeldContacts& s, int rows, nb::ndarray<const double, nb::c_contig, nb::device::cpu> cones,
             nb::ndarray<const double, nb::c_contig, nb::device::cpu> intervals) {
            door::Occupied occupied(s.busy, "this solver");
            constexpr double open = std::numeric_limits<double>::infinity();
            s.sets.rows = rows;
            s.sets.cones.clear();
            s.sets.intervals.clear();
            for (std::size_t c = 0; c < cones.shape(0); ++c)
              s.sets.cones.push_back({int(cones.data()[2 * c]), cones.data()[2 * c + 1]});
            for (std::size_t i = 0; i < intervals.shape(0); ++i) {
              const double* x = intervals.data() + 3 * i;
              s.sets.intervals.push_back({int(x[0]), std::isnan(x[1]) ? -open : x[1], std::isnan(x[2]) ? open : x[2]});
            }
          },
          "rows"_a, "cones"_a, "intervals"_a)
      .def(
          "solve",
          [](HeldContacts& s, nb::object G, nb::handle g, const std::string& method, double tolerance, int most,
             nb::handle start, double rho, int directions) {
            const std::size_t n = std::size_t(s.sets.rows);
            In g_(g, "g", {n}), start_(start, "warm_start", {n}, true);
            Out lambda(nb::none(), {n}), sigma(nb::none(), {n}),
                history(nb::none(), {method == "lcp" ? 0 : std::size_t(most)});
            const double allowed = held_tolerance(tolerance, int(n), g_.data);
            const ContactOptions options{allowed, most, start_.data != nullptr, rho, false, 0.1};
            if (start_.data) std::copy_n(start_.data, n, lambda.data);
            ContactReport report;
            door::Occupied occupied(s.busy, "this solver");
            auto solve = [&](ContactMap& map, const double* matrix) {
              report = s.run(method, ContactProblem{map, g_.data, s.sets}, matrix, options, directions, lambda.data,
                             sigma.data, history.data);
            };
            HeldOperator<double>* held = nullptr;
            if (nb::try_cast(G, held, false)) {
              OperatorMap map(*held->G, s.sets);
              held->work([&] { solve(map, nullptr); });
            } else if (nb::hasattr(G, "__array__")) {
              const In matrix(G, "G", {n, n});
              DenseMap map(matrix.data, int(n));
              door::Unlocked unlocked;
              solve(map, matrix.data);
            } else {
              PythonMap map(G, int(n));
              solve(map, nullptr);
            }
            const ContactResiduals& left = report.left;
            return nb::make_tuple(lambda.object, sigma.object, history.object, int(report.outcome), report.iterations,
                                  report.factorizations, report.rho,
                                  nb::make_tuple(left.primal, left.dual, left.complementarity, left.natural),
                                  report.own, allowed);
          },
          "G"_a, "g"_a.none(), "method"_a, "tolerance"_a, "max_iterations"_a, "warm_start"_a.none(), "rho"_a,
          "directions"_a);
}

}  // namespace delassus
