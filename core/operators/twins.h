// Blocks of a matrix that is not symmetric: H_ij is not H_jiᵀ, so both are kept, the second one transposed. Two links
// have `down` = H_ji, with rows of the link that is eliminated later, and `up` = H_ijᵀ, which has the same shape. Every
// operation on one is applied to the other with left and right exchanged. One link has H_ii and H_iiᵀ.
#pragma once

#include "operators/blocks.h"

namespace delassus {

template <class T>
struct Twin6 {
  Mat6<T> down, up;
};

// Couplings of an elimination. Most contacts of a pile are open, and their blocks are zero: what nothing was added to
// is zero, and is neither written nor read.
template <class T>
struct Couplings {
  Twin6<T>* blocks;
  char* used;  // a coupling: something was added to it

  bool is_zero(int block) const { return !used[block]; }
  const Twin6<T>& operator[](int block) const { return blocks[block]; }
  // To add to.
  Twin6<T>& open(int block) const {
    if (!used[block]) blocks[block] = Twin6<T>{}, used[block] = 1;
    return blocks[block];
  }
};

template <class T>
inline void add(Twin6<T>& A, const Twin6<T>& B) {
  add(A.down, B.down);
  add(A.up, B.up);
}
// H_pj += H_ij where B holds H_ji, rows of j
template <class T>
inline void add_transposed(Twin6<T>& A, const Twin6<T>& B) {
  add_transposed(A.down, B.up);
  add_transposed(A.up, B.down);
}
// H_pp += H_pi + H_ip
template <class T>
inline void add_both(Twin6<T>& H, const Twin6<T>& B) {
  add(H, B);
  add_transposed(H.down, B.up);
  add_transposed(H.up, B.down);
}

// H += A of a symmetric A
template <class T>
inline void add(Mat6<T>& H, const Sym6<T>& A) {
  const auto column = [&](int k, const T& a, const T& b, const T& c, const T& d, const T& e, const T& f) {
    auto& h = H.column[k];
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f;
  };
  column(0, A.A.xx, A.A.xy, A.A.xz, A.B.x.x, A.B.y.x, A.B.z.x);
  column(1, A.A.xy, A.A.yy, A.A.yz, A.B.x.y, A.B.y.y, A.B.z.y);
  column(2, A.A.xz, A.A.yz, A.A.zz, A.B.x.z, A.B.y.z, A.B.z.z);
  column(3, A.B.x.x, A.B.x.y, A.B.x.z, A.C.xx, A.C.xy, A.C.xz);
  column(4, A.B.y.x, A.B.y.y, A.B.y.z, A.C.xy, A.C.yy, A.C.yz);
  column(5, A.B.z.x, A.B.z.y, A.B.z.z, A.C.xz, A.C.yz, A.C.zz);
}
template <class T>
inline void add(Twin6<T>& H, const Sym6<T>& A) {
  add(H.down, A);
  add(H.up, A);
}

// H = L D Uᵀ with unit triangles L and U below the diagonal; both get D⁻¹. No rows are exchanged: the caller refines,
// and judges what comes out.
template <class T>
inline void factor(const Mat6<T>& H, Ldl6<T>& L, Ldl6<T>& U) {
  T a[6][6];
  for (int c = 0; c < 6; ++c)
    for (int r = 0; r < 6; ++r) a[r][c] = H.column[c][r];
#pragma GCC unroll 6
  for (int k = 0; k < 6; ++k) {
    const T Dinv = real_of<T>(1) / a[k][k];
    L.Dinv[k] = U.Dinv[k] = Dinv;
#pragma GCC unroll 6
    for (int i = k + 1; i < 6; ++i) {
      const T l = a[i][k] * Dinv;
      L.L[below(i, k)] = l;
      U.L[below(i, k)] = a[k][i] * Dinv;
#pragma GCC unroll 6
      for (int j = k + 1; j < 6; ++j) a[i][j] -= l * a[k][j];
    }
  }
}

}  // namespace delassus
