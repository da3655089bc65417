// Rows of constraints side by side in registers, and sums of products of them.
//
// An array of rows has room for a whole register past its end. Numbers of rows that a limb does not carry are zero in
// what the limb writes.
#pragma once

#include <algorithm>
#include <utility>

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

// to[c, r] ← from[r, c] of a square of L rows and columns in registers: the quarters beside the diagonal change places,
// then those of every quarter.
template <int L, class T>
[[gnu::always_inline]] inline void transpose_square(const T* from, std::size_t from_stride, T* to,
                                                    std::size_t to_stride) {
  using P = Pack<T, L>;
  P x[L];
#pragma GCC unroll 16
  for (int r = 0; r < L; ++r) __builtin_memcpy(&x[r], from + std::size_t(r) * from_stride, sizeof(P));
  const auto exchange = [&]<int side, int... l>(std::integral_constant<int, side>, std::integer_sequence<int, l...>) {
#pragma GCC unroll 16
    for (int r = 0; r < L; ++r) {
      if (r & side) continue;
      const P a = x[r], b = x[r + side];
      x[r] = shuffle<(l & side ? L + l - side : l)...>(a, b);
      x[r + side] = shuffle<(l & side ? L + l : l + side)...>(a, b);
    }
  };
  constexpr std::make_integer_sequence<int, L> lanes{};
  if constexpr (L >= 16) exchange(std::integral_constant<int, 8>{}, lanes);
  if constexpr (L >= 8) exchange(std::integral_constant<int, 4>{}, lanes);
  if constexpr (L >= 4) exchange(std::integral_constant<int, 2>{}, lanes);
  exchange(std::integral_constant<int, 1>{}, lanes);
#pragma GCC unroll 16
  for (int r = 0; r < L; ++r) __builtin_memcpy(to + std::size_t(r) * to_stride, &x[r], sizeof(P));
}

// to[c, r] ← from[r, c] of any number of rows and columns, which lie apart. Squares at the ends overlap those before.
template <class T>
inline void transpose(int rows, int columns, const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
  const auto squares = [&]<int L>(std::integral_constant<int, L>) {
    for (int r = 0; r < rows; r += L)
      for (int c = 0; c < columns; c += L) {
        const auto i = std::size_t(std::min(r, rows - L)), j = std::size_t(std::min(c, columns - L));
        transpose_square<L>(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
      }
  };
  const int least = std::min(rows, columns);
  if (row_lanes<T> > 4 && least >= row_lanes<T>)
    squares(std::integral_constant<int, (row_lanes<T> > 4 ? row_lanes<T> : 4)>{});
  else if (least >= 4)
    squares(std::integral_constant<int, 4>{});
  else
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        to[std::size_t(c) * to_stride + std::size_t(r)] = from[std::size_t(r) * from_stride + std::size_t(c)];
}

// to ← from, n numbers. The last register overlaps the one before.
template <class T>
[[gnu::always_inline]] inline void copy_run(const T* from, int n, T* to) {
  constexpr int lanes = row_lanes<T>;
  if (n < lanes) {
    for (int k = 0; k < n; ++k) to[k] = from[k];
    return;
  }
  for (int k = 0; k + lanes < n; k += lanes) store_rows(to + k, load_rows(from + k));
  store_rows(to + n - lanes, load_rows(from + n - lanes));
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
