// Six-by-six blocks: couplings of two links by columns, and the factor of a free link.
#pragma once

#include <algorithm>

#include "dynamics/per_link.h"
#include "spatial/spatial.h"

namespace delassus {

// Six numbers in whole registers, the last two unused; of a pack of states, six packs.
template <class T>
struct Column {
  static constexpr int lanes = lanes_of<T> > 1 ? 1 : std::min(8, register_bytes / int(sizeof(T)));
  static constexpr int parts = lanes_of<T> > 1 ? 6 : 8 / lanes;
  using Part =
      typename std::conditional_t<(lanes_of<T> > 1), std::type_identity<T>, pack_of<T, lanes == 1 ? 2 : lanes>>::type;
  Part part[parts];

  const T& operator[](int k) const { return reinterpret_cast<const T*>(part)[k]; }
  T& operator[](int k) { return reinterpret_cast<T*>(part)[k]; }
};

template <class T>
inline void add(Column<T>& y, const Column<T>& x) {
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] += x.part[i];
}
// y += x s
template <class T>
inline void add(Column<T>& y, const Column<T>& x, T s) {
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] += x.part[i] * s;
}
template <class T>
inline Column<T> scaled(const Column<T>& x, T s) {
  Column<T> y;
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] = x.part[i] * s;
  return y;
}
template <class T>
inline Vec6<T> vector(const Column<T>& x) {
  return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
}

template <class T>
inline T& entry(Vec6<T>& v, int k) {
  return reinterpret_cast<T*>(&v)[k];
}
template <class T>
inline const T& entry(const Vec6<T>& v, int k) {
  return reinterpret_cast<const T*>(&v)[k];
}
template <class T>
inline Column<T> column(const Vec6<T>& v) {
  using Part = typename Column<T>::Part;
  Column<T> y;
  if constexpr (lanes_of<T> == 1 && Column<T>::parts == 2) {
    y.part[0] = Part{v.lin.x, v.lin.y, v.lin.z, v.ang.x};
    y.part[1] = Part{v.ang.y, v.ang.z, T{}, T{}};
  } else if constexpr (lanes_of<T> == 1) {
    y.part[0] = Part{v.lin.x, v.lin.y, v.lin.z, v.ang.x, v.ang.y, v.ang.z, T{}, T{}};
  } else {
    for (int k = 0; k < 6; ++k) y[k] = entry(v, k);
  }
  return y;
}

// H −= w d wᵀ of an H in memory: its 21 numbers in the order in which Sym6 has them, four at a time.
template <class T>
inline void downdate(Sym6<T>& H, const Column<T>& w, T d) {
  if constexpr (lanes_of<T> > 1) {
    downdate(H, vector(w), d);
  } else {
    using P = Pack<T, 4>;
    static_assert(sizeof(Sym6<T>) == 21 * sizeof(T));
    P a, b;  // w₀ … w₃ and w₄ w₅
    __builtin_memcpy(&a, &w, sizeof(P));
    __builtin_memcpy(&b, reinterpret_cast<const T*>(&w) + 4, sizeof(P));
    const P u = a * -d, v = b * -d;
    T* h = reinterpret_cast<T*>(&H);
    const auto add = [h](int at, const P& x, const P& y) __attribute__((always_inline)) {
      P sum;
      __builtin_memcpy(&sum, h + at, sizeof(P));
      sum += x * y;
      __builtin_memcpy(h + at, &sum, sizeof(P));
    };
    add(0, shuffle<0, 0, 0, 1>(a, a), shuffle<0, 1, 2, 1>(u, u));   // A.xx xy xz yy
    add(4, shuffle<1, 2, 0, 1>(a, a), shuffle<2, 2, 3, 3>(u, u));   // A.yz zz B.x.x x.y
    add(8, shuffle<2, 0, 1, 2>(a, a), shuffle<3, 4, 4, 4>(u, v));   // B.x.z, B.y
    add(12, a, shuffle<5, 5, 5, 3>(u, v));                          // B.z, C.xx
    add(16, shuffle<3, 3, 4, 4>(a, b), shuffle<0, 1, 0, 1>(v, v));  // C.xy xz yy yz
    h[20] += b[1] * v[1];
  }
}

