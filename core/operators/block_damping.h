// Data of a block damping D, one square block per constraint, symmetric or not:
//
//   S = C + D,   B = S⁻¹ block by block,   (G + D)⁻¹ = B − B J (M + Jᵀ B J)⁻¹ Jᵀ B
//
// the factor of M + Jᵀ B J, and what solutions needed beyond it. The transposed problem uses the same factor:
//
//   (G + D)⁻ᵀ = Bᵀ − Bᵀ J (M + Jᵀ B J)⁻ᵀ Jᵀ Bᵀ
//
// Numbers of blocks: block_index.h.
#pragma once

#include <algorithm>
#include <limits>

#include "operators/block_elimination.h"
#include "operators/block_index.h"
#include "operators/block_inverse.h"
#include "operators/refinement.h"

namespace delassus {

// Blocks as a matrix, or its transposed: (x, r) is row r of S x.
template <class T>
struct BlockShift {
  const int *of_row, *first, *count;
  const T* values;
  bool transposed;

  BlockShift(const BlockIndex& index, const std::vector<T>& blocks, bool transposed_)
      : of_row(index.of_row.data()),
        first(index.first.data()),
        count(index.count.data()),
        values(blocks.data()),
        transposed(transposed_) {}
  template <class C>
  C operator()(const C* x, int r) const {
    const int n = count[r], begin = first[r], step = transposed ? n : 1;
    const T* s = values + (transposed ? of_row[begin] + r - begin : of_row[r]);
    x += begin;
    if (n == 3) return x[0] * s[0] + x[1] * s[step] + x[2] * s[2 * step];
    C sum = x[0] * s[0];
    for (int k = 1; k < n; ++k) sum += x[k] * s[k * step];
    return sum;
  }
};

template <class T>
struct BlockDamping {
  using Real = real_of<T>;

  const BlockIndex& index;
  std::vector<T> shift, stiffness;  // of blocks: S, B
  T largest_shift{};                // ‖S‖ from below: its largest number
  BlockFactor<T> factor;
  Fallbacks<T, false> fallbacks[2];  // of solutions, and of transposed ones
  std::vector<T> rows;               // a row: memory
  std::vector<StripPack<T>> packs;   // the same of a pack of columns

  BlockDamping(const BlockIndex& of, std::size_t velocities, const EliminationPlan& plan)
      : index(of), shift(of.size), stiffness(of.size), rows(of.of_row.size()) {
    factor.resize(velocities, plan);
    const int largest = of.count.empty() ? 0 : *std::max_element(of.count.begin(), of.count.end());
    for (auto* x : {&one_, &rotated_}) x->resize(std::size_t(2 * largest * largest));
    exchanged_.resize(std::size_t(largest));
    if constexpr (strip_lanes<T> > 1) packs.resize(rows.size());
  }
  std::size_t bytes() const {
    return (shift.size() + stiffness.size() + rows.size()) * sizeof(T) + packs.size() * sizeof(StripPack<T>) +
           factor.bytes() + fallbacks[0].bytes() + fallbacks[1].bytes() +
           (one_.size() + rotated_.size()) * sizeof(Real) + exchanged_.size() * sizeof(int);
  }

  // S and B of these blocks; compliance may be null. Returns ‖B‖ from above, the largest of all blocks: its inverse is
  // the least damping.
  T set(const T* D, const T* compliance) {
    T stiffest{};
    largest_shift = T{};
    std::copy_n(D, shift.size(), shift.begin());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (compliance) shift[std::size_t(index.at(int(r), int(r)))] += compliance[r];
      for (int k = 0; k < index.count[r]; ++k) {
        const T& s = shift[std::size_t(index.of_row[r] + k)];
        largest_shift = larger_of(largest_shift, larger_of(s, T(-s)));
      }
    }
    each([&](int n, int l, const Real* S, Real* B) {
      invert_block(n, S, B, exchanged_.data());
      lane(stiffest, l) = std::max(lane(stiffest, l), norm(n, B));
    });
    for (auto& f : fallbacks) f.reached = Fallback::none;
    return stiffest;
  }
  // B of a damping that is at least `floor`.
  void limit(const T& floor) {
    each([&](int n, int l, const Real* S, Real* B) {
      invert_block(n, S, B, exchanged_.data());
      if (!(norm(n, B) * lane(floor, l) <= 1)) invert_block_limited(n, S, lane(floor, l), B, rotated_.data());
    });
  }

  template <class C>
  std::vector<C>& memory() {
    if constexpr (std::is_same_v<C, T>)
      return rows;
    else
      return packs;
  }

 private:
  // ‖B‖ from above
  static Real norm(int n, const Real* B) {
    Real largest = 0;
    for (int k = 0; k < n * n; ++k) largest = std::max(largest, std::abs(B[k]));
    return Real(n) * largest;
  }
  // work(rows, state, S, B) on every block of every state, numbers side by side
  template <class F>
  void each(F&& work) {
    for (std::size_t r = 0; r < rows.size(); r += std::size_t(index.count[r])) {
      const int n = index.count[r];
      const std::size_t begin = std::size_t(index.of_row[r]), size = std::size_t(n) * n;
      if constexpr (lanes_of<T> == 1) {
        work(n, 0, shift.data() + begin, stiffness.data() + begin);
      } else {
        Real *S = one_.data(), *B = one_.data() + size;
        for (int l = 0; l < lanes_of<T>; ++l) {
          for (std::size_t k = 0; k < size; ++k) S[k] = lane(shift[begin + k], l);
          work(n, l, S, B);
          for (std::size_t k = 0; k < size; ++k) lane(stiffness[begin + k], l) = B[k];
        }
      }
    }
  }

  std::vector<Real> one_, rotated_;  // S and B of one state; memory of limited inverses
  std::vector<int> exchanged_;       // rows of a block
};

}  // namespace delassus
