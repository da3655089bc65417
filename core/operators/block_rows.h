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

// Sums over the points of a group: S = Σ Bʷ, right_b = −Σ Bʷ p̂_b, left_a = Σ p̂_a Bʷ, both_ab = −Σ p̂_a Bʷ p̂_b. Matrices
// by rows.
template <class N>
struct BlockSums {
  using M = Vec3<N>[3];
  M S, right[2], left[2], both[2][2];

  // B: nine numbers by rows. The first point is written to what has no numbers yet.
  template <bool first>
  void add(const N* B, const Vec3<N>* axes, const Vec3<N>& p1, const Vec3<N>& p2, bool two) {
    M T, W;
    for (int r = 0; r < 3; ++r) T[r] = axes[0] * B[3 * r] + axes[1] * B[3 * r + 1] + axes[2] * B[3 * r + 2];
    W[0] = T[0] * axes[0].x + T[1] * axes[1].x + T[2] * axes[2].x;
    W[1] = T[0] * axes[0].y + T[1] * axes[1].y + T[2] * axes[2].y;
    W[2] = T[0] * axes[0].z + T[1] * axes[1].z + T[2] * axes[2].z;
    for (int r = 0; r < 3; ++r) put<first>(S[r], W[r]);
    add_turned<first>(left[0], p1, W);
    add_to_right<first>(0, W, p1, p2, two, p1);
    if (!two) return;
    add_turned<first>(left[1], p2, W);
    add_to_right<first>(1, W, p1, p2, two, p2);
  }

 private:
  template <bool first>
  static void put(Vec3<N>& y, const Vec3<N>& x) {
    if constexpr (first)
      y = x;
    else
      y += x;
  }
  // A += p̂ B
  template <bool first>
  static void add_turned(M& A, const Vec3<N>& p, const M& B) {
    put<first>(A[0], B[2] * p.y - B[1] * p.z);
    put<first>(A[1], B[0] * p.z - B[2] * p.x);
    put<first>(A[2], B[1] * p.x - B[0] * p.y);
  }
  template <bool first>
  void add_to_right(int b, const M& W, const Vec3<N>& p1, const Vec3<N>& p2, bool two, const Vec3<N>& p) {
    M R;
    for (int r = 0; r < 3; ++r) R[r] = cross(p, W[r]);  // rows of −Bʷ p̂
    for (int r = 0; r < 3; ++r) put<first>(right[b][r], R[r]);
    add_turned<first>(both[0][b], p1, R);
    if (two) add_turned<first>(both[1][b], p2, R);
  }
};

template <class T>
class BlockRows {
 public:
  using Real = real_of<T>;
  using Places = typename Layout<Real>::Places;

