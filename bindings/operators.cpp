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

// What an elimination consists of: its steps in order, and who the rows act on.
template <class Real>
nb::dict plan(const Layout<Real>& layout) {
  std::vector<std::array<int, 6>>
      steps;  // link, parent, velocities, whether they are a free joint's, neighbours, pairs of these
  for (std::size_t k = 0; k < layout.coupled.steps.size(); ++k) {
    const auto& s = layout.coupled.steps[k];
    const auto& at = layout.coupled.places[k];
    steps.push_back({s.link, s.parent, s.nv, s.free, at.neighbours, at.pairs});
  }
  std::vector<std::array<int, 3>> points;  // link, other, how many
  for (const auto& g : layout.set.groups) points.push_back({g.link, g.other, g.count});
  std::vector<std::pair<int, std::vector<int>>> terms;  // rows, links
  for (const auto& b : layout.set.blocks) {
    terms.push_back({b.rows, {}});
    for (int t = 0; t < b.terms; ++t) terms.back().second.push_back(layout.set.terms[b.term + t].link);
  }
  nb::dict out;
  out["steps"] = steps;
  out["idle"] = layout.coupled.idle;
  out["points"] = points;
  out["terms"] = terms;
  out["joint_rows"] = layout.set.joint_rows.size();
  return out;
}

template <class T>
using Sweep = void (Operator<T>::*)(const T*, int, T*);

template <class T>
door::Array sweep(HeldOperator<T>& s, Sweep<T> method, nb::handle x, std::size_t from, std::size_t to, int columns,
                  bool vector, nb::handle out, const char* what) {
  using In = door::Input<T>;
  using Out = door::Output<T>;
  const std::size_t k = std::size_t(columns);
  In in = vector ? In(x, "x", {from}) : In(x, "x", {from, k});
  Out result = vector ? Out(out, {to}) : Out(out, {to, k});
  result.apart_from(in);
  s.work([&] { (s.G.get()->*method)(in.data, columns, result.data); });
  return result.finite(what);
}

// All forms are one class to Python: a class of its own for each would have the type of every argument looked up among
// its bases.
template <class T, Form form>
void bind_form(nb::module_& m, const char* name) {
  m.def(
      name,
      [](std::shared_ptr<const HeldModel> held, const std::vector<ConstraintDescription>& list) {
        const auto& model = held->in<T>();
        auto G = make_operator(form, model, make_constraints(model, list));
        return new HeldOperator<T>{{std::move(held), std::move(G)}};
      },
      "model"_a, "constraints"_a);
}

template <class T>
struct HeldBatch : Damped<T, Held<BatchOperator<T>>> {
  HeldBatch(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list, int batch, int threads)
      : Damped<T, Held<BatchOperator<T>>>{
            {m, make_batch_operator(m->in<T>(), make_constraints(m->in<T>(), list), batch, threads)}} {}
  std::size_t states() const { return std::size_t(this->G->batch()); }

  // Solutions of all states, each within the limit.
  void solve(const T* y, int columns, T* x, const Accuracy<T>& wanted) {
    errors.resize(states());
    this->work([&] { this->G->solve(y, columns, x, wanted, errors.data()); });
    const auto worst = std::max_element(errors.begin(), errors.end());
    if (worst != errors.end())
      door::check_accuracy(double(*worst), double(wanted.limit), " in state " + std::to_string(worst - errors.begin()));
  }

 private:
  std::vector<T> errors;  // a state: backward error of the last solve
};

// Arrays with one number per row, of a batch per state and row: an argument, one that may not fit, a result.
template <class T>
door::Input<T> rows_in(const HeldOperator<T>& s, nb::handle value, const char* name) {
  return {value, name, {s.rows()}};
}
template <class T>
door::Input<T> rows_in(const HeldBatch<T>& s, nb::handle value, const char* name) {
  return {value, name, {s.states(), s.rows()}};
}
template <class T>
bool borrow_rows(const HeldOperator<T>& s, nb::handle value, door::Lent<T>& in) {
  return in.borrow(value, {s.rows()});
}
template <class T>
bool borrow_rows(const HeldBatch<T>& s, nb::handle value, door::Lent<T>& in) {
  return in.borrow(value, {s.states(), s.rows()});
}
template <class T>
door::Output<T> rows_out(const HeldOperator<T>& s) {
  return {nb::none(), {s.rows()}};
}
template <class T>
door::Output<T> rows_out(const HeldBatch<T>& s) {
  return {nb::none(), {s.states(), s.rows()}};
}

