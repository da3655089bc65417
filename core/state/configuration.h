// The configuration space: coordinates q live on a manifold (quaternions), velocities ν in its tangent.
//
//   free   q = (p, quaternion), ν = (ṗ in world, ω in body):  p ← p + ṗ dt,  quaternion ← quaternion ∘ exp(ω dt)
//   ball   quaternion ← quaternion ∘ exp(ω dt);     hinge, slide   q ← q + ν dt
#pragma once

#include "model/model.h"
#include "spatial/quaternion.h"

namespace delassus {

// out ← q ⊕ ν dt; quaternions come out normalised. out may be q.
template <class Real>
void integrate(const Model<Real>& model, const Real* q, const Real* v, Real dt, Real* out) {
  for (const auto& link : model.links) {
    const Real* a = q + link.iq;
    const Real* n = v + link.iv;
    Real* o = out + link.iq;
    if (link.type == Joint::hinge || link.type == Joint::slide) {
      o[0] = a[0] + n[0] * dt;
      continue;
    }
    if (link.type == Joint::free) {
      for (int k = 0; k < 3; ++k) o[k] = a[k] + n[k] * dt;
      a += 3, n += 3, o += 3;
    }
    const Quaternion<Real> turned = normalized(a) * exponential(Vec3<Real>{n[0] * dt, n[1] * dt, n[2] * dt});
    const Real raw[4] = {turned.w, turned.x, turned.y, turned.z};
    const Quaternion<Real> unit = normalized(raw);
    o[0] = unit.w, o[1] = unit.x, o[2] = unit.y, o[3] = unit.z;
  }
}

// out ← to ⊖ from: the shortest velocity that carries `from` to `to` in unit time
template <class Real>
void difference(const Model<Real>& model, const Real* from, const Real* to, Real* out) {
  for (const auto& link : model.links) {
    const Real* a = from + link.iq;
    const Real* b = to + link.iq;
    Real* o = out + link.iv;
    if (link.type == Joint::hinge || link.type == Joint::slide) {
      o[0] = b[0] - a[0];
      continue;
    }
    if (link.type == Joint::free) {
      for (int k = 0; k < 3; ++k) o[k] = b[k] - a[k];
      a += 3, b += 3, o += 3;
    }
    const Quaternion<Real> qa = normalized(a);
    const Vec3<Real> r = logarithm(Quaternion<Real>{qa.w, -qa.x, -qa.y, -qa.z} * normalized(b));
    o[0] = r.x, o[1] = r.y, o[2] = r.z;
  }
}

}  // namespace delassus
