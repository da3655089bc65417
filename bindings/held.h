// The model as Python holds it, in both precisions, and its configurations at the door.
#pragma once

#include <memory>

#include "door.h"
#include "model/model.h"

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

namespace door {

// Quaternions of a configuration must have unit length; how far off is still taken for rounding.
template <class T>
constexpr T quaternion_slack = sizeof(T) == 8 ? T(1e-6) : T(1e-4);

template <class T>
Input<T> configuration(const Model<T>& model, nb::handle value, const char* name = "q") {
  Input<T> q(value, name, {std::size_t(model.nq)});
  for (const auto& link : model.links) {
    if (link.type != Joint::ball && link.type != Joint::free) continue;
    const int at = link.iq + (link.type == Joint::free ? 3 : 0);
    const T* c = q.data + at;
    const T norm = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
    if (!(std::abs(norm - 1) <= quaternion_slack<T>))
      raise("QuaternionError", std::string(name) + ": the quaternion (w, x, y, z) at " + name + "[" + std::to_string(at) + ":" + std::to_string(at + 4) +
                                   "] must have length 1, got " + std::to_string(norm) + ". Use delassus.normalize(model, " + name + ").");
  }
  return q;
}

}  // namespace door
}  // namespace delassus
