// The pivot of every elimination, here and in core/operators: one velocity leaves an articulated inertia.
//
//   U = H S,   D = Sᵀ U + armature + joint rows,   H −= U D⁻¹ Uᵀ
//
// T is a number, a pack of states, or a pack of independent links.
#pragma once

#include "spatial/spatial.h"

namespace delassus {

// add_joint_rows(D) adds what constraint rows on the joint itself bring to its pivot; keep(D⁻¹) stores what later
// sweeps need, before H changes. Inlined always, so that H may stay in registers. U may be where it is kept: read from
// memory, it needs no registers.
template <class T, class A, class AddJointRows, class Keep>
[[gnu::always_inline]] inline void eliminate_pivot(Sym6<T>& H, const Vec6<T>& S, const A& armature, Vec6<T>& U,
                                                   AddJointRows&& add_joint_rows, Keep&& keep) {
  U = H * S;
  T D = dot(S, U) + armature;
  add_joint_rows(D);
  const T Dinv = real_of<T>(1) / D;
  keep(Dinv);
  downdate(H, U, Dinv);
}
// A joint without constraint rows, U and D⁻¹ kept as they are.
template <class T, class A>
inline void eliminate_pivot(Sym6<T>& H, const Vec6<T>& S, const A& armature, Vec6<T>& U, T& Dinv) {
  eliminate_pivot(H, S, armature, U, [](T&) {}, [&](const T& d) { Dinv = d; });
}

}  // namespace delassus