// A copy of damping or compliance.
template <class T, class Self>
door::Array copied_rows(const Self& s, const std::vector<T>& values) {
  auto out = rows_out<T>(s);
  std::copy(values.begin(), values.end(), out.data);
  return out.object;
}

// The usual way: one NumPy array without an axis for columns in, a new one out. None where anything is unusual, be it
// the type, the shape, a number that is not finite, or an operator without numbers: the careful way then serves it, or
// says what is wrong.
template <class T, class Self, class F>
door::MaybeArray usual(Self& s, bool ready, nb::handle x, const char* what, F&& work) {
  door::Lent<T> in;
  if (!ready || !door::is_ndarray(x) || !borrow_rows<T>(s, x, in) || !door::all_finite(in.data(), in.size()))
    return door::MaybeArray::none();
  auto out = rows_out<T>(s);
  work(in.data(), out.data);
  return out.finite(what);
}

// Damping, compliance and freshness, of one state and of a batch alike.
template <class T, class Self>
void bind_damped(nb::class_<Self>& c) {
  c.def_prop_ro("damping",
                [](const Self& s) {
                  return s.damped ? door::MaybeArray(copied_rows<T>(s, s.damping)) : door::MaybeArray::none();
                })
      .def_prop_ro("compliance", [](const Self& s) { return copied_rows<T>(s, s.compliance); })
      .def_prop_ro("fresh", [](const Self& s) { return s.fresh.load(); })
      .def_prop_ro("factored", [](const Self& s) { return s.factored.load(); })
      .def("factor", [](Self& s) { s.factor(); })
      .def(
          "set_compliance",
          [](Self& s, nb::handle c) {
            const auto in = rows_in<T>(s, c, "compliance");
            s.set_compliance(in.data, in.array.size());
          },
          "compliance"_a.none())
      .def(
          "set_damping",
          [](Self& s, nb::handle d) {
            const auto in = rows_in<T>(s, d, "damping");
            s.set_damping(in.data, in.array.size());
          },
          "damping"_a.none())
      .def(
          "set_accuracy",
          [](Self& s, int refinements, double goal, double limit) {
            door::Occupied occupied(s.busy, "this operator");
            s.accuracy = {refinements, T(goal), T(limit)};
          },
          "refinements"_a, "goal"_a, "limit"_a);
}

template <class T>
void bind_operator(nb::module_& m, const char* name) {
  using Self = HeldOperator<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  auto c = with_stopwatch(nb::class_<Self>(m, name));
  bind_damped<T>(c);
  c.def_prop_ro("nbytes", [](const Self& s) { return s.G->bytes(); })
      .def_prop_ro("order",
                   [](const Self& s) {
                     std::vector<int> order;
                     for (const auto& step : s.G->layout().coupled.steps) order.push_back(step.link);
                     return order;
                   })
      .def_prop_ro("couplings", [](const Self& s) { return s.G->layout().coupled.blocks; })
      .def_prop_ro("widest", [](const Self& s) { return s.G->layout().coupled.widest; })
      .def_prop_ro("plan", [](const Self& s) { return plan(s.G->layout()); })
      .def(
          "update",
          [](Self& s, nb::handle q) {
            s.forget();
            auto q_ = door::configuration(s.held->template in<T>(), q);
            if (!s.update(q_.data)) door::raise_singular("update");
          },
          "q"_a.none())
      .def(
          "place",
          [](Self& s, nb::handle q) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            s.work([&] { s.G->place(q_.data); });
          },
          "q"_a.none())
      .def(
          "product",
          [](Self& s, nb::handle x) {
            return usual<T>(s, s.fresh, x, "matvec",
                            [&](const T* in, T* out) { s.work_briefly([&] { s.G->apply(in, 1, out); }); });
          },
          "x"_a.none())
      .def(
          "solution",
          [](Self& s, nb::handle y) {
            return usual<T>(s, s.factored, y, "solve", [&](const T* in, T* out) {
              T error{};
              s.work_briefly([&] { error = s.G->solve(in, 1, out, s.accuracy); });
              door::check_accuracy(double(error), double(s.accuracy.limit));
            });
          },
          "y"_a.none())
      .def(
          "apply",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            return sweep<T>(s, &Operator<T>::apply, x, s.rows(), s.rows(), columns, vector, out, "matvec");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "jacobian",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            return sweep<T>(s, &Operator<T>::jacobian, x, s.nv(), s.rows(), columns, vector, out, "jacobian");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "jacobian_transpose",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            return sweep<T>(s, &Operator<T>::jacobian_transpose, x, s.rows(), s.nv(), columns, vector, out, "jacobian");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "mass_inverse",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            return sweep<T>(s, &Operator<T>::mass_inverse, x, s.nv(), s.nv(), columns, vector, out, "mass_inverse");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "solve",
          [](Self& s, nb::handle y, int columns, bool vector, int refinements, double goal, double limit,
             nb::handle out) {
            const std::size_t k = std::size_t(columns);
            In in = vector ? In(y, "y", {s.rows()}) : In(y, "y", {s.rows(), k});
            Out x = vector ? Out(out, {s.rows()}) : Out(out, {s.rows(), k});
            x.apart_from(in);
            T error{};
            s.work([&] { error = s.G->solve(in.data, columns, x.data, {refinements, T(goal), T(limit)}); });
            door::check_accuracy(double(error), double(T(limit)));
            return x.finite("solve");
          },
          "y"_a.none(), "columns"_a, "vector"_a, "refinements"_a, "goal"_a, "limit"_a, "out"_a.none())
      .def(
          "backward_error",
          [](Self& s, nb::handle x, nb::handle y, int columns, bool vector) {
            const std::size_t k = std::size_t(columns);
            In x_ = vector ? In(x, "x", {s.rows()}) : In(x, "x", {s.rows(), k});
            In y_ = vector ? In(y, "y", {s.rows()}) : In(y, "y", {s.rows(), k});
            Out errors(nb::none(), {k});
            s.work([&] { s.G->backward_error(y_.data, x_.data, columns, errors.data); });
            return errors.object;
          },
          "x"_a.none(), "y"_a.none(), "columns"_a, "vector"_a);
}

