// Rows with a square block B of stiffness for each constraint, symmetric or not: H_ij += Σ K_iᵀ B K_j.
//
// A point of a group at p₁ and p₂ with axes A has Bʷ = Aᵀ B A in world axes and K = [1, −p̂]:
//
//   K_aᵀ Bʷ K_b = ± [ Bʷ, −Bʷ p̂_b;  p̂_a Bʷ, −p̂_a Bʷ p̂_b ],   − between the two links
//
// Where the numbers of a block are: block_index.h.
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include "operators/block_index.h"
#include "operators/points.h"
#include "operators/terms.h"
#include "operators/twins.h"

namespace delassus {

// Sums over the points of a group; matrices by rows.
template <class N>
struct BlockSums {
  using M = Vec3<N>[3];
  M S, right[2], left[2], both[2][2];  // Bʷ, Bʷ p̂_b, p̂_a Bʷ, p̂_a Bʷ p̂_b

  // B: nine numbers by rows
  void add(const N* B, const Vec3<N>* axes, const Vec3<N>& p1, const Vec3<N>& p2, bool two) {
    M T, W;
    for (int r = 0; r < 3; ++r) T[r] = axes[0] * B[3 * r] + axes[1] * B[3 * r + 1] + axes[2] * B[3 * r + 2];
    W[0] = T[0] * axes[0].x + T[1] * axes[1].x + T[2] * axes[2].x;
    W[1] = T[0] * axes[0].y + T[1] * axes[1].y + T[2] * axes[2].y;
    W[2] = T[0] * axes[0].z + T[1] * axes[1].z + T[2] * axes[2].z;
    add_to(S, W);
    add_to_right(0, W, p1, p2, two, p1);
    if (two) add_to_right(1, W, p1, p2, two, p2);
    add_turned(left[0], p1, W);
    if (two) add_turned(left[1], p2, W);
  }

 private:
  static void add_to(M& A, const M& B) {
    for (int r = 0; r < 3; ++r) A[r] += B[r];
  }
  // A += p̂ B
  static void add_turned(M& A, const Vec3<N>& p, const M& B) {
    A[0] += B[2] * p.y - B[1] * p.z;
    A[1] += B[0] * p.z - B[2] * p.x;
    A[2] += B[1] * p.x - B[0] * p.y;
  }
  void add_to_right(int b, const M& W, const Vec3<N>& p1, const Vec3<N>& p2, bool two, const Vec3<N>& p) {
    M R;
    for (int r = 0; r < 3; ++r) R[r] = cross(W[r], p);  // rows of Bʷ p̂
    add_to(right[b], R);
    add_turned(both[0][b], p1, R);
    if (two) add_turned(both[1][b], p2, R);
  }
};

template <class T>
class BlockRows {
 public:
  using Real = real_of<T>;

  explicit BlockRows(const Layout<Real>& layout)
      : layout_(layout), set_(layout.set), free_(layout.coupled.steps.size(), 0) {
    for (const auto& step : layout.coupled.steps)
      if (step.free) free_[std::size_t(step.link)] = 1;
    index_.clear(set_.rows);
    for (const auto& c : set_.constraints) index_.add(c.row, c.rows);
    // rows that were made without a constraint
    for (const auto& j : set_.joint_rows)
      if (!index_.knows(j.row)) index_.add(j.row, 1);
    for (const auto& p : set_.points)
      if (!index_.knows(p.row)) index_.add(p.row, 3);
    for (const auto& c : set_.constraints)
      if (c.block >= 0 && set_.blocks[c.block].row > c.row)
        for (std::size_t g = 0; g < set_.groups.size(); ++g)
          for (int p = 0; p < set_.groups[g].count; ++p)
            if (set_.points[set_.groups[g].first + p].row == c.row) mixed_.push_back({g, c.row, c.block});
  }
  const BlockIndex& index() const { return index_; }
  std::size_t bytes() const { return 3 * index_.of_row.size() * sizeof(int); }

