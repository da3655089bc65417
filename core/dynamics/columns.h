// Columns of a matrix in the lanes of registers, where the first and last register of a row may be partly used.
#pragma once

#include "dynamics/workspace.h"

namespace delassus {

// x in the columns first … first + width − 1 that lie in [begin, end), zero elsewhere.
template <class T>
inline LinkPack<T> within(const LinkPack<T>& x, int first, int begin, int end) {
  if constexpr (link_lanes<T> == 1) {
    return first >= begin && first < end ? x : T{};
  } else {
    LinkPack<T> index;
    for (int k = 0; k < link_lanes<T>; ++k) index[k] = T(k);
    return ((index >= T(begin - first)) & (index < T(end - first))) ? x : LinkPack<T>{};
  }
}

// The first `count` of a pack C of columns of T; a whole pack is one instruction.
template <class C, class T>
inline C load_columns(const T* from, int count) {
  C x{};
  if (count == int(sizeof(C) / sizeof(T))) [[likely]]
    __builtin_memcpy(&x, from, sizeof(x));
  else
    for (int k = 0; k < count; ++k) __builtin_memcpy(reinterpret_cast<T*>(&x) + k, from + k, sizeof(T));
  return x;
}
template <class C, class T>
inline void store_columns(T* to, const C& x, int count) {
  if (count == int(sizeof(C) / sizeof(T))) [[likely]]
    __builtin_memcpy(to, &x, sizeof(x));
  else
    for (int k = 0; k < count; ++k) __builtin_memcpy(to + k, reinterpret_cast<const T*>(&x) + k, sizeof(T));
}

}  // namespace delassus
