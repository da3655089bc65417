// Whether accelerations and forces solve constrained dynamics, judged from the equations and not by the method that
// found them: O(n + m).
//
//   f = τ − h − M ν̇ + Jᵀ λ   joint by joint, tips to base:  F_i = I a_i + v ×* I v − f_ext − Σ Kᵀ λ,
//       f = τ − armature ν̇ − Sᵀ F_i,  F_p += F_i
//   r = −γ − J ν̇ − C λ       row by row
//
// Each is divided by the scale of its equation, a sum of magnitudes of what it is made of: of a joint τ and the
// inertial and applied forces on what it carries, or their moments about its frame; of a row γ, C λ and the
// accelerations of the joints that move its points against each other, with lengths about these points. Both quotients
// have no unit: scaling masses, lengths or times changes neither. Moments are about each link's own frame, so that a
// light part far from the tree's origin loses no digits to forces that pass by.
//
// What fails is looked at again, with a few roundings of more in the scales: for a joint of the constraint forces that
// pass through it, up to 1e4 times the largest scale of any joint (without that bound, forces that grow along what Jᵀ
// does not see would excuse everything), and of what joint accelerations that cancel in a_i would need; for a row of
// the acceleration that all forces but those of constraints would give to all masses, for mechanisms that are held at
// rest, and of what a row cancels that has both its ends on one link.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "constraints/constraints.h"
#include "dynamics/inertia.h"
#include "solvers/verbs.h"

namespace delassus {

template <class T>
inline T magnitude(const T& a) {
  if constexpr (lanes_of<T> == 1) {
    return std::abs(a);
  } else {
    // all bits but the sign's
    using Int = std::conditional_t<sizeof(real_of<T>) == 8, std::int64_t, std::int32_t>;
    using Ints = Pack<Int, lanes_of<T>>;
    return std::bit_cast<T>(Ints(std::bit_cast<Ints>(a) & std::numeric_limits<Int>::max()));
  }
}
template <class T>
inline T larger(const T& a, const T& b) {
  return a > b ? a : b;
}
template <class T>
inline T size_of(const Vec3<T>& v) {
  return magnitude(v.x) + magnitude(v.y) + magnitude(v.z);
}

// The state of a mechanism as its equations need it: placement, K of terms, forces on links without joint
// accelerations, and the rest a number a velocity or row. tau may be null.
template <class T>
struct Equations {
  const Placement<T>& w;
  const Vec6<T>* K;
  const PerLink<Vec6, T>& forces;
  const T *tau, *gamma, *compliance;
};

// What an answer leaves of them, all states of T: scaled; the larger of both before roundings are counted; and the
// largest |r| as it is.
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
        reach_(model.links.size()),
        away_(model.links.size()),
        inertial_(model.links.size()),
        f_(std::size_t(model.nv)),
        weight_(f_.size()),
        pushed_(f_.size()),
        kept_(f_.size()),
        nothing_(f_.size()),
        r_(std::size_t(set.rows)),
        scale_(r_.size()) {
    a_.resize(model.links.size());
    force_.resize(model.links.size());
    size_.resize(model.links.size());
    Real trace = 0;
    for (const auto& link : model.links) {
      mass_ += link.inertial.mass;
      trace += link.inertial.inertia.xx + link.inertial.inertia.yy + link.inertial.inertia.zz;
      length_ += size_of(link.placement.p) + size_of(link.inertial.center);
    }
    std::vector<char> reached(model.links.size());
    const auto reach = [&](int i) {
      for (; i >= 0 && !reached[std::size_t(i)]; i = model.links[i].parent) reached[std::size_t(i)] = 1;
    };
    std::size_t points = 0;
    for (const auto& group : set.groups) {
      group_below_.push_back(group.other < 0 ? -1 : common_link(model, group.link, group.other));
      points += std::size_t(group.count * group.sides());
      reach(group.link);
      reach(group.other);
    }
    levers_.resize(points);
    for (const auto& block : set.blocks)
      for (int t = 0; t < block.terms; ++t) reach(set.terms[block.term + t].link);
    for (const auto& j : set.joint_rows) reach(model.dof_link[j.velocity]);
    // rows with a term each on two links of one tree that are measured against each other
    block_below_.assign(set.blocks.size(), -1);
    for (const auto& c : set.constraints) {
      if (c.block < 0 || set.blocks[c.block].terms != 2 || (c.kind != Kind::frame && c.kind != Kind::distance))
        continue;
      const auto* terms = set.terms.data() + set.blocks[c.block].term;
      block_below_[c.block] = common_link(model, terms[0].link, terms[1].link);
    }
    for (const auto& c : set.constraints) {
      if (c.kind != Kind::frame && c.kind != Kind::distance) continue;
      const int link = model.bodies[c.bodies[0]].link;
      for (int r = 0; r < c.rows && link >= 0 && link == model.bodies[c.bodies[1]].link; ++r)
        closed_.push_back({c.row + r, link, r >= 3});
      reach(link);
    }
    for (int i = 0; i < int(reached.size()); ++i) (reached[std::size_t(i)] ? reached_ : others_).push_back(i);
    length_ += mass_ > 0 ? std::sqrt(trace / mass_) : Real(0);
    // drives have inertia too
    for (const auto& link : model.links)
      for (int k = 0; k < link.nv; ++k) {
        const Real armature = model.armature[link.iv + k];
        mass_ += moves_along(link.type, k) ? armature : length_ > 0 ? armature / (length_ * length_) : Real(0);
      }
  }
  std::size_t bytes() const {
    return a_.bytes() + force_.bytes() + size_.bytes() +
           reach_.size() * (sizeof(Reach) + sizeof(Away) + sizeof(Sizes<T>) + sizeof(int)) +
           levers_.size() * sizeof(Vec3<T>) + (5 * f_.size() + 2 * r_.size()) * sizeof(T);
  }