template <class T>
void bind_batch(nb::module_& m, const char* name) {
  using Self = HeldBatch<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  nb::class_<Self> c(m, name);
  bind_damped<T>(c);
  c.def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&, int, int>(), "model"_a,
        "constraints"_a, "batch"_a, "threads"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.G->bytes(); })
      .def(
          "update",
          [](Self& s, nb::handle q) {
            s.forget();
            auto q_ = door::configurations(s.held->template in<T>(), q, s.states());
            if (!s.update(q_.data)) door::raise_singular("update");
          },
          "q"_a.none())
      .def(
          "product",
          [](Self& s, nb::handle x) {
            return usual<T>(s, s.fresh, x, "matvec",
                            [&](const T* in, T* out) { s.work([&] { s.G->apply(in, 1, out); }); });
          },
          "x"_a.none())
      .def(
          "solution",
          [](Self& s, nb::handle y) {
            return usual<T>(s, s.factored, y, "solve", [&](const T* in, T* out) { s.solve(in, 1, out, s.accuracy); });
          },
          "y"_a.none())
      .def(
          "apply",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            const std::size_t k = std::size_t(columns);
            In in = vector ? In(x, "x", {s.states(), s.rows()}) : In(x, "x", {s.states(), s.rows(), k});
            Out y = vector ? Out(out, {s.states(), s.rows()}) : Out(out, {s.states(), s.rows(), k});
            y.apart_from(in);
            s.work([&] { s.G->apply(in.data, columns, y.data); });
            return y.finite("matvec");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "solve",
          [](Self& s, nb::handle y, int columns, bool vector, int refinements, double goal, double limit,
             nb::handle out) {
            const std::size_t k = std::size_t(columns);
            In in = vector ? In(y, "y", {s.states(), s.rows()}) : In(y, "y", {s.states(), s.rows(), k});
            Out x = vector ? Out(out, {s.states(), s.rows()}) : Out(out, {s.states(), s.rows(), k});
            x.apart_from(in);
            s.solve(in.data, columns, x.data, {refinements, T(goal), T(limit)});
            return x.finite("solve");
          },
          "y"_a.none(), "columns"_a, "vector"_a, "refinements"_a, "goal"_a, "limit"_a, "out"_a.none())
      .def(
          "backward_error",
          [](Self& s, nb::handle x, nb::handle y, int columns, bool vector) {
            const std::size_t k = std::size_t(columns);
            In x_ = vector ? In(x, "x", {s.states(), s.rows()}) : In(x, "x", {s.states(), s.rows(), k});
            In y_ = vector ? In(y, "y", {s.states(), s.rows()}) : In(y, "y", {s.states(), s.rows(), k});
            Out errors(nb::none(), {s.states(), k});
            s.work([&] { s.G->backward_error(y_.data, x_.data, columns, errors.data); });
            return errors.object;
          },
          "x"_a.none(), "y"_a.none(), "columns"_a, "vector"_a);
}

