// Points of constraints, the most common rows: three rows along the axes A of a point that is at p₁ on its link and at
// p₂ on another link or on the ground.
//
//   position     p = R p_local + p_link                              read_axes, place
//   force        f₁ += Aᵀλ,  moment p₁ × Aᵀλ;  the opposite on 2     add_forces
//   projection   y = A (v₁ + ω₁ × p₁ − v₂ − ω₂ × p₂)                 project
//   stiffness    H += Kᵀ R K of every pair of links                  stiffen
//
// Points between the same two links are a group. One state takes three or more points of a group side by side in
// registers (point_packs.h), all others are processed one by one.
#pragma once

#include <algorithm>
#include <vector>

#include "operators/blocks.h"
#include "operators/layout.h"
#include "operators/point_packs.h"

namespace delassus {

template <class T>
class Points {
 public:
  using Real = real_of<T>;

  explicit Points(const Layout<Real>& layout) : layout_(layout), set_(layout.set) {
    constexpr int lanes = strip_lanes<T>;
    first_pack_.reserve(set_.groups.size() + 1);
    first_position_.reserve(set_.groups.size());
    int packs = 0, positions = 0;
    for (const auto& group : set_.groups) {
      first_pack_.push_back(packs);
      first_position_.push_back(positions);
      if (in_packs(group))
        packs += (group.count + lanes - 1) / lanes;
      else
        positions += group.count * group.sides();
    }
    packs_.resize(std::size_t(packs));
    positions_.resize(std::size_t(positions));
    first_pack_.push_back(packs);
    read_axes();
  }
  std::size_t bytes() const { return packs_.size() * sizeof(PointPack<T>) + positions_.size() * sizeof(Vec3<T>); }

  // Axes and rows as they now are in the layout.
  void read_axes() {
    constexpr int lanes = strip_lanes<T>;
    if constexpr (lanes > 1)
      for (std::size_t g = 0; g < set_.groups.size(); ++g) {
        const auto& group = set_.groups[g];
        if (!in_packs(group)) continue;
        for (int c = 0; c < group.count; ++c) {
          const auto& point = set_.points[group.first + c];
          auto& pack = packs_[first_pack_[g] + c / lanes];
          if (c % lanes == 0) {
            pack.count = 0;
            std::fill_n(pack.row, lanes, point.row);
          }
          pack.row[c % lanes] = point.row;
          lane(pack.full, c % lanes) = 1;
          for (int r = 0; r < 3; ++r) set_lane(pack.axes[r], c % lanes, point.axes[r]);
          ++pack.count;
        }
      }
  }

  void place(const Placement<T>& w) {
    constexpr int lanes = strip_lanes<T>;
    for (std::size_t g = 0; g < set_.groups.size(); ++g)
      for (int b = 0; b < set_.groups[g].sides(); ++b) {
        const auto& group = set_.groups[g];
        const Pose<T> X = w.pose[b == 0 ? group.link : group.other];
        for (int c = 0; c < group.count; ++c) {
          const Vec3<T> position = X * set_.locals[group.local + c * group.sides() + b];
          if (!in_packs(group))
            positions_[first_position_[g] + c * group.sides() + b] = position;
          else if constexpr (lanes > 1)
            set_lane(packs_[first_pack_[g] + c / lanes].position[b], c % lanes, position);
        }
      }
  }

  // Whether the points of a group are side by side, which those of one state are where there are three or more; and
  // these.
  bool in_packs(std::size_t g) const { return in_packs(set_.groups[g]); }
  std::span<const PointPack<T>> packs(std::size_t g) const {
    return {packs_.data() + first_pack_[g], packs_.data() + first_pack_[g + 1]};
  }