  // A tolerance that rounding of this precision can reach.
  static Real reachable(Real tolerance) { return std::max(tolerance, 256 * std::numeric_limits<Real>::epsilon()); }

  Verdict<T> judge(const Equations<T>& e, const T* vdot, const T* lambda, Real tolerance) {
    Verdict<T> v;
    move(e, vdot);
    find_reach(reached_, vdot);
    place_points(e);
    weigh(e);
    push<false>(e, lambda);
    v.dynamics = balance(e, vdot);
    project(e, vdot, lambda, T{}, T{}, 0);
    v.constraints = worst_row(v.primal);
    v.strict = larger(v.dynamics, v.constraints);
    bool moves = true, holds = true;
    for (int l = 0; l < lanes_of<T>; ++l) {
      moves = moves && lane(v.dynamics, l) <= tolerance;
      holds = holds && lane(v.constraints, l) <= tolerance;
    }
    if (moves && holds) return v;

    // again, with roundings
    const Real roundings = 64 * std::numeric_limits<Real>::epsilon() / reachable(tolerance);
    const T total = applied(e);
    if (!moves) {
      find_reach(others_, vdot);
      count_passing_forces(e, lambda);
      v.dynamics = balance_again(roundings);
    }
    if (!holds && mass_ > 0 && length_ > 0) {
      project(e, vdot, lambda, T(total * (roundings / mass_)), T(total * (roundings / (mass_ * length_))), roundings);
      v.constraints = worst_row(v.primal);
    }
    return v;
  }

  // f (nv) and r (rows) of the last judgement.
  const T* dynamics() const { return f_.data(); }
  const T* constraints() const { return r_.data(); }

  // Largest |Jᵀ x| against the largest scale of all joints, for forces x of the rows: zero where a residual ∝ x is
  // least. Torques count on the arm of all lengths. Forgets the residual of the dynamics.
  T stationarity(const Equations<T>& e, const T* x) {
    unload();
    push<true>(e, x);
    balance({e.w, e.K, e.forces, nullptr, e.gamma, e.compliance}, nullptr);
    T slope{}, scale{};
    for (const auto& link : model_.links)
      for (int k = 0; k < link.nv; ++k) {
        const Real arm = moves_along(link.type, k) || !(length_ > 0) ? Real(1) : 1 / length_;
        slope = larger(slope, T(magnitude(f_[link.iv + k]) * arm));
        scale = larger(scale, T(weight_[link.iv + k] * arm));
      }
    return quotient(slope, scale);
  }

