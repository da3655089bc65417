#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"
#include "rooms.h"

namespace delassus {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

// Runs the core without the interpreter's lock, the workspace marked as in use.
template <class T, class F>
void work(HeldWorkspace<T>& s, F&& f) {
  door::Occupied occupied(s.busy);
  nb::gil_scoped_release unlocked;
  f();
}

template <class T>
std::size_t velocities(const HeldWorkspace<T>& s) {
  return std::size_t(s.model.nv);
}

}  // namespace

template <class T>
void bind_dynamics(nb::module_&, WorkspaceClass<T>& c) {
  using Self = HeldWorkspace<T>;
  using In = door::Input<T>;
  using Out = door::Output<T>;

  c.def("inverse_dynamics", [](Self& s, nb::handle q, nb::handle v, nb::handle a, nb::handle external, nb::handle out) {
    auto q_ = door::configuration(s.model, q);
    In v_(v, "v", {velocities(s)}), a_(a, "acceleration", {velocities(s)}, true), e_(external, "external_forces", {s.model.bodies.size(), 6}, true);
    Out tau(out, {velocities(s)});
    work(s, [&] {
      kinematics(s.model, s.w, q_.data);
      rnea(s.model, s.w, v_.data, a_.data, e_.data, tau.data);
    });
    return tau.finite("inverse_dynamics");
  }, "q"_a.none(), "v"_a.none(), "acceleration"_a.none(), "external_forces"_a.none(), "out"_a.none());

  c.def("forward_dynamics", [](Self& s, nb::handle q, nb::handle v, nb::handle tau, nb::handle external, nb::handle out) {
    auto q_ = door::configuration(s.model, q);
    In v_(v, "v", {velocities(s)}), t_(tau, "tau", {velocities(s)}, true), e_(external, "external_forces", {s.model.bodies.size(), 6}, true);
    Out a(out, {velocities(s)});
    work(s, [&] {
      kinematics(s.model, s.w, q_.data);
      aba(s.model, s.w, v_.data, t_.data, e_.data, a.data);
    });
    return a.finite("forward_dynamics");
  }, "q"_a.none(), "v"_a.none(), "tau"_a.none(), "external_forces"_a.none(), "out"_a.none());

  c.def("mass_matrix", [](Self& s, nb::handle q, nb::handle out) {
    auto q_ = door::configuration(s.model, q);
    Out M(out, {velocities(s), velocities(s)});
    work(s, [&] {
      kinematics(s.model, s.w, q_.data);
      crba(s.model, s.w, M.data);
    });
    return M.finite("mass_matrix");
  }, "q"_a.none(), "out"_a.none());

  c.def("mass_matrix_inverse", [](Self& s, nb::handle q, nb::handle out) {
    auto q_ = door::configuration(s.model, q);
    Out M(out, {velocities(s), velocities(s)});
    work(s, [&] {
      kinematics(s.model, s.w, q_.data);
      mass_matrix_inverse(s.model, s.w, M.data);
    });
    return M.finite("mass_matrix_inverse");
  }, "q"_a.none(), "out"_a.none());

  c.def("solve_mass_matrix", [](Self& s, nb::handle q, nb::handle y, int columns, bool vector, nb::handle out) {
    auto q_ = door::configuration(s.model, q);
    const std::size_t k = std::size_t(columns);
    In y_ = vector ? In(y, "y", {velocities(s)}) : In(y, "y", {velocities(s), k});
    Out x = vector ? Out(out, {velocities(s)}) : Out(out, {velocities(s), k});
    work(s, [&] {
      kinematics(s.model, s.w, q_.data);
      factorize(s.model, s.w);
      solve_mass_matrix(s.model, s.w, y_.data, columns, x.data);
    });
    return x.finite("solve_mass_matrix");
  }, "q"_a.none(), "y"_a.none(), "columns"_a, "vector"_a, "out"_a.none());
}

template void bind_dynamics<double>(nb::module_&, WorkspaceClass<double>&);
template void bind_dynamics<float>(nb::module_&, WorkspaceClass<float>&);

}  // namespace delassus
