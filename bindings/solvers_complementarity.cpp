#include "door.h"
#include "rooms.h"
#include "solvers/lemke.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// Memory of the pivots; one user at a time, without the interpreter's lock.
struct HeldLemke {
  Lemke lemke;
  std::atomic<bool> busy{false};
};

// A solution as Python reads it.
struct LemkeSolution {
  nb::object solution;
  LemkeReport report;
};

}  // namespace

void bind_complementarity(nb::module_& m) {
  using In = door::Input<double>;
  using Out = door::Output<double>;
  using Mask = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<LemkeSolution>(m, "LemkeSolution")
      .def_ro("solution", &LemkeSolution::solution)
      .def_prop_ro("outcome", [](const LemkeSolution& s) { return int(s.report.outcome); })
      .def_prop_ro("pivots", [](const LemkeSolution& s) { return s.report.pivots; })
      .def_prop_ro("attempts", [](const LemkeSolution& s) { return s.report.attempts; })
      .def_prop_ro("residual", [](const LemkeSolution& s) { return s.report.residual; });
  nb::class_<HeldLemke>(m, "Lemke")
      .def(
          "__init__", [](HeldLemke* self, int capacity) { new (self) HeldLemke{Lemke(capacity)}; }, "capacity"_a)
      .def_prop_ro("capacity", [](const HeldLemke& s) { return s.lemke.capacity(); })
      .def_prop_ro("nbytes", [](const HeldLemke& s) { return s.lemke.bytes(); })
      .def(
          "solve",
          [](HeldLemke& s, nb::handle M, nb::handle q, const Mask& free, double tolerance, int max_pivots,
             nb::handle solution) {
            const std::size_t n = free.shape(0);
            if (n > std::size_t(s.lemke.capacity()))
              door::raise("ArgumentError", "free: expected at most " + std::to_string(s.lemke.capacity()) +
                                               " rows, the capacity, got " + std::to_string(n) + ".");
            In M_(M, "M", {n, n}), q_(q, "q", {n});
            Out z(solution, {n});
            z.apart_from(M_, q_);
            if (n && z.data == q_.data) door::raise("ArgumentError", "solution: it is q. Give an array of its own.");
            LemkeReport report{};
            {
              door::Occupied occupied(s.busy, "this Lemke");
              door::Unlocked unlocked;
              report = s.lemke.solve(int(n), free.data(), M_.data, q_.data, z.data, tolerance, max_pivots);
            }
            return LemkeSolution{z.finite("solve_lcp"), report};
          },
          "M"_a.none(), "q"_a.none(), "free"_a, "tolerance"_a, "max_pivots"_a, "solution"_a.none());
}

}  // namespace delassus
