// The right-hand side of constrained dynamics: forces on links and joints at zero joint acceleration, and the bias of
// the constraints. O(n + m).
//
//   f = I a + v ×* I v − f_ext at ν̇ = 0 (gravity an upward acceleration),   γ = J̇ν + k_d J ν + k_p e
#pragma once

#include "constraints/bias.h"
#include "dynamics/rnea.h"

namespace delassus {

template <class T>
struct Forcing {
  Motions<T> motions;
  PerLink<Vec6, T> forces;               // f as it was found: sweeps add to that of the motions
  std::vector<T> error, velocity, bias;  // a row: e, J ν, γ
  bool steered = false;                  // some constraint has a gain

  Forcing(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set)
      : motions(link_slots<T>(model)), error(set.rows), velocity(set.rows), bias(set.rows) {
    forces.resize(link_slots<T>(model));
    for (const auto& c : set.constraints) steered = steered || c.kp != 0 || c.kd != 0;
  }
  std::size_t bytes() const { return motions.bytes() + forces.bytes() + 3 * bias.size() * sizeof(T); }

  // After kinematics. External and gamma may be null: nothing, what the constraints say.
  void find(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, const Placement<T>& w, const T* q,
            const T* v, const T* external, const T* gamma) {
    delassus::motions(model, w, motions, v, static_cast<const T*>(nullptr), Vec3<T>{});
    if (gamma) {
      std::copy(gamma, gamma + set.rows, bias.begin());
    } else {
      rates(model, set, w, motions, q, v, velocity.data(), bias.data());
      if (steered) {
        errors(model, set, w, q, error.data());
        add_baumgarte(set, error.data(), velocity.data(), bias.data());
      }
    }
    inertial_forces(w, motions, model.gravity * real_of<T>(-1));
    if (external) subtract_external(model, w, motions, external);
    for (int b = 0; b < forces.blocks(); ++b) forces.block(b) = motions.f.block(b);
  }
};

}  // namespace delassus
