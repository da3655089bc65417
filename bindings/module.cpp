#include <nanobind/stl/shared_ptr.h>

#include "rooms.h"
#include "workspace.h"

namespace nb = nanobind;
using namespace delassus;

template <class T>
static void bind_workspace(nb::module_& m, const char* name) {
  WorkspaceClass<T> c(m, name);
  c.def(nb::init<std::shared_ptr<const HeldModel>>(), nb::arg("model"));
  with_stopwatch(c);
  bind_dynamics<T>(c);
  bind_state<T>(c);
}

NB_MODULE(_core, m) {
  // models that a program still holds when it ends are no leak
  nb::set_leak_warnings(false);
  nb::register_exception_translator(door::translate);
  m.doc() = "Compiled sweeps. Private: use the functions of the package.";
  m.attr("compiler") = DELASSUS_COMPILER;
  m.attr("flags") = DELASSUS_FLAGS;
  bind_spatial(m);
  bind_dense(m);
  bind_model(m);
  bind_workspace<double>(m, "Workspace64");
  bind_workspace<float>(m, "Workspace32");
  bind_constraints(m);
  bind_operators(m);
  bind_solvers(m);
  bind_contacts(m);
  bind_complementarity(m);
  bind_derivatives(m);
  bind_linearization(m);
  bind_contact_derivatives(m);
  bind_simulator(m);
  bind_worlds(m);
}
