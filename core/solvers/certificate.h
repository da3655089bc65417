// Certificate that accelerations and forces solve constrained dynamics, computed from the equations and not by the
// method that found them: O(n + m).
//
//   f = τ − h − M ν̇ + Jᵀ λ   joint by joint (balance.h)
//   r = −γ − J ν̇ − C λ       row by row
//
// Each is divided by the scale of its equation, the sum of the magnitudes of its terms. For a joint these are τ and the
// inertial and applied forces on its subtree, or their moments about its frame. For a row they are γ, C λ and the
// contributions of the joints that move its points relative to each other, with lever arms about these points. Both
// quotients are dimensionless: scaling masses, lengths or times changes neither.
//
// Equations that fail are checked again with larger scales, to which a few roundings of other quantities are added. For
// a joint: the constraint forces that pass through it, up to 1e4 times the largest scale of any joint (without that
// bound, forces that grow in the null space of Jᵀ would excuse any error), and joint accelerations that cancel in a_i.
// For a row: the acceleration that all forces except constraint forces would give to all masses, which covers
// mechanisms at rest, and terms that cancel in a row with both ends on one link.
#pragma once

#include "solvers/balance.h"

namespace delassus {

// The largest scaled residuals of all states of T: of the dynamics, of the constraints; the larger of both before
// roundings are counted; and the largest |r| as it is.
template <class T>
struct Verdict {
  T dynamics{}, constraints{}, strict{}, primal{};
};

template <class T>
class Certificate {
 public:
  using Real = real_of<T>;

  Certificate(const Model<Real>& model, const ConstraintSet<Real>& set)
      : model_(model),
        set_(set),
        motion_(model),
        joints_(model, set),
        block_common_(set.blocks.size(), -1),
        residual_(std::size_t(set.rows)),
        scale_(residual_.size()) {
    std::size_t points = 0;
    for (const auto& group : set.groups) {
      group_common_.push_back(group.other < 0 ? -1 : common_link(model, group.link, group.other));
      points += std::size_t(group.count * group.sides());
    }
    levers_.resize(points);
    for (const auto& c : set.constraints) {
      if (c.kind != Kind::frame && c.kind != Kind::distance) continue;
      // rows with a term each on two links of one tree that are measured against each other
      if (c.block >= 0 && set.blocks[c.block].terms == 2) {
        const auto* terms = set.terms.data() + set.blocks[c.block].term;
        block_common_[c.block] = common_link(model, terms[0].link, terms[1].link);
      }
      const int link = model.bodies[c.bodies[0]].link;
      for (int r = 0; r < c.rows && link >= 0 && link == model.bodies[c.bodies[1]].link; ++r)
        one_link_rows_.push_back({c.row + r, link, r >= c.point_rows});
    }
  }
  std::size_t bytes() const {
    return motion_.bytes() + joints_.bytes() + levers_.size() * sizeof(Vec3<T>) + 2 * residual_.size() * sizeof(T);
  }

  // A tolerance that rounding of this precision can reach.
  static Real reachable(Real tolerance) { return std::max(tolerance, 256 * std::numeric_limits<Real>::epsilon()); }

  // f and r of ν̇ and λ. Without roundings, what fails is not looked at again.
  Verdict<T> judge(const Equations<T>& e, const T* vdot, const T* lambda, Real tolerance, bool count_roundings) {
    Verdict<T> v;
    motion_.find(model_, e.w, vdot);
    joints_.weigh(e, motion_.a);
    start_rows(e, lambda);
    measure_points(e, lambda);
    measure_terms(e, lambda);
    measure_joint_rows(vdot, lambda);
    v.dynamics = joints_.balance(e, motion_, e.tau, vdot);
    v.constraints = worst_row(v.primal);
    v.strict = larger(v.dynamics, v.constraints);
    if (!count_roundings) return v;

    // once more with roundings, the equations of which some state fails
    bool dynamics_hold = true, rows_hold = true;
    for (int l = 0; l < lanes_of<T>; ++l) {
      dynamics_hold = dynamics_hold && lane(v.dynamics, l) <= tolerance;
      rows_hold = rows_hold && lane(v.constraints, l) <= tolerance;
    }
    if (dynamics_hold && rows_hold) return v;
    const Real roundings = 64 * std::numeric_limits<Real>::epsilon() / reachable(tolerance), mass = joints_.mass(),
               length = joints_.length();
    if (!rows_hold && mass > 0 && length > 0) {
      const T total = joints_.applied(e.tau) * (roundings / mass);
      widen_rows(e, {total, total * (1 / length)}, roundings);
      v.constraints = worst_row(v.primal);
    }
    if (!dynamics_hold) {
      joints_.unload();
      push_rows(e, lambda);
      joints_.count_passing_forces(motion_);
      v.dynamics = joints_.balance_with_roundings(roundings);
    }
    return v;
  }