  // To links and couplings; blocks of joint rows go to the pivots of their joints.
  void stiffen(const Points<T>& points, const Terms<T>& terms, const T* B, Twin6<T>* H, Twin6<T>* coupling,
               T* joint_stiffness) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      if constexpr (strip_lanes<T> > 1)
        if (points.in_packs(g)) {
          BlockSums<StripPack<T>> sums{};
          if (sum_packs(points, g, B, sums)) add_group(g, sums, H, coupling);
          continue;
        }
      BlockSums<T> sums{};
      points.each(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
        const Vec3<T> A[3] = {Vec3<T>{} + axes[0], Vec3<T>{} + axes[1], Vec3<T>{} + axes[2]};
        T block[9];
        for (int r = 0; r < 3; ++r)
          for (int c = 0; c < 3; ++c) block[3 * r + c] = B[index_.at(row + r, row + c)];
        sums.add(block, A, p, o, group.other >= 0);
      });
      add_group(g, sums, H, coupling);
    }
    stiffen_terms(terms, B, H, coupling);
    stiffen_mixed(points, terms, B, H, coupling);
    for (const auto& j : set_.joint_rows)
      joint_stiffness[j.velocity] += B[index_.at(j.row, j.row)] * (j.coefficient * j.coefficient);
  }

 private:
  // Points side by side. Whether any of them has a block that is not zero.
  template <class P>
  bool sum_packs(const Points<T>& points, std::size_t g, const T* B, BlockSums<P>& sums) const {
    const bool two = set_.groups[g].other >= 0;
    bool any = false;
    for (const auto& pack : points.packs(g)) {
      const T* from[strip_lanes<T>];
      bool some = false;
      for (int l = 0; l < strip_lanes<T>; ++l) {
        from[l] = B + index_.at(pack.row[l], pack.row[l]);
        some = some || from[l][0] != 0;
      }
      const int stride = index_.at(pack.row[0] + 1, pack.row[0]) - index_.at(pack.row[0], pack.row[0]);
      P block[9];
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
          const int k = r * stride + c;
          block[3 * r + c] = P{from[0][k], from[1][k], from[2][k], from[3][k]} * pack.full;
          if (!some)
            for (int l = 0; l < strip_lanes<T>; ++l) some = some || from[l][k] != 0;
        }
      if (!some) continue;
      any = true;
      sums.add(block, pack.axes, pack.position[0], pack.position[1], two);
    }
    return any;
  }

  // Three numbers, summed over the points of a pack, and a zero: half of a column.
  using Half = std::conditional_t<(strip_lanes<T> > 1), StripPack<T>, std::array<T, 4>>;
  static Half half(const T& x, const T& y, const T& z) { return Half{x, y, z, T{}}; }
  template <class P>
    requires(!std::is_same_v<P, T>)
  static Half half(const P& x, const P& y, const P& z) {
    const P packs[4] = {x, y, z, P{}};
    T sums[4];
    sum_lanes<T>(packs, sums);
    return Half{sums[0], sums[1], sums[2], sums[3]};
  }
  // y ± [low; high]
  template <int sign>
  static void add_halves(Column<T>& y, const Half& low, const Half& high) {
    if constexpr (strip_lanes<T> > 1 && Column<T>::parts == 1) {
      y.part[0] += Real(sign) * __builtin_shufflevector(low, high, 0, 1, 2, 4, 5, 6, 3, 7);
    } else if constexpr (strip_lanes<T> > 1 && Column<T>::parts == 2) {
      y.part[0] += Real(sign) * __builtin_shufflevector(low, high, 0, 1, 2, 4);
      y.part[1] += Real(sign) * __builtin_shufflevector(low, high, 5, 6, 3, 7);
    } else {
      for (int k = 0; k < 3; ++k) y[k] += low[k] * Real(sign), y[k + 3] += high[k] * Real(sign);
    }
  }

  // A matrix of sums by rows, or by columns.
  struct Halves {
    Half of[3];
  };
  template <class N>
  static Halves rows_of(const Vec3<N> (&M)[3], Real sign) {
    Halves h;
    for (int r = 0; r < 3; ++r) h.of[r] = half(N(M[r].x * sign), N(M[r].y * sign), N(M[r].z * sign));
    return h;
  }
  template <class N>
  static Halves columns_of(const Vec3<N> (&M)[3], Real sign) {
    return {{half(N(M[0].x * sign), N(M[1].x * sign), N(M[2].x * sign)),
             half(N(M[0].y * sign), N(M[1].y * sign), N(M[2].y * sign)),
             half(N(M[0].z * sign), N(M[1].z * sign), N(M[2].z * sign))}};
  }
  // H ± [A, C; B, D] with columns of each; with rows, [A, B; C, D] and rows, the transposed.
  template <int sign>
  static void add_columns(Mat6<T>& H, const Halves& A, const Halves& B, const Halves& C, const Halves& D) {
    for (int c = 0; c < 3; ++c) {
      add_halves<sign>(H.column[c], A.of[c], B.of[c]);
      add_halves<sign>(H.column[c + 3], C.of[c], D.of[c]);
    }
  }
  // The block of two links a and b of a group is ± [S, −right_b; left_a, −both_ab], − between different links. A free
  // link needs no transposed block of its own.
  template <class N>
  void add_group(std::size_t g, const BlockSums<N>& s, Twin6<T>* H, Twin6<T>* coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = layout_.touching[g];
    const Halves S = columns_of(s.S, 1), right = columns_of(s.right[0], -1), left = columns_of(s.left[0], 1);
    add_columns<1>(H[group.link].down, S, left, right, columns_of(s.both[0][0], -1));
    const bool two = touching.block >= 0, turned = !free_[std::size_t(group.link)];
    if (!two && !turned) return;
    const Halves St = rows_of(s.S, 1), left_t = rows_of(s.left[0], 1);
    Halves right_t;
    if (turned || touching.flipped) right_t = rows_of(s.right[0], -1);
    if (turned) add_columns<1>(H[group.link].up, St, right_t, left_t, rows_of(s.both[0][0], -1));
    if (!two) return;
    const Halves other_right = columns_of(s.right[1], -1), other_left = columns_of(s.left[1], 1),
                 other_right_t = rows_of(s.right[1], -1);
    add_columns<1>(H[group.other].down, S, other_left, other_right, columns_of(s.both[1][1], -1));
    Halves other_left_t;
    if (!free_[std::size_t(group.other)] || touching.flipped) other_left_t = rows_of(s.left[1], 1);
    if (!free_[std::size_t(group.other)])
      add_columns<1>(H[group.other].up, St, other_right_t, other_left_t, rows_of(s.both[1][1], -1));
    // the coupling has the rows of the other link, or where it is flipped those of the first
    Twin6<T>& C = coupling[touching.block];
    if (touching.flipped) {
      add_columns<-1>(C.down, S, left, other_right, columns_of(s.both[0][1], -1));
      add_columns<-1>(C.up, St, right_t, other_left_t, rows_of(s.both[1][0], -1));
    } else {
      add_columns<-1>(C.down, S, other_left, right, columns_of(s.both[1][0], -1));
      add_columns<-1>(C.up, St, other_right_t, left_t, rows_of(s.both[0][1], -1));
    }
  }

  // Rows with terms, each constraint's by its own block.
  void stiffen_terms(const Terms<T>& terms, const T* B, Twin6<T>* H, Twin6<T>* coupling) const {
    const Vec6<T>* K = terms.K();
    // Σ_c B_ac K_c over the rows of a block
    const auto weighted = [&](int row, int rows, int a, const Vec6<T>* of) {
      Vec6<T> y{};
      for (int c = 0; c < rows; ++c) y += of[c] * B[index_.at(row + a, row + c)];
      return y;
    };
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int a = 0; a < b.rows; ++a) add_outer(H[term.link], K[term.K + a], weighted(b.row, b.rows, a, K + term.K));
      }
    for (const auto& p : layout_.products) {
      const Vec6<T>*first = K + set_.terms[p.first].K, *second = K + set_.terms[p.second].K;
      Twin6<T>& C = coupling[p.block];
      for (int a = 0; a < p.rows; ++a) {
        add_outer(C.down, column(second[a]), weighted(p.row, p.rows, a, first));
        add_outer(C.up, column(weighted(p.row, p.rows, a, second)), first[a]);
      }
    }
  }

  // Constraints with both a point and terms: what the two have with each other.
  void stiffen_mixed(const Points<T>& points, const Terms<T>& terms, const T* B, Twin6<T>* H,
                     Twin6<T>* coupling) const {
    for (const auto& mixed : mixed_) {
      const auto& group = set_.groups[mixed.group];
      const auto& block = set_.blocks[mixed.block];
      points.each(mixed.group, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
        if (row != mixed.row) return;
        for (int r = 0; r < 3; ++r)
          for (int side = 0; side < group.sides(); ++side) {
            const Vec3<T> n = Vec3<T>{} + axes[r];
            const Vec6<T> J = Vec6<T>{n, cross(side ? o : p, n)} * Real(side ? -1 : 1);
            const int link = side ? group.other : group.link;
            for (int t = 0; t < block.terms; ++t)
              for (int k = 0; k < block.rows; ++k) {
                const auto& term = set_.terms[block.term + t];
                const Vec6<T>& K = terms.K()[term.K + k];
                const int at = block.row + k;
                add_outer(mixed.group, link, term.link, J * B[index_.at(row + r, at)], K, H, coupling);
                add_outer(mixed.group, term.link, link, K * B[index_.at(at, row + r)], J, H, coupling);
              }
          }
      });
    }
  }
  // H += a bᵀ of one link
  static void add_outer(Twin6<T>& H, const Vec6<T>& a, const Vec6<T>& b) {
    delassus::add_outer(H.down, column(a), b);
    delassus::add_outer(H.up, column(b), a);
  }
  static void add_outer(Mat6<T>& A, const Column<T>& a, const Vec6<T>& b) { delassus::add_outer(A, a, b); }
  // H_ij += a bᵀ of the links of a group
  void add_outer(std::size_t g, int i, int j, const Vec6<T>& a, const Vec6<T>& b, Twin6<T>* H,
                 Twin6<T>* coupling) const {
    if (i == j) return add_outer(H[i], a, b);
    const auto& touching = layout_.touching[g];
    const int rows = touching.flipped ? set_.groups[g].link : set_.groups[g].other;
    Twin6<T>& C = coupling[touching.block];
    if (i == rows)
      add_outer(C.down, column(a), b);
    else
      add_outer(C.up, column(b), a);
  }

  struct Mixed {
    std::size_t group;
    int row, block;  // of the point; which of the blocks of terms
  };

  const Layout<Real>& layout_;
  const ConstraintSet<Real>& set_;
  std::vector<char> free_;  // a link: its joint is
  BlockIndex index_;
  std::vector<Mixed> mixed_;
};

}  // namespace delassus
