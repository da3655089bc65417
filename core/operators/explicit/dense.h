// Inverse of a dense symmetric positive definite matrix, O(n³), of which a mechanism has many small ones.
//
//   A = Uᵀ D U,   W = U⁻ᵀ,   A⁻¹ = Wᵀ D⁻¹ W              (U unit upper triangular)
//
// Below `few` rows U and W come from one elimination of [A 1] by rows, which have room for a register past their ends;
// from there on dense/cholesky.h does it in blocks, for which this would be too small.
#pragma once

#include <vector>

#include "dense/cholesky.h"
#include "operators/explicit/packs.h"

namespace delassus {

template <class T>
struct DenseWork {
  static_assert(lanes_of<T> == 1);
  static constexpr int few = 72;
  std::size_t room = 0;
  std::vector<T> W, Z, Dinv;  // Z = D⁻¹ W for few rows; W has D^(−1/2) in it for more; rows `room` apart

  void resize(int n) {
    room = row_room<T>(n);
    W.assign(std::size_t(n) * room, T{});
    Z.assign(std::size_t(std::min(n, few)) * room, T{});
    Dinv.assign(std::size_t(n), T{});
  }
  std::size_t bytes() const { return (W.size() + Z.size() + Dinv.size()) * sizeof(T); }
};

// W and D⁻¹ of A, which is spoiled: n rows, `stride` apart, upper triangle, a register of room past every row.
template <class T>
inline void factor_dense(T* A, int n, std::size_t stride, DenseWork<T>& w) {
  constexpr int lanes = row_lanes<T>;
  if (n >= DenseWork<T>::few) {
    const auto apart = std::ptrdiff_t(stride);
    const int positive = dense::factor_cholesky(n, A, apart);
    for (int k = 0; k < n; ++k) {
      const T u = A[std::size_t(k) * (stride + 1)];
      w.Dinv[k] = k < positive ? u * u : T(-1);
    }
    if (positive == n)
      dense::invert_transposed(n, static_cast<const T*>(A), apart, w.W.data(), std::ptrdiff_t(w.room));
    else
      std::fill(w.W.begin(), w.W.end(), std::numeric_limits<T>::quiet_NaN());
    return;
  }
  for (int k = 0; k < n; ++k) {
    T* own = w.W.data() + std::size_t(k) * w.room;
    for (int c = 0; c <= k; c += lanes) store_rows(own + c, RowPack<T>{});
    own[k] = constant<T>(1);
  }
  for (int k = 0; k < n; ++k) {
    const T *row = A + std::size_t(k) * stride, *own = w.W.data() + std::size_t(k) * w.room;
    const T d = real_of<T>(1) / row[k];
    w.Dinv[k] = d;
    for (int i = k + 1; i < n; ++i) {
      T *other = A + std::size_t(i) * stride, *theirs = w.W.data() + std::size_t(i) * w.room;
      const T l = row[i] * d;
      for (int c = i; c < n; c += lanes)
        store_rows(other + c, RowPack<T>(load_rows(other + c) - load_rows(row + c) * l));
      for (int c = 0; c <= k; c += lanes)
        store_rows(theirs + c, RowPack<T>(load_rows(theirs + c) - load_rows(own + c) * l));
    }
    T* z = w.Z.data() + std::size_t(k) * w.room;
    for (int c = 0; c <= k; c += lanes) store_rows(z + c, RowPack<T>(load_rows(own + c) * d));
  }
}

// Whether the pivots are those of a matrix that is no smaller than `least`: if not, rounding has spoiled them.
template <class T>
inline bool keeps_positive(const DenseWork<T>& w, int n, T least) {
  bool positive = true;
  for (int k = 0; k < n; ++k) positive = positive && w.Dinv[k] > 0 && w.Dinv[k] * least <= 2;
  return positive;
}

// X += A⁻¹ in its upper triangle; what is below is spoiled. Numbers are of no use if the pivots were not positive.
template <class T>
inline void add_inverse(const DenseWork<T>& w, int n, T* X, std::size_t stride) {
  constexpr int lanes = row_lanes<T>;
  if (n >= DenseWork<T>::few) {
    dense::add_square_transposed(n, w.W.data(), std::ptrdiff_t(w.room), X, std::ptrdiff_t(stride));
    return;
  }
  const auto tiles = [&]<int R>(int i) {
    for (int c = i / lanes * lanes; c < n; c += lanes) {
      // rows of W before the last column are zero there
      const std::size_t from = std::size_t(c > i ? c : i) * w.room;
      add_tile<R>(w.Z.data() + from, w.W.data() + from, w.room, n - int(from / w.room), i, c, n - c, X, stride);
    }
  };
  int i = 0;
  for (; n - i >= 6; i += 6) tiles.template operator()<6>(i);
  for (; n - i >= 3; i += 3) tiles.template operator()<3>(i);
  for (; i < n; ++i) tiles.template operator()<1>(i);
}

}  // namespace delassus