// A coupling of two links, by columns.
template <class T>
struct Mat6 {
  Column<T> column[6];
};

// A v
template <class T>
inline Column<T> operator*(const Mat6<T>& A, const Vec6<T>& v) {
  Column<T> y = scaled(A.column[0], v.lin.x);
  for (int k = 1; k < 6; ++k) add(y, A.column[k], entry(v, k));
  return y;
}
// A += a bᵀ
template <class T>
inline void add_outer(Mat6<T>& A, const Column<T>& a, const Column<T>& b) {
  for (int k = 0; k < 6; ++k) add(A.column[k], a, b[k]);
}
template <class T>
inline void add_outer(Mat6<T>& A, const Column<T>& a, const Vec6<T>& b) {
  for (int k = 0; k < 6; ++k) add(A.column[k], a, entry(b, k));
}
template <class T>
inline void add(Mat6<T>& A, const Mat6<T>& B) {
  for (int k = 0; k < 6; ++k) add(A.column[k], B.column[k]);
}
template <class T>
inline void add_transposed(Mat6<T>& A, const Mat6<T>& B) {
  for (int r = 0; r < 6; ++r)
    for (int k = 0; k < 6; ++k) A.column[r][k] += B.column[k][r];
}
// P += Σ A_l B_lᵀ over six columns, or fewer
template <int columns = 6, class T>
inline void add_product(Mat6<T>& P, const Column<T>* A, const Column<T>* B) {
  for (int k = 0; k < 6; ++k) {
    Column<T> c = P.column[k];
    for (int l = 0; l < columns; ++l) add(c, A[l], B[l][k]);
    P.column[k] = c;
  }
}
// H += A + Aᵀ
template <class T>
inline void add_symmetric(Sym6<T>& H, const Mat6<T>& A) {
  const auto* c = A.column;
  H.A += Sym3<T>{c[0][0] + c[0][0], c[1][0] + c[0][1], c[2][0] + c[0][2],
                 c[1][1] + c[1][1], c[2][1] + c[1][2], c[2][2] + c[2][2]};
  H.B.x += Vec3<T>{c[3][0] + c[0][3], c[3][1] + c[1][3], c[3][2] + c[2][3]};
  H.B.y += Vec3<T>{c[4][0] + c[0][4], c[4][1] + c[1][4], c[4][2] + c[2][4]};
  H.B.z += Vec3<T>{c[5][0] + c[0][5], c[5][1] + c[1][5], c[5][2] + c[2][5]};
  H.C += Sym3<T>{c[3][3] + c[3][3], c[4][3] + c[3][4], c[5][3] + c[3][5],
                 c[4][4] + c[4][4], c[5][4] + c[4][5], c[5][5] + c[5][5]};
}
// H += Σ A_l B_lᵀ, which is symmetric
template <class T>
inline void add_product(Sym6<T>& H, const Column<T>* A, const Column<T>* B) {
  Mat6<T> P{};
  add_product(P, A, B);
  const auto* c = P.column;
  H.A += Sym3<T>{c[0][0], c[1][0], c[2][0], c[1][1], c[2][1], c[2][2]};
  H.B.x += Vec3<T>{c[3][0], c[3][1], c[3][2]};
  H.B.y += Vec3<T>{c[4][0], c[4][1], c[4][2]};
  H.B.z += Vec3<T>{c[5][0], c[5][1], c[5][2]};
  H.C += Sym3<T>{c[3][3], c[4][3], c[5][3], c[4][4], c[5][4], c[5][5]};
}
// H = L D Lᵀ of a free link: L below its unit diagonal by rows, D⁻¹. An explicit inverse would not do: constraints may
// be a thousand million times stiffer than the link is heavy.
template <class T>
struct Ldl6 {
  T L[15], Dinv[6];
};
constexpr int below(int i, int k) { return i * (i - 1) / 2 + k; }

