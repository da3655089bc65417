// Python's handle of the memory of sweeps.
#pragma once

#include "dynamics/compiled.h"
#include "held.h"

namespace delassus {

// W is the memory: a Workspace<T>, or one of another module that has more.
template <class T, class W>
struct HeldSweeps : SingleUser {
  std::shared_ptr<const HeldModel> held;
  const Model<T>& model;
  W w;
  explicit HeldSweeps(std::shared_ptr<const HeldModel> m)
      : SingleUser("this Workspace"), held(std::move(m)), model(held->in<T>()), w(model) {}

  std::size_t nq() const { return std::size_t(model.nq); }
  std::size_t nv() const { return std::size_t(model.nv); }
  std::size_t bodies() const { return model.bodies.size(); }

  // Runs core work at configuration q without the interpreter's lock, the workspace marked as in use.
  template <class F>
  void work(const door::Input<T>& q, F&& f) {
    SingleUser::work([&] {
      kinematics(model, w, q.data);
      f();
    });
  }
};

template <class T>
struct HeldWorkspace : HeldSweeps<T, Workspace<T>> {
  using HeldSweeps<T, Workspace<T>>::HeldSweeps;
};

}  // namespace delassus
