// Rows of constraints side by side in registers, and sums of products of them.
//
// An array of rows has room for a whole register past its end. Numbers of rows that a limb does not carry are zero in
// what the limb writes.
#pragma once

#include "dynamics/minv.h"
#include "operators/blocks.h"

namespace delassus {

template <class T>
using RowPack = LinkPack<T>;
template <class T>
inline constexpr int row_lanes = link_lanes<T>;

// Room for n rows, wherever a pack starts.
template <class T>
constexpr std::size_t row_room(int n) {
  return std::size_t((n + row_lanes<T> - 1) / row_lanes<T> + 1) * row_lanes<T>;
}

template <class T>
[[gnu::always_inline]] inline RowPack<T> load_rows(const T* from) {
  RowPack<T> x;
  __builtin_memcpy(&x, from, sizeof(x));
  return x;
}
template <class T>
[[gnu::always_inline]] inline void store_rows(T* to, const RowPack<T>& x) {
  __builtin_memcpy(to, &x, sizeof(x));
}
// over all lanes
template <class T>
[[gnu::always_inline]] inline T sum_rows(const RowPack<T>& x) {
  if constexpr (row_lanes<T> == 1) {
    return x;
  } else {
    T sum = x[0];
    for (int l = 1; l < row_lanes<T>; ++l) sum += x[l];
    return sum;
  }
}
// the first n lanes, zero beyond
template <class T>
[[gnu::always_inline]] inline RowPack<T> first_rows(const RowPack<T>& x, int n) {
  return n >= row_lanes<T> ? x : within<T>(x, 0, 0, n);
}
// the first n lanes of a, the others of b
template <class T>
[[gnu::always_inline]] inline RowPack<T> joined_rows(const RowPack<T>& a, const RowPack<T>& b, int n) {
  if constexpr (row_lanes<T> == 1) {
    return n > 0 ? a : b;
  } else {
    RowPack<T> index;
    for (int k = 0; k < row_lanes<T>; ++k) index[k] = T(k);
    return index < T(n) ? a : b;
  }
}
// six numbers a row, `room` apart
template <class T>
[[gnu::always_inline]] inline Vec6<RowPack<T>> load_six(const T* from, std::size_t room) {
  return {{load_rows(from), load_rows(from + room), load_rows(from + 2 * room)},
          {load_rows(from + 3 * room), load_rows(from + 4 * room), load_rows(from + 5 * room)}};
}
template <class T>
[[gnu::always_inline]] inline void store_six(T* to, std::size_t room, const Vec6<RowPack<T>>& x) {
  store_rows(to, x.lin.x);
  store_rows(to + room, x.lin.y);
  store_rows(to + 2 * room, x.lin.z);
  store_rows(to + 3 * room, x.ang.x);
  store_rows(to + 4 * room, x.ang.y);
  store_rows(to + 5 * room, x.ang.z);
}

// G[i + r, c + l] += Σ_k A[k, i + r] B[k, c + l] for r < R and the first `lanes` of a pack of columns; rows k are
// `room` apart in A and B, rows of G `stride`.
template <int R, class T>
[[gnu::always_inline]] inline void add_tile(const T* A, const T* B, std::size_t room, int n, int i, int c, int lanes,
                                            T* G, std::size_t stride) {
  RowPack<T> sum[R]{};
  for (int k = 0; k < n; ++k) {
    const RowPack<T> b = load_rows(B + k * room + c);
    const T* a = A + k * room + i;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] += b * a[r];
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    T* g = G + std::size_t(i + r) * stride + c;
    store_rows(g, load_rows(g) + first_rows<T>(sum[r], lanes));
  }
}

// G[i, j] += Σ_k A[k, i] B[k, j] for first ≤ i < past and from ≤ j < to; if `upper` only from a column on that is no
// later than i.
template <class T>
inline void add_products(const T* A, const T* B, std::size_t room, int n, int first, int past, int from, int to,
                         bool upper, T* G, std::size_t stride) {
  const auto tiles = [&]<int R>(int i) {
    for (int c = upper && i > from ? i : from; c < to; c += row_lanes<T>)
      add_tile<R>(A, B, room, n, i, c, to - c, G, stride);
  };
  int i = first;
  for (; past - i >= 6; i += 6) tiles.template operator()<6>(i);
  for (; past - i >= 3; i += 3) tiles.template operator()<3>(i);
  for (; i < past; ++i) tiles.template operator()<1>(i);
}

}  // namespace delassus
