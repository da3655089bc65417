// Objects of the core that Python holds: a lock that lets one thread at a time use an object, and the model in both
// precisions, with checks of its configurations.
#pragma once

#include <memory>

#include "door.h"
#include "model/model.h"
#include "stopwatch.h"

namespace delassus {

// One user at a time, without the interpreter's lock; a second one is told so by this name.
struct SingleUser {
  const char* name;
  std::atomic<bool> busy{false};
  Stopwatch watch{};

  explicit SingleUser(const char* name_) : name(name_) {}

  template <class F>
  void work(F&& f) {
    door::Occupied occupied(busy, name);
    door::Unlocked unlocked;
    watch.run(f);
  }
};

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

namespace door {

// Quaternions of a configuration must have unit length; how far off is still taken for rounding.
template <class T>
constexpr T quaternion_slack = sizeof(T) == 8 ? T(1e-6) : T(1e-4);

// Every quaternion of one configuration, which is the row `state` of `name`, or all of it (−1).
template <class T>
void check_quaternions(const Model<T>& model, const T* q, const std::string& name, int state = -1) {
  for (const auto& link : model.links) {
    if (link.type != Joint::ball && link.type != Joint::free) continue;
    const int at = link.iq + (link.type == Joint::free ? 3 : 0);
    const T* c = q + at;
    const T norm = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
    if (!(std::abs(norm - 1) <= quaternion_slack<T>)) {
      const std::string row = state < 0 ? "" : std::to_string(state) + ", ";
      raise("QuaternionError", name + ": the quaternion (w, x, y, z) at " + name + "[" + row + std::to_string(at) +
                                   ":" + std::to_string(at + 4) + "] must have length 1, got " + std::to_string(norm) +
                                   ". Use delassus.normalize(model, q).");
    }
  }
}

template <class T>
Input<T> configuration(const Model<T>& model, nb::handle value, const char* name = "q") {
  Input<T> q(value, name, {std::size_t(model.nq)});
  check_quaternions(model, q.data, name);
  return q;
}

// One configuration a row.
template <class T>
Input<T> configurations(const Model<T>& model, nb::handle value, std::size_t states, const char* name = "q") {
  Input<T> q(value, name, {states, std::size_t(model.nq)});
  for (std::size_t s = 0; s < states; ++s) check_quaternions(model, q.data + s * std::size_t(model.nq), name, int(s));
  return q;
}

}  // namespace door
}  // namespace delassus
