#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "constraints/compiled.h"
#include "held.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// Rows and the model they look at.
template <class T>
struct HeldRows : SingleUser {
  std::shared_ptr<const HeldModel> held;
  ConstraintRows<T> rows;

  HeldRows(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list)
      : SingleUser("this ConstraintRows"),
        held(std::move(m)),
        rows(held->in<T>(), make_constraints(held->in<T>(), list)) {}

  template <class F>
  nb::object work(const door::Output<T>& out, const char* what, F&& f) {
    SingleUser::work(f);
    if (!door::all_finite(out.data, out.array.size()))
      door::raise("SingularError",
                  std::string(what) +
                      ": the result is not finite: numbers overflowed, or the two points of a Distance coincide. "
                      "Check the size of the arguments, and keep such points apart.");
    return out.object;
  }
};

template <class T>
using Moving = void (ConstraintRows<T>::*)(const T*, const T*, T*);

template <class T>
void bind_rows(nb::module_& m, const char* name) {
  using Self = HeldRows<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  nb::class_<Self> c(m, name);
  c.def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&>(), "model"_a,
        "constraints"_a);
  c.def(
      "error",
      [](Self& s, nb::handle q, nb::handle out) {
        auto q_ = door::configuration(s.held->template in<T>(), q);
        Out e(out, {std::size_t(s.rows.rows())});
        e.apart_from(q_);
        return s.work(e, "constraint_error", [&] { s.rows.error(q_.data, e.data); });
      },
      "q"_a.none(), "out"_a.none());

  auto moving = [&](const char* method, const char* what, Moving<T> sweep) {
    c.def(
        method,
        [=](Self& s, nb::handle q, nb::handle v, nb::handle out) {
          auto q_ = door::configuration(s.held->template in<T>(), q);
          In v_(v, "v", {std::size_t(s.held->wide.nv)});
          Out result(out, {std::size_t(s.rows.rows())});
          result.apart_from(q_, v_);
          return s.work(result, what, [&] { (s.rows.*sweep)(q_.data, v_.data, result.data); });
        },
        "q"_a.none(), "v"_a.none(), "out"_a.none());
  };
  moving("velocity", "constraint_velocity", &ConstraintRows<T>::velocity);
  moving("drift", "constraint_drift", &ConstraintRows<T>::drift);
  moving("bias", "constraint_bias", &ConstraintRows<T>::bias);
}

}  // namespace

// The numbers come from delassus.constraints, which has checked them.
void bind_constraints(nb::module_& m) {
  nb::class_<ConstraintDescription>(m, "Constraint")
      .def(
          "__init__",
          [](ConstraintDescription* self, int kind, int rows, std::vector<int> bodies, std::vector<double> points,
             std::vector<double> matrix, int axes_on, std::vector<int> joints, std::vector<double> numbers,
             int measured, std::vector<double> target, double kp, double kd, int point_rows) {
            new (self) ConstraintDescription{Kind(kind),
                                             rows,
                                             std::move(bodies),
                                             std::move(points),
                                             std::move(matrix),
                                             axes_on,
                                             std::move(joints),
                                             std::move(numbers),
                                             measured,
                                             std::move(target),
                                             kp,
                                             kd,
                                             point_rows};
          },
          "kind"_a, "rows"_a, "bodies"_a, "points"_a, "matrix"_a, "axes_on"_a, "joints"_a, "numbers"_a, "measured"_a,
          "target"_a, "kp"_a, "kd"_a, "point_rows"_a);
  bind_rows<double>(m, "ConstraintRows64");
  bind_rows<float>(m, "ConstraintRows32");
}

}  // namespace delassus
