// Residual of the equations of motion, joint by joint, for given accelerations and forces, and the scale of each
// joint's equation: O(n).
//
//   F_i = I a_i + v ×* I v − f_ext − Σ Kᵀ λ,   f = τ − armature ν̇ − Sᵀ F_i,   F_p += F_i,   tips to base
//
// The scale is the sum of the magnitudes of τ, armature ν̇ and the inertial and applied forces on the subtree of the
// joint, or of their moments about its frame. Moments are about each link's own frame, so that a light part far from
// the tree's origin loses no digits to large forces elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "dynamics/inertia.h"
#include "solvers/link_motion.h"

namespace delassus {

template <class T>
class JointBalance {
 public:
  using Real = real_of<T>;

  JointBalance(const Model<Real>& model, const ConstraintSet<Real>& set)
      : model_(model),
        set_(set),
        residual_(std::size_t(model.nv)),
        scale_(residual_.size()),
        joint_force_(residual_.size()),
        joint_force_size_(residual_.size()),
        passing_(residual_.size()),
        inertial_(residual_.size()),
        zero_(residual_.size()),
        carried_(model.links.size()),
        wrench_(model.links.size() + 1) {
    Real trace = 0;
    for (const auto& link : model.links) {
      mass_ += link.inertial.mass;
      trace += link.inertial.inertia.xx + link.inertial.inertia.yy + link.inertial.inertia.zz;
      length_ += size_of(link.placement.p) + size_of(link.inertial.center);
    }
    length_ += mass_ > 0 ? std::sqrt(trace / mass_) : Real(0);
    // drives have inertia too
    for (const auto& link : model.links)
      for (int k = 0; k < link.nv; ++k) {
        const Real armature = model.armature[link.iv + k];
        mass_ += moves_along(link.type, k) ? armature : length_ > 0 ? armature / (length_ * length_) : Real(0);
      }
  }
  std::size_t bytes() const {
    return wrench_.size() * sizeof(Wrench) + carried_.size() * sizeof(Magnitudes) + 7 * residual_.size() * sizeof(T);
  }

  const T* residual() const { return residual_.data(); }
  const T* scale() const { return scale_.data(); }
  // Of all links together, drives included.
  Real mass() const { return mass_; }
  Real length() const { return length_; }

  // F ← I a + f, moments about the links' own frames. I a is found there, in the link's axes: about the tree's origin
  // it would lose digits by the square of the distance.
  void weigh(const Equations<T>& e, const PerLink<Vec6, T>& a) {
    for (int b = 0; b < a.blocks(); ++b) {
      const auto& [R, p] = e.w.pose.block(b);
      const auto& link = e.w.inertial[std::size_t(b)];
      const auto& known = e.forces.block(b);
      const auto& moved = a.block(b);
      const auto turning = transpose_times(R, moved.ang);
      const auto push =
          (transpose_times(R, Vec3<LinkPack<T>>(moved.lin + cross(moved.ang, p))) + cross(turning, link.center)) *
          link.mass;
      const Vec3<LinkPack<T>> inertial = R * push, own = R * (link.inertia * turning + cross(link.center, push)),
                              moment = known.ang - cross(p, known.lin);
      const Vec3<LinkPack<T>> lin = inertial + known.lin, ang = own + moment;
      store_links(e.w.ranks.slots.link.data() + b * link_lanes<T>,
                  {lin.x, lin.y, lin.z, size_of(inertial) + size_of(known.lin), ang.x, ang.y, ang.z,
                   size_of(own) + size_of(moment)});
    }
    clear_joint_forces();
  }
  // F ← 0
  void unload() {
    std::fill(wrench_.begin(), wrench_.end(), Wrench{});
    clear_joint_forces();
  }
  // Constraint forces on a link, moment about its frame; on a joint. Magnitudes count where they are given.
  void push(int link, const Vec3<T>& force, const Vec3<T>& moment, const T& force_size = T{},
            const T& moment_size = T{}) {
    Wrench& F = wrench_[std::size_t(link)];
    F.force -= {force, -force_size};
    F.moment -= {moment, -moment_size};
  }
  void push_joint(int velocity, const T& force) { joint_force_[velocity] += force; }
  void push_joint(int velocity, const T& force, const T& size) {
    joint_force_[velocity] += force;
    joint_force_size_[velocity] += size;
  }

