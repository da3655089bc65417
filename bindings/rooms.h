// One function a room.
#pragma once

#include <nanobind/nanobind.h>

namespace delassus {

template <class T>
struct HeldWorkspace;
template <class T>
using WorkspaceClass = nanobind::class_<HeldWorkspace<T>>;

void bind_spatial(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
void bind_model(nanobind::module_& m);
template <class T>
void bind_dynamics(WorkspaceClass<T>& c);
template <class T>
void bind_state(WorkspaceClass<T>& c);
void bind_constraints(nanobind::module_& m);
void bind_operators(nanobind::module_& m);
void bind_explicit(nanobind::module_& m);
void bind_solvers(nanobind::module_& m);
void bind_contacts(nanobind::module_& m);
void bind_complementarity(nanobind::module_& m);
void bind_derivatives(nanobind::module_& m);
void bind_linearization(nanobind::module_& m);
void bind_contact_derivatives(nanobind::module_& m);
void bind_simulator(nanobind::module_& m);
void bind_worlds(nanobind::module_& m);

}  // namespace delassus
