// Python's handles of what simulations are built from: the description of a world, and the access to MuJoCo.
#pragma once

#include "held.h"
#include "simulator/sensing.h"
#include "simulator/snapshot.h"
#include "simulator_records.h"

namespace delassus {

// How to reach MuJoCo's collisions; keeps its model.
struct HeldCollisions {
  CollisionSource source;
  nb::object model;
};

// How to reach what MuJoCo computes of a state; keeps its model.
struct HeldMirror {
  MirrorSource source;
  nb::object model;
  Numbers start, mocap;  // the rest of MuJoCo's state as its data has it at first; poses of bodies that a user moves
};

// How to reach MuJoCo's sensors; keeps its model.
struct HeldSensing {
  SensingSource source;
  nb::object model;
};

// Shared by all worlds of a simulation.
struct WorldPlan {
  std::shared_ptr<const WorldDescription> world;
  HeldCollisions collisions;
  HeldMirror mirror;
  int controls;  // of actuators

  std::unique_ptr<World> make(int threads = 1) const {
    auto made = std::make_unique<World>(world, collisions.source, mirror.source, threads);
    begin(*made);
    return made;
  }
  // What a world has at first besides q and v.
  void begin(World& w) const {
    w.hidden = mirror.start;
    w.mocap = w.mocap_goal = mirror.mocap;
    std::fill(w.row_forces.begin(), w.row_forces.end(), 0.0);
    w.time = 0;
    w.memory = {};
  }
  // The state and the memory in a snapshot, checked.
  void restore(World& w, const double* numbers, std::size_t n) const {
    SavedState saved = read_snapshot(w, collisions.source, numbers, n);
    door::check_quaternions(world->model, saved.q.data(), "snapshot's q");
    w.q.swap(saved.q), w.v.swap(saved.v), w.hidden.swap(saved.hidden);
    w.mocap.swap(saved.mocap), w.mocap_goal.swap(saved.mocap_goal);
    std::fill(w.row_forces.begin(), w.row_forces.end(), 0.0);
    w.time = saved.time;
    w.memory = std::move(saved.memory);
  }
  std::size_t nq() const { return std::size_t(world->model.nq); }
  std::size_t nv() const { return std::size_t(world->model.nv); }
  std::size_t nu() const { return std::size_t(controls); }
  std::size_t bodies() const { return world->model.bodies.size(); }
};

// Raises MujocoError. If a Python callback raised an exception that stopped MuJoCo, that exception becomes the cause.
[[noreturn]] inline void raise_mujoco(const std::string& failure) {
  const std::string message = "MuJoCo stopped: " + failure;
  if (!PyErr_Occurred()) door::raise("MujocoError", message);
  nb::python_error cause;
  const nb::object type = nb::module_::import_("delassus.errors").attr("MujocoError");
  cause.restore();
  nb::chain_error(type, "%s", message.c_str());
  throw nb::python_error();
}

inline door::Array copied(const Numbers& x) {
  door::Output<double> array(nb::none(), {x.size()});
  std::copy(x.begin(), x.end(), array.data);
  return array.object;
}

}  // namespace delassus