 private:
  // Magnitudes of the accelerations of the joints below a link, linear at its frame.
  struct Reach {
    T linear, angular, distance;  // the last: along the links from the base
  };
  // From the frame of the link that a link hangs on to its own.
  struct Away {
    Vec3<T> d;
    T size;
  };
  // A row with both ends on one link.
  struct Closed {
    int row, link;
    bool turns;
  };
  template <class C>
  struct Sizes {
    C force, moment;
    Sizes operator+(const Sizes& o) const { return {force + o.force, moment + o.moment}; }
  };

  // a_i = a_p + S ν̇
  void move(const Equations<T>& e, const T* vdot) {
    Vec6<T> a{};
    Vec3<T> p{};
    for (int i = 0; i < int(model_.links.size()); ++i) {
      const auto& link = model_.links[i];
      const Vec3<T> here = e.w.pose[i].p;
      if (link.parent < 0) {
        a = Vec6<T>{};
      } else {
        if (link.parent != i - 1) {
          a = a_[link.parent];
          p = e.w.pose[link.parent].p;
        }
        const Vec3<T> d = here - p;
        away_[std::size_t(i)] = {d, size_of(d)};
      }
      a += joint_motion(link, e.w.S.data(), vdot);
      a_.set(i, a);
      p = here;
    }
  }
  // Of some links, in order.
  void find_reach(const std::vector<int>& links, const T* vdot) {
    for (const int i : links) {
      const auto& link = model_.links[i];
      Reach reach{};
      if (link.parent >= 0) {
        const T apart = away_[std::size_t(i)].size;
        reach = reach_[std::size_t(link.parent)];
        reach.linear += reach.angular * apart;
        reach.distance += apart;
      }
      if (link.type == Joint::hinge)
        reach.angular += magnitude(vdot[link.iv]);
      else
        for (int k = 0; k < link.nv; ++k)
          (moves_along(link.type, k) ? reach.linear : reach.angular) += magnitude(vdot[link.iv + k]);
      reach_[std::size_t(i)] = reach;
    }
  }
  // What joints between link `below`, −1: the ground, and link i add.
  Reach reach_above(int i, int below) const {
    Reach reach = reach_[std::size_t(i)];
    if (below < 0) return reach;
    const Reach& common = reach_[std::size_t(below)];
    reach.linear = larger(T(reach.linear - common.linear - common.angular * (reach.distance - common.distance)), T{});
    reach.angular = larger(T(reach.angular - common.angular), T{});
    return reach;
  }
  // The link that carries two others, −1: the ground.
  static int common_link(const Model<Real>& model, int i, int j) {
    while (i != j && i >= 0 && j >= 0) (i > j ? i : j) = model.links[i > j ? i : j].parent;
    return i == j ? i : -1;
  }
  static bool moves_along(Joint type, int k) { return type == Joint::slide || (type == Joint::free && k < 3); }

  // I a + f, moments about the links' own frames
  void weigh(const Equations<T>& e) {
    for (int b = 0; b < force_.blocks(); ++b) {
      const auto& p = e.w.pose.block(b).p;
      const auto& known = e.forces.block(b);
      const auto inertial = e.w.inertia.block(b) * a_.block(b);
      const auto own = inertial.ang - cross(p, inertial.lin), moment = known.ang - cross(p, known.lin);
      force_.block(b) = {inertial.lin + known.lin, own + moment};
      size_.block(b) = {size_of(inertial.lin) + size_of(known.lin), size_of(own) + size_of(moment)};
    }
  }
  void unload() {
    for (int b = 0; b < force_.blocks(); ++b) {
      force_.block(b) = Vec6<LinkPack<T>>{};
      size_.block(b) = Sizes<LinkPack<T>>{};
    }
  }

