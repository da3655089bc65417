// Position errors e of the rows, their velocities J ν and drifts J̇ν (the rates of J ν while ν is constant), and
// Baumgarte's bias. O(n + m).
//
//   γ = J̇ν + k_d J ν + k_p e:   the constraint reads J ν̇ + γ = 0, and its error decays like ë + k_d ė + k_p e = 0.
//
// Where the error is zero, ė = J ν; only a contact may slide: its tangents have no error. Baumgarte, "Stabilization of
// constraints and integrals of motion in dynamical systems" (1972).
#pragma once

#include <algorithm>

#include "constraints/constraints.h"
#include "spatial/quaternion.h"

namespace delassus {

template <class Real>
inline Vec3<Real> three(const std::vector<Real>& x, int row = 0) {
  return {x[3 * row], x[3 * row + 1], x[3 * row + 2]};
}

// One vector per lane, for functions that branch.
template <class T, class F>
inline Vec3<T> lane_by_lane(F&& f) {
  Vec3<T> out;
  for (int k = 0; k < lanes_of<T>; ++k) {
    const Vec3<real_of<T>> one = f(k);
    lane(out.x, k) = one.x, lane(out.y, k) = one.y, lane(out.z, k) = one.z;
  }
  return out;
}

// p and p'' of a coupling at the leader's x
template <class T>
inline T polynomial(const std::vector<real_of<T>>& c, T x) {
  return (((x * c[4] + c[3]) * x + c[2]) * x + c[1]) * x + c[0];
}
template <class T>
inline T polynomial_curvature(const std::vector<real_of<T>>& c, T x) {
  return (x * (12 * c[4]) + 6 * c[3]) * x + 2 * c[2];
}

// e of every row, after `kinematics`; zero where there is none.
template <class T>
void errors(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, const Placement<T>& w, const T* q,
            T* e) {
  for (int r = 0; r < set.rows; ++r) e[r] = T{};

  for (const auto& c : set.constraints) {
    T* row = e + c.row;
    const bool aimed = !c.target.empty();
    auto displacement = [&](int joint) { return q[model.links[joint].iq] - model.links[joint].reference; };

    if (c.kind == Kind::frame) {
      // n · (x₁ − x₂)
      const Mat3<T> A = carrier_axes(model, w, c);
      const Vec3<T> d = separation(model, w, c);
      for (int r = 0; r < c.measured; ++r) row[r] = dot(A * three(c.matrix, c.first_axis() + r), d);
      T* turned = row + c.point_rows;
      const int turns = c.rows - c.point_rows;
      if (turns == 3 && aimed) {
        // log R₁ C R₂ᵀ
        const Mat3<T> R1 = body_pose(model, w, c.bodies[0]).R, R2 = body_pose(model, w, c.bodies[1]).R;
        const auto C = transpose(Mat3<real_of<T>>{three(c.target, 0), three(c.target, 1), three(c.target, 2)});
        const Mat3<T> turn = (R1 * C) * transpose(R2);
        const Vec3<T> angle = lane_by_lane<T>([&](int k) { return logarithm(quaternion(get_lane(turn, k))); });
        for (int r = 0; r < 3; ++r) turned[r] = dot(A * three(c.matrix, r), angle);
      } else if (turns == 2 && aimed) {
        // the turn of the second body's axis into the first's, across the axis
        const Vec3<T> n1 = A * three(c.matrix), n2 = body_pose(model, w, c.bodies[1]).R * three(c.target);
        const Vec3<T> angle = lane_by_lane<T>([&](int k) { return turn_between(get_lane(n2, k), get_lane(n1, k)); });
        for (int r = 1; r < 3; ++r) turned[r - 1] = dot(A * three(c.matrix, r), angle);
      } else if (c.crosses()) {
        const CrossedAxes<T> crossed = crossed_axes(model, w, c);
        turned[0] = dot(crossed.a, crossed.b);
      }
    } else if (c.kind == Kind::contact && c.measured > 0) {
      // n · (x₁ − x₂)
      row[0] = dot(separation(model, w, c), three(c.matrix));
    } else if (c.kind == Kind::distance && aimed) {
      const Vec3<T> d = separation(model, w, c);
      row[0] = square_root(dot(d, d)) - c.target[0];
    } else if (c.kind == Kind::joint && aimed) {
      row[0] = (q[model.links[model.dof_link[c.joints[0]]].iq] - c.target[0]) * c.numbers[0];
    } else if (c.kind == Kind::coupling) {
      row[0] = displacement(c.joints[0]) - polynomial(c.numbers, displacement(c.joints[1]));
    } else if (c.kind == Kind::center && aimed) {
      // Σ m_i (c_i − target) / Σ m_i
      Vec3<T> d{};
      for (std::size_t i = 0; i < model.links.size(); ++i) {
        const auto& link = model.links[i];
        d += ((w.origin[link.tree] - three(c.target)) + w.pose[int(i)] * link.inertial.center) *
             (link.inertial.mass * c.numbers[0]);
      }
      row[0] = d.x, row[1] = d.y, row[2] = d.z;
    }
  }
}

// J ν and J̇ν of every row, after `kinematics`, and `motions` without joint accelerations and with the ground at rest.
template <class T>
void rates(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, const Placement<T>& w,
           const Motions<T>& m, const T* q, const T* nu, T* velocity, T* drift) {
  using Real = real_of<T>;
  for (int r = 0; r < set.rows; ++r) velocity[r] = drift[r] = T{};
  for (const auto& j : set.joint_rows) velocity[j.row] += nu[j.velocity] * j.coefficient;

  for (const auto& c : set.constraints) {
    T *v = velocity + c.row, *a = drift + c.row;
    auto motion = [&](int b) { return frame_velocity(model, w, m, c.bodies[b], Vec3<T>{} + c.points[b]); };
    auto acceleration = [&](int b) { return frame_bias(model, w, m, c.bodies[b], Vec3<T>{} + c.points[b]); };

    if (c.kind == Kind::frame) {
      // n · v and n · a + (ω × n) · v, v and a of the first body minus the second, ω of the axes
      const auto first = frame_rates(model, w, m, c.bodies[0], c.points[0]),
                 second = frame_rates(model, w, m, c.bodies[1], c.points[1]);
      const Vec6<T> dv = first.velocity - second.velocity, da = first.bias - second.bias;
      const Vec3<T> spin = c.axes_on == 1 ? second.velocity.ang : first.velocity.ang;
      Vec3<T> point_v = dv.lin, point_a = da.lin;
      if (c.slides()) {
        // both bodies at the second point: v − ω₁ × d, and its rate
        const Vec3<T> d = separation(model, w, c);
        point_v -= cross(first.velocity.ang, d);
        point_a -= cross(first.bias.ang, d) + cross(first.velocity.ang, dv.lin);
      }
      auto each = [&](auto&& put) {
        const int pushes = c.point_rows, turns = c.crosses() ? 0 : c.rows - pushes;
        for (int r = 0; r < pushes; ++r) put(r, c.first_axis() + r, point_v, point_a);
        for (int r = 0; r < turns; ++r) put(pushes + r, 3 - turns + r, dv.ang, da.ang);
      };
      if (c.axes_on < 0) {
        each([&](int row, int axis, const Vec3<T>& v12, const Vec3<T>& a12) {
          v[row] = dot(v12, three(c.matrix, axis));
          a[row] = dot(a12, three(c.matrix, axis));
        });
      } else {
        const Mat3<T> A = carrier_axes(model, w, c);
        each([&](int row, int axis, const Vec3<T>& v12, const Vec3<T>& a12) {
          const Vec3<T> n = A * three(c.matrix, axis);
          v[row] = dot(n, v12);
          a[row] = dot(n, a12) + dot(cross(spin, n), v12);
        });
      }
      if (c.crosses()) {
        // (a × b) · ω and (a × b) · α + (ȧ × b + a × ḃ) · ω
        const CrossedAxes<T> x = crossed_axes(model, w, c);
        const Vec3<T> n = cross(x.a, x.b),
                      n_rate = cross(cross(first.velocity.ang, x.a), x.b) + cross(x.a, cross(second.velocity.ang, x.b));
        v[3] = dot(n, dv.ang);
        a[3] = dot(n, da.ang) + dot(n_rate, dv.ang);
      }
    } else if (c.kind == Kind::contact) {
      // n · v and n · a, of the point and of the rotation, v and a of the first body minus the second
      const Vec6<T> dv = motion(0) - motion(1), da = acceleration(0) - acceleration(1);
      for (int r = 0; r < c.rows; ++r) {
        const Real scale = contact_scale(c, r);
        v[r] = dot(r < 3 ? dv.lin : dv.ang, three(c.matrix, r % 3)) * scale;
        a[r] = dot(r < 3 ? da.lin : da.ang, three(c.matrix, r % 3)) * scale;
      }
    } else if (c.kind == Kind::distance) {
      // n · v and n · a + (|v|² − (n · v)²) / |d|, n = d / |d|
      const Vec3<T> d = separation(model, w, c), dv = motion(0).lin - motion(1).lin,
                    da = acceleration(0).lin - acceleration(1).lin;
      const T over = Real(1) / square_root(dot(d, d));
      const Vec3<T> n = d * over, across = cross(n, dv);
      v[0] = dot(n, dv);
      a[0] = dot(n, da) + dot(across, across) * over;
    } else if (c.kind == Kind::coupling) {
      // ν₁ − p' ν₂ and −p'' ν₂²
      const auto &first = model.links[c.joints[0]], &second = model.links[c.joints[1]];
      const T x = q[second.iq] - second.reference, nu2 = nu[second.iv];
      v[0] = nu[first.iv] - polynomial_slope(c.numbers, x) * nu2;
      a[0] = -polynomial_curvature(c.numbers, x) * nu2 * nu2;
    } else if (c.kind == Kind::combination) {
      // Σ c_k ν_k; how the c_k change is not known here
      for (std::size_t j = 0; j < c.joints.size(); ++j) v[0] += nu[c.joints[j]] * c.numbers[j];
    } else if (c.kind == Kind::center) {
      // Σ m_i ċ_i / Σ m_i, and the same of c̈_i
      Vec3<T> sum_v{}, sum_a{};
      for (std::size_t i = 0; i < model.links.size(); ++i) {
        const Real share = model.links[i].inertial.mass * c.numbers[0];
        const Vec3<T> x = w.pose[int(i)] * model.links[i].inertial.center;
        const Vec6<T> vi = m.v[int(i)], ai = m.a[int(i)];
        const Vec3<T> at = vi.lin + cross(vi.ang, x);
        sum_v += at * share;
        sum_a += (ai.lin + cross(ai.ang, x) + cross(vi.ang, at)) * share;
      }
      v[0] = sum_v.x, v[1] = sum_v.y, v[2] = sum_v.z;
      a[0] = sum_a.x, a[1] = sum_a.y, a[2] = sum_a.z;
    } else if (c.kind == Kind::links) {
      // Σ K [velocity; angular velocity], K constant
      for (std::size_t b = 0; b < c.bodies.size(); ++b) {
        const Vec6<T> vb = motion(int(b)), ab = acceleration(int(b));
        for (int r = 0; r < c.rows; ++r) {
          const Real* k = &c.matrix[6 * (b * c.rows + r)];
          const Vec6<Real> K{{k[0], k[1], k[2]}, {k[3], k[4], k[5]}};
          v[r] += dot(vb, K);
          a[r] += dot(ab, K);
        }
      }
    }
  }
}

// drift ← γ = J̇ν + k_d J ν + k_p e
template <class T>
void add_baumgarte(const ConstraintSet<real_of<T>>& set, const T* e, const T* velocity, T* drift) {
  for (const auto& c : set.constraints)
    for (int r = c.row; r < c.row + c.rows; ++r) drift[r] += velocity[r] * c.kd + e[r] * c.kp;
}

// The rows of a list of constraints in one state after another; memory is taken once. `out` may be an argument.
template <class T>
class ConstraintRows {
 public:
  using Real = real_of<T>;

