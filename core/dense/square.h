// Operations on whole square matrices: transpose, mirror, invert. Row-major, rows `stride` apart.
#pragma once

#include "dense/vectors.h"

namespace delassus::dense {

// Four by four numbers, transposed in registers.
template <class Real>
struct FourByFour {
  using Four = Pack<Real, 4>;
  Four row[4];

  [[gnu::always_inline]] static FourByFour from(const Real* at, std::ptrdiff_t stride) {
    return {load<Four>(at), load<Four>(at + stride), load<Four>(at + 2 * stride), load<Four>(at + 3 * stride)};
  }
  [[gnu::always_inline]] FourByFour transposed() const {
    const Four e = shuffle<0, 4, 2, 6>(row[0], row[1]), f = shuffle<1, 5, 3, 7>(row[0], row[1]),
               g = shuffle<0, 4, 2, 6>(row[2], row[3]), h = shuffle<1, 5, 3, 7>(row[2], row[3]);
    return {shuffle<0, 1, 4, 5>(e, g), shuffle<0, 1, 4, 5>(f, h), shuffle<2, 3, 6, 7>(e, g), shuffle<2, 3, 6, 7>(f, h)};
  }
  [[gnu::always_inline]] void to(Real* at, std::ptrdiff_t stride) const {
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) store(at + r * stride, row[r]);
  }
};
template <class Real>
[[gnu::always_inline]] inline void transpose_block(const Real* from, std::ptrdiff_t stride, Real* to,
                                                   std::ptrdiff_t to_stride) {
  FourByFour<Real>::from(from, stride).transposed().to(to, to_stride);
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

// Copies the upper triangle to the lower one. Blocks of four by four end with the matrix. The first rows, fewer than
// four, are in blocks that overlap the next ones, where those lie above the diagonal.
template <class Real>
inline void mirror_upper(int n, Real* A, std::ptrdiff_t stride) {
  const int rest = n % 4;
  for (int r = 1; r < n && r < rest + 4; ++r)
    for (int c = 0; c < r && c < rest; ++c) A[r * stride + c] = A[c * stride + r];
  for (int j = rest + 4; j < n && rest > 0; j += 4) transpose_block(A + j, stride, A + j * stride, stride);
  for (int i = rest; i < n; i += 4) {
    Real* const own = A + i * (stride + 1);
    const auto upper = FourByFour<Real>::from(own, stride), lower = upper.transposed();
    store(own + stride, shuffle<0, 5, 6, 7>(lower.row[1], upper.row[1]));
    store(own + 2 * stride, shuffle<0, 1, 6, 7>(lower.row[2], upper.row[2]));
    store(own + 3 * stride, shuffle<0, 1, 2, 7>(lower.row[3], upper.row[3]));
    for (int j = i + 4; j < n; j += 4) transpose_block(A + i * stride + j, stride, A + j * stride + i, stride);
  }
}
// The same of packs.
template <class T>
  requires(lanes_of<T> > 1)
inline void mirror_upper(int n, T* A, std::ptrdiff_t stride) {
  for (int r = 1; r < n; ++r)
    for (int c = 0; c < r; ++c) A[r * stride + c] = A[c * stride + r];
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