  explicit BlockRows(const Layout<Real>& layout) : set_(layout.set), free_(layout.coupled.steps.size(), 0) {
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

  // Of every group of points, whether its blocks may couple its links: some number of them is not zero.
  void find_coupling_groups(const T* B, std::vector<char>& couples) const {
    couples.assign(set_.groups.size(), 0);
    for (std::size_t g = 0; g < couples.size(); ++g) {
      const auto& group = set_.groups[g];
      if (group.other < 0) continue;
      for (int p = group.first; p < group.first + group.count && !couples[g]; ++p) {
        const int row = set_.points[std::size_t(p)].row;
        couples[g] = !is_zero(B + index_.of_row[std::size_t(row)], stride(row));
      }
    }
    for (const auto& mixed : mixed_) couples[mixed.group] = 1;
  }

  // To links and couplings, which are at these places; blocks of joint rows go to the pivots of their joints.
  void stiffen(const Points<T>& points, const Terms<T>& terms, const T* B, const Places& places, Twin6<T>* H,
               const Couplings<T>& coupling, T* joint_stiffness) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      if constexpr (strip_lanes<T> > 1)
        if (points.in_packs(g)) {
          BlockSums<StripPack<T>> sums;
          if (sum_packs(points, g, B, sums)) add_group(g, sums, places, H, coupling);
          continue;
        }
      points.each(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
        const T* block = B + index_.of_row[std::size_t(row)];
        if (!is_zero(block, stride(row))) add_point(g, axes, p, o, block, stride(row), places, H, coupling);
      });
    }
    stiffen_terms(terms, B, places, H, coupling);
    stiffen_mixed(points, terms, B, places, H, coupling);
    for (const auto& j : set_.joint_rows)
      joint_stiffness[j.velocity] += B[index_.at(j.row, j.row)] * (j.coefficient * j.coefficient);
  }

 private:
  // Numbers from one row of a block to the next.
  int stride(int row) const { return index_.count[std::size_t(row)]; }
  // Whether three by three numbers are zero; those of a pack of states are not looked at.
  static bool is_zero(const T* B, int stride) {
    if constexpr (lanes_of<T> > 1) {
      return false;
    } else {
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
          if (B[r * stride + c] != 0) return false;
      return true;
    }
  }

  // One point: rows K_r = [n, p × n] of both links, the other's with a minus, and H_ab += Σ K_ar (B K_b)_rᵀ.
  template <class Axis>
  void add_point(std::size_t g, const Axis* axes, const Vec3<T>& p, const Vec3<T>& o, const T* B, int stride,
                 const Places& places, Twin6<T>* H, const Couplings<T>& coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = places.touching[g];
    const int links[2] = {group.link, group.other}, sides = touching.block >= 0 ? 2 : 1;
    Column<T> K[2][3], BK[2][3];
    for (int a = 0; a < sides; ++a) {
      for (int r = 0; r < 3; ++r) {
        const Vec3<T> n = a == 0 ? Vec3<T>{} + axes[r] : Vec3<T>{} - axes[r];
        K[a][r] = column(Vec6<T>{n, cross(a == 0 ? p : o, n)});
      }
      for (int r = 0; r < 3; ++r) {
        BK[a][r] = scaled(K[a][0], B[r * stride]);
        for (int c = 1; c < 3; ++c) delassus::add(BK[a][r], K[a][c], B[r * stride + c]);
      }
      Twin6<T>& own = H[links[a]];
      add_product<3>(own.down, K[a], BK[a]);
      if (!free_[std::size_t(links[a])]) add_product<3>(own.up, BK[a], K[a]);  // a free link needs it not
    }
    if (sides == 1) return;
    // the coupling has the rows of the other link, or where it is flipped those of the first
    const int a = touching.flipped ? 0 : 1, b = 1 - a;
    Twin6<T>& C = coupling.open(touching.block);
    add_product<3>(C.down, K[a], BK[b]);
    add_product<3>(C.up, BK[a], K[b]);
  }

  // Points side by side. Whether any of them has a block that is not zero; without, there are no sums.
  template <class P>
  bool sum_packs(const Points<T>& points, std::size_t g, const T* B, BlockSums<P>& sums) const {
    const bool two = set_.groups[g].other >= 0;
    bool any = false;
    for (const auto& pack : points.packs(g)) {
      const T* from[strip_lanes<T>];
      const int step = stride(pack.row[0]);
      bool zero = true;
      for (int l = 0; l < strip_lanes<T>; ++l) {
        from[l] = B + index_.of_row[std::size_t(pack.row[l])];
        zero = zero && is_zero(from[l], step);
      }
      if (zero) continue;
      P block[9];
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
          const int k = r * step + c;
          block[3 * r + c] = P{from[0][k], from[1][k], from[2][k], from[3][k]};
        }
      if (any)
        sums.template add<false>(block, pack.axes, pack.position[0], pack.position[1], two);
      else
        sums.template add<true>(block, pack.axes, pack.position[0], pack.position[1], two);
      any = true;
    }
    return any;
  }

  // Three columns or rows of a three by three matrix, summed over the points of a pack, each with a zero: half of a
  // column.
  using Half = StripPack<T>;
  struct Halves {
    Half of[3];
  };
  template <class P>
  static Half half(const P& x, const P& y, const P& z) {
    const P packs[4] = {x, y, z, P{}};
    T sums[4];
    sum_lanes<T>(packs, sums);
    return Half{sums[0], sums[1], sums[2], sums[3]};
  }
  template <class P>
  static Halves rows_of(const Vec3<P> (&M)[3]) {
    return {{half(M[0].x, M[0].y, M[0].z), half(M[1].x, M[1].y, M[1].z), half(M[2].x, M[2].y, M[2].z)}};
  }
  template <class P>
  static Halves columns_of(const Vec3<P> (&M)[3]) {
    return {{half(M[0].x, M[1].x, M[2].x), half(M[0].y, M[1].y, M[2].y), half(M[0].z, M[1].z, M[2].z)}};
  }
  static Halves transposed(const Halves& M) {
    const Half even = shuffle<0, 4, 2, 6>(M.of[0], M.of[1]), odd = shuffle<1, 5, 3, 7>(M.of[0], M.of[1]);
    return {
        {shuffle<0, 1, 4, 7>(even, M.of[2]), shuffle<0, 1, 5, 7>(odd, M.of[2]), shuffle<2, 3, 6, 7>(even, M.of[2])}};
  }
  // Three columns [low; high], and y ± these.
  struct Columns {
    Column<T> of[3];
  };
  static Columns joined(const Halves& low, const Halves& high) {
    Columns y;
    for (int c = 0; c < 3; ++c) {
      const Half &l = low.of[c], &h = high.of[c];
      if constexpr (Column<T>::parts == 1) {
        y.of[c].part[0] = shuffle<0, 1, 2, 4, 5, 6, 3, 7>(l, h);
      } else {
        y.of[c].part[0] = shuffle<0, 1, 2, 4>(l, h);
        y.of[c].part[1] = shuffle<5, 6, 3, 7>(l, h);
      }
    }
    return y;
  }
  template <int sign>
  static void add_columns(Column<T>* y, const Columns& x) {
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < Column<T>::parts; ++i)
        if constexpr (sign > 0)
          y[c].part[i] += x.of[c].part[i];
        else
          y[c].part[i] -= x.of[c].part[i];
  }

  // The block of two links a and b of a group is ± [S, right_b; left_a, both_ab], − between different links. A free
  // link needs no transposed block of its own.
  template <class P>
  void add_group(std::size_t g, const BlockSums<P>& s, const Places& places, Twin6<T>* H,
                 const Couplings<T>& coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = places.touching[g];
    const int links[2] = {group.link, group.other}, sides = touching.block >= 0 ? 2 : 1;
    const Halves S = columns_of(s.S);
    Halves left[2], right[2];
    Columns first[2];
    for (int a = 0; a < sides; ++a) {
      left[a] = columns_of(s.left[a]), right[a] = columns_of(s.right[a]);
      first[a] = joined(S, left[a]);
      const Halves both = columns_of(s.both[a][a]);
      Twin6<T>& own = H[links[a]];
      add_columns<1>(own.down.column, first[a]);
      add_columns<1>(own.down.column + 3, joined(right[a], both));
      if (free_[std::size_t(links[a])]) continue;
      add_columns<1>(own.up.column, joined(transposed(S), transposed(right[a])));
      add_columns<1>(own.up.column + 3, joined(transposed(left[a]), transposed(both)));
    }
    if (sides == 1) return;
    // the coupling has the rows of the other link, or where it is flipped those of the first
    const int a = touching.flipped ? 0 : 1, b = 1 - a;
    Twin6<T>& C = coupling.open(touching.block);
    add_columns<-1>(C.down.column, first[a]);
    add_columns<-1>(C.down.column + 3, joined(right[b], columns_of(s.both[a][b])));
    add_columns<-1>(C.up.column, joined(transposed(S), transposed(right[a])));
    add_columns<-1>(C.up.column + 3, joined(transposed(left[b]), rows_of(s.both[b][a])));
  }

  // Rows with terms, each constraint's by its own block.
  void stiffen_terms(const Terms<T>& terms, const T* B, const Places& places, Twin6<T>* H,
                     const Couplings<T>& coupling) const {
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
    for (const auto& p : places.products) {
      const Vec6<T>*first = K + set_.terms[p.first].K, *second = K + set_.terms[p.second].K;
      Twin6<T>& C = coupling.open(p.block);
      for (int a = 0; a < p.rows; ++a) {
        add_outer(C.down, column(second[a]), weighted(p.row, p.rows, a, first));
        add_outer(C.up, column(weighted(p.row, p.rows, a, second)), first[a]);
      }
    }
  }

  // Constraints with both a point and terms: what the two have with each other.
  void stiffen_mixed(const Points<T>& points, const Terms<T>& terms, const T* B, const Places& places, Twin6<T>* H,
                     const Couplings<T>& coupling) const {
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
                add_outer(mixed.group, link, term.link, J * B[index_.at(row + r, at)], K, places, H, coupling);
                add_outer(mixed.group, term.link, link, K * B[index_.at(at, row + r)], J, places, H, coupling);
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
  void add_outer(std::size_t g, int i, int j, const Vec6<T>& a, const Vec6<T>& b, const Places& places, Twin6<T>* H,
                 const Couplings<T>& coupling) const {
    if (i == j) return add_outer(H[i], a, b);
    const auto& touching = places.touching[g];
    const int rows = touching.flipped ? set_.groups[g].link : set_.groups[g].other;
    Twin6<T>& C = coupling.open(touching.block);
    if (i == rows)
      add_outer(C.down, column(a), b);
    else
      add_outer(C.up, column(b), a);
  }

  struct Mixed {
    std::size_t group;
    int row, block;  // of the point; which of the blocks of terms
  };

  const ConstraintSet<Real>& set_;
  std::vector<char> free_;  // a link: its joint is
  BlockIndex index_;
  std::vector<Mixed> mixed_;
};

}  // namespace delassus
