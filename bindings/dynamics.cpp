#include "dynamics/compiled.h"
#include "rooms.h"
#include "workspace.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

template <class T>
void bind_dynamics(WorkspaceClass<T>& c) {
  using Self = HeldWorkspace<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;

  c.def(
      "inverse_dynamics",
      [](Self& s, nb::handle q, nb::handle v, nb::handle a, nb::handle external, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()}), a_(a, "acceleration", {s.nv()}, true),
            e_(external, "external_forces", {s.bodies(), 6}, true);
        Out tau(out, {s.nv()});
        tau.apart_from(q_, v_, a_, e_);
        s.work(q_, [&] { rnea(s.model, s.w, v_.data, a_.data, e_.data, tau.data); });
        return tau.finite("inverse_dynamics");
      },
      "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "external_forces"_a.none(), "out"_a.none());

  c.def(
      "forward_dynamics",
      [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        In v_(v, "v", {s.nv()}), t_(tau, "tau", {s.nv()}, true), e_(external, "external_forces", {s.bodies(), 6}, true);
        Out a(out, {s.nv()});
        a.apart_from(q_, v_, t_, e_);
        bool regular = false;
        s.work(q_, [&] {
          aba(s.model, s.w, v_.data, t_.data, e_.data, a.data);
          regular = is_regular(s.model, s.w);
        });
        return a.regular(regular, "forward_dynamics");
      },
      "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "out"_a.none());

  c.def(
      "mass_matrix",
      [](Self& s, nb::handle q, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        Out M(out, {s.nv(), s.nv()});
        M.apart_from(q_);
        s.work(q_, [&] { crba(s.model, s.w, M.data); });
        return M.finite("mass_matrix");
      },
      "q"_a.none(), "out"_a.none());

  c.def(
      "mass_matrix_inverse",
      [](Self& s, nb::handle q, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        Out M(out, {s.nv(), s.nv()});
        M.apart_from(q_);
        bool regular = false;
        s.work(q_, [&] {
          mass_matrix_inverse(s.model, s.w, M.data);
          regular = is_regular(s.model, s.w);
        });
        return M.regular(regular, "mass_matrix_inverse");
      },
      "q"_a.none(), "out"_a.none());

  c.def(
      "solve_mass_matrix",
      [](Self& s, nb::handle q, nb::handle y, int columns, bool vector, nb::handle out) {
        auto q_ = door::configuration(s.model, q);
        const std::size_t k = std::size_t(columns);
        In y_ = vector ? In(y, "y", {s.nv()}) : In(y, "y", {s.nv(), k});
        Out x = vector ? Out(out, {s.nv()}) : Out(out, {s.nv(), k});
        x.apart_from(q_, y_);
        bool regular = false;
        s.work(q_, [&] {
          factorize(s.model, s.w);
          regular = is_regular(s.model, s.w);
          solve_mass_matrix(s.model, s.w, y_.data, columns, x.data);
        });
        return x.regular(regular, "solve_mass_matrix");
      },
      "q"_a.none(), "y"_a.none(), "columns"_a, "vector"_a, "out"_a.none());
}

template void bind_dynamics<double>(WorkspaceClass<double>&);
template void bind_dynamics<float>(WorkspaceClass<float>&);

}  // namespace delassus
