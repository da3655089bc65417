// M⁻¹(q) directly, without M: O(n²) numbers, each in constant time.
//
// Carpentier, "Analytical inverse of the joint space inertia matrix", 2018, algorithm 1, with line 14 replaced by its
// correction F_p += F + U M⁻¹[i, subtree]: what a subtree transmits includes what its own subtrees transmitted. Columns
// are processed in blocks of a register's width. In world axes one F serves all links, because the columns of disjoint
// subtrees are disjoint, and a parent's P is overwritten by its last child. On the trunk:
//
//   backward  row_k = D⁻¹ (e_k − S_kᵀ F),   F += U_k row_k          on the columns of k's subtree
//   forward   row_k −= D⁻¹ U_kᵀ P_p,   P_k = P_p + S_k row_k        on the columns from k on; the rest by symmetry
//
// A limb (limbs.h) is done at once. The factor of its part of M = Lᵀ D L, L_kj = S_jᵀ U_k D_k⁻¹ (triangle.h), is a
// small dense triangle. From it follow, velocity by velocity, the inverse X of that part, which holds while the limb's
// base is fixed, and A_k, the force that a torque at k then exerts on the base, which is F's column k. By reciprocity
// A_k is also what an acceleration of the base does to k: no sweep over the limb is needed.
//
//   A_k = U_k D_k⁻¹ − Σ_j L_kj A_j,   X_ki = −Σ_j L_kj X_ji for i < k,   X_kk = D_k⁻¹ − Σ_j L_kj X_jk       j < k
//   forward   row_k = X_k − A_kᵀ P_p                                on the columns from k on
#pragma once

#include "dense/square.h"
#include "dynamics/aba.h"
#include "dynamics/columns.h"

namespace delassus {

// Blocks of a matrix's rows, where it stands. The last block ends with the matrix, the first may begin `shift` columns
// before it.
template <class T>
struct RowBlocks {
  using C = LinkPack<T>;
  static constexpr int width = link_lanes<T>;
  T* matrix;
  int n, shift;

  RowBlocks(T* m, int size) : matrix(m), n(size), shift((width - size % width) % width) {}
  // of a column; the first column of a block, and one past its last; whether it also has columns out of [begin, end)
  int block(int column) const { return int(unsigned(column + shift) / width); }
  int first(int b) const { return b * width - shift; }
  int past(int b) const { return first(b) + width; }
  bool shares(int b, int begin, int end) const { return first(b) < begin || past(b) > end; }

  // where the first column of a block is, which begins in the matrix
  T* at(int k, int b) const { return row(k) + first(b); }
  bool begins_before(int b) const { return width > 1 && b == 0 && shift > 0; }

  C get(int k, int b) const {
    if (begins_before(b)) {
      C x{};
      copy(reinterpret_cast<T*>(&x) + shift, row(k));
      return x;
    }
    return dense::load<C>(at(k, b));
  }
  void set(int k, int b, const C& x) const {
    if (begins_before(b))
      copy(row(k), reinterpret_cast<const T*>(&x) + shift);
    else
      dense::store(at(k, b), x);
  }