  // f (nv) and r (rows) of the last judgement.
  const T* dynamics() const { return joints_.residual(); }
  const T* constraints() const { return residual_.data(); }

  // Largest |Jᵀ x| against the largest scale of all joints, for forces x of the rows: zero where a residual ∝ x is
  // least. Torques count on the arm of all lengths. Forgets the residual of the dynamics.
  T stationarity(const Equations<T>& e, const T* x) {
    joints_.unload();
    push_rows(e, x);
    joints_.balance(e, motion_, nullptr, nullptr);
    T slope{}, scale{};
    for (const auto& link : model_.links)
      for (int k = 0; k < link.nv; ++k) {
        const Real arm = moves_along(link.type, k) || !(joints_.length() > 0) ? Real(1) : 1 / joints_.length();
        slope = larger(slope, T(magnitude(joints_.residual()[link.iv + k]) * arm));
        scale = larger(scale, T(joints_.scale()[link.iv + k] * arm));
      }
    return quotient(slope, scale);
  }

 private:
  // A row with both its ends on one link; whether it is a rotation.
  struct OneLinkRow {
    int row, link;
    bool turns;
  };

  // The link that carries two others, −1: the ground.
  static int common_link(const Model<Real>& model, int i, int j) {
    while (i != j && i >= 0 && j >= 0) (i > j ? i : j) = model.links[i > j ? i : j].parent;
    return i == j ? i : -1;
  }

  // r ← −γ − C λ
  void start_rows(const Equations<T>& e, const T* lambda) {
    for (int r = 0; r < set_.rows; ++r) {
      const T given = e.compliance[r] * lambda[r];
      residual_[r] = -e.gamma[r] - given;
      scale_[r] = magnitude(e.gamma[r]) + magnitude(given);
    }
  }

  // Points: their forces λ go to the links, r −= J ν̇.
  void measure_points(const Equations<T>& e, const T* lambda) {
    std::size_t g = 0;
    Vec3<T>* lever = levers_.data();
    for (const auto& group : set_.groups) {
      const int common = group_common_[g++];
      for (int side = 0; side < group.sides(); ++side) {
        const int link = side == 0 ? group.link : group.other;
        const Real sign = side == 0 ? 1 : -1;
        const Pose<T> pose = e.w.pose[link];
        const Vec6<T> a = motion_.a[link];
        const Vec3<T> own = a.lin + cross(a.ang, pose.p);
        const Reach<T> reach = motion_.reach_above(link, common);
        Vec3<T> force{}, moment{};
        for (int c = 0; c < group.count; ++c) {
          const auto& point = set_.points[group.first + c];
          const Vec3<T> l = pose.R * set_.locals[point.local + side];
          *lever++ = l;
          const T* x = lambda + point.row;
          const Vec3<T> f = (point.axes[0] * x[0] + point.axes[1] * x[1] + point.axes[2] * x[2]) * sign;
          force += f;
          moment += cross(l, f);
          const Vec3<T> moved = (own + cross(a.ang, l)) * sign;
          const T scale = reach.linear + reach.angular * size_of(l);
          for (int r = 0; r < 3; ++r) {
            residual_[point.row + r] -= dot(point.axes[r], moved);
            scale_[point.row + r] += scale;
          }
        }
        joints_.push(link, force, moment);
      }
    }
  }

  // visit(link, link that carries all links of the row, force part of K, moment part about the link's frame, row)
  template <class F>
  void each_term(const Equations<T>& e, F&& visit) const {
    std::size_t block = 0;
    for (const auto& b : set_.blocks) {
      const int common = block_common_[block++];
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        const Vec3<T> p = e.w.pose[term.link].p;
        for (int r = 0; r < b.rows; ++r) {
          const Vec6<T>& K = e.K[term.K + r];
          visit(term.link, common, K.lin, Vec3<T>(K.ang - cross(p, K.lin)), b.row + r);
        }
      }
    }
  }
  void measure_terms(const Equations<T>& e, const T* lambda) {
    each_term(e, [&](int link, int common, const Vec3<T>& along, const Vec3<T>& about, int row) {
      const Vec6<T> a = motion_.a[link];
      const Reach<T> reach = motion_.reach_above(link, common);
      joints_.push(link, along * lambda[row], about * lambda[row]);
      residual_[row] -= dot(along, Vec3<T>(a.lin + cross(a.ang, e.w.pose[link].p))) + dot(about, a.ang);
      scale_[row] += size_of(along) * reach.linear + size_of(about) * reach.angular;
    });
  }

