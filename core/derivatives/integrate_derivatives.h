// How q ⊕ dt ν changes with q and ν, on the tangent space of both ends:
//
//   hinge, slide, place of a free joint   dq⁺ = dq + dt dν
//   rotations                             dq⁺ = exp(−θ) dq + dt J_r(θ) dν,   θ = dt ω in body axes
//
// with the right Jacobian of the exponential, J_r(θ) = 1 − (1 − cos θ) / θ² [θ] + (θ − sin θ) / θ³ [θ]².
#pragma once

#include "model/model.h"
#include "spatial/quaternion.h"

namespace delassus {

// x × of J_r and of exp(−θ): 1 − a [θ] + b [θ]²
struct TurnSeries {
  Vec3<double> theta;
  double along, twice;

  Vec3<double> of(const Vec3<double>& x) const {
    const Vec3<double> once = cross(theta, x);
    return x - once * along + cross(theta, once) * twice;
  }
  // [θ] changes its sign when transposed, [θ]² does not.
  Vec3<double> transposed(const Vec3<double>& x) const {
    const Vec3<double> once = cross(theta, x);
    return x + once * along + cross(theta, once) * twice;
  }
};

// exp(−θ)
inline TurnSeries turned_back(const Vec3<double>& theta) {
  const double s = dot(theta, theta), angle = std::sqrt(s);
  if (angle < 1e-4) return {theta, 1 - s / 6, 0.5 - s / 24};
  return {theta, std::sin(angle) / angle, (1 - std::cos(angle)) / s};
}

// J_r(θ)
inline TurnSeries right_jacobian(const Vec3<double>& theta) {
  const double s = dot(theta, theta), angle = std::sqrt(s);
  if (angle < 1e-2) return {theta, 0.5 - s / 24 + s * s / 720, 1.0 / 6 - s / 120 + s * s / 5040};
  return {theta, (1 - std::cos(angle)) / s, (angle - std::sin(angle)) / (s * angle)};
}

// dq (nv × columns, row-major) along q becomes that along q ⊕ dt ν, with the changes dν of the velocity; null: zero.
inline void integrate_tangents(const Model<double>& model, const double* v, double dt, const double* dv, int columns,
                               double* dq) {
  const std::size_t k = std::size_t(columns);
  for (const auto& link : model.links) {
    const int turning = link.type == Joint::ball ? 0 : link.type == Joint::free ? 3 : link.nv;
    for (std::size_t e = std::size_t(link.iv) * k; dv && e < std::size_t(link.iv + turning) * k; ++e)
      dq[e] += dt * dv[e];
    if (turning == link.nv) continue;
    const double* w = v + link.iv + turning;
    const Vec3<double> theta{dt * w[0], dt * w[1], dt * w[2]};
    const TurnSeries back = turned_back(theta), right = right_jacobian(theta);
    const std::size_t first = std::size_t(link.iv + turning) * k;
    for (std::size_t c = first; c < first + k; ++c) {
      Vec3<double> d = back.of({dq[c], dq[c + k], dq[c + 2 * k]});
      if (dv) d += right.of({dv[c], dv[c + k], dv[c + 2 * k]}) * dt;
      dq[c] = d.x, dq[c + k] = d.y, dq[c + 2 * k] = d.z;
    }
  }
}

// The adjoint: q_bar at q ⊕ dt ν on entry, at q on exit; the contribution to ν is added to v_bar.
inline void integrate_adjoints(const Model<double>& model, const double* v, double dt, int columns, double* q_bar,
                               double* v_bar) {
  const std::size_t k = std::size_t(columns);
  for (const auto& link : model.links) {
    const int turning = link.type == Joint::ball ? 0 : link.type == Joint::free ? 3 : link.nv;
    for (std::size_t e = std::size_t(link.iv) * k; e < std::size_t(link.iv + turning) * k; ++e)
      v_bar[e] += dt * q_bar[e];
    if (turning == link.nv) continue;
    const double* w = v + link.iv + turning;
    const Vec3<double> theta{dt * w[0], dt * w[1], dt * w[2]};
    const TurnSeries back = turned_back(theta), right = right_jacobian(theta);
    const std::size_t first = std::size_t(link.iv + turning) * k;
    for (std::size_t c = first; c < first + k; ++c) {
      const Vec3<double> x{q_bar[c], q_bar[c + k], q_bar[c + 2 * k]}, by_v = right.transposed(x) * dt,
                                                                      by_q = back.transposed(x);
      v_bar[c] += by_v.x, v_bar[c + k] += by_v.y, v_bar[c + 2 * k] += by_v.z;
      q_bar[c] = by_q.x, q_bar[c + k] = by_q.y, q_bar[c + 2 * k] = by_q.z;
    }
  }
}

}  // namespace delassus
