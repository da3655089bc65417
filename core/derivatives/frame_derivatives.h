// Derivatives of the motion of a frame fixed to a body, and of forces that act on it. World axes throughout. O(d).
//
// The frame's point is at x and moves with ẋ = v + ω × x and ẍ = a + α × x + ω × ẋ, where (v, ω) and (a, α) are those
// of its link (subspace_rates.h). For every velocity j on the path to the ground,
//
//   ∂x/∂q_j = S_lin + S_ang × x,   ∂ẋ = ∂v + ∂ω × x + ω × ∂x,   ∂ẍ = ∂a + ∂α × x + α × ∂x + ∂ω × ẋ + ω × ∂ẋ
//
// Forces: with F the wrench about the tree's origin, τ_k = S_kᵀ F changes by (S_j × S_k)ᵀ F where j carries k or is of
// its joint, and by S_kᵀ [0; ∂x × f] for all j, k on the path.
#pragma once

#include "derivatives/workspace.h"
#include "state/frames.h"

namespace delassus {

// A vector to column k of a 6 × nv matrix, row-major.
template <class T>
inline void set_column(T* matrix, std::size_t nv, int k, const Vec6<T>& x) {
  const T numbers[6] = {x.lin.x, x.lin.y, x.lin.z, x.ang.x, x.ang.y, x.ang.z};
  for (std::size_t r = 0; r < 6; ++r) matrix[r * nv + k] = numbers[r];
}

// After `subspace_rates` on ground at rest. velocity, acceleration: 6; the others 6 × nv, row-major.
template <class T>
void frame_derivatives(const Model<real_of<T>>& model, const DerivativeWorkspace<T>& w, int body, const Vec3<T>& point,
                       T* velocity, T* acceleration, T* jacobian, T* velocity_q, T* acceleration_q, T* acceleration_v) {
  const std::size_t nv = std::size_t(model.nv);
  for (T* matrix : {jacobian, velocity_q, acceleration_q, acceleration_v})
    for (std::size_t e = 0; e < 6 * nv; ++e) matrix[e] = T{};
  set_column(velocity, 1, 0, frame_velocity(model, w, w, body, point));
  set_column(acceleration, 1, 0, frame_bias(model, w, w, body, point));
  const int i = model.bodies[body].link;
  if (i < 0) return;

  const Vec3<T> x = point_in_tree(model, w, body, point);
  const Vec6<T> v = w.v[i], a = w.a[i];
  const Vec3<T> xd = v.lin + cross(v.ang, x);
  for (int k = model.links[i].iv + model.links[i].nv - 1; k >= 0; k = model.dof_parent[k]) {
    const Vec6<T> S = w.S[k];
    const Vec3<T> x_q = S.lin + cross(S.ang, x);
    const Vec6<T> v_q = cross_motion(S, v) + w.rates.Psi[k];
    const Vec6<T> a_q = cross_motion(S, a) + cross_motion(w.rates.Psi[k], v) + w.rates.Chi[k];
    const Vec6<T> a_v = cross_motion(S, v) + w.rates.Phi[k];
    const Vec3<T> xd_q = v_q.lin + cross(v_q.ang, x) + cross(v.ang, x_q);
    const Vec3<T> xdd_q = a_q.lin + cross(a_q.ang, x) + cross(a.ang, x_q) + cross(v_q.ang, xd) + cross(v.ang, xd_q);
    const Vec3<T> xdd_v = a_v.lin + cross(a_v.ang, x) + cross(S.ang, xd) + cross(v.ang, x_q);
    set_column(jacobian, nv, k, {x_q, S.ang});
    set_column(velocity_q, nv, k, {xd_q, v_q.ang});
    set_column(acceleration_q, nv, k, {xdd_q, a_q.ang});
    set_column(acceleration_v, nv, k, {xdd_v, a_v.ang});
  }
}

// Jᵀ [f; t] of a frame and its derivative by q, for a force f and a torque t that keep their direction in the world.
// After `kinematics`. tau: nv; tau_q: nv × nv, row-major.
template <class T>
void frame_force_derivatives(const Model<real_of<T>>& model, const Placement<T>& w, int body, const Vec3<T>& point,
                             const Vec6<T>& force, T* tau, T* tau_q) {
  const std::size_t nv = std::size_t(model.nv);
  for (std::size_t k = 0; k < nv; ++k) tau[k] = T{};
  for (std::size_t e = 0; e < nv * nv; ++e) tau_q[e] = T{};
  const int i = model.bodies[body].link;
  if (i < 0) return;

  const Vec3<T> x = point_in_tree(model, w, body, point);
  const Vec6<T> F{force.lin, force.ang + cross(x, force.lin)};
  const int last = model.links[i].iv + model.links[i].nv - 1;
  for (int k = last; k >= 0; k = model.dof_parent[k]) {
    const auto& link = model.links[model.dof_link[k]];
    const bool turns = link.type != Joint::free || k >= link.iv + 3;  // axes of the world do not
    tau[k] = dot(w.S[k], F);
    for (int j = last; j >= 0; j = model.dof_parent[j]) {
      const Vec3<T> x_q = w.S[j].lin + cross(w.S[j].ang, x);
      T change = dot(w.S[k].ang, cross(x_q, force.lin));
      if (turns && j < link.iv + link.nv) change += dot(cross_motion(w.S[j], w.S[k]), F);
      tau_q[std::size_t(k) * nv + j] = change;
    }
  }
}

}  // namespace delassus