  void measure_joint_rows(const T* vdot, const T* lambda) {
    for (const auto& j : set_.joint_rows) {
      joints_.push_joint(j.velocity, T(lambda[j.row] * j.coefficient));
      residual_[j.row] -= vdot[j.velocity] * j.coefficient;
      scale_[j.row] += joint_row_scale(j, motion_.chain[std::size_t(model_.dof_link[j.velocity])].reach);
    }
  }
  T joint_row_scale(const JointRow<Real>& j, const Reach<T>& reach) const {
    const auto& link = model_.links[model_.dof_link[j.velocity]];
    return (moves_along(link.type, j.velocity - link.iv) ? reach.linear : reach.angular) * std::abs(j.coefficient);
  }

  // Makes the scales of rows larger by accelerations of all their links, and by roundings of rows on one link.
  void widen_rows(const Equations<T>& e, const Reach<T>& more, Real roundings) {
    const Vec3<T>* lever = levers_.data();
    for (const auto& group : set_.groups)
      for (int side = 0; side < group.sides(); ++side)
        for (int c = 0; c < group.count; ++c) {
          const T scale = more.linear + more.angular * size_of(*lever++);
          for (int r = 0; r < 3; ++r) scale_[set_.points[group.first + c].row + r] += scale;
        }
    each_term(e, [&](int, int, const Vec3<T>& along, const Vec3<T>& about, int row) {
      scale_[row] += size_of(along) * more.linear + size_of(about) * more.angular;
    });
    for (const auto& j : set_.joint_rows) scale_[j.row] += joint_row_scale(j, more);
    for (const auto& one : one_link_rows_) {
      const Reach<T>& reach = motion_.chain[std::size_t(one.link)].reach;
      const T linear = reach.linear + more.linear, angular = reach.angular + more.angular;
      scale_[one.row] += (one.turns ? angular : T(linear + angular * size_of(e.w.pose[one.link].p))) * roundings;
    }
  }

  // Forces x of the rows on links and joints, with their magnitudes.
  void push_rows(const Equations<T>& e, const T* x) {
    const Vec3<T>* lever = levers_.data();
    for (const auto& group : set_.groups)
      for (int side = 0; side < group.sides(); ++side)
        for (int c = 0; c < group.count; ++c) {
          const auto& point = set_.points[group.first + c];
          const T* l = x + point.row;
          const Vec3<T> force =
              (point.axes[0] * l[0] + point.axes[1] * l[1] + point.axes[2] * l[2]) * Real(side == 0 ? 1 : -1);
          const T size = magnitude(l[0]) + magnitude(l[1]) + magnitude(l[2]);
          joints_.push(side == 0 ? group.link : group.other, force, cross(*lever, force), size,
                       T(size_of(*lever) * size));
          ++lever;
        }
    each_term(e, [&](int link, int, const Vec3<T>& along, const Vec3<T>& about, int row) {
      const T size = magnitude(x[row]);
      joints_.push(link, along * x[row], about * x[row], T(size_of(along) * size), T(size_of(about) * size));
    });
    for (const auto& j : set_.joint_rows) {
      const T force = x[j.row] * j.coefficient;
      joints_.push_joint(j.velocity, force, magnitude(force));
    }
  }

  T worst_row(T& primal) const {
    T worst{};
    primal = T{};
    for (int r = 0; r < set_.rows; ++r) {
      primal = larger(primal, magnitude(residual_[r]));
      worst = larger(worst, quotient(residual_[r], scale_[r]));
    }
    return worst;
  }

  const Model<Real>& model_;
  const ConstraintSet<Real>& set_;
  LinkMotion<T> motion_;
  JointBalance<T> joints_;
  std::vector<int> group_common_, block_common_;  // link that carries both links of a group of points; of a block
  std::vector<OneLinkRow> one_link_rows_;
  std::vector<Vec3<T>> levers_;      // per point and link: from the link's frame to the point
  std::vector<T> residual_, scale_;  // per row
};

}  // namespace delassus
