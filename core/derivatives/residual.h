// The two equations of constrained dynamics and their derivatives, forward (tangents) and reverse (adjoints).
// Matrix-free, O(n + m) in time and memory.
//
//   F(q, ν, ν̇, λ) = M ν̇ + h − Jᵀλ − external,   g(q, ν, ν̇) = J ν̇ + J̇ν + k_d J ν + k_p e
//
// All links are in world axes about the tree's origin, which is treated as a point at rest; a link whose joints are
// displaced by dq moves by the twist t = t_p + S dq, and its axes by dS = t × S. Along a direction,
//
//   dv = dv_p + t × Sν + S dν,   da = da_p + t × Sν̇ + S dν̇ + dv × Sν + v × d(Sν)
//   df = t ×* f + I (da − t × a) + d(v ×* I v) by dv − t × v,   dτ = Sᵀ Σ df + (t × S)ᵀ Σ f
//
// Adjoints are of the number μᵀF + κᵀg, a sum of w · f over links, where w = w_p + Sμ. Moving a link together with its
// v, a and w changes none of its terms, so no inertia has to be differentiated:
//
//   ā = I w,   v̄ = I (w × v) − w ×* I v,   t̄ = −(v ×* v̄ + a ×* ā + w ×* f)      of every link by itself
//
// then from the leaves, with j = Sν: v̄ += j ×* ā, j̄ = v̄ − v ×* ā, t̄ += j ×* j̄ + Sν̇ ×* ā + Sμ ×* Σ f, and q̄ = Sᵀ
// t̄, ν̄ = Sᵀ j̄. The linear axes of a free joint do not turn: their dS is zero.
//
// T: scalar type of the state; D: of directions, T or a pack of T with one direction per lane.
#pragma once

#include <algorithm>
#include <vector>

#include "derivatives/regressor.h"
#include "derivatives/row_frames.h"
#include "derivatives/row_others.h"
#include "dynamics/inertia.h"
#include "dynamics/rnea.h"

namespace delassus {

template <class T>
class ConstrainedResidual {
 public:
  // Directions that a sweep takes at once.
  static constexpr int width = link_lanes<T>;
  using Columns = Pack<T, width>;

  ConstrainedResidual(const Model<T>& model, ConstraintSet<T> set)
      : model_(model),
        set_(std::move(set)),
        w_(model),
        q_(std::size_t(model.nq)),
        v_(std::size_t(model.nv)),
        a_(v_.size()),
        lambda_(std::size_t(set_.rows)),
        joint_(model.links.size()),
        own_(model.links.size()),
        carried_(model.links.size()),
        one_(model.links.size(), v_.size(), lambda_.size()),
        many_(model.links.size(), v_.size(), lambda_.size()) {
    std::size_t n = 0;
    for (const auto& c : set_.constraints)
      n += c.kind == Kind::center ? model.links.size() : c.kind == Kind::links ? c.bodies.size() : 2;
    points_.resize(n);
    for (const auto& c : set_.constraints) given_ = std::max(given_, std::size_t(c.rows));
    K_.resize(given_);
  }

  int rows() const { return set_.rows; }
  std::size_t bytes() const {
    return w_.Placement<T>::bytes() + w_.Motions<T>::bytes() +
           (q_.size() + 2 * v_.size() + lambda_.size()) * sizeof(T) + points_.size() * sizeof(RowPoint<T>) +
           3 * joint_.size() * sizeof(Joints) + one_.bytes() + many_.bytes();
  }

  // Inertias of the model's links were changed by its owner; they count from the next update on.
  void read_inertias() { w_.read_inertias(model_); }

  // The state. v, a, lambda, external may be null: zero. `weight`: whether gravity acts.
  void update(const T* q, const T* v, const T* a, const T* lambda, const T* external, bool weight) {
    copy(q, q_);
    copy(v, v_);
    copy(a, a_);
    copy(lambda, lambda_);
    ground_ = weight ? Vec3<T>{-model_.gravity.x, -model_.gravity.y, -model_.gravity.z} : Vec3<T>{};
    kinematics(model_, w_, q_.data());
    world_inertias(w_);
    motions(model_, w_, w_, v_.data(), a_.data(), ground_);
    for (std::size_t i = 0; i < model_.links.size(); ++i) read_link(int(i));
    inertial_forces(w_, w_);
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = w_.f[int(i)];
    external_.clear();
    if (external) {
      external_.assign(external, external + 6 * model_.bodies.size());
      subtract_external(model_, w_, w_, external_.data());
    }
    place_rows();
    for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
      carried_[std::size_t(i)] = w_.f[i];
      if (model_.links[std::size_t(i)].parent >= 0) w_.f.add(model_.links[std::size_t(i)].parent, w_.f[i]);
    }
  }

