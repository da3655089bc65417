// The Delassus matrix by the sparse factor of M (LTL-OSIM): O(n d² + m d² + m² d) for depth d. Any rows, loops
// included.
//
//   M = Lᵀ D L,   Y = J L⁻¹,   G = Y D⁻¹ Yᵀ
//
// Featherstone, "Exploiting sparsity in operational-space dynamics", 2010; loops as in Carpentier et al., "Proximal and
// sparse resolution of constrained dynamic equations", 2021. L has the branch-induced zeros of M, Y those of J. Row k
// of M is kept along the way from the ground to k, so that the rows of what carries k have its first numbers in common:
// the factor and the substitution run on contiguous memory.
#pragma once

#include <algorithm>
#include <map>

#include "dynamics/kinematics.h"
#include "operators/explicit/packs.h"
#include "operators/layout.h"

namespace delassus {

template <class T>
struct LtlWork {
  // Rows one after another that act on one link.
  struct Run {
    int link, row, at, count;
  };
  // Where numbers K come from: three of a point on its first or second link, or those of a term.
  struct Source {
    int link, index, second, count, at;
    bool point;
  };
  // Velocities that move the same packs of rows.
  struct Group {
    int first, count;  // among the rows of Y
    std::vector<int> packs;
  };

  std::vector<int> depth, start;  // a velocity: velocities below it; where its row of M starts
  std::vector<int> place;         // a velocity: its row of Y, −1: it moves no rows
  std::vector<int> group;         // a velocity
  std::vector<Run> runs;
  std::vector<Source> sources;
  std::vector<Group> groups;
  std::size_t room = 0, entries = 0;
  Placement<T> w;
  std::vector<Vec6<T>> terms;       // a row of a term: K
  std::vector<T> K;                 // 6: rows on links
  std::vector<T> M, Dinv, Y, Z, G;  // Y, Z = Y D⁻¹: a velocity that moves rows
  std::vector<T> diagonal;          // a velocity: M_kk
  T growth{};                       // the largest factor by which a pivot is smaller than M_kk
  std::vector<Inertia<T>> composite;

  LtlWork(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set);
  std::size_t bytes() const {
    return w.bytes() + (depth.size() + start.size() + place.size() + group.size()) * sizeof(int) +
           runs.size() * sizeof(Run) + sources.size() * sizeof(Source) + terms.size() * sizeof(Vec6<T>) +
           (K.size() + M.size() + Dinv.size() + Y.size() + Z.size() + G.size() + diagonal.size()) * sizeof(T) +
           composite.size() * sizeof(Inertia<T>);
  }
};

template <class T>
LtlWork<T>::LtlWork(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set) : w(model) {
  constexpr int lanes = row_lanes<T>;
  const int nv = model.nv;
  std::size_t numbers = 0;
  depth.resize(nv);
  start.resize(nv);
  for (int k = 0; k < nv; ++k) {
    depth[k] = model.dof_parent[k] < 0 ? 0 : depth[model.dof_parent[k]] + 1;
    start[k] = int(numbers);
    numbers += std::size_t(depth[k] / lanes + 1) * lanes;
  }

  // numbers K, link by link and row after row
  for (const auto& g : set.groups)
    for (int p = g.first; p < g.first + g.count; ++p) {
      sources.push_back({g.link, p, 0, 3, set.points[p].row, true});
      if (g.other >= 0) sources.push_back({g.other, p, 1, 3, set.points[p].row, true});
    }
  for (const auto& b : set.blocks)
    for (int t = 0; t < b.terms; ++t)
      sources.push_back({set.terms[b.term + t].link, set.terms[b.term + t].K, 0, b.rows, b.row, false});
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return std::pair(a.link, a.at) < std::pair(b.link, b.at); });
  for (auto& source : sources) {
    const int row = source.at;
    source.at = int(entries);
    if (!runs.empty() && runs.back().link == source.link && runs.back().row + runs.back().count == row)
      runs.back().count += source.count;
    else
      runs.push_back({source.link, row, source.at, source.count});
    entries += std::size_t(source.count);
  }

  // which packs of rows a velocity moves
  std::vector<std::vector<int>> moved(nv);
  auto mark = [&](int k, int first, int last) {
    for (; k >= 0; k = model.dof_parent[k])
      for (int p = first; p <= last; ++p)
        if (const auto at = std::lower_bound(moved[k].begin(), moved[k].end(), p); at == moved[k].end() || *at != p)
          moved[k].insert(at, p);
  };
  for (const auto& run : runs) {
    const auto& link = model.links[run.link];
    mark(link.iv + link.nv - 1, run.row / lanes, (run.row + run.count - 1) / lanes);
  }
  // a row of one joint has no number for what carries it, until the substitution gives it one
  for (const auto& j : set.joint_rows) mark(j.velocity, j.row / lanes, j.row / lanes);
  place.assign(nv, -1);
  group.assign(nv, -1);
  std::map<std::vector<int>, int> known;
  for (int k = 0; k < nv; ++k) {
    if (moved[k].empty()) continue;
    const auto [at, added] = known.try_emplace(moved[k], int(groups.size()));
    if (added) groups.push_back({0, 0, moved[k]});
    group[k] = at->second;
    ++groups[at->second].count;
  }
  int next = 0;
  for (auto& g : groups) {
    g.first = next;
    next += g.count;
    g.count = 0;
  }
  for (int k = 0; k < nv; ++k)
    if (group[k] >= 0) place[k] = groups[group[k]].first + groups[group[k]].count++;

  room = row_room<T>(set.rows);
  terms.resize(set.K_size);
  K.resize(6 * row_room<T>(int(entries)));
  M.resize(numbers + lanes);
  Dinv.resize(nv);
  diagonal.resize(nv);
  Y.resize(std::size_t(next) * room);
  Z.resize(Y.size());
  G.resize(room * room);
  composite.resize(model.links.size());
}

