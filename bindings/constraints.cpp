#include <nanobind/stl/vector.h>

#include "constraints/constraints.h"
#include "door.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

// The numbers come from delassus.constraints, which has checked them.
void bind_constraints(nb::module_& m) {
  nb::class_<ConstraintDescription>(m, "Constraint")
      .def(
          "__init__",
          [](ConstraintDescription* self, int kind, int rows, std::vector<int> bodies, std::vector<double> points, std::vector<double> matrix, int axes_on,
             std::vector<int> joints, std::vector<double> numbers) {
            new (self) ConstraintDescription{Kind(kind), rows, std::move(bodies), std::move(points), std::move(matrix), axes_on, std::move(joints),
                                             std::move(numbers)};
          },
          "kind"_a, "rows"_a, "bodies"_a, "points"_a, "matrix"_a, "axes_on"_a, "joints"_a, "numbers"_a);
}

}  // namespace delassus
