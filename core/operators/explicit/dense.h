// Inverse of a dense symmetric positive definite matrix by its Cholesky factor, O(n³ / 2); or the factor alone, O(n³ /
// 6), and solutions with it, O(n²).
//
//   A = Uᵀ D U,   W = U⁻ᵀ,   A⁻¹ = Wᵀ D⁻¹ W              (U unit upper triangular)
//
// U and W come from one elimination of [A 1] by rows; x = U⁻¹ D⁻¹ U⁻ᵀ y needs no W.
#pragma once

#include <limits>
#include <vector>

#include "errors/interrupt.h"
#include "operators/explicit/packs.h"

namespace delassus {

template <class T>
struct DenseWork {
  std::size_t room = 0;
  std::vector<T> W, Z, Dinv;  // Z = D⁻¹ W; rows `room` apart

  void resize(int n) {
    room = row_room<T>(n);
    W.assign(std::size_t(n) * room, T{});
    Z.assign(std::size_t(n) * room, T{});
    Dinv.assign(std::size_t(n), T{});
  }
  std::size_t bytes() const { return (W.size() + Z.size() + Dinv.size()) * sizeof(T); }
};

// [A 1] → [D U, W], Z = D⁻¹ W. A: n rows, `stride` apart, upper triangle, a register of room past every row.
template <class T>
inline void factor_dense(T* A, int n, std::size_t stride, DenseWork<T>& w) {
  constexpr int lanes = row_lanes<T>;
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

// A → D U in its upper triangle. The matrix is positive semidefinite but for a diagonal `least`, so no pivot is smaller
// than that; rounding may leave one that is, or that is rounding of its diagonal alone. Numbers past the end of every
// row are zero.
template <class T>
inline void factor_upper(T* A, int n, std::size_t stride, const T* least, T* Dinv) {
  constexpr int lanes = row_lanes<T>;
  constexpr real_of<T> rounding = 4 * std::numeric_limits<real_of<T>>::epsilon();
  for (int k = 0; k < n; ++k) {
    const T size = A[std::size_t(k) * stride + k] * rounding;
    Dinv[k] = size > least[k] ? size : least[k];
  }
  for (int k = 0; k < n; ++k) {
    if (n > 200) poll(double(n - k) * (n - k));
    T* row = A + std::size_t(k) * stride;
    row[k] = row[k] > Dinv[k] ? row[k] : Dinv[k];
    const T d = Dinv[k] = real_of<T>(1) / row[k];
    for (int i = k + 1; i < n; ++i) {
      T* other = A + std::size_t(i) * stride;
      const T l = row[i] * d;
      for (int c = i; c < n; c += lanes)
        store_rows(other + c, RowPack<T>(load_rows(other + c) - load_rows(row + c) * l));
    }
  }
}
// x ← A⁻¹ x; numbers past its end are zero.
template <class T>
inline void solve_upper_factor(const T* A, int n, std::size_t stride, const T* Dinv, T* x) {
  constexpr int lanes = row_lanes<T>;
  for (int k = 0; k < n; ++k) {
    const T* row = A + std::size_t(k) * stride;
    const T y = x[k] * Dinv[k];
    for (int c = k + 1; c < n; c += lanes) store_rows(x + c, RowPack<T>(load_rows(x + c) - load_rows(row + c) * y));
  }
  for (int k = n - 1; k >= 0; --k) {
    const T* row = A + std::size_t(k) * stride;
    RowPack<T> sum{};
    for (int c = k + 1; c < n; c += lanes) sum += load_rows(row + c) * load_rows(x + c);
    x[k] = (x[k] - sum_rows<T>(sum)) * Dinv[k];
  }
}

// Whether the pivots are those of a matrix that is no smaller than `least`: if not, rounding has spoiled them.
template <class T>
inline bool keeps_positive(const DenseWork<T>& w, int n, real_of<T> least) {
  bool positive = true;
  for (int k = 0; k < n; ++k)
    for (int l = 0; l < lanes_of<T>; ++l)
      positive = positive && lane(w.Dinv[k], l) > 0 && lane(w.Dinv[k], l) * least <= 2;
  return positive;
}

// X += A⁻¹ in its upper triangle.
template <class T>
inline void add_inverse(const DenseWork<T>& w, int n, T* X, std::size_t stride) {
  constexpr int lanes = row_lanes<T>;
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