// M by composite bodies, a row along the way to the ground. A link's own inertia on entry, of what it carries too on
// exit; it need not be a rigid body's.
template <class T, class I>
void fill_mass_matrix(const Model<real_of<T>>& model, LtlWork<T>& t, I* composite) {
  const auto& w = t.w;
  for (int i = int(model.links.size()) - 1; i >= 0; --i) {
    const auto& link = model.links[i];
    const I Ic = composite[i];
    if (link.parent >= 0) composite[link.parent] += Ic;
    const auto& root = model.links[model.roots[link.tree]];
    const bool floating = root.type == Joint::free && link.parent >= 0;
    const int last = floating ? root.iv + 5 : -1;  // the base's velocities are below
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const Vec6<T> F = Ic * w.S[k];
      T* row = t.M.data() + t.start[k];
      int d = t.depth[k];
      store_rows(row + d / row_lanes<T> * row_lanes<T>, RowPack<T>{});
      row[d] = dot(w.S[k], F) + model.armature[k];
      for (int j = model.dof_parent[k]; j > last; j = model.dof_parent[j]) row[--d] = dot(w.S[j], F);
      if (floating) {
        const Vec3<T> turned = transpose_times(w.pose[model.roots[link.tree]].R, F.ang);
        const T base[6] = {F.lin.x, F.lin.y, F.lin.z, turned.x, turned.y, turned.z};
        for (int c = 0; c < 6; ++c) row[c] = base[c];
      }
    }
  }
}

// M = Lᵀ D L in place: L below its unit diagonal, D⁻¹
template <class T>
void factor_mass_matrix(const Model<real_of<T>>& model, LtlWork<T>& t) {
  constexpr int lanes = row_lanes<T>;
  for (int k = model.nv - 1; k >= 0; --k) {
    T* row = t.M.data() + t.start[k];
    const T d = real_of<T>(1) / row[t.depth[k]];
    t.Dinv[k] = d;
    for (int i = model.dof_parent[k], j = t.depth[k] - 1; i >= 0; i = model.dof_parent[i], --j) {
      T* above = t.M.data() + t.start[i];
      const T l = row[j] * d;
      for (int c = 0; c <= j; c += lanes) store_rows(above + c, load_rows(above + c) - load_rows(row + c) * l);
    }
    for (int c = 0; c < t.depth[k]; c += lanes) store_rows(row + c, load_rows(row + c) * d);
  }
}