 private:
  T* row(int k) const { return matrix + std::size_t(k) * n; }
  void copy(T* to, const T* from) const {
    for (int l = 0; l < width - shift; ++l) to[l] = from[l];
  }
};

// A group of limbs by the scalar C, T or a pack of it: inverses with their bases held fixed, and forces on these.
template <class T, class C>
inline void invert_limbs(Workspace<T>& w, int length, const int* velocity, const int* column, const int* pair) {
  constexpr bool many = !std::is_same_v<C, T>;
  constexpr int lanes = many ? link_lanes<T> : 1;
  // of velocities done: S, force on the base, the rows of the inverse; of the next one: its row of L
  Vec6<C>* const S = reinterpret_cast<Vec6<C>*>(w.own_S.data());
  Vec6<C>* const A = reinterpret_cast<Vec6<C>*>(w.own_force.data());
  C* const X = reinterpret_cast<C*>(w.own_rows.data());
  C* const L = reinterpret_cast<C*>(w.own_L.data());
  T* const own = reinterpret_cast<T*>(w.own.data());
  C* row = X;
  for (int k = 0; k < length; ++k, row += length, velocity += lanes, column += lanes) {
    Vec6<C> U;
    C Dinv;
    if constexpr (many) {
      S[k] = gather(w.S.data(), velocity);
      Dinv = gather_lanes(w.Dinv.data(), velocity);
      U = gather(w.U.data(), velocity) * Dinv;
    } else {
      S[k] = w.S[*velocity];
      Dinv = w.Dinv[*velocity];
      U = w.U[*velocity] * Dinv;
    }
    Vec6<C> force = U;
    for (int j = 0; j < k; ++j) {
      L[j] = dot(S[j], U);
      force -= A[j] * L[j];
    }
    A[k] = force;
    if constexpr (many) {
      w.F.scatter(column, force);
      scatter(w.force.data(), velocity, force);
    } else {
      w.F.set(*column, force);
      w.force[*velocity] = force;
    }

    const auto keep = [&](const C& x) {
      if constexpr (many)
        scatter_lanes(own, pair, x);
      else
        own[*pair] = x;
      pair += lanes;
    };
    C diagonal = Dinv;
    for (int i = 0; i < k; ++i) {
      C x{};
      const C* above = X + i;
      for (int j = 0; j < k; ++j, above += length) x -= *above * L[j];
      row[i] = X[i * length + k] = x;
      diagonal -= x * L[i];
      keep(x);
    }
    row[k] = diagonal;
    keep(diagonal);
  }
}

template <class T>
inline void invert_limbs(Workspace<T>& w) {
  const int *velocity = w.parts.velocity.data(), *column = w.parts.column.data(), *pair = w.parts.pair.data();
  for (const auto& group : w.parts.groups) {
    if (group.lanes == 1)
      invert_limbs<T, T>(w, group.length, velocity, column, pair);
    else
      invert_limbs<T, LinkPack<T>>(w, group.length, velocity, column, pair);
    velocity += group.length * group.lanes;
    column += group.length * group.lanes;
    pair += group.length * (group.length + 1) / 2 * group.lanes;
  }
}

// The rows of limbs from the motion p of what they hang on, in `count` blocks of columns; own: their part of the limbs'
// inverses, or none.
template <int count, class T>
[[gnu::always_inline]] inline void limbs_times_motion(const Vec6<T>* A, int n, const Vec6<LinkPack<T>>* P,
                                                      const LinkPack<T>* own, int next, T* to, std::ptrdiff_t stride) {
  using C = LinkPack<T>;
  Vec6<C> p[count];
  for (int i = 0; i < count; ++i) p[i] = P[i];
  for (int k = 0; k < n; ++k, to += stride)
#pragma GCC unroll 2
    for (int i = 0; i < count; ++i) {
      const C moved = dot(p[i], A[k]);
      dense::store(to + i * link_lanes<T>, C(own ? own[i * next + k] - moved : C{} - moved));
    }
}

// The rows of limbs for columns up to `end`.
template <class T>
inline void rows_of_limbs(const Workspace<T>& w, const TrunkAndLimbs::Limbs& limbs, const Vec6<LinkPack<T>>* P, int end,
                          const RowBlocks<T>& rows) {
  const int n = limbs.size(), first = rows.block(limbs.begin), past = rows.block(end - 1) + 1;
  const Vec6<T>* const A = w.force.data() + limbs.begin;
  const LinkPack<T>* const no = nullptr;
  for (int b = first; b < past; b += 2) {
    const LinkPack<T>* own = b < first + limbs.blocks ? w.own.data() + limbs.at + (b - first) * n : no;
    const int upper = std::min(n, rows.past(b) - limbs.begin);
    if (rows.begins_before(b)) {
      for (int k = 0; k < upper; ++k) rows.set(limbs.begin + k, b, own[k] - dot(P[b], A[k]));
      --b;
      continue;
    }
    T* const to = rows.at(limbs.begin, b);
    if (b + 1 == past) {
      limbs_times_motion<1>(A, upper, P + b, own, 0, to, rows.n);
      break;
    }
    if (!own) {
      limbs_times_motion<2>(A, n, P + b, no, 0, to, rows.n);
      continue;
    }
    limbs_times_motion<2>(A, upper, P + b, own, n, to, rows.n);
    const int next = std::min(n, rows.past(b + 1) - limbs.begin);
    limbs_times_motion<1>(A + upper, next - upper, P + b + 1, own + n + upper, 0,
                          to + upper * std::ptrdiff_t(rows.n) + rows.width, rows.n);
  }
}

// `count` blocks of columns of a run of the trunk, from its last velocity to its first: a block whose columns are not
// all in its subtree gives and takes those only.
template <int count, class T>
[[gnu::always_inline]] inline void respond(Workspace<T>& w, const TrunkAndLimbs::Run& run, int b,
                                           const RowBlocks<T>& rows) {
  using C = LinkPack<T>;
  Vec6<C> F[count], others{};
  for (int i = 0; i < count; ++i) F[i] = w.F.block(b + i);
  if (count == 1 && rows.shares(b, run.begin, run.subtree)) {
    const auto in = [&](const C& x) { return within<T>(x, rows.first(b), run.begin, run.subtree); };
    others = F[0];
    F[0] = {{in(F[0].lin.x), in(F[0].lin.y), in(F[0].lin.z)}, {in(F[0].ang.x), in(F[0].ang.y), in(F[0].ang.z)}};
    others -= F[0];
  }
  const Vec6<T>*const S = w.S.data(), *const U = w.U.data();
  const T* const Dinv = w.Dinv.data();
  const int begin = run.begin, last = std::min(run.end, rows.past(b)) - 1;
  const bool own = count == 1 && rows.first(b) < run.end, before = count == 1 && rows.begins_before(b);
  const std::ptrdiff_t stride = rows.n;
  T* to = rows.at(last, b);
  for (int k = last; k >= begin; --k, to -= stride)
#pragma GCC unroll 2
    for (int i = 0; i < count; ++i) {
      C row = C{} - dot(F[i], S[k]);
      if (own) row += within<T>(C{} + real_of<T>(1), rows.first(b), k, k + 1);
      row = row * Dinv[k];
      F[i] += U[k] * row;
      if (before)
        rows.set(k, b, row);
      else
        dense::store(to + i * rows.width, row);
    }
  if (count == 1) F[0] += others;
  for (int i = 0; i < count; ++i) w.F.block(b + i) = F[i];
}

// From its first velocity to its last; P: the motion of what it hangs on, or none; Q: its own.
template <int count, class T>
[[gnu::always_inline]] inline void follow(const Workspace<T>& w, const TrunkAndLimbs::Run& run,
                                          const Vec6<LinkPack<T>>* P, Vec6<LinkPack<T>>* Q, int b,
                                          const RowBlocks<T>& rows) {
  using C = LinkPack<T>;
  Vec6<C> a[count]{};
  if (P)
    for (int i = 0; i < count; ++i) a[i] = P[b + i];
  const Vec6<T>*const S = w.S.data(), *const U = w.U.data();
  const T* const Dinv = w.Dinv.data();
  const int begin = run.begin, past = std::min(run.end, rows.past(b));
  const bool before = count == 1 && rows.begins_before(b),
             has[] = {rows.first(b) < run.subtree, rows.past(b) < run.subtree};
  const std::ptrdiff_t stride = rows.n;
  T* to = rows.at(begin, b);
  for (int k = begin; k < past; ++k, to += stride) {
    const Vec6<T> UDinv = U[k] * Dinv[k];
#pragma GCC unroll 2
    for (int i = 0; i < count; ++i) {
      C row{};
      if (has[i]) row = before ? rows.get(k, b) : dense::load<C>(to + i * rows.width);
      row -= dot(a[i], UDinv);
      a[i] += S[k] * row;
      if (before)
        rows.set(k, b, row);
      else
        dense::store(to + i * rows.width, row);
    }
  }
  for (int i = 0; i < count; ++i) Q[b + i] = a[i];
}

// Blocks from that of column `begin` to that of `end`, by pairs of which no block has columns that are in [begin,
// single) or from `end` on.
template <class T, class One, class Two>
[[gnu::always_inline]] inline void by_pairs(const RowBlocks<T>& rows, int begin, int single, int end, One&& one,
                                            Two&& two) {
  int b = rows.block(begin);
  for (; rows.first(b) < single && rows.first(b) < end; ++b) one(b);
  for (; rows.past(b + 1) <= end; b += 2) two(b);
  for (; rows.first(b) < end; ++b) one(b);
}

// From the factor of M made by `factorize` or `aba`. Minv: nv × nv, both triangles.
template <class T>
void inverse_of_factor(const Model<real_of<T>>& model, Workspace<T>& w, T* __restrict Minv) {
  using C = LinkPack<T>;
  w.prepare_inverse(model);
  const int nv = model.nv, blocks = w.column_blocks;
  const RowBlocks<T> rows(Minv, nv);
  const auto& parts = w.parts;

  // backward: the response of k to torques in its subtree, the ground of k held fixed; a torque on a free root is a
  // force
  invert_limbs(w);
  for (const auto& run : parts.trunk)
    for (int k = run.begin; k < run.end; ++k) w.F.set(k + rows.shift, run.free ? Vec6<T>{} - w.S[k] : Vec6<T>{});
  for (auto run = parts.trunk.rbegin(); run != parts.trunk.rend(); ++run)
    if (!run->free)
      by_pairs(
          rows, run->begin, run->end, run->subtree, [&](int b) { respond<1>(w, *run, b, rows); },
          [&](int b) { respond<2>(w, *run, b, rows); });

  // forward: a free root moves at once; elsewhere add the motion of what carries k; then the limbs
  for (int l = 0; l < parts.on_world; ++l) {
    const auto& limbs = parts.limbs[l];
    for (int b = 0, first = rows.block(limbs.begin); b < limbs.blocks; ++b)
      for (int k = limbs.begin; k < limbs.end && k < rows.past(first + b); ++k)
        rows.set(k, first + b, w.own[std::size_t(limbs.at + b * limbs.size() + k - limbs.begin)]);
  }
  for (const auto& run : parts.trunk) {
    const int tree = model.links[run.link].tree, end = model.links[model.roots[tree]].end_v;
    Vec6<C>* const Q = w.P.data() + std::size_t(run.slot) * blocks;
    if (run.free) {
      const Mat3<T> R = w.pose[run.link].R;
      for (int b = rows.block(run.begin); rows.first(b) < end; ++b) {
        Vec6<C> f = w.F.block(b);
        if (rows.shares(b, run.begin, end)) {
          const auto in = [&](const C& x) { return within<T>(x, rows.first(b), run.begin, end); };
          f = {{in(f.lin.x), in(f.lin.y), in(f.lin.z)}, {in(f.ang.x), in(f.ang.y), in(f.ang.z)}};
        }
        Q[b] = w.Hinv[tree] * (Vec6<C>{} - f);
        C base[6];
        free_velocities(R, Q[b], base);
        if (!rows.begins_before(b) && run.end <= rows.past(b))
          for (int k = 0; k < 6; ++k) dense::store(rows.at(run.begin + k, b), base[k]);
        else
          for (int k = run.begin; k < run.end && k < rows.past(b); ++k) rows.set(k, b, base[k - run.begin]);
      }
    } else {
      const Vec6<C>* P = run.above < 0 ? nullptr : w.P.data() + std::size_t(run.above) * blocks;
      by_pairs(
          rows, run.begin, run.end, end, [&](int b) { follow<1>(w, run, P, Q, b, rows); },
          [&](int b) { follow<2>(w, run, P, Q, b, rows); });
    }
    for (int l = run.limbs; l < run.limbs_end; ++l) rows_of_limbs(w, parts.limbs[l], Q, end, rows);
  }

  // other trees' columns, the other triangle
  for (const int root : model.roots)
    for (int k = model.links[root].iv, end = model.links[root].end_v; k < end && end < nv; ++k)
      for (int j = end; j < nv; ++j) Minv[std::size_t(k) * nv + j] = T{};
  dense::mirror_upper(nv, Minv, nv);
}

template <class T>
void mass_matrix_inverse(const Model<real_of<T>>& model, Workspace<T>& w, T* Minv) {
  factorize(model, w);
  inverse_of_factor(model, w, Minv);
}

}  // namespace delassus
