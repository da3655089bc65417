// Rows with a square block B of stiffness for each constraint, symmetric or not: H_ij += Σ K_iᵀ B K_j.
//
// A point of a group at p₁ and p₂ with axes A has Bʷ = Aᵀ B A in world axes and K = [1, −p̂]:
//
//   K_aᵀ Bʷ K_b = ± [ Bʷ, −Bʷ p̂_b;  p̂_a Bʷ, −p̂_a Bʷ p̂_b ],   − between the two links
//
// Where the numbers of a block are: block_index.h.
#pragma once

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

  explicit BlockRows(const Layout<Real>& layout) : layout_(layout), set_(layout.set) {
    index_.clear(set_.rows);
    for (const auto& c : set_.constraints) index_.add(c.row, c.rows);
    for (const auto& c : set_.constraints)
      if (c.block >= 0 && set_.blocks[c.block].row > c.row)
        for (std::size_t g = 0; g < set_.groups.size(); ++g)
          for (int p = 0; p < set_.groups[g].count; ++p)
            if (set_.points[set_.groups[g].first + p].row == c.row) mixed_.push_back({g, c.row, c.block});
  }
  const BlockIndex& index() const { return index_; }
  std::size_t bytes() const { return (index_.of_row.size() + index_.first.size()) * sizeof(int); }

  // To links and couplings; blocks of joint rows go to the pivots of their joints.
  void stiffen(const Points<T>& points, const Terms<T>& terms, const T* B, Twin6<T>* H, Twin6<T>* coupling,
               T* joint_stiffness) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const bool two = set_.groups[g].other >= 0;
      BlockSums<T> sums{};
      if (points.in_packs(g))
        sum_packs(points, g, B, two, sums);
      else
        points.each(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
          const Vec3<T> A[3] = {Vec3<T>{} + axes[0], Vec3<T>{} + axes[1], Vec3<T>{} + axes[2]};
          T block[9];
          for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) block[3 * r + c] = B[index_.at(row + r, row + c)];
          sums.add(block, A, p, o, two);
        });
      add_group(g, sums, H, coupling);
    }
    stiffen_terms(terms, B, H, coupling);
    stiffen_mixed(points, terms, B, H, coupling);
    for (const auto& j : set_.joint_rows)
      joint_stiffness[j.velocity] += B[index_.at(j.row, j.row)] * (j.coefficient * j.coefficient);
  }

 private:
  void sum_packs(const Points<T>& points, std::size_t g, const T* B, bool two, BlockSums<T>& sums) const {
    if constexpr (strip_lanes<T> > 1) {
      using P = StripPack<T>;
      BlockSums<P> all{};
      for (const auto& pack : points.packs(g)) {
        const T* from[strip_lanes<T>];
        for (int l = 0; l < strip_lanes<T>; ++l) from[l] = B + index_.of_row[std::size_t(pack.row[l])] +
                                                           (pack.row[l] - index_.first[std::size_t(pack.row[l])]);
        const int stride = index_.of_row[std::size_t(pack.row[0] + 1)] - index_.of_row[std::size_t(pack.row[0])];
        P block[9];
        for (int r = 0; r < 3; ++r)
          for (int c = 0; c < 3; ++c) {
            const int k = r * stride + c;
            block[3 * r + c] = P{from[0][k], from[1][k], from[2][k], from[3][k]} * pack.full;
          }
        all.add(block, pack.axes, pack.position[0], pack.position[1], two);
      }
      constexpr std::size_t n = sizeof(BlockSums<T>) / sizeof(T);
      P packs[84]{};
      T lanes[84];
      static_assert(n == 81);
      __builtin_memcpy(packs, &all, sizeof(all));
      sum_lanes<T>(packs, lanes);
      __builtin_memcpy(&sums, lanes, sizeof(sums));
    }
  }

  // Rows of ± [S, −right_b; left_a, −both_ab], the block (a, b) of the two links of a group.
  struct Rows {
    Column<T> row[6];
    Rows(const BlockSums<T>& s, int a, int b, Real sign) {
      for (int r = 0; r < 3; ++r) {
        row[r] = column(Vec6<T>{s.S[r] * sign, s.right[b][r] * -sign});
        row[r + 3] = column(Vec6<T>{s.left[a][r] * sign, s.both[a][b][r] * -sign});
      }
    }
  };
  static void add_rows(Mat6<T>& A, const Rows& rows) {
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 6; ++c) A.column[c][r] += rows.row[r][c];
  }
  static void add_rows_transposed(Mat6<T>& A, const Rows& rows) {
    for (int r = 0; r < 6; ++r) add(A.column[r], rows.row[r]);
  }
  void add_group(std::size_t g, const BlockSums<T>& s, Twin6<T>* H, Twin6<T>* coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = layout_.touching[g];
    const auto add_to_link = [&](int link, const Rows& rows) {
      add_rows(H[link].down, rows);
      add_rows_transposed(H[link].up, rows);
    };
    add_to_link(group.link, Rows(s, 0, 0, 1));
    if (touching.block < 0) return;
    add_to_link(group.other, Rows(s, 1, 1, 1));
    Twin6<T>& C = coupling[touching.block];
    const int rows = touching.flipped ? 0 : 1;  // whose rows the coupling has
    add_rows(C.down, Rows(s, rows, 1 - rows, -1));
    add_rows_transposed(C.up, Rows(s, 1 - rows, rows, -1));
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
        for (int a = 0; a < b.rows; ++a)
          add_outer(H[term.link], K[term.K + a], weighted(b.row, b.rows, a, K + term.K));
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
  BlockIndex index_;
  std::vector<Mixed> mixed_;
};

}  // namespace delassus
