// Six-by-six matrices as six rows in packs: row r is lane r, components `room` apart, as rows of constraints are.
#pragma once

#include "operators/explicit/rows.h"

namespace delassus {

template <class T>
inline constexpr std::size_t six_room = row_room<T>(6);

template <class T>
struct Six {
  T c[6 * six_room<T>];

  T* data() { return c; }
  const T* data() const { return c; }
  T& operator()(int row, int column) { return c[std::size_t(column) * six_room<T> + std::size_t(row)]; }
  const T& operator()(int row, int column) const { return c[std::size_t(column) * six_room<T> + std::size_t(row)]; }

  static Six zero() {
    Six a;
    for (auto& x : a.c) x = T{};
    return a;
  }
  static Six identity() {
    Six a = zero();
    for (int k = 0; k < 6; ++k) a(k, k) = constant<T>(1);
    return a;
  }
};

// x ← A x of a pack of columns: Ω K for rows K, K P for A = Pᵀ
template <class T>
[[gnu::always_inline]] inline Vec6<RowPack<T>> times(const Six<T>& A, const Vec6<RowPack<T>>& x) {
  Vec6<RowPack<T>> y;
  for (int r = 0; r < 6; ++r) {
    RowPack<T> sum = x.lin.x * A(r, 0);
    for (int k = 1; k < 6; ++k) sum += entry(x, k) * A(r, k);
    entry(y, r) = sum;
  }
  return y;
}
template <class T>
[[gnu::always_inline]] inline Vec6<RowPack<T>> transpose_times(const Six<T>& A, const Vec6<RowPack<T>>& x) {
  Vec6<RowPack<T>> y;
  for (int r = 0; r < 6; ++r) {
    RowPack<T> sum = x.lin.x * A(0, r);
    for (int k = 1; k < 6; ++k) sum += entry(x, k) * A(k, r);
    entry(y, r) = sum;
  }
  return y;
}

// A ← A + P Ω Pᵀ, all by rows in packs
template <class T>
inline void add_congruence(Six<T>& A, const Six<T>& P, const Six<T>& Omega) {
  Six<T> X;  // P Ω
  for (int r = 0; r < 6; r += row_lanes<T>)
    store_six(X.data() + r, six_room<T>, times(Omega, load_six(P.data() + r, six_room<T>)));
  add_products(X.data(), P.data(), six_room<T>, 6, 0, 6, 0, 6, false, A.data(), six_room<T>);
}

template <class T>
inline Six<T> as_six(const Sym6<T>& H) {
  Six<T> A;
  for (int c = 0; c < 6; ++c) {
    Vec6<T> e{};
    entry(e, c) = constant<T>(1);
    const Vec6<T> column = H * e;
    for (int r = 0; r < 6; ++r) A(r, c) = entry(column, r);
  }
  return A;
}

}  // namespace delassus
