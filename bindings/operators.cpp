#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "held_operator.h"
#include "operators_blocks.h"
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
    const auto& at = layout.coupled.storage[k];
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

// All forms are one class to Python: a class of its own for each would have the type of every argument looked up among
// its bases.
template <class T>
void bind_form(nb::module_& m, Form form, const std::string& name) {
  m.def(
      name.c_str(),
      [form](std::shared_ptr<const HeldModel> held, const std::vector<ConstraintDescription>& list) {
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
  std::size_t states() const { return std::size_t(this->core->batch()); }
  std::vector<T> errors;  // a state: backward error of the last solve
};

// What one state and a batch differ in: the axes of arrays, and how a solution is judged.

template <class T>
auto configurations_in(const HeldOperator<T>& s, nb::handle q) {
  return door::configuration(s.held->template in<T>(), q);
}
template <class T>
auto configurations_in(const HeldBatch<T>& s, nb::handle q) {
  return door::configurations(s.held->template in<T>(), q, s.states());
}

// Columns of `length` numbers: shape (length,) of a vector, else (length, count); of a batch with the states before.
struct Columns {
  std::size_t length, count;
  bool vector;
};
template <class T>
door::Input<T> columns_in(const HeldOperator<T>&, nb::handle value, const char* name, const Columns& x) {
  using In = door::Input<T>;
  return x.vector ? In(value, name, {x.length}) : In(value, name, {x.length, x.count});
}
template <class T>
door::Input<T> columns_in(const HeldBatch<T>& s, nb::handle value, const char* name, const Columns& x) {
  using In = door::Input<T>;
  return x.vector ? In(value, name, {s.states(), x.length}) : In(value, name, {s.states(), x.length, x.count});
}
template <class T>
door::Output<T> columns_out(const HeldOperator<T>&, nb::handle out, const Columns& x) {
  using Out = door::Output<T>;
  return x.vector ? Out(out, {x.length}) : Out(out, {x.length, x.count});
}
template <class T>
door::Output<T> columns_out(const HeldBatch<T>& s, nb::handle out, const Columns& x) {
  using Out = door::Output<T>;
  return x.vector ? Out(out, {s.states(), x.length}) : Out(out, {s.states(), x.length, x.count});
}
// One number per row.
template <class T, class Self>
door::Input<T> rows_in(const Self& s, nb::handle value, const char* name) {
  return columns_in<T>(s, value, name, {s.rows(), 1, true});
}
template <class T, class Self>
door::Output<T> rows_out(const Self& s) {
  return columns_out<T>(s, nb::none(), {s.rows(), 1, true});
}
// The same of an argument that may not fit.
template <class T>
bool borrow_rows(const HeldOperator<T>& s, nb::handle value, door::Lent<T>& in) {
  return in.borrow(value, {s.rows()});
}
template <class T>
bool borrow_rows(const HeldBatch<T>& s, nb::handle value, door::Lent<T>& in) {
  return in.borrow(value, {s.states(), s.rows()});
}
// One number per column.
template <class T>
door::Output<T> errors_out(const HeldOperator<T>&, std::size_t columns) {
  return {nb::none(), {columns}};
}
template <class T>
door::Output<T> errors_out(const HeldBatch<T>& s, std::size_t columns) {
  return {nb::none(), {s.states(), columns}};
}

// Numbers of all blocks, one after the other; of a batch with the states before.
template <class T>
std::size_t states_of(const HeldOperator<T>&) {
  return 1;
}
template <class T>
std::size_t states_of(const HeldBatch<T>& s) {
  return s.states();
}
template <class T>
door::Input<T> blocks_in(HeldOperator<T>& s, nb::handle value) {
  return {value, "damping", {s.block_index().size}};
}
template <class T>
door::Input<T> blocks_in(HeldBatch<T>& s, nb::handle value) {
  return {value, "damping", {s.states(), s.block_index().size}};
}
template <class T>
door::Output<T> blocks_out(const HeldOperator<T>& s) {
  return {nb::none(), {s.blocks.size()}};
}
template <class T>
door::Output<T> blocks_out(const HeldBatch<T>& s) {
  return {nb::none(), {s.states(), s.blocks.size() / s.states()}};
}

// One column of one state may be short work.
template <class T, class F>
void work_on_columns(HeldOperator<T>& s, int columns, F&& f) {
  columns == 1 ? s.work_briefly(f) : s.work(f);
}
template <class T, class F>
void work_on_columns(HeldBatch<T>& s, int, F&& f) {
  s.work(f);
}

// Solutions within the limit, of a batch in every state. A damping of a number per row is its own transposed.
template <class T>
void solve(HeldOperator<T>& s, const T* y, int columns, T* x, bool transposed, const Accuracy<T>& wanted) {
  T error{};
  work_on_columns(s, columns, [&] {
    error =
        s.by_blocks ? s.core->solve_blocks(y, columns, x, transposed, wanted) : s.core->solve(y, columns, x, wanted);
  });
  door::check_accuracy(double(error), double(wanted.limit));
}
template <class T>
void solve(HeldBatch<T>& s, const T* y, int columns, T* x, bool transposed, const Accuracy<T>& wanted) {
  s.errors.resize(s.states());
  s.work([&] {
    if (s.by_blocks)
      s.core->solve_blocks(y, columns, x, transposed, wanted, s.errors.data());
    else
      s.core->solve(y, columns, x, wanted, s.errors.data());
  });
  const auto worst = std::max_element(s.errors.begin(), s.errors.end());
  if (worst != s.errors.end())
    door::check_accuracy(double(*worst), double(wanted.limit), " in state " + std::to_string(worst - s.errors.begin()));
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
                  return s.damped && !s.by_blocks ? door::MaybeArray(copied_rows<T>(s, s.damping))
                                                  : door::MaybeArray::none();
                })
      .def_prop_ro("block_damping",
                   [](const Self& s) {
                     if (!s.by_blocks) return door::MaybeArray::none();
                     auto out = blocks_out<T>(s);
                     std::copy(s.blocks.begin(), s.blocks.end(), out.data);
                     return door::MaybeArray(out.object);
                   })
      .def_prop_ro("compliance", [](const Self& s) { return copied_rows<T>(s, s.compliance); })
      .def_prop_ro("fresh", [](const Self& s) { return s.fresh.load(); })
      .def_prop_ro("factored", [](const Self& s) { return s.factored.load(); })
      .def("factor", [](Self& s) { s.factor(); })
      .def(
          "set_compliance",
          [](Self& s, nb::handle c) {
            const auto in = rows_in<T>(s, c, "compliance");
            if (s.by_blocks)
              door::check_blocks<T>(s.block_index(), s.core->layout(), states_of(s), s.blocks.data(), in.data,
                                    "compliance");
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
          "set_block_damping",
          [](Self& s, nb::handle d) {
            const auto in = blocks_in<T>(s, d);
            door::check_blocks<T>(s.block_index(), s.core->layout(), states_of(s), in.data, s.compliance.data(),
                                  "damping");
            s.set_block_damping(in.data, in.array.size());
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

// Numbers at a configuration, products and solutions, of one state and of a batch alike. `product` and `solution` are
// the usual way, `apply` and `solve` the careful one.
template <class T, class Self>
void bind_products(nb::class_<Self>& c) {
  c.def_prop_ro("nbytes", [](const Self& s) { return s.core->bytes(); })
      .def(
          "update",
          [](Self& s, nb::handle q) {
            s.forget();
            auto q_ = configurations_in<T>(s, q);
            if (!s.update(q_.data)) door::raise_singular("update");
          },
          "q"_a.none())
      .def(
          "product",
          [](Self& s, nb::handle x) {
            return usual<T>(s, s.fresh, x, "matvec",
                            [&](const T* in, T* out) { work_on_columns<T>(s, 1, [&] { s.core->apply(in, 1, out); }); });
          },
          "x"_a.none())
      .def(
          "solution",
          [](Self& s, nb::handle y) {
            return usual<T>(s, s.factored, y, "solve",
                            [&](const T* in, T* out) { solve<T>(s, in, 1, out, false, s.accuracy); });
          },
          "y"_a.none())
      .def(
          "apply",
          [](Self& s, nb::handle x, int columns, bool vector, nb::handle out) {
            const Columns shape{s.rows(), std::size_t(columns), vector};
            const auto in = columns_in<T>(s, x, "x", shape);
            auto y = columns_out<T>(s, out, shape);
            y.apart_from(in);
            s.work([&] { s.core->apply(in.data, columns, y.data); });
            return y.finite("matvec");
          },
          "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none())
      .def(
          "solve",
          [](Self& s, nb::handle y, int columns, bool vector, bool transposed, int refinements, double goal,
             double limit, nb::handle out) {
            const Columns shape{s.rows(), std::size_t(columns), vector};
            const auto in = columns_in<T>(s, y, "y", shape);
            auto x = columns_out<T>(s, out, shape);
            x.apart_from(in);
            solve<T>(s, in.data, columns, x.data, transposed, {refinements, T(goal), T(limit)});
            return x.finite("solve");
          },
          "y"_a.none(), "columns"_a, "vector"_a, "transposed"_a, "refinements"_a, "goal"_a, "limit"_a, "out"_a.none())
      .def(
          "backward_error",
          [](Self& s, nb::handle x, nb::handle y, int columns, bool vector, bool transposed) {
            const Columns shape{s.rows(), std::size_t(columns), vector};
            const auto x_ = columns_in<T>(s, x, "x", shape), y_ = columns_in<T>(s, y, "y", shape);
            auto errors = errors_out<T>(s, std::size_t(columns));
            s.work([&] {
              if (s.by_blocks)
                s.core->block_backward_error(y_.data, x_.data, columns, transposed, errors.data);
              else
                s.core->backward_error(y_.data, x_.data, columns, errors.data);
            });
            return errors.object;
          },
          "x"_a.none(), "y"_a.none(), "columns"_a, "vector"_a, "transposed"_a);
}

template <class T>
using Sweep = void (Operator<T>::*)(const T*, int, T*);
template <class T>
using Length = std::size_t (HeldOperator<T>::*)() const;

// A map of one state from columns of one length to columns of another.
template <class T>
void bind_map(nb::class_<HeldOperator<T>>& c, const char* name, Sweep<T> sweep, Length<T> from, Length<T> to,
              const char* what) {
  c.def(
      name,
      [=](HeldOperator<T>& s, nb::handle x, int columns, bool vector, nb::handle out) {
        const std::size_t count = std::size_t(columns);
        const auto in = columns_in<T>(s, x, "x", {(s.*from)(), count, vector});
        auto result = columns_out<T>(s, out, {(s.*to)(), count, vector});
        result.apart_from(in);
        s.work([&] { (s.core.get()->*sweep)(in.data, columns, result.data); });
        return result.finite(what);
      },
      "x"_a.none(), "columns"_a, "vector"_a, "out"_a.none());
}

template <class T>
void bind_operator(nb::module_& m, const char* name) {
  using Self = HeldOperator<T>;
  auto c = with_stopwatch(nb::class_<Self>(m, name));
  bind_damped<T>(c);
  bind_products<T>(c);
  bind_map<T>(c, "jacobian", &Operator<T>::jacobian, &Self::nv, &Self::rows, "jacobian");
  bind_map<T>(c, "jacobian_transpose", &Operator<T>::jacobian_transpose, &Self::rows, &Self::nv, "jacobian");
  bind_map<T>(c, "mass_inverse", &Operator<T>::mass_inverse, &Self::nv, &Self::nv, "mass_inverse");
  c.def_prop_ro("order",
                [](const Self& s) {
                  std::vector<int> order;
                  for (const auto& step : s.core->layout().coupled.steps) order.push_back(step.link);
                  return order;
                })
      .def_prop_ro("couplings", [](const Self& s) { return s.core->layout().coupled.blocks; })
      .def_prop_ro("widest", [](const Self& s) { return s.core->layout().coupled.widest; })
      .def_prop_ro("plan", [](const Self& s) { return plan(s.core->layout()); })
      .def(
          "place",
          [](Self& s, nb::handle q) {
            auto q_ = configurations_in<T>(s, q);
            s.work([&] { s.core->place(q_.data); });
          },
          "q"_a.none());
}

template <class T>
void bind_batch(nb::module_& m, const char* name) {
  auto c = with_stopwatch(nb::class_<HeldBatch<T>>(m, name));
  c.def(nb::init<std::shared_ptr<const HeldModel>, const std::vector<ConstraintDescription>&, int, int>(), "model"_a,
        "constraints"_a, "batch"_a, "threads"_a);
  bind_damped<T>(c);
  bind_products<T>(c);
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("callgrind", &callgrind, "request"_a);
  bind_explicit(m);
  bind_operator<double>(m, "Operator64");
  bind_operator<float>(m, "Operator32");
  const std::pair<Form, std::string> forms[] = {
      {Form::matrix_free, "Delassus"}, {Form::inverse, "Dense"}, {Form::cholesky, "Cholesky"}};
  for (const auto& [form, name] : forms) {
    bind_form<double>(m, form, name + "64");
    bind_form<float>(m, form, name + "32");
  }
  bind_batch<double>(m, "BatchDelassus64");
  bind_batch<float>(m, "BatchDelassus32");
}

}  // namespace delassus