  // dF (nv × columns) and dg (m × columns) along directions (… × columns), all row-major. Any may be null: zero.
  void tangents(const T* dq, const T* dv, const T* da, const T* dlambda, int columns, T* dF, T* dg) {
    if (columns == 1) {
      tangent_sweep(one_, dq, dv, da, dlambda, 1, 0, dF, dg);
      return;
    }
    for (int first = 0; first < columns; first += width)
      tangent_sweep(many_, dq, dv, da, dlambda, columns, first, dF, dg);
  }

  // Adds factor times the derivatives of μᵀF by the inertial parameters of bodies (10 bodies × columns, regressor.h)
  // and by the armature (nv × columns). External forces act where they do.
  void parameter_adjoints(const T* mu, int columns, T factor, T* inertial_bar, T* armature_bar) {
    virtual_.resize(model_.links.size());
    for (int c = 0; c < columns; ++c)
      regressor_adjoint<T>(model_, w_, w_, mu, factor, columns, c, virtual_, inertial_bar);
    const std::size_t k = std::size_t(columns);
    for (std::size_t e = 0; e < a_.size() * k; ++e) armature_bar[e] += factor * mu[e] * a_[e / k];
  }

  // q̄ and ν̄ (nv × columns) of μᵀF + κᵀg; μ: nv × columns, κ: m × columns, null: zero.
  void adjoints(const T* mu, const T* kappa, int columns, T* q_bar, T* v_bar) {
    if (columns == 1) {
      adjoint_sweep(one_, mu, kappa, 1, 0, q_bar, v_bar);
      return;
    }
    for (int first = 0; first < columns; first += width) adjoint_sweep(many_, mu, kappa, columns, first, q_bar, v_bar);
  }

 private:
  // Of a link's joint: Sν and Sν̇, of those axes that move with the link.
  struct Joints {
    Vec6<T> velocity, acceleration;
  };

  // What sweeps of directions of type D write.
  template <class D>
  struct Sweeps {
    std::vector<LinkTangent<D>> tangents;
    std::vector<LinkAdjoint<D>> adjoints;
    std::vector<D> q, v, a, forces, rows, out;

    Sweeps(std::size_t links, std::size_t nv, std::size_t m)
        : tangents(links), adjoints(links), q(nv), v(nv), a(nv), forces(nv), rows(m), out(m) {}
    std::size_t bytes() const {
      return tangents.size() * (sizeof(LinkTangent<D>) + sizeof(LinkAdjoint<D>)) +
             (4 * q.size() + 2 * rows.size()) * sizeof(D);
    }
  };

