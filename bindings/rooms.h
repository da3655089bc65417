// What the rooms' bindings share: the held model, the workspace class, one function a room.
#pragma once

#include <memory>

#include "door.h"
#include "dynamics/workspace.h"

namespace delassus {

struct HeldModel {
  Model<double> wide;
  Model<float> narrow;
  template <class T>
  const Model<T>& in() const {
    if constexpr (sizeof(T) == 8)
      return wide;
    else
      return narrow;
  }
};

template <class T>
struct HeldWorkspace {
  std::shared_ptr<const HeldModel> held;
  const Model<T>& model;
  Workspace<T> w;
  std::atomic<bool> busy{false};
  explicit HeldWorkspace(std::shared_ptr<const HeldModel> m) : held(std::move(m)), model(held->in<T>()), w(model) {}
};

template <class T>
using WorkspaceClass = nanobind::class_<HeldWorkspace<T>>;

void bind_spatial(nanobind::module_& m);
void bind_model(nanobind::module_& m);
template <class T>
void bind_dynamics(nanobind::module_& m, WorkspaceClass<T>& c);
template <class T>
void bind_state(nanobind::module_& m, WorkspaceClass<T>& c);

}  // namespace delassus
