// Numbers side by side in a register of the machine, and sums of products of vectors, each in one fixed order.
#pragma once

#include <cstddef>

#include "spatial/scalar.h"
#include "spatial/target.h"

namespace delassus::dense {

template <class Real>
inline constexpr int vector_lanes = vector_bytes / int(sizeof(Real));
template <class Real>
using Vector = Pack<Real, vector_lanes<Real>>;

template <class V, class Real>
[[gnu::always_inline]] inline V load(const Real* from) {
  V x;
  __builtin_memcpy(&x, from, sizeof(V));
  return x;
}
template <class V, class Real>
[[gnu::always_inline]] inline void store(Real* to, const V& x) {
  __builtin_memcpy(to, &x, sizeof(V));
}

// Eight numbers, in as many registers as that takes: sums in eight lanes have one order on every machine.
template <class Real>
struct Eight {
  static constexpr int lanes = vector_lanes<Real> < 8 ? vector_lanes<Real> : 8, parts = 8 / lanes;
  using V = Pack<Real, lanes>;
  V part[parts]{};

  [[gnu::always_inline]] static Eight from(const Real* x) {
    Eight e;
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) e.part[p] = load<V>(x + p * lanes);
    return e;
  }
  [[gnu::always_inline]] void to(Real* x) const {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) store(x + p * lanes, part[p]);
  }
  // plus, minus x times a, eight numbers or one
  [[gnu::always_inline]] void add(const Eight& x, const Eight& a) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) part[p] += x.part[p] * a.part[p];
  }
  [[gnu::always_inline]] void subtract(const Eight& x, Real a) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) part[p] -= x.part[p] * a;
  }
  // from the first lane to the last
  Real sum(Real start) const {
    for (int k = 0; k < 8; ++k) start += part[k / lanes][k % lanes];
    return start;
  }
  // the two halves added
  [[gnu::always_inline]] Pack<Real, 4> halves() const {
    Pack<Real, 4> low, high;
    __builtin_memcpy(&low, reinterpret_cast<const char*>(this), sizeof(low));
    __builtin_memcpy(&high, reinterpret_cast<const char*>(this) + sizeof(low), sizeof(high));
    return low + high;
  }
};

// sums[r] = Σᵢ a[r, i] bᵢ of R vectors a, `stride` apart, with one b.
template <int R, class Real>
inline void dots(int n, const Real* a, std::ptrdiff_t stride, const Real* b, Real* sums) {
  using Four = Pack<Real, 4>;
  Eight<Real> wide[R];
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto x = Eight<Real>::from(b + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) wide[r].add(x, Eight<Real>::from(a + r * stride + i));
  }
  Four four[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) four[r] = wide[r].halves();
  if (i + 4 <= n) {
    const Four x = load<Four>(b + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) four[r] += load<Four>(a + r * stride + i) * x;
    i += 4;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sums[r] = (four[r][0] + four[r][2]) + (four[r][1] + four[r][3]);
#pragma GCC unroll 4
  for (int t = 0; t < 3; ++t) {  // at most three are left
    if (i + t >= n) break;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] += a[r * stride + i + t] * b[i + t];
  }
}

// Σᵢ aᵢ bᵢ
template <class Real>
inline Real dot(int n, const Real* a, const Real* b) {
  Eight<Real> wide;
  int i = 0;
  for (; i + 8 <= n; i += 8) wide.add(Eight<Real>::from(a + i), Eight<Real>::from(b + i));
  Real sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  return wide.sum(sum);
}

// y ← A x of a matrix, rows × n, row-major, rows `stride` apart.
template <class Real>
inline void multiply_vector(int rows, int n, const Real* A, std::ptrdiff_t stride, const Real* x, Real* y) {
  int i = 0;
  for (; i + 4 <= rows; i += 4) dots<4>(n, A + i * stride, stride, x, y + i);
  for (; i < rows; ++i) y[i] = dot(n, A + i * stride, x);
}

// y ← y − Σᵣ c[r] a[r] of R vectors a, `stride` apart.
template <int R, class Real>
inline void subtract_multiples(int n, const Real* a, std::ptrdiff_t stride, const Real* c, Real* y) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    auto x = Eight<Real>::from(y + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x.subtract(Eight<Real>::from(a + r * stride + i), c[r]);
    x.to(y + i);
  }
  if (i + 4 <= n) {
    using Four = Pack<Real, 4>;
    Four x = load<Four>(y + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x -= load<Four>(a + r * stride + i) * c[r];
    store(y + i, x);
    i += 4;
  }
#pragma GCC unroll 4
  for (int t = 0; t < 3; ++t) {  // at most three are left
    if (i + t >= n) break;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) y[i + t] -= c[r] * a[r * stride + i + t];
  }
}

}  // namespace delassus::dense
