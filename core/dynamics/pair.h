// Two registers side by side as one scalar: twice the columns in a sweep that is limited by latency. A vector type of
// that width would go through memory on processors without such a register.
#pragma once

#include "spatial/scalar.h"

namespace delassus {

template <class C>
struct Pair {
  C a, b;
};

template <class C>
[[gnu::always_inline]] inline Pair<C> operator+(const Pair<C>& x, const Pair<C>& y) {
  return {x.a + y.a, x.b + y.b};
}
template <class C>
[[gnu::always_inline]] inline Pair<C> operator-(const Pair<C>& x, const Pair<C>& y) {
  return {x.a - y.a, x.b - y.b};
}
template <class C>
[[gnu::always_inline]] inline Pair<C> operator*(const Pair<C>& x, const Pair<C>& y) {
  return {x.a * y.a, x.b * y.b};
}
template <class C>
[[gnu::always_inline]] inline Pair<C> operator*(const Pair<C>& x, real_of<C> s) {
  return {x.a * s, x.b * s};
}
template <class C>
[[gnu::always_inline]] inline Pair<C> operator*(real_of<C> s, const Pair<C>& x) {
  return {s * x.a, s * x.b};
}

// From and to unaligned memory, register by register: copied as a whole, a pair would pass through the stack.
template <class C, class T>
[[gnu::always_inline]] inline void load(C& x, const T* from) {
  __builtin_memcpy(&x, from, sizeof(x));
}
template <class C, class T>
[[gnu::always_inline]] inline void load(Pair<C>& x, const T* from) {
  load(x.a, from);
  load(x.b, from + sizeof(C) / sizeof(T));
}
template <class C, class T>
[[gnu::always_inline]] inline void store(T* to, const C& x) {
  __builtin_memcpy(to, &x, sizeof(x));
}
template <class C, class T>
[[gnu::always_inline]] inline void store(T* to, const Pair<C>& x) {
  store(to, x.a);
  store(to + sizeof(C) / sizeof(T), x.b);
}

}  // namespace delassus
