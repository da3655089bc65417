// Three- and six-dimensional algebra of rigid bodies, in world axes, about one reference point per tree.
//
// Spatial vectors are [linear; angular]. A motion is (velocity of the body point that passes the reference point,
// angular velocity); a force is (force, moment about the reference point). Everything is a plain aggregate. Operations
// on articulated inertias and rotations are always inlined: a function call would pass their numbers through memory.
#pragma once

#include <utility>

#include "spatial/scalar.h"

namespace delassus {

// What a product of the two scalars is: a pack if either is.
template <class T, class U>
using product = decltype(std::declval<T>() * std::declval<U>());

template <class T>
struct Vec3 {
  T x, y, z;
};

template <class T, class U>
inline Vec3<product<T, U>> operator+(const Vec3<T>& a, const Vec3<U>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T, class U>
inline Vec3<product<T, U>> operator-(const Vec3<T>& a, const Vec3<U>& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T, class U>
inline Vec3<product<T, U>> operator*(const Vec3<T>& a, U s) {
  return {a.x * s, a.y * s, a.z * s};
}
template <class T>
inline Vec3<T>& operator+=(Vec3<T>& a, const Vec3<T>& b) {
  return a = a + b;
}
template <class T>
inline Vec3<T>& operator-=(Vec3<T>& a, const Vec3<T>& b) {
  return a = a - b;
}
template <class T, class U>
inline product<T, U> dot(const Vec3<T>& a, const Vec3<U>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T, class U>
inline Vec3<product<T, U>> cross(const Vec3<T>& a, const Vec3<U>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// A 3×3 matrix by its columns: of a rotation, the axes of the moving frame.
template <class T>
struct Mat3 {
  Vec3<T> x, y, z;
};

template <class T, class U>
[[gnu::always_inline]] inline Vec3<product<T, U>> operator*(const Mat3<T>& R, const Vec3<U>& a) {
  return {R.x.x * a.x + R.y.x * a.y + R.z.x * a.z,  //
          R.x.y * a.x + R.y.y * a.y + R.z.y * a.z,  //
          R.x.z * a.x + R.y.z * a.y + R.z.z * a.z};
}
template <class T, class U>
inline Vec3<product<T, U>> transpose_times(const Mat3<T>& R, const Vec3<U>& a) {
  return {dot(R.x, a), dot(R.y, a), dot(R.z, a)};
}
template <class T, class U>
[[gnu::always_inline]] inline Mat3<product<T, U>> operator*(const Mat3<T>& A, const Mat3<U>& B) {
  return {A * B.x, A * B.y, A * B.z};
}
template <class T>
inline Mat3<T> transpose(const Mat3<T>& A) {
  return {{A.x.x, A.y.x, A.z.x}, {A.x.y, A.y.y, A.z.y}, {A.x.z, A.y.z, A.z.z}};
}

// Rotation of the quaternion (w, x, y, z), whose norm it divides out.
template <class T>
inline Mat3<T> rotation(T w, T x, T y, T z) {
  const T s = real_of<T>(2) / (w * w + x * x + y * y + z * z);
  const T xx = s * x * x, yy = s * y * y, zz = s * z * z;
  const T xy = s * x * y, xz = s * x * z, yz = s * y * z;
  const T wx = s * w * x, wy = s * w * y, wz = s * w * z;
  const real_of<T> one = 1;
  return {{one - yy - zz, xy + wz, xz - wy}, {xy - wz, one - xx - zz, yz + wx}, {xz + wy, yz - wx, one - xx - yy}};
}

// Symmetric 3×3, six numbers.
template <class T>
struct Sym3 {
  T xx, xy, xz, yy, yz, zz;
};

template <class T>
inline Sym3<T>& operator+=(Sym3<T>& a, const Sym3<T>& b) {
  return a = {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz};
}
template <class T, class U>
inline Vec3<product<T, U>> operator*(const Sym3<T>& A, const Vec3<U>& a) {
  return {A.xx * a.x + A.xy * a.y + A.xz * a.z,  //
          A.xy * a.x + A.yy * a.y + A.yz * a.z,  //
          A.xz * a.x + A.yz * a.y + A.zz * a.z};
}
template <class T>
inline Sym3<T> operator-(const Sym3<T>& a, const Sym3<T>& b) {
  return {a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yy - b.yy, a.yz - b.yz, a.zz - b.zz};
}
// A⁻¹ of a positive definite A by cofactors, its trace divided out so that no product overflows
template <class T>
inline Sym3<T> inverse(Sym3<T> A) {
  const T s = real_of<T>(1) / (A.xx + A.yy + A.zz);
  A = {A.xx * s, A.xy * s, A.xz * s, A.yy * s, A.yz * s, A.zz * s};
  const T xx = A.yy * A.zz - A.yz * A.yz, xy = A.xz * A.yz - A.xy * A.zz, xz = A.xy * A.yz - A.xz * A.yy;
  const T d = s / (A.xx * xx + A.xy * xy + A.xz * xz);
  return {d * xx,
          d * xy,
          d * xz,
          d * (A.xx * A.zz - A.xz * A.xz),
          d * (A.xy * A.xz - A.xx * A.yz),
          d * (A.xx * A.yy - A.xy * A.xy)};
}
// A += s a aᵀ
template <class T>
[[gnu::always_inline]] inline void add_outer(Sym3<T>& A, const Vec3<T>& a, const Vec3<T>& sa) {
  A.xx += a.x * sa.x;
  A.xy += a.x * sa.y;
  A.xz += a.x * sa.z;
  A.yy += a.y * sa.y;
  A.yz += a.y * sa.z;
  A.zz += a.z * sa.z;
}
// R A Rᵀ
template <class T, class U>
inline Sym3<T> congruence(const Mat3<T>& R, const Sym3<U>& A) {
  const Vec3<T> u = R.x * A.xx + R.y * A.xy + R.z * A.xz;  // columns of R A
  const Vec3<T> v = R.x * A.xy + R.y * A.yy + R.z * A.yz;
  const Vec3<T> w = R.x * A.xz + R.y * A.yz + R.z * A.zz;
  return {u.x * R.x.x + v.x * R.y.x + w.x * R.z.x,  //
          u.x * R.x.y + v.x * R.y.y + w.x * R.z.y,  //
          u.x * R.x.z + v.x * R.y.z + w.x * R.z.z,  //
          u.y * R.x.y + v.y * R.y.y + w.y * R.z.y,  //
          u.y * R.x.z + v.y * R.y.z + w.y * R.z.z,  //
          u.z * R.x.z + v.z * R.y.z + w.z * R.z.z};
}

// Placement of a frame: a point with coordinates c in the frame is at R c + p.
template <class T>
struct Pose {
  Mat3<T> R;
  Vec3<T> p;
};

template <class T, class U>
[[gnu::always_inline]] inline Pose<T> operator*(const Pose<T>& A, const Pose<U>& B) {
  return {A.R * B.R, A.R * B.p + A.p};
}
template <class T, class U>
[[gnu::always_inline]] inline Vec3<T> operator*(const Pose<T>& A, const Vec3<U>& c) {
  return A.R * c + A.p;
}

// A motion or a force, [linear; angular].
template <class T>
struct Vec6 {
  Vec3<T> lin, ang;
};

template <class T>
inline Vec6<T> operator+(const Vec6<T>& a, const Vec6<T>& b) {
  return {a.lin + b.lin, a.ang + b.ang};
}
template <class T, class U>
inline Vec6<product<T, U>> operator-(const Vec6<T>& a, const Vec6<U>& b) {
  return {a.lin - b.lin, a.ang - b.ang};
}
template <class T, class U>
inline Vec6<product<T, U>> operator*(const Vec6<T>& a, U s) {
  return {a.lin * s, a.ang * s};
}
template <class T>
inline Vec6<T>& operator+=(Vec6<T>& a, const Vec6<T>& b) {
  return a = a + b;
}
template <class T>
inline Vec6<T>& operator-=(Vec6<T>& a, const Vec6<T>& b) {
  return a = a - b;
}
template <class T, class U>
inline product<T, U> dot(const Vec6<T>& a, const Vec6<U>& b) {
  return dot(a.lin, b.lin) + dot(a.ang, b.ang);
}
// Rate of the motion m carried by a body that moves with v.
template <class T, class U>
inline Vec6<product<T, U>> cross_motion(const Vec6<T>& v, const Vec6<U>& m) {
  return {cross(v.ang, m.lin) + cross(v.lin, m.ang), cross(v.ang, m.ang)};
}
// Rate of the force f carried by a body that moves with v: m · (v ×* f) = −(v × m) · f.
template <class T, class U>
inline Vec6<product<T, U>> cross_force(const Vec6<T>& v, const Vec6<U>& f) {
  return {cross(v.ang, f.lin), cross(v.ang, f.ang) + cross(v.lin, f.lin)};
}

// Rigid inertia about the reference point: mass, first moment h = m c, second moment I.
template <class T>
struct Inertia {
  T m;
  Vec3<T> h;
  Sym3<T> I;
};

template <class T>
inline Inertia<T> operator+(Inertia<T> a, const Inertia<T>& b) {
  a.m += b.m;
  a.h += b.h;
  a.I += b.I;
  return a;
}
template <class T>
inline Inertia<T>& operator+=(Inertia<T>& a, const Inertia<T>& b) {
  return a = a + b;
}
// Inertia of mass m, centre c, central inertia Ic: I = Ic + m (c·c 1 − c cᵀ)
template <class T, class C>
inline Inertia<T> inertia_about_reference(C m, const Vec3<T>& c, const Sym3<T>& Ic) {
  const Vec3<T> h = c * m;
  const T xx = c.x * h.x, yy = c.y * h.y, zz = c.z * h.z;
  return {T{} + m,
          h,
          {Ic.xx + yy + zz, Ic.xy - c.x * h.y, Ic.xz - c.x * h.z, Ic.yy + xx + zz, Ic.yz - c.y * h.z, Ic.zz + xx + yy}};
}
// Momentum of a motion: (m v + ω × h, h × v + I ω)
template <class T, class U>
inline Vec6<product<T, U>> operator*(const Inertia<T>& A, const Vec6<U>& v) {
  return {v.lin * A.m + cross(v.ang, A.h), cross(A.h, v.lin) + A.I * v.ang};
}

// Symmetric 6×6 in blocks [A B; Bᵀ C], 21 numbers: an articulated inertia.
template <class T>
struct Sym6 {
  Sym3<T> A;
  Mat3<T> B;
  Sym3<T> C;
};

template <class T>
inline Sym6<T> articulated(const Inertia<T>& a) {
  const T o{};  // B = −[h]×
  return {{a.m, o, o, a.m, o, a.m}, {{o, -a.h.z, a.h.y}, {a.h.z, o, -a.h.x}, {-a.h.y, a.h.x, o}}, a.I};
}
template <class T>
[[gnu::always_inline]] inline Sym6<T>& operator+=(Sym6<T>& a, const Sym6<T>& b) {
  a.A += b.A;
  a.B.x += b.B.x;
  a.B.y += b.B.y;
  a.B.z += b.B.z;
  a.C += b.C;
  return a;
}
// H += articulated(a)
template <class T>
[[gnu::always_inline]] inline void add(Sym6<T>& H, const Inertia<T>& a) {
  H.A.xx += a.m;
  H.A.yy += a.m;
  H.A.zz += a.m;
  H.B.x.y -= a.h.z;
  H.B.x.z += a.h.y;
  H.B.y.x += a.h.z;
  H.B.y.z -= a.h.x;
  H.B.z.x -= a.h.y;
  H.B.z.y += a.h.x;
  H.C += a.I;
}
template <class T, class U>
[[gnu::always_inline]] inline Vec6<product<T, U>> operator*(const Sym6<T>& H, const Vec6<U>& v) {
  return {H.A * v.lin + H.B * v.ang, transpose_times(H.B, v.lin) + H.C * v.ang};
}
// H −= U d Uᵀ
template <class T>
[[gnu::always_inline]] inline void downdate(Sym6<T>& H, const Vec6<T>& U, T d) {
  const Vec6<T> V = U * -d;
  add_outer(H.A, U.lin, V.lin);
  H.B.x += U.lin * V.ang.x;
  H.B.y += U.lin * V.ang.y;
  H.B.z += U.lin * V.ang.z;
  add_outer(H.C, U.ang, V.ang);
}

// H⁻¹ by blocks, with the Schur complement of A
template <class T>
inline Sym6<T> inverse(const Sym6<T>& H) {
  const Sym3<T> Ai = inverse(H.A);
  const Mat3<T> K{Ai * H.B.x, Ai * H.B.y, Ai * H.B.z};  // A⁻¹ B
  const Sym3<T> C = inverse(H.C - Sym3<T>{dot(H.B.x, K.x), dot(H.B.x, K.y), dot(H.B.x, K.z), dot(H.B.y, K.y),
                                          dot(H.B.y, K.z), dot(H.B.z, K.z)});
  const Mat3<T> L{K * Vec3<T>{C.xx, C.xy, C.xz}, K * Vec3<T>{C.xy, C.yy, C.yz}, K * Vec3<T>{C.xz, C.yz, C.zz}};  // K C
  const Mat3<T> Kt = transpose(K), Lt = transpose(L);
  Sym3<T> A = Ai;
  A += Sym3<T>{dot(Lt.x, Kt.x), dot(Lt.x, Kt.y), dot(Lt.x, Kt.z), dot(Lt.y, Kt.y), dot(Lt.y, Kt.z), dot(Lt.z, Kt.z)};
  return {A, {L.x * real_of<T>(-1), L.y * real_of<T>(-1), L.z * real_of<T>(-1)}, C};
}

// One lane of an aggregate of packs.
template <template <class> class V, class P>
inline V<real_of<P>> get_lane(const V<P>& packs, int l) {
  V<real_of<P>> value;
  for (std::size_t k = 0; k < sizeof(V<P>) / sizeof(P); ++k)
    reinterpret_cast<real_of<P>*>(&value)[k] = reinterpret_cast<const real_of<P>*>(&packs)[k * lanes_of<P> + l];
  return value;
}
template <template <class> class V, class P, class T>
inline void set_lane(V<P>& packs, int l, const V<T>& value) {
  for (std::size_t k = 0; k < sizeof(V<T>) / sizeof(T); ++k)
    reinterpret_cast<T*>(&packs)[k * lanes_of<P> + l] = reinterpret_cast<const T*>(&value)[k];
}

}  // namespace delassus