// x ← L⁻ᵀ x
template <class T>
void solve_transposed(const Model<real_of<T>>& model, const LtlWork<T>& t, T* x) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const T* row = t.M.data() + t.start[k];
    for (int i = model.dof_parent[k], j = t.depth[k] - 1; i >= 0; i = model.dof_parent[i], --j) x[i] -= row[j] * x[k];
  }
}
// x ← L⁻¹ x
template <class T>
void solve_plain(const Model<real_of<T>>& model, const LtlWork<T>& t, T* x) {
  for (int k = 0; k < model.nv; ++k) {
    const T* row = t.M.data() + t.start[k];
    T sum = x[k];
    for (int i = model.dof_parent[k], j = t.depth[k] - 1; i >= 0; i = model.dof_parent[i], --j) sum -= row[j] * x[i];
    x[k] = sum;
  }
}

// K of every row on every link
template <class T>
void place_rows(const ConstraintSet<real_of<T>>& set, LtlWork<T>& t) {
  const std::size_t apart = t.K.size() / 6;
  const auto& w = t.w;
  auto put = [&](int at, const Vec6<T>& k) {
    for (int c = 0; c < 6; ++c) t.K[c * apart + std::size_t(at)] = entry(k, c);
  };
  for (const auto& source : t.sources) {
    if (!source.point) {
      for (int r = 0; r < source.count; ++r) put(source.at + r, t.terms[source.index + r]);
      continue;
    }
    const auto& point = set.points[source.index];
    const Vec3<T> p = w.pose[source.link] * set.locals[point.local + source.second];
    for (int r = 0; r < 3; ++r) {
      const Vec3<T> n = Vec3<T>{} + point.axes[r] * real_of<T>(source.second ? -1 : 1);
      put(source.at + r, {n, cross(p, n)});
    }
  }
}

// Y = J = K S along the way to the ground
template <class T>
void fill_jacobian(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, LtlWork<T>& t) {
  using P = RowPack<T>;
  constexpr int lanes = row_lanes<T>;
  const std::size_t room = t.room, apart = t.K.size() / 6;
  const auto& w = t.w;
  for (const auto& g : t.groups)
    for (int y = g.first; y < g.first + g.count; ++y)
      for (const int p : g.packs) store_rows(t.Y.data() + std::size_t(y) * room + p * lanes, P{});
  for (const auto& run : t.runs)
    for (int e = 0; e < run.count; e += lanes) {
      const Vec6<P> k = load_six(t.K.data() + run.at + e, apart);
      const auto& link = model.links[run.link];
      for (int v = link.iv + link.nv - 1; v >= 0; v = model.dof_parent[v]) {
        T* y = t.Y.data() + std::size_t(t.place[v]) * room + run.row + e;
        store_rows(y, P(load_rows(y) + first_rows<T>(dot(w.S[v], k), run.count - e)));
      }
    }
  for (const auto& j : set.joint_rows)
    t.Y[std::size_t(t.place[j.velocity]) * room + std::size_t(j.row)] = constant<T>(j.coefficient);
}

// Y = J L⁻¹ and Z = Y D⁻¹: y_j −= L_kj y_k for all that carry k
template <class T>
void substitute_rows(const Model<real_of<T>>& model, LtlWork<T>& t) {
  constexpr int lanes = row_lanes<T>;
  const std::size_t room = t.room;
  for (int k = model.nv - 1; k >= 0; --k) {
    if (t.place[k] < 0) continue;
    const auto& packs = t.groups[t.group[k]].packs;
    T* y = t.Y.data() + std::size_t(t.place[k]) * room;
    T* z = t.Z.data() + std::size_t(t.place[k]) * room;
    const T* row = t.M.data() + t.start[k];
    for (const int p : packs) store_rows(z + p * lanes, load_rows(y + p * lanes) * t.Dinv[k]);
    for (int i = model.dof_parent[k], j = t.depth[k] - 1; i >= 0; i = model.dof_parent[i], --j) {
      T* below = t.Y.data() + std::size_t(t.place[i]) * room;
      for (const int p : packs)
        store_rows(below + p * lanes, load_rows(below + p * lanes) - load_rows(y + p * lanes) * row[j]);
    }
  }
}