  static void copy(const T* from, std::vector<T>& to) {
    if (from)
      std::copy_n(from, to.size(), to.begin());
    else
      std::fill(to.begin(), to.end(), T{});
  }
  // Columns first … of a row-major matrix, what is beyond its end zero.
  template <class D>
  static void gather(const T* from, int columns, int first, std::vector<D>& to) {
    const int n = std::min(lanes_of<D>, columns - first);
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = D{};
      if (from)
        for (int c = 0; c < n; ++c) lane(to[k], c) = from[k * std::size_t(columns) + std::size_t(first + c)];
    }
  }
  template <class D>
  static void scatter(const D* from, std::size_t count, int columns, int first, T* to) {
    const int n = std::min(lanes_of<D>, columns - first);
    for (std::size_t k = 0; k < count; ++k)
      for (int c = 0; c < n; ++c) to[k * std::size_t(columns) + std::size_t(first + c)] = lane(from[k], c);
  }

  // The first velocity of a link whose axis moves with it.
  static int first_turning(const Link<T>& link) { return link.type == Joint::free ? link.iv + 3 : link.iv; }

  void read_link(int i) {
    const auto& link = model_.links[std::size_t(i)];
    Joints& j = joint_[std::size_t(i)];
    j = {};
    for (int k = first_turning(link); k < link.iv + link.nv; ++k) {
      j.velocity += w_.S[k] * v_[std::size_t(k)];
      j.acceleration += w_.S[k] * a_[std::size_t(k)];
    }
  }

  RowPoint<T> point_of_link(int link, const Vec3<T>& x) const {
    return row_point(link, x, w_.v[link], w_.a[link], ground_);
  }
  RowPoint<T> point_of_body(int b, const Vec3<T>& point) const {
    const auto& body = model_.bodies[std::size_t(b)];
    if (body.link < 0) return {-1, {}, {}, {}, {}, {}};
    return point_of_link(body.link, w_.pose[body.link] * (body.placement.R * point + body.placement.p));
  }

  // Calls what suits a constraint's kind with it and its points.
  template <class Two, class Distance, class Fixed, class OfJoints>
  void each_constraint(Two&& two, Distance&& distance, Fixed&& fixed, OfJoints&& joints) {
    const RowPoint<T>* p = points_.data();
    for (const auto& c : set_.constraints) {
      if (c.kind == Kind::frame || c.kind == Kind::contact) {
        two(frame_rows(model_, w_, c, p[0], p[1]));
        p += 2;
      } else if (c.kind == Kind::distance) {
        distance(distance_row(model_, w_, c, p[0], p[1]));
        p += 2;
      } else if (c.kind == Kind::center) {
        for (std::size_t i = 0; i < model_.links.size(); ++i, ++p) {
          const T share = model_.links[i].inertial.mass * c.numbers[0];
          K_[0] = {{share, 0, 0}, {}}, K_[1] = {{0, share, 0}, {}}, K_[2] = {{0, 0, share}, {}};
          fixed(c, *p, c.target.empty() ? T(0) : c.kp);
        }
      } else if (c.kind == Kind::links) {
        for (std::size_t b = 0; b < c.bodies.size(); ++b, ++p) {
          for (int r = 0; r < c.rows; ++r) {
            const T* k = &c.matrix[6 * (b * std::size_t(c.rows) + std::size_t(r))];
            K_[std::size_t(r)] = {{k[0], k[1], k[2]}, {k[3], k[4], k[5]}};
          }
          fixed(c, *p, T(0));
        }
      } else {
        joints(c);
        p += 2;
      }
    }
  }

  // Points of all constraints, and their forces taken off those of the links.
  void place_rows() {
    RowPoint<T>* p = points_.data();
    for (const auto& c : set_.constraints) {
      if (c.kind == Kind::center) {
        for (std::size_t i = 0; i < model_.links.size(); ++i)
          *p++ = point_of_link(int(i), w_.pose[int(i)] * model_.links[i].inertial.center);
      } else if (c.kind == Kind::links) {
        for (std::size_t b = 0; b < c.bodies.size(); ++b) *p++ = point_of_body(c.bodies[b], c.points[b]);
      } else {
        if (c.kind == Kind::frame || c.kind == Kind::contact || c.kind == Kind::distance)
          for (int b = 0; b < 2; ++b) p[b] = point_of_body(c.bodies[std::size_t(b)], c.points[std::size_t(b)]);
        p += 2;
      }
    }
    auto push = [&](const RowPoint<T>& point, const Vec3<T>& x, const Vec3<T>& force, const Vec3<T>& moment) {
      if (point.link >= 0) w_.f.add(point.link, Vec6<T>{force, cross(x, force) + moment} * T(-1));
    };
    each_constraint(
        [&](const FrameRows<T>& f) {
          const T* lambda = &lambda_[std::size_t(f.c.row)];
          Vec3<T> force{}, moment{};
          for (int r = 0; r < f.pushes; ++r) force += f.push[r] * lambda[r];
          for (int r = 0; r < f.turns; ++r) moment += f.turn[r] * lambda[f.pushes + r];
          if (f.crosses) moment += cross(f.crossed.a, f.crossed.b) * lambda[3];
          push(f.points[0], f.slides() ? f.points[0].x - f.apart : f.points[0].x, force, moment);
          push(f.points[1], f.points[1].x, force * T(-1), moment * T(-1));
        },
        [&](const DistanceRow<T>& s) {
          const Vec3<T> force = s.n * lambda_[std::size_t(s.c.row)];
          push(s.points[0], s.points[0].x, force, {});
          push(s.points[1], s.points[1].x, force * T(-1), {});
        },
        [&](const Constraint<T>& c, const RowPoint<T>& point, T) {
          Vec3<T> force{}, moment{};
          for (int r = 0; r < c.rows; ++r) {
            force += K_[std::size_t(r)].lin * lambda_[std::size_t(c.row + r)];
            moment += K_[std::size_t(r)].ang * lambda_[std::size_t(c.row + r)];
          }
          push(point, point.x, force, moment);
        },
        [](const Constraint<T>&) {});  // those of joints touch no link
  }

  template <class D>
  void tangent_sweep(Sweeps<D>& s, const T* dq, const T* dv, const T* da, const T* dlambda, int columns, int first,
                     T* dF, T* dg) {
    gather(dq, columns, first, s.q);
    gather(dv, columns, first, s.v);
    gather(da, columns, first, s.a);
    gather(dlambda, columns, first, s.rows);
    const int nl = int(model_.links.size());
    for (int i = 0; i < nl; ++i) {
      const auto& link = model_.links[std::size_t(i)];
      LinkTangent<D> t{};
      if (link.parent >= 0) t = s.tangents[std::size_t(link.parent)];
      const Joints& j = joint_[std::size_t(i)];
      Vec6<D> moved{}, own_moved{};  // S dν, all and of the axes that move with the link
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        t.twist += w_.S[k] * s.q[std::size_t(k)];
        t.a += w_.S[k] * s.a[std::size_t(k)];
        const Vec6<D> step = w_.S[k] * s.v[std::size_t(k)];
        moved += step;
        if (k >= first_turning(link)) own_moved += step;
      }
      const Vec6<D> turned = cross_motion(t.twist, j.velocity);
      t.v += turned + moved;
      t.a += cross_motion(t.twist, j.acceleration) + cross_motion(t.v, j.velocity) +
             cross_motion(w_.v[i], turned + own_moved);
      const Inertia<T> I = w_.inertia[i];
      const Vec6<T> v = w_.v[i], h = I * v;
      const Vec6<D> own_v = t.v - cross_motion(t.twist, v), own_a = t.a - cross_motion(t.twist, w_.a[i]);
      t.f = cross_force(t.twist, own_[std::size_t(i)]) + I * own_a + cross_force(own_v, h) + cross_force(v, I * own_v);
      s.tangents[std::size_t(i)] = t;
    }
    if (!external_.empty())
      for (std::size_t b = 0; b < model_.bodies.size(); ++b) {
        const auto& body = model_.bodies[b];
        if (body.link < 0) continue;
        LinkTangent<D>& t = s.tangents[std::size_t(body.link)];
        const Vec3<T> c = w_.pose[body.link] * body.center,
                      force{external_[6 * b], external_[6 * b + 1], external_[6 * b + 2]};
        t.f.ang -= cross(t.twist.lin + cross(t.twist.ang, c), force);
      }
    std::fill(s.out.begin(), s.out.end(), D{});
    std::vector<D>& rows = s.out;
    for (std::size_t k = 0; k < s.a.size(); ++k) s.forces[k] = s.a[k] * model_.armature[k];
    each_constraint(
        [&](const FrameRows<T>& f) {
          const std::size_t r = std::size_t(f.c.row);
          frame_tangents(model_, w_, f, &lambda_[r], &s.rows[r], s.tangents, &rows[r]);
        },
        [&](const DistanceRow<T>& d) {
          const std::size_t r = std::size_t(d.c.row);
          distance_tangents(d, lambda_[r], s.rows[r], s.tangents, &rows[r]);
        },
        [&](const Constraint<T>& c, const RowPoint<T>& point, T gain) {
          const std::size_t r = std::size_t(c.row);
          fixed_tangents(point, K_.data(), c.rows, c.kd, gain, &lambda_[r], &s.rows[r], s.tangents, &rows[r]);
        },
        [&](const Constraint<T>& c) {
          const std::size_t r = std::size_t(c.row);
          joint_tangents(model_, c, q_.data(), v_.data(), a_.data(), s.q.data(), s.v.data(), s.a.data(), &lambda_[r],
                         &s.rows[r], &rows[r], s.forces.data());
        });
    scatter(rows.data(), lambda_.size(), columns, first, dg);
    for (int i = nl - 1; i >= 0; --i) {
      const auto& link = model_.links[std::size_t(i)];
      const LinkTangent<D>& t = s.tangents[std::size_t(i)];
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        D& x = s.forces[std::size_t(k)];
        x += dot(t.f, w_.S[k]);
        if (k >= first_turning(link)) x += dot(cross_motion(t.twist, w_.S[k]), carried_[std::size_t(i)]);
      }
      if (link.parent >= 0) s.tangents[std::size_t(link.parent)].f += t.f;
    }
    scatter(s.forces.data(), v_.size(), columns, first, dF);
  }

  template <class D>
  void adjoint_sweep(Sweeps<D>& s, const T* mu, const T* kappa, int columns, int first, T* q_bar, T* v_bar) {
    gather(mu, columns, first, s.a);
    gather(kappa, columns, first, s.rows);
    std::fill(s.q.begin(), s.q.end(), D{});
    std::fill(s.v.begin(), s.v.end(), D{});
    const int nl = int(model_.links.size());
    for (int i = 0; i < nl; ++i) {
      const auto& link = model_.links[std::size_t(i)];
      LinkAdjoint<D> d{};
      if (link.parent >= 0) d.w = s.adjoints[std::size_t(link.parent)].w;
      for (int k = link.iv; k < link.iv + link.nv; ++k) d.w += w_.S[k] * s.a[std::size_t(k)];
      const Inertia<T> I = w_.inertia[i];
      const Vec6<T> v = w_.v[i], a = w_.a[i];
      d.a = I * d.w;
      d.v = I * cross_motion(d.w, v) - cross_force(d.w, I * v);
      d.twist = (cross_force(v, d.v) + cross_force(a, d.a) + cross_force(d.w, own_[std::size_t(i)])) * T(-1);
      s.adjoints[std::size_t(i)] = d;
    }
    if (!external_.empty())
      for (std::size_t b = 0; b < model_.bodies.size(); ++b) {
        const auto& body = model_.bodies[b];
        if (body.link < 0) continue;
        LinkAdjoint<D>& d = s.adjoints[std::size_t(body.link)];
        const Vec3<T> c = w_.pose[body.link] * body.center,
                      force{external_[6 * b], external_[6 * b + 1], external_[6 * b + 2]};
        const Vec3<D> by_place = cross(d.w.ang, force);
        d.twist += Vec6<D>{by_place, cross(c, by_place)};
      }
    each_constraint(
        [&](const FrameRows<T>& f) {
          const std::size_t r = std::size_t(f.c.row);
          frame_adjoints(model_, w_, f, &lambda_[r], &s.rows[r], s.adjoints);
        },
        [&](const DistanceRow<T>& d) {
          const std::size_t r = std::size_t(d.c.row);
          distance_adjoints(d, lambda_[r], s.rows[r], s.adjoints);
        },
        [&](const Constraint<T>& c, const RowPoint<T>& point, T gain) {
          const std::size_t r = std::size_t(c.row);
          fixed_adjoints(point, K_.data(), c.rows, c.kd, gain, &lambda_[r], &s.rows[r], s.adjoints);
        },
        [&](const Constraint<T>& c) {
          const std::size_t r = std::size_t(c.row);
          joint_adjoints(model_, c, q_.data(), v_.data(), a_.data(), &lambda_[r], &s.rows[r], s.a.data(), s.q.data(),
                         s.v.data());
        });
    for (int i = nl - 1; i >= 0; --i) {
      const auto& link = model_.links[std::size_t(i)];
      LinkAdjoint<D>& d = s.adjoints[std::size_t(i)];
      const Joints& j = joint_[std::size_t(i)];
      Vec6<D> own_w{};
      for (int k = first_turning(link); k < link.iv + link.nv; ++k) own_w += w_.S[k] * s.a[std::size_t(k)];
      d.v += cross_force(j.velocity, d.a);
      const Vec6<D> joint = d.v - cross_force(w_.v[i], d.a);  // by Sν of axes that move with the link
      d.twist += cross_force(j.velocity, joint) + cross_force(j.acceleration, d.a) +
                 cross_force(own_w, carried_[std::size_t(i)]);
      for (int k = link.iv; k < link.iv + link.nv; ++k) {
        s.q[std::size_t(k)] += dot(d.twist, w_.S[k]);
        s.v[std::size_t(k)] += dot(k < first_turning(link) ? d.v : joint, w_.S[k]);
      }
      if (link.parent >= 0) {
        LinkAdjoint<D>& p = s.adjoints[std::size_t(link.parent)];
        p.v += d.v;
        p.a += d.a;
        p.twist += d.twist;
      }
    }
    scatter(s.q.data(), v_.size(), columns, first, q_bar);
    scatter(s.v.data(), v_.size(), columns, first, v_bar);
  }

  const Model<T>& model_;
  ConstraintSet<T> set_;
  Workspace<T> w_;
  std::vector<T> q_, v_, a_, lambda_, external_;
  Vec3<T> ground_{};
  std::vector<Joints> joint_;
  std::vector<Vec6<T>> virtual_;  // per link: of `parameter_adjoints`
  std::vector<Vec6<T>> own_,
      carried_;  // force that a link's own motion takes; that its subtree's takes, less all given
  std::vector<RowPoint<T>> points_;
  std::size_t given_ = 3;
  std::vector<Vec6<T>> K_;
  Sweeps<T> one_;
  Sweeps<Columns> many_;
};

}  // namespace delassus