  // Of every point and each of its links, as they are visited: from the link's frame to the point.
  void place_points(const Equations<T>& e) {
    Vec3<T>* lever = levers_.data();
    for (const auto& group : set_.groups)
      for (int side = 0; side < group.sides(); ++side) {
        const Mat3<T> R = e.w.pose[side == 0 ? group.link : group.other].R;
        for (int c = 0; c < group.count; ++c) *lever++ = R * set_.locals[set_.points[group.first + c].local + side];
      }
  }
  // visit(link, link that carries both, axes, lever about the link's frame, row, sign) of every point and each of its
  // links
  template <class F>
  void each_point(F&& visit) const {
    std::size_t g = 0;
    const Vec3<T>* lever = levers_.data();
    for (const auto& group : set_.groups) {
      const int below = group_below_[g++];
      for (int side = 0; side < group.sides(); ++side) {
        const int link = side == 0 ? group.link : group.other;
        for (int c = 0; c < group.count; ++c) {
          const auto& point = set_.points[group.first + c];
          visit(link, below, point.axes, *lever++, point.row, Real(side == 0 ? 1 : -1));
        }
      }
    }
  }
  // visit(link, link that carries all of the row's, force part of K, moment part about the link's frame, row) of every
  // row on every link
  template <class F>
  void each_term(const Equations<T>& e, F&& visit) const {
    std::size_t at = 0;
    for (const auto& b : set_.blocks) {
      const int below = block_below_[at++];
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        const Vec3<T> p = e.w.pose[term.link].p;
        for (int r = 0; r < b.rows; ++r) {
          const Vec6<T>& K = e.K[term.K + r];
          visit(term.link, below, K.lin, Vec3<T>(K.ang - cross(p, K.lin)), b.row + r);
        }
      }
    }
  }

  // F −= Σ Kᵀ λ, their magnitudes too if they are to count; forces of joint rows apart
  template <bool counts>
  void push(const Equations<T>& e, const T* lambda) {
    each_point([&](int link, int, const auto* axes, const Vec3<T>& lever, int row, Real sign) {
      const T* l = lambda + row;
      const Vec3<T> force = (axes[0] * l[0] + axes[1] * l[1] + axes[2] * l[2]) * sign;
      force_.set(link, force_[link] - Vec6<T>{force, cross(lever, force)});
      if constexpr (counts) {
        const T size = magnitude(l[0]) + magnitude(l[1]) + magnitude(l[2]);
        size_.add(link, {size, size_of(lever) * size});
      }
    });
    each_term(e, [&](int link, int, const Vec3<T>& along, const Vec3<T>& about, int row) {
      const T l = lambda[row];
      force_.set(link, force_[link] - Vec6<T>{along, about} * l);
      if constexpr (counts) size_.add(link, {size_of(along) * magnitude(l), size_of(about) * magnitude(l)});
    });
    if (set_.joint_rows.empty()) return;
    std::fill(pushed_.begin(), pushed_.end(), T{});
    std::fill(f_.begin(), f_.end(), T{});
    for (const auto& j : set_.joint_rows) {
      const T l = lambda[j.row] * j.coefficient;
      f_[j.velocity] += l;
      if constexpr (counts) pushed_[j.velocity] += magnitude(l);
    }
  }

  // f = τ − armature ν̇ − Sᵀ F + forces of joint rows; the largest against its scale. vdot may be null: zero.
  T balance(const Equations<T>& e, const T* vdot) {
    const bool driven = !set_.joint_rows.empty();
    const T *tau = e.tau ? e.tau : nothing_.data(), *moved = vdot ? vdot : nothing_.data();
    const Vec6<T>* S = e.w.S.data();
    T worst{}, total{};
    const auto joint = [&, armature = model_.armature.data(), left = f_.data(), weight = weight_.data()](
                           int k, const Vec3<T>& axis, const Vec3<T>& force, const T& size) {
      const T own = moved[k] * armature[k];
      T f = tau[k] - own - dot(axis, force), scale = magnitude(tau[k]) + magnitude(own) + size;
      if (driven) {
        f += left[k];
        scale += pushed_[k];
      }
      left[k] = f;
      weight[k] = scale;
      worst = larger(worst, quotient(f, scale));
    };
    // by the next link, if it hangs on this one
    Vec6<T> handed{};
    Sizes<T> handed_size{};
    for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
      const auto& link = model_.links[i];
      Vec6<T> F = force_[i] + handed;
      Sizes<T> size = size_[i] + handed_size;
      if (link.type == Joint::hinge) {
        joint(link.iv, S[link.iv].ang, F.ang, size.moment);
      } else {
        for (int k = 0; k < link.nv; ++k) {
          if (moves_along(link.type, k))
            joint(link.iv + k, S[link.iv + k].lin, F.lin, size.force);
          else
            joint(link.iv + k, S[link.iv + k].ang, F.ang, size.moment);
        }
      }
      handed = Vec6<T>{};
      handed_size = Sizes<T>{};
      if (link.parent < 0) {
        total += size.force;
        continue;
      }
      const Away& away = away_[std::size_t(i)];
      F.ang += cross(away.d, F.lin);
      size.moment += away.size * size.force;
      if (link.parent == i - 1) {
        handed = F;
        handed_size = size;
      } else {
        force_.add(link.parent, F);
        size_.add(link.parent, size);
      }
    }
    total_ = total;
    return worst;
  }

  // Magnitudes of all forces but those of constraints, torques on the arm of all lengths.
  T applied(const Equations<T>& e) const {
    T total = total_, turning{};
    for (const auto& link : model_.links)
      for (int k = 0; e.tau && k < link.nv; ++k)
        (moves_along(link.type, k) ? total : turning) += magnitude(e.tau[link.iv + k]);
    return length_ > 0 ? total + turning * (1 / length_) : total;
  }
  // Magnitudes of constraint forces on what each joint carries, and of inertial forces to the accelerations of its
  // joints one by one.
  void count_passing_forces(const Equations<T>& e, const T* lambda) {
    unload();
    std::fill(inertial_.begin(), inertial_.end(), Sizes<T>{});
    std::copy(f_.begin(), f_.end(), kept_.begin());
    push<true>(e, lambda);
    std::copy(kept_.begin(), kept_.end(), f_.begin());
    const bool driven = !set_.joint_rows.empty();
    for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
      const auto& link = model_.links[i];
      const Sizes<T> passing = size_[i];
      const Reach& reach = reach_[std::size_t(i)];
      const Real center = size_of(link.inertial.center),
                 trace = link.inertial.inertia.xx + link.inertial.inertia.yy + link.inertial.inertia.zz;
      const T force = (reach.linear + reach.angular * center) * link.inertial.mass,
              moment = force * center + reach.angular * trace;
      Sizes<T>& inertial = inertial_[std::size_t(i)];
      inertial.force += force;
      inertial.moment += moment;
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        const bool along = moves_along(link.type, k - link.iv);
        const T size = along ? passing.force : passing.moment;
        pushed_[k] = driven ? pushed_[k] + size : size;
        kept_[k] = along ? inertial.force : inertial.moment;
      }
      if (link.parent < 0) continue;
      const T apart = away_[std::size_t(i)].size;
      size_.add(link.parent, {passing.force, passing.moment + apart * passing.force});
      Sizes<T>& handed = inertial_[std::size_t(link.parent)];
      handed.force += inertial.force;
      handed.moment += inertial.moment + apart * inertial.force;
    }
  }
  // The largest f against its scale and roundings of these magnitudes, those of constraint forces bounded by the
  // largest scale of all joints that move alike.
  T balance_again(Real roundings) const {
    constexpr Real most = 1e4;
    T linear{}, angular{}, worst{};
    const auto each = [&](auto&& visit) {
      for (const auto& link : model_.links)
        for (int k = 0; k < link.nv; ++k) visit(link.iv + k, moves_along(link.type, k));
    };
    each([&](int k, bool along) { (along ? linear : angular) = larger(along ? linear : angular, weight_[k]); });
    // forces and torques compared on the arm of all lengths
    if (length_ > 0) {
      linear = larger(linear, T(angular * (1 / length_)));
      angular = larger(angular, T(linear * length_));
    }
    each([&](int k, bool along) {
      const T bound = (along ? linear : angular) * most;
      const T passing =
          (pushed_[k] < bound ? pushed_[k] : bound) + kept_[k] + bound * std::numeric_limits<Real>::epsilon();
      worst = larger(worst, quotient(f_[k], T(weight_[k] + passing * roundings)));
    });
    return worst;
  }

  // r = −γ − J ν̇ − C λ and its scale, accelerations larger by what is given
  void project(const Equations<T>& e, const T* vdot, const T* lambda, const T& linear, const T& angular,
               Real roundings) {
    for (int r = 0; r < set_.rows; ++r) {
      const T given = e.compliance[r] * lambda[r];
      r_[r] = -e.gamma[r] - given;
      scale_[r] = magnitude(e.gamma[r]) + magnitude(given);
    }
    each_point([&](int link, int below, const auto* axes, const Vec3<T>& lever, int row, Real sign) {
      const Vec6<T> a = a_[link];
      const Reach reach = reach_above(link, below);
      const Vec3<T> moved = (a.lin + cross(a.ang, e.w.pose[link].p + lever)) * sign;
      const T scale = reach.linear + linear + (reach.angular + angular) * size_of(lever);
      for (int r = 0; r < 3; ++r) {
        r_[row + r] -= dot(axes[r], moved);
        scale_[row + r] += scale;
      }
    });
    each_term(e, [&](int link, int below, const Vec3<T>& along, const Vec3<T>& about, int row) {
      const Vec6<T> a = a_[link];
      const Reach reach = reach_above(link, below);
      r_[row] -= dot(along, Vec3<T>(a.lin + cross(a.ang, e.w.pose[link].p))) + dot(about, a.ang);
      scale_[row] += size_of(along) * (reach.linear + linear) + size_of(about) * (reach.angular + angular);
    });
    if (roundings > 0)
      for (const auto& one : closed_) {
        const Reach& reach = reach_[std::size_t(one.link)];
        scale_[one.row] +=
            (one.turns ? T(reach.angular + angular)
                       : T(reach.linear + linear + (reach.angular + angular) * size_of(e.w.pose[one.link].p))) *
            roundings;
      }
    for (const auto& j : set_.joint_rows) {
      const auto& link = model_.links[model_.dof_link[j.velocity]];
      const Reach& reach = reach_[std::size_t(model_.dof_link[j.velocity])];
      const bool along = moves_along(link.type, j.velocity - link.iv);
      r_[j.row] -= vdot[j.velocity] * j.coefficient;
      scale_[j.row] += (along ? reach.linear + linear : reach.angular + angular) * std::abs(j.coefficient);
    }
  }
  T worst_row(T& primal) const {
    T worst{};
    primal = T{};
    for (int r = 0; r < set_.rows; ++r) {
      primal = larger(primal, magnitude(r_[r]));
      worst = larger(worst, quotient(r_[r], scale_[r]));
    }
    return worst;
  }
  // what is no number counts as the largest
  static T quotient(const T& x, const T& scale) {
    const T most = constant<T>(std::numeric_limits<Real>::max()),
            q = magnitude(x) / (scale + std::numeric_limits<Real>::min());
    return q < most ? q : most;
  }

  const Model<Real>& model_;
  const ConstraintSet<Real>& set_;
  PerLink<Vec6, T> a_,
      force_;  // a link: its acceleration without gravity; I a + f − Kᵀ λ about its own frame, and of what hangs on it
  PerLink<Sizes, T> size_;  // a link: magnitudes of the latter
  T total_{};               // of forces on all links
  std::vector<Reach> reach_;
  std::vector<Away> away_;
  std::vector<int> reached_, others_;  // links that rows act on and those they hang on; all others
  std::vector<Vec3<T>> levers_;        // a point and link
  std::vector<Closed> closed_;
  std::vector<int> group_below_,
      block_below_;                 // the link that carries both links of a group of points, of a block of rows
  std::vector<Sizes<T>> inertial_;  // a link and all it carries: magnitudes of inertial forces, joint by joint
  std::vector<T> f_, weight_;       // per velocity: residual, its scale
  std::vector<T> pushed_, kept_;    // a velocity: magnitudes of constraint forces; of inertial ones, and f meanwhile
  std::vector<T> nothing_;          // a velocity: zero
  std::vector<T> r_, scale_;        // per row: residual, its scale
  Real mass_ = 0, length_ = 0;      // of all links
};

}  // namespace delassus