  // visit(axes, position, position on the other link, row) of every point of a group; the ground has no position
  template <class F>
  void each(std::size_t g, F&& visit) const {
    const auto& group = set_.groups[g];
    if (!in_packs(group)) {
      const int sides = group.sides();
      const Point<Real>* point = &set_.points[group.first];
      const Vec3<T>* position = &positions_[first_position_[g]];
      for (int c = 0; c < group.count; ++c, ++point, position += sides)
        visit(point->axes, position[0], position[sides - 1], point->row);
      return;
    }
    if constexpr (strip_lanes<T> > 1)
      for (const auto& pack : packs(g))
        for (int l = 0; l < pack.count; ++l) {
          const Vec3<T> axes[3] = {get_lane(pack.axes[0], l), get_lane(pack.axes[1], l), get_lane(pack.axes[2], l)};
          visit(axes, get_lane(pack.position[0], l), get_lane(pack.position[1], l), pack.row[l]);
        }
  }

  // visit(row, link, K) of the rows of points with wanted(first row): K is the row of J on that link.
  template <class Wanted, class F>
  void each_row(Wanted&& wanted, F&& visit) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      for (int c = 0; c < group.count; ++c) {
        const auto& point = set_.points[group.first + c];
        if (!wanted(point.row)) continue;
        for (int side = 0; side < group.sides(); ++side)
          for (int r = 0; r < 3; ++r) {
            const Vec3<T> n = Vec3<T>{} + point.axes[r];
            const Vec6<T> K{n, cross(position(g, c, side), n)};
            visit(point.row + r, side == 0 ? group.link : group.other, side == 0 ? K : Vec6<T>{} - K);
          }
      }
    }
  }

  // Forces of the rows λ on links m. With `replace` the first group on a link replaces what is there.
  template <bool replace, class C>
  void add_forces(const C* lambda, Vec6<C>* m) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      const bool two = group.other >= 0;
      if constexpr (std::is_same_v<C, T> && strip_lanes<T> > 1)
        if (in_packs(group)) {
          push<replace>(group, sum_forces(packs(g), lambda, two), m);
          continue;
        }
      PointForce<C> sum{};
      each(g, [&](const auto* axes, const Vec3<T>& position, const Vec3<T>& other, int row) {
        const C* l = lambda + row;
        const Vec3<C> force = axes[0] * l[0] + axes[1] * l[1] + axes[2] * l[2];
        sum.force.lin += force;
        sum.force.ang += cross(position, force);
        if (two) sum.other_moment += cross(other, force);
      });
      push<replace>(group, sum, m);
    }
  }

  // Rows of the accelerations m of links; the ground's is past the last link.
  template <class C>
  void project(const std::vector<Vec6<C>>& m, C* rows) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      const bool two = group.other >= 0;
      const Vec6<C>&a = m[group.link], &b = two ? m[group.other] : m.back();
      if constexpr (std::is_same_v<C, T> && strip_lanes<T> > 1)
        if (in_packs(group)) {
          project_packs(packs(g), a, b, two, rows);
          continue;
        }
      each(g, [&](const auto* axes, const Vec3<T>& position, const Vec3<T>& other, int row) {
        Vec3<C> v = a.lin + cross(a.ang, position);
        if (two) v -= b.lin + cross(b.ang, other);
        for (int r = 0; r < 3; ++r) rows[row + r] = dot(axes[r], v);
      });
    }
  }

  // Kᵀ R K to the inertias H of links and to their couplings; start(link, kept) makes the H that a link begins with.
  // Points of equal stiffness in their three rows are point masses, whatever their axes, and add up; else row by row.
  template <class Start>
  void stiffen(const T* stiffness, Sym6<T>* H, Mat6<T>* coupling, Start&& start) const {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      const auto& touching = layout_.touching[g];
      if (group.opens[0]) start({group.link, touching.kept[0]});
      if (group.opens[1]) start({group.other, touching.kept[1]});
      T uneven{};
      for (int c = 0; c < group.count; ++c) {
        const T *r = &stiffness[set_.points[group.first + c].row], a = r[1] - r[0], b = r[2] - r[0];
        uneven += a * a + b * b;
      }
      bool even = true;
      for (int l = 0; l < lanes_of<T>; ++l) even = even && lane(uneven, l) == 0;
      if (even)
        stiffen_evenly(g, stiffness, H, coupling);
      else
        stiffen_by_rows(g, stiffness, H, coupling);
    }
  }

 private:
  Vec3<T> position(std::size_t g, int point, int side) const {
    constexpr int lanes = strip_lanes<T>;
    if constexpr (lanes > 1)
      if (in_packs(g)) return get_lane(packs_[first_pack_[g] + point / lanes].position[side], point % lanes);
    return positions_[first_position_[g] + point * set_.groups[g].sides() + side];
  }
  static bool in_packs(const PointGroup& group) { return strip_lanes<T> > 1 && group.count > 2; }

  // The force on the group's link, its opposite with its own moment on the other.
  template <bool replace, class C>
  static void push(const PointGroup& group, const PointForce<C>& sum, Vec6<C>* m) {
    if (replace && group.opens[0])
      m[group.link] = sum.force;
    else
      m[group.link] += sum.force;
    if (group.other < 0) return;
    const Vec6<C> g{sum.force.lin, sum.other_moment};
    if (replace && group.opens[1])
      m[group.other] = Vec6<C>{} - g;
    else
      m[group.other] -= g;
  }

  void stiffen_by_rows(std::size_t g, const T* stiffness, Sym6<T>* H, Mat6<T>* coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = layout_.touching[g];
    each(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
      for (int r = 0; r < 3; ++r) {
        const Vec3<T> n = Vec3<T>{} + axes[r];
        const Vec6<T> K{n, cross(p, n)}, L{n, cross(o, n)};
        const T R = stiffness[row + r];
        downdate(H[group.link], K, -R);
        if (touching.block < 0) continue;
        downdate(H[group.other], L, -R);
        add_outer(coupling[touching.block], column(touching.flipped ? K : L), (touching.flipped ? L : K) * -R);
      }
    });
  }

  // I = tr P − P on each link; between them −[m, −h₁×; h₂×, tr Q − Q], rows of the second
  void stiffen_evenly(std::size_t g, const T* stiffness, Sym6<T>* H, Mat6<T>* coupling) const {
    const auto& group = set_.groups[g];
    const auto& touching = layout_.touching[g];
    const bool two = touching.block >= 0, swapped = touching.flipped;
    PointSums<T> sums{};
    if (in_packs(group)) {
      if constexpr (strip_lanes<T> > 1) sum_stiffness(packs(g), stiffness, swapped, two, sums);
    } else {
      each(g, [&](const auto*, const Vec3<T>& p, const Vec3<T>& o, int row) {
        sums.add(stiffness[row], swapped ? o : p, swapped ? p : o, two);
      });
    }
    const T m = sums.m;
    const auto& h = sums.h;
    const auto& Q = sums.Q;
    auto mass = [&](int k) {
      const Sym3<T>& A = sums.P[k];
      return Inertia<T>{m, h[k], {A.yy + A.zz, -A.xy, -A.xz, A.xx + A.zz, -A.yz, A.xx + A.yy}};
    };
    add(H[swapped ? group.other : group.link], mass(0));
    if (!two) return;
    add(H[swapped ? group.link : group.other], mass(1));
    const T trace = Q.x.x + Q.y.y + Q.z.z;
    auto* A = coupling[touching.block].column;
    for (int k = 0; k < 3; ++k) A[k][k] -= m;
    A[0][4] -= h[1].z, A[0][5] += h[1].y;
    A[1][3] += h[1].z, A[1][5] -= h[1].x;
    A[2][3] -= h[1].y, A[2][4] += h[1].x;
    A[3][1] += h[0].z, A[3][2] -= h[0].y;
    A[4][0] -= h[0].z, A[4][2] += h[0].x;
    A[5][0] += h[0].y, A[5][1] -= h[0].x;
    A[3][3] += Q.x.x - trace, A[3][4] += Q.x.y, A[3][5] += Q.x.z;
    A[4][3] += Q.y.x, A[4][4] += Q.y.y - trace, A[4][5] += Q.y.z;
    A[5][3] += Q.z.x, A[5][4] += Q.z.y, A[5][5] += Q.z.z - trace;
  }

  const Layout<Real>& layout_;
  const ConstraintSet<Real>& set_;
  std::vector<PointPack<T>> packs_;
  std::vector<Vec3<T>> positions_;  // points by themselves: on their link, and on the other if there is one
  std::vector<int> first_pack_, first_position_;  // a group of points; the first also one past the last
};

}  // namespace delassus