// y += Aᵀ x, one number a row, and the product of velocity k with numbers of rows: A is Y or Z, and has zeros beyond
// the rows.
template <class T>
void add_rows(const LtlWork<T>& t, const std::vector<T>& A, const T* x, T* y) {
  constexpr int lanes = row_lanes<T>;
  for (std::size_t k = 0; k < t.place.size(); ++k) {
    if (t.place[k] < 0) continue;
    const T* a = A.data() + std::size_t(t.place[k]) * t.room;
    for (const int p : t.groups[t.group[k]].packs)
      store_rows(y + p * lanes, load_rows(y + p * lanes) + load_rows(a + p * lanes) * x[k]);
  }
}
template <class T>
T times_rows(const LtlWork<T>& t, const std::vector<T>& A, std::size_t k, const T* lambda) {
  constexpr int lanes = row_lanes<T>;
  if (t.place[k] < 0) return T{};
  const T* a = A.data() + std::size_t(t.place[k]) * t.room;
  RowPack<T> sum{};
  for (const int p : t.groups[t.group[k]].packs) sum += load_rows(a + p * lanes) * load_rows(lambda + p * lanes);
  return sum_rows<T>(sum);
}

// Placements at q, K of the rows and M.
template <class T>
inline void place_mass_matrix(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, LtlWork<T>& t,
                              const T* q) {
  kinematics(model, t.w, q);
  world_inertias(t.w);
  evaluate(model, set, t.w, q, t.terms.data());
  for (std::size_t i = 0; i < t.composite.size(); ++i) t.composite[i] = t.w.inertia[int(i)];
  fill_mass_matrix(model, t, t.composite.data());
}

// M at q, its factor, and the growth of its pivots.
template <class T>
void factor_ltl(const Model<real_of<T>>& model, const ConstraintSet<real_of<T>>& set, LtlWork<T>& t, const T* q) {
  place_mass_matrix(model, set, t, q);
  for (int k = 0; k < model.nv; ++k) t.diagonal[k] = t.M[std::size_t(t.start[k] + t.depth[k])];
  factor_mass_matrix(model, t);
  t.growth = T{};
  for (int k = 0; k < model.nv; ++k) {
    const T growth = t.diagonal[k] * t.Dinv[k];
    t.growth = t.growth > growth ? t.growth : growth;
  }
}

// The upper triangle of G to t.G, `room` apart, by that factor. Returns whether M is surely regular.
template <class T>
bool form_ltl(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout, LtlWork<T>& t) {
  constexpr int lanes = row_lanes<T>;
  place_rows(layout.set, t);
  fill_jacobian(model, layout.set, t);
  substitute_rows(model, t);
  for (auto& g : t.G) g = T{};
  for (const auto& g : t.groups) {
    const T *Z = t.Z.data() + std::size_t(g.first) * t.room, *Y = t.Y.data() + std::size_t(g.first) * t.room;
    for (std::size_t a = 0; a < g.packs.size(); ++a)
      for (std::size_t b = a; b < g.packs.size(); ++b)
        add_tile<lanes>(Z, Y, t.room, g.count, g.packs[a] * lanes, g.packs[b] * lanes, lanes, t.G.data(), t.room);
  }
  return is_surely_regular(layout.pivot_bound, t.Dinv.data());
}

template <class T>
bool ltl(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout, LtlWork<T>& t, const T* q) {
  factor_ltl(model, layout.set, t, q);
  return form_ltl(model, layout, t);
}

}  // namespace delassus