  // f of every joint; returns the largest against its scale. τ and vdot may be null: zero.
  T balance(const Equations<T>& e, const LinkMotion<T>& motion, const T* tau, const T* vdot) {
    if (!tau) tau = zero_.data();
    if (!vdot) vdot = zero_.data();
    return set_.joint_rows.empty() ? balance_joints<false>(e, motion, tau, vdot)
                                   : balance_joints<true>(e, motion, tau, vdot);
  }

  // Magnitudes of all forces but those of constraints, torques on the arm of all lengths. After balance.
  T applied(const T* tau) const {
    T total = total_force_, turning{};
    for (const auto& link : model_.links)
      for (int k = 0; tau && k < link.nv; ++k)
        (moves_along(link.type, k) ? total : turning) += magnitude(tau[link.iv + k]);
    return length_ > 0 ? total + turning * (1 / length_) : total;
  }

  // Magnitudes of constraint forces on what each joint carries, which were pushed after unload, and of inertial forces
  // to the accelerations of its joints one by one.
  void count_passing_forces(const LinkMotion<T>& motion) {
    std::fill(carried_.begin(), carried_.end(), Magnitudes{});
    for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
      const auto& link = model_.links[i];
      const auto& chain = motion.chain[std::size_t(i)];
      const Wrench passing = wrench_[std::size_t(i)];
      const Real center = size_of(link.inertial.center),
                 trace = link.inertial.inertia.xx + link.inertial.inertia.yy + link.inertial.inertia.zz;
      const T force = (chain.reach.linear + chain.reach.angular * center) * link.inertial.mass;
      Magnitudes& carried = carried_[std::size_t(i)];
      carried.force += force;
      carried.moment += force * center + chain.reach.angular * trace;
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        const bool along = moves_along(link.type, k - link.iv);
        passing_[k] = joint_force_size_[k] + (along ? passing.force : passing.moment).number();
        inertial_[k] = along ? carried.force : carried.moment;
      }
      if (link.parent < 0) continue;
      const T length = chain.offset.number();
      wrench_[std::size_t(link.parent)] +=
          {passing.force, {Vec3<T>{}, T(passing.moment.number() + length * passing.force.number())}};
      Magnitudes& below = carried_[std::size_t(link.parent)];
      below.force += carried.force;
      below.moment += carried.moment + length * carried.force;
    }
  }
  // The largest f against its scale and roundings of these magnitudes, those of constraint forces bounded by the
  // largest scale of all joints that move alike.
  T balance_with_roundings(Real roundings) const {
    // rounding errors of float32 are so large that a larger factor would hide errors of light parts next to heavy ones
    constexpr Real max_passing = sizeof(Real) == 8 ? 1e4 : 1;
    T linear{}, angular{}, worst{};
    const auto each = [&](auto&& visit) {
      for (const auto& link : model_.links)
        for (int k = 0; k < link.nv; ++k) visit(link.iv + k, moves_along(link.type, k));
    };
    each([&](int k, bool along) { (along ? linear : angular) = larger(along ? linear : angular, scale_[k]); });
    // forces and torques compared on the arm of all lengths
    if (length_ > 0) {
      linear = larger(linear, T(angular * (1 / length_)));
      angular = larger(angular, T(linear * length_));
    }
    each([&](int k, bool along) {
      const T bound = (along ? linear : angular) * max_passing;
      const T more =
          (passing_[k] < bound ? passing_[k] : bound) + inertial_[k] + bound * std::numeric_limits<Real>::epsilon();
      worst = larger(worst, quotient(residual_[k], T(scale_[k] + more * roundings)));
    });
    return worst;
  }

 private:
  // Force and moment about a frame, each with the magnitudes it is a sum of.
  struct Wrench {
    Quad<T> force, moment;
    void operator+=(const Wrench& o) {
      force += o.force;
      moment += o.moment;
    }
  };
  static_assert(sizeof(Wrench) == 8 * sizeof(T));

  // Numbers of links side by side to a wrench each; of lanes without a link to the wrench past the last link's.
  void store_links(const int* links, const std::array<LinkPack<T>, 8>& numbers) {
    const auto out = [&](int l) { return reinterpret_cast<T*>(&wrench_[std::size_t(links[l])]); };
    if constexpr (link_lanes<T> == 4) {
      for (int half = 0; half < 2; ++half) {
        const auto* x = numbers.data() + 4 * half;
        const auto low01 = shuffle<0, 4, 2, 6>(x[0], x[1]), low23 = shuffle<0, 4, 2, 6>(x[2], x[3]),
                   high01 = shuffle<1, 5, 3, 7>(x[0], x[1]), high23 = shuffle<1, 5, 3, 7>(x[2], x[3]);
        const LinkPack<T> rows[4] = {shuffle<0, 1, 4, 5>(low01, low23), shuffle<0, 1, 4, 5>(high01, high23),
                                     shuffle<2, 3, 6, 7>(low01, low23), shuffle<2, 3, 6, 7>(high01, high23)};
        for (int l = 0; l < 4; ++l) std::memcpy(out(l) + 4 * half, &rows[l], sizeof(rows[l]));
      }
    } else {
      for (int l = 0; l < link_lanes<T>; ++l)
        for (int k = 0; k < 8; ++k) {
          if constexpr (link_lanes<T> == 1)
            out(l)[k] = numbers[std::size_t(k)];
          else
            out(l)[k] = numbers[std::size_t(k)][l];
        }
    }
  }

  struct Magnitudes {
    T force, moment;
  };

  void clear_joint_forces() {
    if (set_.joint_rows.empty()) return;
    std::fill(joint_force_.begin(), joint_force_.end(), T{});
    std::fill(joint_force_size_.begin(), joint_force_size_.end(), T{});
  }

  template <bool joint_rows>
  T balance_joints(const Equations<T>& e, const LinkMotion<T>& motion, const T* tau, const T* vdot) {
    const Vec6<T>* S = e.w.S.data();
    T worst{}, total{};
    const auto joint = [&, armature = model_.armature.data(), residual = residual_.data(), scales = scale_.data()](
                           int k, const Vec3<T>& axis, const Quad<T>& force) {
      const T own = vdot[k] * armature[k];
      T f = tau[k] - own - dot(axis, force.vector()), scale = magnitude(tau[k]) + magnitude(own) + force.number();
      if constexpr (joint_rows) {
        f += joint_force_[k];
        scale += joint_force_size_[k];
      }
      residual[k] = f;
      scales[k] = scale;
      worst = larger(worst, quotient(f, scale));
    };
    // tips to base; a link that directly follows its parent passes its sum on in registers
    Wrench F;
    bool handed = false;
    for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
      const auto& link = model_.links[i];
      if (handed)
        F += wrench_[std::size_t(i)];
      else
        F = wrench_[std::size_t(i)];
      if (link.type == Joint::hinge) {
        joint(link.iv, S[link.iv].ang, F.moment);
      } else {
        for (int k = 0; k < link.nv; ++k) {
          if (moves_along(link.type, k))
            joint(link.iv + k, S[link.iv + k].lin, F.force);
          else
            joint(link.iv + k, S[link.iv + k].ang, F.moment);
        }
      }
      if (link.parent < 0) {
        total += F.force.number();
        handed = false;
        continue;
      }
      F.moment += cross(motion.chain[std::size_t(i)].offset, F.force);
      handed = link.parent == i - 1;
      if (!handed) wrench_[std::size_t(link.parent)] += F;
    }
    total_force_ = total;
    return worst;
  }

  const Model<Real>& model_;
  const ConstraintSet<Real>& set_;
  std::vector<T> residual_, scale_;                // per velocity
  std::vector<T> joint_force_, joint_force_size_;  // per velocity: forces of joint rows, their magnitudes if they count
  std::vector<T> passing_, inertial_;              // per velocity: see count_passing_forces
  std::vector<T> zero_;                            // per velocity
  std::vector<Magnitudes> carried_;                // of inertial forces of a link and all it carries, joint by joint
  std::vector<Wrench> wrench_;                     // F of a link, and of what hangs on it
  T total_force_{};                                // magnitudes of forces on all links
  Real mass_ = 0, length_ = 0;
};

}  // namespace delassus