template <class T>
inline void factor(const Sym6<T>& H, Ldl6<T>& F) {
  T a[6][6] = {{H.A.xx},
               {H.A.xy, H.A.yy},
               {H.A.xz, H.A.yz, H.A.zz},
               {H.B.x.x, H.B.x.y, H.B.x.z, H.C.xx},
               {H.B.y.x, H.B.y.y, H.B.y.z, H.C.xy, H.C.yy},
               {H.B.z.x, H.B.z.y, H.B.z.z, H.C.xz, H.C.yz, H.C.zz}};
#pragma GCC unroll 6
  for (int k = 0; k < 6; ++k) {
    F.Dinv[k] = real_of<T>(1) / a[k][k];
#pragma GCC unroll 6
    for (int i = k + 1; i < 6; ++i) {
      const T l = a[i][k] * F.Dinv[k];
      F.L[below(i, k)] = l;
#pragma GCC unroll 6
      for (int j = k + 1; j <= i; ++j) a[i][j] -= l * a[j][k];
    }
  }
}
template <class T>
inline Ldl6<T> factor(const Sym6<T>& H) {
  Ldl6<T> F;
  factor(H, F);
  return F;
}
// x ← L⁻¹ x, x ← L⁻ᵀ x
template <class T, class C>
inline void solve_lower(const Ldl6<T>& F, C* x) {
#pragma GCC unroll 6
  for (int i = 1; i < 6; ++i)
#pragma GCC unroll 6
    for (int k = 0; k < i; ++k) x[i] -= F.L[below(i, k)] * x[k];
}
template <class T, class C>
inline void solve_upper(const Ldl6<T>& F, C* x) {
#pragma GCC unroll 6
  for (int k = 4; k >= 0; --k)
#pragma GCC unroll 6
    for (int i = 5; i > k; --i) x[k] -= F.L[below(i, k)] * x[i];
}
// W ← A L⁻ᵀ
template <class T>
inline void solve_columns(const Ldl6<T>& F, const Mat6<T>& A, Column<T>* W) {
  for (int i = 0; i < 6; ++i) {
    Column<T> c = A.column[i];
    for (int k = 0; k < i; ++k) add(c, W[k], T(-F.L[below(i, k)]));
    W[i] = c;
  }
}

// A −= a bᵀ + b aᵀ
template <class T>
inline void subtract_pair(Sym6<T>& H, const Vec6<T>& a, const Vec6<T>& b) {
  H.A = H.A - Sym3<T>{real_of<T>(2) * a.lin.x * b.lin.x,     a.lin.x * b.lin.y + a.lin.y * b.lin.x,
                      a.lin.x * b.lin.z + a.lin.z * b.lin.x, real_of<T>(2) * a.lin.y * b.lin.y,
                      a.lin.y * b.lin.z + a.lin.z * b.lin.y, real_of<T>(2) * a.lin.z * b.lin.z};
  H.B.x -= a.lin * b.ang.x + b.lin * a.ang.x;
  H.B.y -= a.lin * b.ang.y + b.lin * a.ang.y;
  H.B.z -= a.lin * b.ang.z + b.lin * a.ang.z;
  H.C = H.C - Sym3<T>{real_of<T>(2) * a.ang.x * b.ang.x,     a.ang.x * b.ang.y + a.ang.y * b.ang.x,
                      a.ang.x * b.ang.z + a.ang.z * b.ang.x, real_of<T>(2) * a.ang.y * b.ang.y,
                      a.ang.y * b.ang.z + a.ang.z * b.ang.y, real_of<T>(2) * a.ang.z * b.ang.z};
}

// H⁻¹ of H = L D Lᵀ
template <class T>
inline Sym6<T> inverse(const Ldl6<T>& LD) {
  T x[6][6];  // columns of L⁻ᵀ D⁻¹ L⁻¹
  for (int c = 0; c < 6; ++c) {
    for (int r = 0; r < 6; ++r) x[c][r] = constant<T>(r == c);
    solve_lower(LD, x[c]);
    for (int r = 0; r < 6; ++r) x[c][r] *= LD.Dinv[r];
    solve_upper(LD, x[c]);
  }
  return {{x[0][0], x[0][1], x[0][2], x[1][1], x[1][2], x[2][2]},
          {{x[3][0], x[3][1], x[3][2]}, {x[4][0], x[4][1], x[4][2]}, {x[5][0], x[5][1], x[5][2]}},
          {x[3][3], x[3][4], x[3][5], x[4][4], x[4][5], x[5][5]}};
}

}  // namespace delassus