// Methods by their names in the API.
constexpr std::pair<const char*, MatrixMethod> matrix_methods[] = {
    {"ltl", MatrixMethod::ltl},         {"kjr", MatrixMethod::kjr},           {"efpa", MatrixMethod::efpa},
    {"pv-osim", MatrixMethod::pv_osim}, {"pv-osimr", MatrixMethod::pv_osimr}, {"oscm", MatrixMethod::oscm},
    {"columns", MatrixMethod::columns}};
constexpr std::pair<const char*, InverseMethod> inverse_methods[] = {{"caba-osim", InverseMethod::caba_osim},
                                                                     {"caba-osimf", InverseMethod::caba_osimf},
                                                                     {"pv-osimf", InverseMethod::pv_osimf},
                                                                     {"ltl", InverseMethod::ltl},
                                                                     {"lcaba", InverseMethod::lcaba}};

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
      if (this->G->supports(method))
        list.push_back({name, {this->G->cost(method).time, this->G->cost(method).common, this->G->cost(method).own}});
    return list;
  }
};

template <class T>
void bind_explicit(nb::module_& m, const char* name) {
  using Self = HeldExplicit<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;
  with_stopwatch(nb::class_<Self>(m, name))
      .def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&>(), "model"_a,
           "constraints"_a)
      .def_prop_ro("nbytes", [](const Self& s) { return s.G->bytes(); })
      .def_prop_ro("compliance",
                   [](const Self& s) {
                     Out out(nb::none(), {s.rows()});
                     std::copy_n(s.G->compliance(), s.rows(), out.data);
                     return out.object;
                   })
      .def_prop_ro("matrix_costs", [](const Self& s) { return s.costs(matrix_methods); })
      .def_prop_ro("inverse_costs", [](const Self& s) { return s.costs(inverse_methods); })
      .def(
          "set_compliance",
          [](Self& s, nb::handle c) {
            In c_(c, "compliance", {s.rows()});
            s.work([&] { s.G->set_compliance(c_.data); });
          },
          "compliance"_a.none())
      .def(
          "matrix",
          [](Self& s, const char* method, nb::handle q, nb::handle out) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            Out G(out, {s.rows(), s.rows()});
            G.apart_from(q_);
            bool regular = false;
            s.work([&] { regular = s.G->matrix(named(matrix_methods, method), q_.data, G.data); });
            return G.regular(regular, "delassus_matrix");
          },
          "method"_a, "q"_a.none(), "out"_a.none())
      .def(
          "inverse",
          [](Self& s, const char* method, nb::handle q, nb::handle damping, nb::handle out) {
            auto q_ = door::configuration(s.held->template in<T>(), q);
            In d_(damping, "damping", {s.rows()});
            for (std::size_t r = 0; r < s.rows(); ++r)
              if (!(d_.data[r] >= 0 && d_.data[r] + s.G->compliance()[r] > 0))
                door::raise(
                    "ArgumentError",
                    "damping: expected numbers that are not negative, and positive where there is no compliance, got " +
                        std::to_string(d_.data[r]) + " in row " + std::to_string(r) + ". Use 1e-6, for instance.");
            Out X(out, {s.rows(), s.rows()});
            X.apart_from(q_, d_);
            bool regular = false;
            s.work([&] { regular = s.G->inverse(named(inverse_methods, method), q_.data, d_.data, X.data); });
            return X.regular(regular, "damped_delassus_inverse");
          },
          "method"_a, "q"_a.none(), "damping"_a.none(), "out"_a.none());
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("callgrind", &callgrind, "request"_a);
  bind_explicit<double>(m, "Explicit64");
  bind_explicit<float>(m, "Explicit32");
  bind_operator<double>(m, "Operator64");
  bind_operator<float>(m, "Operator32");
  bind_form<double, Form::matrix_free>(m, "Delassus64");
  bind_form<float, Form::matrix_free>(m, "Delassus32");
  bind_form<double, Form::inverse>(m, "Dense64");
  bind_form<float, Form::inverse>(m, "Dense32");
  bind_form<double, Form::cholesky>(m, "Cholesky64");
  bind_form<float, Form::cholesky>(m, "Cholesky32");
  bind_batch<double>(m, "BatchDelassus64");
  bind_batch<float>(m, "BatchDelassus32");
}

}  // namespace delassus
