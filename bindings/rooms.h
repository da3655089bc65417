// What the rooms' bindings share: the held model, the workspace class, one function a room.
#pragma once

#include <memory>

#include "door.h"
#include "dynamics/kinematics.h"

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

  std::size_t nq() const { return std::size_t(model.nq); }
  std::size_t nv() const { return std::size_t(model.nv); }
  std::size_t bodies() const { return model.bodies.size(); }

  // Runs core work at configuration q without the interpreter's lock, the workspace marked as in use.
  template <class F>
  void work(const door::Input<T>& q, F&& f) {
    door::Occupied occupied(busy);
    nanobind::gil_scoped_release unlocked;
    kinematics(model, w, q.data);
    f();
  }
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
