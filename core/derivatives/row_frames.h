// Rows between two points: those of a frame, of a contact, and of axes that stay perpendicular.
//
//   rows of the point   n · Δẍ + (ω_c × n) · Δẋ + k_d n · Δẋ + k_p n · Δx,   n carried by c: a body or the world
//   of the rotation     the same with Δω and Δα, and the error of the rotation
//
// If the second point slides, the first body's point is the one that coincides with it: Δẋ − ω₁ × Δx, and its rate.
#pragma once

#include "derivatives/row_points.h"
#include "derivatives/turn_rates.h"

namespace delassus {

// Axes of the rows of one constraint in a state, and what its points differ by.
template <class T>
struct FrameRows {
  const Constraint<T>& c;
  RowPoint<T> points[2];
  int pushes, turns;  // rows along axes, then about axes
  Vec3<T> push[3], turn[3];
  Vec3<T> spin;                                                            // of what carries the axes
  Vec3<T> apart, velocity, acceleration, relative_spin, relative_turning;  // Δ, as the rows of the point take it
  Vec3<T> plain_velocity;                                                  // Δẋ of the points themselves
  bool crosses;
  CrossedAxes<T> crossed;

  // whether axes move with a body, and which
  int carrier() const { return c.kind == Kind::contact ? -1 : c.axes_on; }
  // the rows of the point that have an error
  int measured() const { return c.kind == Kind::contact ? std::min(c.measured, 1) : c.measured; }
  bool slides() const { return c.kind == Kind::frame && c.slides(); }
  bool aimed() const { return c.kind == Kind::frame && !c.target.empty(); }
};

template <class T>
inline FrameRows<T> frame_rows(const Model<T>& model, const Placement<T>& w, const Constraint<T>& c,
                               const RowPoint<T>& first, const RowPoint<T>& second) {
  FrameRows<T> f{c, {first, second}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  auto axis = [&](int r) { return Vec3<T>{c.matrix[3 * r], c.matrix[3 * r + 1], c.matrix[3 * r + 2]}; };
  if (c.kind == Kind::contact) {
    f.pushes = std::min(c.rows, 3);
    f.turns = c.rows - f.pushes;
    for (int r = 0; r < c.rows; ++r) (r < 3 ? f.push[r] : f.turn[r - 3]) = axis(r % 3) * contact_scale(c, r);
  } else {
    const Mat3<T> A = carrier_axes(model, w, c);
    f.crosses = c.crosses();
    f.pushes = c.point_rows;
    f.turns = f.crosses ? 0 : c.rows - f.pushes;
    for (int r = 0; r < f.pushes; ++r) f.push[r] = A * axis(c.first_axis() + r);
    for (int r = 0; r < f.turns; ++r) f.turn[r] = A * axis(3 - f.turns + r);
    if (c.axes_on >= 0) f.spin = f.points[c.axes_on].spin;
    if (f.crosses) f.crossed = crossed_axes(model, w, c);
  }
  f.apart = separation(model, w, c);
  f.velocity = f.plain_velocity = first.velocity - second.velocity;
  f.acceleration = first.acceleration - second.acceleration;
  f.relative_spin = first.spin - second.spin;
  f.relative_turning = first.turning - second.turning;
  if (f.slides()) {
    f.acceleration -= cross(first.turning, f.apart) + cross(first.spin, f.velocity);
    f.velocity -= cross(first.spin, f.apart);
  }
  return f;
}

// Errors of rotations: log R₁ C R₂ᵀ, or the turn of the second body's axis into the first's.
template <class T>
struct TurnError {
  enum class Of { nothing, frame, axis } of = Of::nothing;
  Vec3<T> angle;
  Mat3<T> turned;    // frame: R₁ C R₂ᵀ
  Vec3<T> from, to;  // axis
  TurnRate<T> rate;
};
template <class T>
inline TurnError<T> turn_error(const Model<T>& model, const Placement<T>& w, const FrameRows<T>& f) {
  TurnError<T> e{};
  if (!f.aimed() || f.crosses || f.c.kp == 0) return e;
  const auto row = [](const std::vector<T>& x, int r) { return Vec3<T>{x[3 * r], x[3 * r + 1], x[3 * r + 2]}; };
  const Mat3<T> R2 = body_pose(model, w, f.c.bodies[1]).R;
  if (f.turns == 3) {
    const Mat3<T> C = transpose(Mat3<T>{row(f.c.target, 0), row(f.c.target, 1), row(f.c.target, 2)});
    e.of = TurnError<T>::Of::frame;
    e.turned = (body_pose(model, w, f.c.bodies[0]).R * C) * transpose(R2);
    e.angle = logarithm(quaternion(e.turned));
  } else if (f.turns == 2) {
    e.of = TurnError<T>::Of::axis;
    e.to = carrier_axes(model, w, f.c) * row(f.c.matrix, 0);
    e.from = R2 * row(f.c.target, 0);
    e.angle = turn_between(e.from, e.to);
    e.rate = turn_rate(e.from, e.to);
  }
  return e;
}

// Tangents of the rows, and of the forces of their λ on the links.
template <class T, class D>
void frame_tangents(const Model<T>& model, const Placement<T>& w, const FrameRows<T>& f, const T* lambda,
                    const D* dlambda, std::vector<LinkTangent<D>>& links, D* rows) {
  const T kp = f.c.kp, kd = f.c.kd;
  const PointTangent<D> d1 = tangent_of(f.points[0], links), d2 = tangent_of(f.points[1], links);
  const int carrier = f.carrier();
  const PointTangent<D> dc = carrier < 0 ? PointTangent<D>{} : carrier == 0 ? d1 : d2;
  const Vec3<D> dapart = d1.x - d2.x, dspin = d1.spin - d2.spin, dturning = d1.turning - d2.turning;
  Vec3<D> dvelocity = d1.velocity - d2.velocity, dacceleration = d1.acceleration - d2.acceleration;
  if (f.slides()) {
    const RowPoint<T>& p = f.points[0];
    dacceleration -= cross(d1.turning, f.apart) + cross(p.turning, dapart) + cross(d1.spin, f.plain_velocity) +
                     cross(p.spin, dvelocity);
    dvelocity -= cross(d1.spin, f.apart) + cross(p.spin, dapart);
  }
  // n · a + (ω × n) · v + k_d n · v, for a and v that rows of one kind share
  auto rate = [&](const Vec3<T>& n, const Vec3<D>& dn, const Vec3<T>& v, const Vec3<T>& a, const Vec3<D>& dv,
                  const Vec3<D>& da) {
    return dot(dn, a + v * kd) + dot(da + dv * kd, n) + dot(cross(dc.spin, n) + cross(f.spin, dn), v) +
           dot(dv, cross(f.spin, n));
  };
  Vec3<T> force{};
  Vec3<D> dforce{}, dmoment{};
  for (int r = 0; r < f.pushes; ++r) {
    const Vec3<T> n = f.push[r];
    const Vec3<D> dn = cross(dc.turn, n);
    rows[r] = rate(n, dn, f.velocity, f.acceleration, dvelocity, dacceleration);
    if (r < f.measured()) rows[r] += (dot(dn, f.apart) + dot(dapart, n)) * kp;
    force += n * lambda[r];
    dforce += dn * lambda[r] + n * dlambda[r];
  }
  const TurnError<T> error = turn_error(model, w, f);
  Vec3<D> dangle{};
  if (error.of == TurnError<T>::Of::frame) {
    dangle = logarithm_rate(error.angle, d1.turn - error.turned * d2.turn);
  } else if (error.of == TurnError<T>::Of::axis) {
    const Vec3<D> dfrom = cross(d2.turn, error.from), dto = cross(dc.turn, error.to);
    dangle = (cross(dfrom, error.to) + cross(error.from, dto)) * error.rate.g -
             error.rate.across * ((dot(dfrom, error.to) + dot(dto, error.from)) * error.rate.h);
  }
  for (int r = 0; r < f.turns; ++r) {
    const Vec3<T> n = f.turn[r];
    const Vec3<D> dn = cross(dc.turn, n);
    rows[f.pushes + r] = rate(n, dn, f.relative_spin, f.relative_turning, dspin, dturning) +
                         (dot(dn, error.angle) + dot(dangle, n)) * kp;
    dmoment += dn * lambda[f.pushes + r] + n * dlambda[f.pushes + r];
  }
  if (f.crosses) {
    const Vec3<T> a = f.crossed.a, b = f.crossed.b, n = cross(a, b);
    const Vec3<T> a_rate = cross(f.points[0].spin, a), b_rate = cross(f.points[1].spin, b);
    const Vec3<D> da = cross(d1.turn, a), db = cross(d2.turn, b), dn = cross(da, b) + cross(a, db);
    const Vec3<D> da_rate = cross(d1.spin, a) + cross(f.points[0].spin, da),
                  db_rate = cross(d2.spin, b) + cross(f.points[1].spin, db);
    const Vec3<T> n_rate = cross(a_rate, b) + cross(a, b_rate);
    const Vec3<D> dn_rate = cross(da_rate, b) + cross(a_rate, db) + cross(da, b_rate) + cross(a, db_rate);
    rows[3] = dot(dn, f.relative_turning + f.relative_spin * kd) + dot(dturning + dspin * kd, n) +
              dot(dn_rate, f.relative_spin) + dot(dspin, n_rate) + (dot(da, b) + dot(db, a)) * kp;
    dmoment += dn * lambda[3] + n * dlambda[3];
  }
  // on the first body where the rows act, on the second against them
  const Vec3<T> at = f.slides() ? f.points[0].x - f.apart : f.points[0].x;
  const Vec3<D> dat = f.slides() ? d1.x - dapart : d1.x;
  const T back = -1;
  take_off(f.points[0], at, dat, force, dforce, dmoment, links);
  take_off(f.points[1], f.points[1].x, d2.x, force * back, dforce * back, dmoment * back, links);
}

// Derivatives of κ · rows − λ · (rows of the virtual motion).
template <class T, class D>
void frame_adjoints(const Model<T>& model, const Placement<T>& w, const FrameRows<T>& f, const T* lambda,
                    const D* kappa, std::vector<LinkAdjoint<D>>& links) {
  const T kp = f.c.kp, kd = f.c.kd, back = -1;
  const Vec6<D> w1 = virtual_motion(f.points[0], links), w2 = virtual_motion(f.points[1], links);
  Vec3<D> virtual_velocity = w1.lin - w2.lin;
  const Vec3<D> virtual_spin = w1.ang - w2.ang;
  if (f.slides()) virtual_velocity -= cross(w1.ang, f.apart);
  PointAdjoint<D> d[2], dc;  // of both points, and of what carries the axes
  PointAdjoint<D> between;   // of the differences

  // an axis sum N = Σ κ n and F = Σ λ n that rows of one kind share
  auto rate = [&](const Vec3<T>& F, const Vec3<D>& N, const Vec3<T>& v, const Vec3<T>& a, const Vec3<D>& virtual_v,
                  Vec3<D>& dv, Vec3<D>& da) {
    da += N;
    dv += N * kd + cross(f.spin, N);
    dc.spin += cross(N, v);
    dc.turn += cross(N, a + v * kd + cross(v, f.spin)) - cross(F, virtual_v);
  };
  Vec3<T> F{}, M{};
  Vec3<D> N{}, E{};
  for (int r = 0; r < f.pushes; ++r) {
    F += f.push[r] * lambda[r];
    N += f.push[r] * kappa[r];
    if (r < f.measured()) E += f.push[r] * (kappa[r] * kp);
  }
  Vec3<D> dvelocity{}, dacceleration{};
  rate(F, N, f.velocity, f.acceleration, virtual_velocity, dvelocity, dacceleration);
  between.x += E;
  dc.turn += cross(E, f.apart);
  between.virtual_velocity -= Vec3<D>{} + F;
  if (f.slides()) {
    const RowPoint<T>& p = f.points[0];
    d[0].turning -= cross(f.apart, dacceleration);
    d[0].spin -= cross(f.plain_velocity, dacceleration) + cross(f.apart, dvelocity);
    between.x -= cross(dacceleration, p.turning) + cross(dvelocity, p.spin) - cross(F, w1.ang);
    dvelocity -= cross(dacceleration, p.spin);
  }
  between.velocity += dvelocity;
  between.acceleration += dacceleration;

  N = Vec3<D>{};
  for (int r = 0; r < f.turns; ++r) {
    M += f.turn[r] * lambda[f.pushes + r];
    N += f.turn[r] * kappa[f.pushes + r];
  }
  rate(M, N, f.relative_spin, f.relative_turning, virtual_spin, between.spin, between.turning);
  const TurnError<T> error = turn_error(model, w, f);
  if (error.of != TurnError<T>::Of::nothing) {
    E = N * kp;
    dc.turn += cross(E, error.angle);
    if (error.of == TurnError<T>::Of::frame) {
      const Vec3<D> turn = logarithm_adjoint(error.angle, E);
      d[0].turn += turn;
      d[1].turn -= transpose_times(error.turned, turn);
    } else {
      const D s = dot(E, error.rate.across) * (back * error.rate.h);
      d[1].turn += cross(error.from, cross(error.to, E) * error.rate.g + error.to * s);
      dc.turn += cross(error.to, cross(E, error.from) * error.rate.g + error.from * s);
    }
  }
  if (f.crosses) {
    const D k = kappa[3];
    const Vec3<T> a = f.crossed.a, b = f.crossed.b, n = cross(a, b);
    const Vec3<T> a_rate = cross(f.points[0].spin, a), b_rate = cross(f.points[1].spin, b);
    const Vec3<T> n_rate = cross(a_rate, b) + cross(a, b_rate);
    between.turning += n * k;
    between.spin += (n * kd + n_rate) * k;
    const Vec3<D> dn = (f.relative_turning + f.relative_spin * kd) * k - virtual_spin * lambda[3],
                  dn_rate = f.relative_spin * k;
    const Vec3<D> da_rate = cross(b, dn_rate), db_rate = cross(dn_rate, a);
    const Vec3<D> da = cross(b, dn) + cross(b_rate, dn_rate) + cross(da_rate, f.points[0].spin) + b * (k * kp);
    const Vec3<D> db = cross(dn, a) + cross(dn_rate, a_rate) + cross(db_rate, f.points[1].spin) + a * (k * kp);
    d[0].spin += cross(a, da_rate);
    d[1].spin += cross(b, db_rate);
    d[0].turn += cross(a, da);
    d[1].turn += cross(b, db);
  }
  for (int side = 0; side < 2; ++side) {
    const T sign = side == 0 ? 1 : -1;
    d[side].x += between.x * sign;
    d[side].velocity += between.velocity * sign;
    d[side].spin += between.spin * sign;
    d[side].acceleration += between.acceleration * sign;
    d[side].turning += between.turning * sign;
    d[side].virtual_velocity += between.virtual_velocity * sign;
    if (side == f.carrier()) d[side].turn += dc.turn, d[side].spin += dc.spin;
    add_adjoint(f.points[side], d[side], links);
  }
}

}  // namespace delassus