  ConstraintRows(const Model<Real>& model, ConstraintSet<Real> set)
      : model_(model), set_(std::move(set)), w_(model), error_(set_.rows), velocity_(set_.rows), drift_(set_.rows) {}

  int rows() const { return set_.rows; }

  void error(const T* q, T* out) {
    kinematics(model_, w_, q);
    errors(model_, set_, w_, q, error_.data());
    std::copy(error_.begin(), error_.end(), out);
  }
  void velocity(const T* q, const T* nu, T* out) {
    move(q, nu);
    std::copy(velocity_.begin(), velocity_.end(), out);
  }
  void drift(const T* q, const T* nu, T* out) {
    move(q, nu);
    std::copy(drift_.begin(), drift_.end(), out);
  }
  void bias(const T* q, const T* nu, T* out) {
    move(q, nu);
    errors(model_, set_, w_, q, error_.data());
    add_baumgarte(set_, error_.data(), velocity_.data(), drift_.data());
    std::copy(drift_.begin(), drift_.end(), out);
  }

 private:
  void move(const T* q, const T* nu) {
    kinematics(model_, w_, q);
    motions(model_, w_, w_, nu, static_cast<const T*>(nullptr), Vec3<T>{});
    rates(model_, set_, w_, w_, q, nu, velocity_.data(), drift_.data());
  }

  const Model<Real>& model_;
  ConstraintSet<Real> set_;
  Workspace<T> w_;
  std::vector<T> error_, velocity_, drift_;
};

}  // namespace delassus
