// Scalars that a sweep may run on: float, double, or a pack of them with one state per lane.
//
// A sweep never branches on a value of its scalar type T, so the same source serves one state and many.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace delassus {

// N numbers of type Real side by side (GCC and Clang vector extension).
template <class Real, int N>
struct pack_of {
  typedef Real type __attribute__((vector_size(sizeof(Real) * N)));
};
template <class Real, int N>
using Pack = typename pack_of<Real, N>::type;

template <class T, class = void>
struct scalar_traits {
  using real = std::remove_cvref_t<decltype(std::declval<T>()[0])>;
  static constexpr int lanes = sizeof(T) / sizeof(real);
};
template <class T>
struct scalar_traits<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  using real = T;
  static constexpr int lanes = 1;
};
template <class T>
using real_of = typename scalar_traits<T>::real;
template <class T>
inline constexpr int lanes_of = scalar_traits<T>::lanes;

template <class T>
inline T constant(real_of<T> x) {
  return T{} + x;
}

template <class T>
inline real_of<T>& lane(T& x, int k) {
  return reinterpret_cast<real_of<T>*>(&x)[k];
}
template <class T>
inline real_of<T> lane(const T& x, int k) {
  return reinterpret_cast<const real_of<T>*>(&x)[k];
}

// (a₀, …, b₀, …) at these places: lanes of two packs, chosen when compiling.
template <int... at, class P>
[[gnu::always_inline]] inline auto shuffle(const P& a, const P& b) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, at...);
#else  // GCC 11
  constexpr int n = lanes_of<P>;
  return Pack<real_of<P>, sizeof...(at)>{(at < n ? a[at % n] : b[at % n])...};
#endif
}

template <class T>
inline T square_root(T x) {
  if constexpr (lanes_of<T> == 1) {
    return std::sqrt(x);
  } else {
    for (int k = 0; k < lanes_of<T>; ++k) lane(x, k) = std::sqrt(lane(x, k));
    return x;
  }
}

// sin and cos of a pack without a branch: x = k π/2 + r, |r| ≤ π/4, k π/2 subtracted in three exact pieces,
// Taylor series in r (truncation below 1 ulp), then the quadrant k picks and signs. Valid for |x| ≤ trig_range.
template <class Real>
inline constexpr Real trig_range = sizeof(Real) == 8 ? Real(1e6) : Real(1e3);

template <class P>
inline void reduced_sincos(P x, P& sin_x, P& cos_x) {
  using Real = real_of<P>;
  using Int = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  using Ints = Pack<Int, lanes_of<P>>;
  constexpr bool wide = sizeof(Real) == 8;
  constexpr int top_bit = wide ? 62 : 30;

  // k = round(2x/π), left in the low bits of the shifted sum
  constexpr Real shifter = wide ? Real(6755399441055744.0) : Real(12582912.0);
  const P shifted = x * Real(0.63661977236758134308) + shifter;
  const P k = shifted - shifter;
  Ints quadrant;
  __builtin_memcpy(&quadrant, &shifted, sizeof(P));

  P r;
  if constexpr (wide) {
    r = x - k * Real(0x1.921fb544p+0);
    r = r - k * Real(0x1.0b4611a6p-34);
    r = r - k * Real(0x1.3198a2e037073p-69);
  } else {
    r = x - k * Real(0x1.92p+0);
    r = r - k * Real(0x1.fb4p-12);
    r = r - k * Real(0x1.4442d2p-24);
  }
  const P z = r * r;

  P s, c;
  if constexpr (wide) {
    s = z * Real(1.0 / 355687428096000.0) - Real(1.0 / 1307674368000.0);
    s = s * z + Real(1.0 / 6227020800.0);
    s = s * z - Real(1.0 / 39916800.0);
    s = s * z + Real(1.0 / 362880.0);
    s = s * z - Real(1.0 / 5040.0);
    c = z * Real(1.0 / 20922789888000.0) - Real(1.0 / 87178291200.0);
    c = c * z + Real(1.0 / 479001600.0);
    c = c * z - Real(1.0 / 3628800.0);
    c = c * z + Real(1.0 / 40320.0);
    c = c * z - Real(1.0 / 720.0);
  } else {
    s = z * Real(1.0 / 362880.0) - Real(1.0 / 5040.0);
    c = z * Real(1.0 / 40320.0) - Real(1.0 / 720.0);
  }
  s = s * z + Real(1.0 / 120.0);
  s = s * z - Real(1.0 / 6.0);
  s = r + r * z * s;
  c = c * z + Real(1.0 / 24.0);
  c = Real(1) - (z * Real(0.5) - z * z * c);

  // odd quadrants exchange sin and cos; signs follow k and k + 1
  Ints si, ci;
  __builtin_memcpy(&si, &s, sizeof(P));
  __builtin_memcpy(&ci, &c, sizeof(P));
  const Ints swap = -(quadrant & 1);
  Ints so = (si & ~swap) | (ci & swap);
  Ints co = (ci & ~swap) | (si & swap);
  so ^= (quadrant & 2) << top_bit;
  co ^= ((quadrant + 1) & 2) << top_bit;
  __builtin_memcpy(&sin_x, &so, sizeof(P));
  __builtin_memcpy(&cos_x, &co, sizeof(P));
}

template <class P>
inline void pack_sincos(P x, P& s, P& c) {
  using Real = real_of<P>;
  bool in_range = true;
  for (int k = 0; k < lanes_of<P>; ++k) in_range &= std::abs(lane(x, k)) <= trig_range<Real>;
  if (in_range) {
    reduced_sincos(x, s, c);
  } else {
    for (int k = 0; k < lanes_of<P>; ++k) {
      lane(s, k) = std::sin(lane(x, k));
      lane(c, k) = std::cos(lane(x, k));
    }
  }
}

// sin and cos of n angles. Arrays hold room for a whole number of chunks: see trig_room.
inline constexpr int trig_chunk = 8;
constexpr int trig_room(int n) { return (n + trig_chunk - 1) / trig_chunk * trig_chunk; }

template <class T>
inline void sincos(const T* angle, T* s, T* c, int n) {
  if constexpr (lanes_of<T> == 1) {
    using P = Pack<T, trig_chunk>;
    for (int i = 0; i < n; i += trig_chunk) {
      P x, sx, cx;
      __builtin_memcpy(&x, angle + i, sizeof(P));
      pack_sincos(x, sx, cx);
      __builtin_memcpy(s + i, &sx, sizeof(P));
      __builtin_memcpy(c + i, &cx, sizeof(P));
    }
  } else {
    for (int i = 0; i < n; ++i) pack_sincos(angle[i], s[i], c[i]);
  }
}

}  // namespace delassus
