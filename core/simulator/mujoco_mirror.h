// MuJoCo's own copy of a world, for everything that only MuJoCo computes from the state.
//
//   forces    Q(q, v, a, u) = passive + actuation   springs of balls and of tendons, fluid, gravity compensation,
//                                                   muscles, tendon drives …: all that is not ours (actuation.h);
//                                                   less a cᵀ ċ v of tendons with inertia (span_inertia.h)
//   advance   a, and whatever plugins and delays keep, one step on
//   tendons   ℓ(q) and dℓ/dq, for rows of limits, dry friction and equalities of tendons
//
// In this copy of the model everything that the core computes itself is switched off. Its mjData is scratch memory: it
// is written before it is read, so nothing carries over from one step to the next.
#pragma once

#include <string>
#include <vector>

#include "simulator/mujoco_call.h"

namespace delassus {

// How to reach it.
struct MirrorSource {
  MujocoLibrary library;
  const void* model = nullptr;  // an mjModel that outlives every mirror of it; null: there is nothing to compute
  int nq = 0, nv = 0, nu = 0, bodies = 0;
  int signature = 0, state_size = 0;  // of MuJoCo's state besides q and v: mjtState bits, and how many numbers
  int mocap_signature = 0;            // of the poses of bodies that a user moves; 0: there are none
  bool needs_contacts = false;        // adhesion, whose force acts through contacts
  bool advances = false;              // some of its state changes by itself
  bool tendon_inertia = false;        // some tendons have armature
};

class MujocoMirror {
 public:
  explicit MujocoMirror(const MirrorSource& source);

  // State of a world for MuJoCo: q, v, the rest of its state, poses of bodies that a user moves, and controls (null:
  // zero).
  struct State {
    const double *q, *v, *rest, *mocap, *control;
    double time;
  };

  // forces += Q. next: the rest of the state after a step, where it changes by itself. False where MuJoCo could not go
  // on: failure() says why.
  bool add_forces(const State& now, std::vector<double>& forces, std::vector<double>& next);

  // At the q of the last call: length of every tendon, and the numbers of MuJoCo's Jacobian of them.
  const double* tendon_lengths() const { return data_.at<const double*>(source_.library.data.ten_length); }
  const double* tendon_jacobian() const { return data_.at<const double*>(source_.library.data.ten_J); }

  // Gravity, and by MuJoCo's numbers of bodies: masses (nbody,), those of bodies with all that hang on them, centres of
  // mass (nbody, 3) in body axes, moved: some are not where the model has them; for all calls to come, in place of
  // those of the model. Arrays are looked at, not copied.
  void set_weights(const double* gravity, const double* masses, const double* subtrees, const double* centers,
                   bool moved);

  // Sizes of shapes likewise, around which tendons go.
  void set_sizes(const mujoco::ShapeSizes& shapes) { mujoco::use_sizes(source_.library, model_.data(), shapes); }

  const std::string& failure() const { return failure_; }

 private:
  void write(const State& now);
  bool forward();
  bool advance(std::vector<double>& next);
  template <class Work>
  bool call(Work&& work);

  MirrorSource source_;
  std::vector<unsigned char> general_;  // per body: zero, its centre of mass may be anywhere
  std::vector<char> model_;             // the head of MuJoCo's model; its arrays are shared
  MujocoData data_;
  std::vector<double> tendon_bias_;  // per velocity; empty: no tendon has inertia
  std::string failure_;
};

}  // namespace delassus
