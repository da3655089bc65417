// Operations on whole square matrices: transpose, mirror, invert. Row-major, rows `stride` apart.
#pragma once

#include "dense/vectors.h"

namespace delassus::dense {

// Four by four numbers, transposed in registers.
template <class Real>
[[gnu::always_inline]] inline void transpose_block(const Real* from, std::ptrdiff_t stride, Real* to,
                                                   std::ptrdiff_t to_stride) {
  using Four = Pack<Real, 4>;
  const Four a = load<Four>(from), b = load<Four>(from + stride), c = load<Four>(from + 2 * stride),
             d = load<Four>(from + 3 * stride);
  const Four e = shuffle<0, 4, 2, 6>(a, b), f = shuffle<1, 5, 3, 7>(a, b), g = shuffle<0, 4, 2, 6>(c, d),
             h = shuffle<1, 5, 3, 7>(c, d);
  store(to, Four(shuffle<0, 1, 4, 5>(e, g)));
  store(to + to_stride, Four(shuffle<0, 1, 4, 5>(f, h)));
  store(to + 2 * to_stride, Four(shuffle<2, 3, 6, 7>(e, g)));
  store(to + 3 * to_stride, Four(shuffle<2, 3, 6, 7>(f, h)));
}

// B ← Aᵀ; A: m × n.
template <class Real>
inline void transpose(int m, int n, const Real* A, std::ptrdiff_t a_stride, Real* B, std::ptrdiff_t b_stride) {
  for (int i = 0; i < m; i += 4)
    for (int j = 0; j < n; j += 4) {
      if (i + 4 <= m && j + 4 <= n) {
        transpose_block(A + i * a_stride + j, a_stride, B + j * b_stride + i, b_stride);
        continue;
      }
      for (int r = i; r < m && r < i + 4; ++r)
        for (int c = j; c < n && c < j + 4; ++c) B[c * b_stride + r] = A[r * a_stride + c];
    }
}

// What is above the diagonal to its place below.
template <class Real>
inline void mirror_upper(int n, Real* A, std::ptrdiff_t stride) {
  for (int i = 0; i < n; i += 4) {
    for (int r = i; r < n && r < i + 4; ++r)
      for (int c = i; c < r; ++c) A[r * stride + c] = A[c * stride + r];
    const int rows = n - i < 4 ? n - i : 4;
    if (rows == 4 && i + 4 < n)
      transpose(4, n - i - 4, A + i * stride + i + 4, stride, A + (i + 4) * stride + i, stride);
  }
}

// A ← A⁻¹ of a symmetric positive definite matrix, O(n³), by Gauss-Jordan elimination, one row of registers at a time.
// Numbers past the end of a row, up to a whole register, are overwritten. Returns false if a pivot is not positive; A
// is then undefined.
template <class Real>
inline bool invert_positive(int n, Real* A, std::ptrdiff_t stride) {
  using V = Vector<Real>;
  constexpr int lanes = vector_lanes<Real>;
  V index;
  for (int l = 0; l < lanes; ++l) index[l] = Real(l);
  for (int k = 0; k < n; ++k) {
    Real* row = A + k * stride;
    if (!(row[k] > 0)) return false;
    const Real over = 1 / row[k];
    // numbers of the column that is exchanged are replaced in registers: no small store lies before a large load
    for (int j = 0; j < n; j += lanes)
      store(row + j, V((index == Real(k - j) ? V{} + Real(1) : load<V>(row + j)) * over));
    for (int i = 0; i < n; ++i) {
      if (i == k) continue;
      Real* other = A + i * stride;
      const Real factor = other[k];
      for (int j = 0; j < n; j += lanes)
        store(other + j, V((index == Real(k - j) ? V{} : load<V>(other + j)) - load<V>(row + j) * factor));
    }
  }
  return true;
}

}  // namespace delassus::dense
