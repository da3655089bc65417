// All rows other than those of frames and contacts: distances, centres of mass, rows with given K, and rows of joints.
#pragma once

#include "constraints/bias.h"
#include "derivatives/row_points.h"

namespace delassus {

// ---- distance: n · Δẍ + |n × Δẋ|² / l + k_d n · Δẋ + k_p (l − l₀), n = Δx / l
// -------------------------------------------

template <class T>
struct DistanceRow {
  const Constraint<T>& c;
  RowPoint<T> points[2];
  T over, along;  // 1 / l and n · Δẋ
  Vec3<T> n, velocity, acceleration;
  T across;  // |n × Δẋ|²
};

template <class T>
inline DistanceRow<T> distance_row(const Model<T>& model, const Placement<T>& w, const Constraint<T>& c,
                                   const RowPoint<T>& first, const RowPoint<T>& second) {
  const Vec3<T> apart = separation(model, w, c), v = first.velocity - second.velocity;
  const T over = 1 / std::sqrt(dot(apart, apart));
  const Vec3<T> n = apart * over, across = cross(n, v);
  return {c, {first, second}, over, dot(n, v), n, v, first.acceleration - second.acceleration, dot(across, across)};
}

template <class T, class D>
void distance_tangents(const DistanceRow<T>& s, T lambda, const D& dlambda, std::vector<LinkTangent<D>>& links,
                       D* row) {
  const T back = -1;
  const PointTangent<D> d1 = tangent_of(s.points[0], links), d2 = tangent_of(s.points[1], links);
  const Vec3<D> dapart = d1.x - d2.x, dv = d1.velocity - d2.velocity;
  const D length = dot(dapart, s.n);
  const Vec3<D> dn = (dapart - s.n * length) * s.over;
  const D dalong = dot(dn, s.velocity) + dot(dv, s.n);
  const D dacross = (dot(dv, s.velocity) - dalong * s.along) * T(2);
  row[0] = dot(dn, s.acceleration) + dot(d1.acceleration - d2.acceleration, s.n) + dacross * s.over -
           length * (s.across * s.over * s.over) + dalong * s.c.kd;
  if (!s.c.target.empty()) row[0] += length * s.c.kp;
  const Vec3<T> force = s.n * lambda;
  const Vec3<D> dforce = dn * lambda + s.n * dlambda;
  take_off(s.points[0], s.points[0].x, d1.x, force, dforce, Vec3<D>{}, links);
  take_off(s.points[1], s.points[1].x, d2.x, force * back, dforce * back, Vec3<D>{}, links);
}

template <class T, class D>
void distance_adjoints(const DistanceRow<T>& s, T lambda, const D& kappa, std::vector<LinkAdjoint<D>>& links) {
  const Vec3<D> virtual_velocity = virtual_motion(s.points[0], links).lin - virtual_motion(s.points[1], links).lin;
  PointAdjoint<D> between;
  between.virtual_velocity -= Vec3<D>{} + s.n * lambda;
  between.acceleration = s.n * kappa;
  between.velocity = ((s.velocity - s.n * s.along) * (2 * s.over) + s.n * s.c.kd) * kappa;
  const Vec3<D> dn =
      (s.acceleration + s.velocity * (s.c.kd - 2 * s.along * s.over)) * kappa - virtual_velocity * lambda;
  const T kp = s.c.target.empty() ? T(0) : s.c.kp;
  between.x = (dn - s.n * dot(dn, s.n)) * s.over + s.n * (kappa * (kp - s.across * s.over * s.over));
  for (int side = 0; side < 2; ++side) {
    const T sign = side == 0 ? 1 : -1;
    PointAdjoint<D> d;
    d.x = between.x * sign;
    d.velocity = between.velocity * sign;
    d.acceleration = between.acceleration * sign;
    d.virtual_velocity = between.virtual_velocity * sign;
    add_adjoint(s.points[side], d, links);
  }
}

// ---- a point on which rows act with constant K = [k; c]: k · ẍ + c · α + k_d (k · ẋ + c · ω) + k_p k · x
// ----------------

// rows += tangents; `gain` is k_p, or zero where there is no error.
template <class T, class D>
void fixed_tangents(const RowPoint<T>& p, const Vec6<T>* K, int count, T kd, T gain, const T* lambda, const D* dlambda,
                    std::vector<LinkTangent<D>>& links, D* rows) {
  const PointTangent<D> d = tangent_of(p, links);
  Vec3<T> force{};
  Vec3<D> dforce{}, dmoment{};
  for (int r = 0; r < count; ++r) {
    rows[r] += dot(d.acceleration + d.velocity * kd + d.x * gain, K[r].lin) + dot(d.turning + d.spin * kd, K[r].ang);
    force += K[r].lin * lambda[r];
    dforce += K[r].lin * dlambda[r];
    dmoment += K[r].ang * dlambda[r];
  }
  take_off(p, p.x, d.x, force, dforce, dmoment, links);
}

template <class T, class D>
void fixed_adjoints(const RowPoint<T>& p, const Vec6<T>* K, int count, T kd, T gain, const T* lambda, const D* kappa,
                    std::vector<LinkAdjoint<D>>& links) {
  PointAdjoint<D> d;
  for (int r = 0; r < count; ++r) {
    d.acceleration += K[r].lin * kappa[r];
    d.turning += K[r].ang * kappa[r];
    d.virtual_velocity -= Vec3<D>{} + K[r].lin * lambda[r];
  }
  d.velocity = d.acceleration * kd;
  d.spin = d.turning * kd;
  d.x = d.acceleration * gain;
  add_adjoint(p, d, links);
}

// ---- joints: c ν̇ + k_d c ν + k_p c (q − q₀), and ν̇₁ − p' ν̇₂ − p'' ν₂² + … of a coupling
// --------------------------------

// A row for each of some joints, or one for all of them.
template <class T>
inline std::size_t row_of_joint(const Constraint<T>& c, std::size_t j) {
  return c.kind == Kind::joint ? j : 0;
}

// rows (zero so far) and what their λ adds to F.
template <class T, class D>
void joint_tangents(const Model<T>& model, const Constraint<T>& c, const T* q, const T* v, const T* a, const D* dq,
                    const D* dv, const D* da, const T* lambda, const D* dlambda, D* rows, D* tau) {
  if (c.kind == Kind::coupling) {
    const auto &first = model.links[c.joints[0]], &second = model.links[c.joints[1]];
    const int i = first.iv, j = second.iv;
    const T x = q[second.iq] - second.reference, slope = polynomial_slope(c.numbers, x),
            bend = polynomial_curvature(c.numbers, x), third = 24 * c.numbers[4] * x + 6 * c.numbers[3];
    rows[0] = da[i] - da[j] * slope - dq[j] * (bend * a[j]) - dq[j] * (third * v[j] * v[j]) -
              dv[j] * (2 * bend * v[j]) + (dv[i] - dv[j] * slope - dq[j] * (bend * v[j])) * c.kd +
              (dq[i] - dq[j] * slope) * c.kp;
    tau[i] -= dlambda[0];
    tau[j] += dlambda[0] * slope + dq[j] * (bend * lambda[0]);
    return;
  }
  for (std::size_t j = 0; j < c.joints.size(); ++j) {
    const int k = c.joints[j];
    const std::size_t r = row_of_joint(c, j);
    rows[r] += (da[k] + dv[k] * c.kd) * c.numbers[j];
    if (c.kind == Kind::joint && !c.target.empty()) rows[r] += dq[k] * (c.kp * c.numbers[j]);
    tau[k] -= dlambda[r] * c.numbers[j];
  }
}

template <class T, class D>
void joint_adjoints(const Model<T>& model, const Constraint<T>& c, const T* q, const T* v, const T* a, const T* lambda,
                    const D* kappa, const D* mu, D* q_bar, D* v_bar) {
  if (c.kind == Kind::coupling) {
    const D k = kappa[0];
    const auto &first = model.links[c.joints[0]], &second = model.links[c.joints[1]];
    const int i = first.iv, j = second.iv;
    const T x = q[second.iq] - second.reference, slope = polynomial_slope(c.numbers, x),
            bend = polynomial_curvature(c.numbers, x), third = 24 * c.numbers[4] * x + 6 * c.numbers[3];
    q_bar[i] += k * c.kp;
    q_bar[j] +=
        mu[j] * (lambda[0] * bend) - k * (bend * a[j] + third * v[j] * v[j] + c.kd * bend * v[j] + c.kp * slope);
    v_bar[i] += k * c.kd;
    v_bar[j] -= k * (2 * bend * v[j] + c.kd * slope);
    return;
  }
  for (std::size_t j = 0; j < c.joints.size(); ++j) {
    const D k = kappa[row_of_joint(c, j)] * c.numbers[j];
    v_bar[c.joints[j]] += k * c.kd;
    if (c.kind == Kind::joint && !c.target.empty()) q_bar[c.joints[j]] += k * c.kp;
  }
}

}  // namespace delassus
