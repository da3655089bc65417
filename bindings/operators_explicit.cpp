#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "held_operator.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// Methods by their names in the API.
constexpr std::pair<const char*, MatrixMethod> matrix_methods[] = {
    {"ltl", MatrixMethod::ltl},         {"kjr", MatrixMethod::kjr},           {"efpa", MatrixMethod::efpa},
    {"pv-osim", MatrixMethod::pv_osim}, {"pv-osimr", MatrixMethod::pv_osimr}, {"oscm", MatrixMethod::oscm},
    {"columns", MatrixMethod::columns}};
constexpr std::pair<const char*, InverseMethod> inverse_methods[] = {
    {"caba-osim", InverseMethod::caba_osim},   {"caba-osimf", InverseMethod::caba_osimf},
    {"pv-osimf", InverseMethod::pv_osimf},     {"ltl", InverseMethod::ltl},
    {"lcaba-osim", InverseMethod::lcaba_osim}, {"lcaba", InverseMethod::lcaba}};

// The method of a name, which was checked before.
template <class Methods>
auto named(const Methods& methods, const std::string& name) {
  for (const auto& [known, method] : methods)
    if (name == known) return method;
  door::raise("UnknownNameError", "method " + name + " does not exist.");
}

template <class T>
struct HeldExplicit : Held<MatrixMaker<T>> {
  HeldExplicit(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list)
      : Held<MatrixMaker<T>>{m, make_matrix_maker(m->in<T>(), make_constraints(m->in<T>(), list))} {}

  // Methods that can do these constraints, and what each is expected to take: time, common and own operations.
  template <class Methods>
  std::vector<std::pair<std::string, std::array<double, 3>>> costs(const Methods& methods) const {
    std::vector<std::pair<std::string, std::array<double, 3>>> list;
    for (const auto& [name, method] : methods)
      if (this->core->supports(method))
        list.push_back(
            {name, {this->core->cost(method).time, this->core->cost(method).common, this->core->cost(method).own}});
    return list;
  }
};

// How a matrix and an inverse are made, each into an array of the caller's or a new one.
template <class T>
void bind_maker(nb::module_& m, const char* name) {
  using Self = HeldExplicit<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  with_stopwatch(nb::class_<Self>(m, name))
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&>(), "model"_a,
           "constraints"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.core->bytes(); })
      .def_prop_ro("compliance",
                   [](const Self& s) {
                     Out out(nb::none(), {s.rows()});
                     std::copy_n(s.core->compliance(), s.rows(), out.data);
                     return out.object;
                   })
      .def_prop_ro("matrix_costs", [](const Self& s) { return s.costs(matrix_methods); })
      .def_prop_ro("inverse_costs", [](const Self& s) { return s.costs(inverse_methods); })
      .def("set_compliance", &take_compliance<T, Self>, "compliance"_a.none())
      .def(
          "matrix",
          [](Self& s, const char* method, nb::handle q, nb::handle out) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            Out G(out, {s.rows(), s.rows()});
            G.apart_from(q_);
            bool regular = false;
            s.work([&] { regular = s.core->matrix(named(matrix_methods, method), q_.data, G.data); });
            return G.regular(regular, "delassus_matrix");
          },
          "method"_a, "q"_a.none(), "out"_a.none())
      .def(
          "inverse",
          [](Self& s, const char* method, nb::handle q, nb::handle damping, nb::handle out) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            In d_(damping, "damping", {s.rows()});
            for (std::size_t r = 0; r < s.rows(); ++r)
              if (!(d_.data[r] >= 0 && d_.data[r] + s.core->compliance()[r] > 0))
                door::raise(
                    "ArgumentError",
                    "damping: expected numbers that are not negative, and positive where there is no compliance, got " +
                        std::to_string(d_.data[r]) + " in row " + std::to_string(r) + ". Use 1e-6, for instance.");
            Out X(out, {s.rows(), s.rows()});
            X.apart_from(q_, d_);
            bool regular = false;
            s.work([&] { regular = s.core->inverse(named(inverse_methods, method), q_.data, d_.data, X.data); });
            return X.regular(regular, "damped_delassus_inverse");
          },
          "method"_a, "q"_a.none(), "damping"_a.none(), "out"_a.none());
}

}  // namespace

void bind_explicit(nb::module_& m) {
  bind_maker<double>(m, "Explicit64");
  bind_maker<float>(m, "Explicit32");
}

}  // namespace delassus
