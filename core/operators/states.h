// Converts n numbers of every state, in the user's layout, to n packs with one state per lane and back, by transposing
// square blocks.
#pragma once

#include <utility>

#include "spatial/scalar.h"

namespace delassus {

// Exchanges lane j of pack i with lane i of pack j, where one of them has the bit `step` and the other has not; then
// all smaller bits.
template <int step, class P, std::size_t... j>
[[gnu::always_inline]] inline void transpose(P* packs, std::index_sequence<j...> lanes) {
  constexpr int width = lanes_of<P>;
  for (int i = 0; i < width; ++i) {
    if (i & step) continue;
    const P a = packs[i], b = packs[i + step];
    packs[i] = shuffle<(int(j) & step ? width + int(j) - step : int(j))...>(a, b);
    packs[i + step] = shuffle<(int(j) & step ? width + int(j) : int(j) + step)...>(a, b);
  }
  if constexpr (step > 1) transpose<step / 2>(packs, lanes);
}
template <class P>
inline void transpose(P* packs) {
  transpose<lanes_of<P> / 2>(packs, std::make_index_sequence<std::size_t(lanes_of<P>)>());
}

template <class P, std::size_t... k>
[[gnu::always_inline]] inline P across(const real_of<P>* const* x, int r, std::index_sequence<k...>) {
  return P{x[k][r]...};
}

// to[r] ← number r of every state, x having where they start
template <class P>
inline void gather_states(const real_of<P>* const* x, int n, P* to) {
  constexpr int width = lanes_of<P>;
  int r = 0;
  for (; r + width <= n; r += width) {
    P square[width];
    for (int k = 0; k < width; ++k) __builtin_memcpy(&square[k], x[k] + r, sizeof(P));
    transpose(square);
    for (int k = 0; k < width; ++k) to[r + k] = square[k];
  }
  for (; r < n; ++r) to[r] = across<P>(x, r, std::make_index_sequence<std::size_t(width)>());
}

// And back, for the first `count` states.
template <class P>
inline void scatter_states(const P* from, int n, real_of<P>* const* x, int count) {
  constexpr int width = lanes_of<P>;
  int r = 0;
  for (; r + width <= n; r += width) {
    P square[width];
    for (int k = 0; k < width; ++k) square[k] = from[r + k];
    transpose(square);
    for (int k = 0; k < count; ++k) __builtin_memcpy(x[k] + r, &square[k], sizeof(P));
  }
  for (; r < n; ++r)
    for (int k = 0; k < count; ++k) x[k][r] = lane(from[r], k);
}

}  // namespace delassus
