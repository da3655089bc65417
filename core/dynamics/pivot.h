// The pivot of every elimination, here and in core/operators: one velocity leaves an articulated inertia.
//
//   U = H S,   D = Sᵀ U + armature + joint rows,   H −= U D⁻¹ Uᵀ
//
// T is a number, a pack of states, or a pack of links that do not know each other.
#pragma once

#include "spatial/spatial.h"

namespace delassus {

// add_joint_rows(D) adds what constraint rows on the joint itself bring to its pivot; keep(U, D⁻¹) stores what later
// sweeps need, U or V = U D⁻¹. Inlined always, and numbers are stored before H changes, so that H may stay in registers.
template <class T, class A, class AddJointRows, class Keep>
[[gnu::always_inline]] inline void eliminate_pivot(Sym6<T>& H, const Vec6<T>& S, const A& armature,
                                                   AddJointRows&& add_joint_rows, Keep&& keep) {
  const Vec6<T> U = H * S;
  T D = dot(S, U) + armature;
  add_joint_rows(D);
  const T Dinv = real_of<T>(1) / D;
  keep(U, Dinv);
  downdate(H, U, Dinv);
}
// A joint without constraint rows; U and D⁻¹ as they are.
template <class T, class A>
inline void eliminate_pivot(Sym6<T>& H, const Vec6<T>& S, const A& armature, Vec6<T>& kept_U, T& kept_Dinv) {
  eliminate_pivot(
      H, S, armature, [](T&) {}, [&](const Vec6<T>& U, const T& Dinv) { kept_U = U, kept_Dinv = Dinv; });
}

}  // namespace delassus
