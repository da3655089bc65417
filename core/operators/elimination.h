// Elimination of all joints of a mechanism whose links are coupled by constraints: the loop-constrained articulated-body algorithm.
//
// Link i, all its children gone, has the neighbours N (its parent may be one). For each of its velocities, last first,
//
//   W_i = H_ii S,   W_j = H_ji S for j ∈ N,   D = Sᵀ W_i + armature + joint rows,   H_jk −= W_j D⁻¹ W_kᵀ for j, k ∈ N ∪ {i}
//
// then i merges into its parent p:  H_pp += H_ii (+ H_ip + H_pi if p ∈ N),   H_pj += H_ij for j ∈ N \ {p}.
// Right-hand sides: u = τ + Sᵀ f_i,  f_j −= W_j D⁻¹ u,  f_p += f_i;  back:  ν = D⁻¹ (u − Σ_j W_jᵀ a_j),  a_i = a_p + S ν.
//
// No couplings: articulated bodies. Ground contacts only: constrainedABA. Algorithm 4 of "Matrix-Free Delassus Operations", derived anew
// from Gauss' principle. The ground has a = 0 and is nobody's neighbour.
#pragma once

#include <vector>

#include "dynamics/workspace.h"

namespace delassus {

// The symbolic part: which links are neighbours when their turn comes, and where the couplings are kept.
struct EliminationPlan {
  struct Neighbour {
    int link;
    int block;        // coupling of the eliminated link (rows) with this one (columns)
    int W;            // where its columns of the factor start: one a velocity of the eliminated link
    int merged;       // coupling of the parent with this one, −1 if this one is the parent or there is no parent
    bool flipped;     // that coupling is kept with this one's rows
  };
  struct Pair {
    int first, second;  // neighbours of one link, by their place in its list
    int block;          // their coupling, rows of `first` unless flipped
    bool flipped;
  };
  struct Step {
    int link;
    int neighbour, neighbours;
    int pair, pairs;
  };
  std::vector<Step> steps;             // in order of elimination
  std::vector<Neighbour> neighbours;
  std::vector<Pair> pairs;
  std::vector<std::pair<int, int>> blocks;  // links of every coupling: rows, columns; rows are eliminated first
  int W_size = 0;                      // columns of the factor beyond those of the links themselves
  int widest = 0;

  int find(int row, int column) const;  // block of two links, −1 if there is none
};

// Couples the links of every group with each other; orders by the fewest neighbours among the links whose children are gone.
EliminationPlan plan_elimination(const std::vector<int>& parent, const std::vector<int>& velocities, const std::vector<std::vector<int>>& groups);

template <class T>
struct Mat6 {
  Vec6<T> column[6];
};

template <class T>
inline T& entry(Vec6<T>& v, int k) {
  return reinterpret_cast<T*>(&v)[k];
}
template <class T>
inline const T& entry(const Vec6<T>& v, int k) {
  return reinterpret_cast<const T*>(&v)[k];
}

// A v, Aᵀ v, A += a bᵀ s
template <class T>
inline Vec6<T> operator*(const Mat6<T>& A, const Vec6<T>& v) {
  Vec6<T> y = A.column[0] * v.lin.x;
  for (int k = 1; k < 6; ++k) y += A.column[k] * entry(v, k);
  return y;
}
template <class T>
inline Vec6<T> transpose_times(const Mat6<T>& A, const Vec6<T>& v) {
  return {{dot(A.column[0], v), dot(A.column[1], v), dot(A.column[2], v)}, {dot(A.column[3], v), dot(A.column[4], v), dot(A.column[5], v)}};
}
template <class T>
inline void add_outer(Mat6<T>& A, const Vec6<T>& a, const Vec6<T>& b) {
  for (int k = 0; k < 6; ++k) A.column[k] += a * entry(b, k);
}
template <class T>
inline Mat6<T> transpose(const Mat6<T>& A) {
  Mat6<T> B;
  for (int r = 0; r < 6; ++r)
    for (int k = 0; k < 6; ++k) entry(B.column[r], k) = entry(A.column[k], r);
  return B;
}
template <class T>
inline void add(Mat6<T>& A, const Mat6<T>& B) {
  for (int k = 0; k < 6; ++k) A.column[k] += B.column[k];
}
// H += A + Aᵀ
template <class T>
inline void add_symmetric(Sym6<T>& H, const Mat6<T>& A) {
  const auto *c = A.column;
  H.A += Sym3<T>{c[0].lin.x + c[0].lin.x, c[1].lin.x + c[0].lin.y, c[2].lin.x + c[0].lin.z, c[1].lin.y + c[1].lin.y, c[2].lin.y + c[1].lin.z,
                 c[2].lin.z + c[2].lin.z};
  H.B.x += c[3].lin + Vec3<T>{c[0].ang.x, c[1].ang.x, c[2].ang.x};
  H.B.y += c[4].lin + Vec3<T>{c[0].ang.y, c[1].ang.y, c[2].ang.y};
  H.B.z += c[5].lin + Vec3<T>{c[0].ang.z, c[1].ang.z, c[2].ang.z};
  H.C += Sym3<T>{c[3].ang.x + c[3].ang.x, c[4].ang.x + c[3].ang.y, c[5].ang.x + c[3].ang.z, c[4].ang.y + c[4].ang.y, c[5].ang.y + c[4].ang.z,
                 c[5].ang.z + c[5].ang.z};
}

// The numeric part: H and couplings on entry, the factor on exit.
template <class T>
struct Factor {
  std::vector<Sym6<T>> H;        // a link
  std::vector<Mat6<T>> coupling; // a block
  std::vector<T> pivot;          // a velocity: armature and joint rows on entry
  std::vector<Vec6<T>> U, W;     // a velocity; a velocity and neighbour
  std::vector<T> Dinv;           // a velocity

  void resize(std::size_t links, std::size_t velocities, const EliminationPlan& plan) {
    H.resize(links);
    coupling.resize(plan.blocks.size());
    pivot.resize(velocities);
    U.resize(velocities);
    W.resize(plan.W_size);
    Dinv.resize(velocities);
  }
  std::size_t bytes() const {
    return H.size() * sizeof(Sym6<T>) + coupling.size() * sizeof(Mat6<T>) + (pivot.size() + Dinv.size()) * sizeof(T) + (U.size() + W.size()) * sizeof(Vec6<T>);
  }
};

template <class T>
void eliminate_all(const Model<real_of<T>>& model, const EliminationPlan& plan, const std::vector<Vec6<T>>& S, Factor<T>& F) {
  using Real = real_of<T>;
  for (const auto& step : plan.steps) {
    const auto& link = model.links[step.link];
    const auto* N = plan.neighbours.data() + step.neighbour;
    const auto* pairs = plan.pairs.data() + step.pair;
    Sym6<T> H = F.H[step.link];

    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      const int at = k - link.iv;
      const Vec6<T> U = H * S[k];
      const T d = Real(1) / (dot(S[k], U) + F.pivot[k]);
      F.U[k] = U;
      F.Dinv[k] = d;
      downdate(H, U, d);
      for (int j = 0; j < step.neighbours; ++j) {
        const Vec6<T> W = transpose_times(F.coupling[N[j].block], S[k]);
        F.W[N[j].W + at] = W;
        downdate(F.H[N[j].link], W, d);
        add_outer(F.coupling[N[j].block], U * -d, W);
      }
      for (int p = 0; p < step.pairs; ++p) {
        const Vec6<T> a = F.W[N[pairs[p].first].W + at], b = F.W[N[pairs[p].second].W + at];
        if (pairs[p].flipped)
          add_outer(F.coupling[pairs[p].block], b * -d, a);
        else
          add_outer(F.coupling[pairs[p].block], a * -d, b);
      }
    }

    // merge into the parent; what is tied to the ground is gone
    if (link.parent < 0) continue;
    F.H[link.parent] += H;
    for (int j = 0; j < step.neighbours; ++j) {
      const Mat6<T>& A = F.coupling[N[j].block];
      if (N[j].link == link.parent)
        add_symmetric(F.H[link.parent], A);
      else
        add(F.coupling[N[j].merged], N[j].flipped ? transpose(A) : A);
    }
  }
}

// Forces on links f and on joints u on entry (both are used up); accelerations of links a and of joints nu on exit.
// C is T or a pack of columns of T.
template <class T, class C>
void substitute(const Model<real_of<T>>& model, const EliminationPlan& plan, const std::vector<Vec6<T>>& S, const Factor<T>& F, Vec6<C>* __restrict f,
                C* __restrict u, Vec6<C>* __restrict a, C* __restrict nu) {
  for (const auto& step : plan.steps) {
    const auto& link = model.links[step.link];
    const auto* N = plan.neighbours.data() + step.neighbour;
    Vec6<C> g = f[step.link];
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k) {
      u[k] += dot(S[k], g);
      const C x = u[k] * F.Dinv[k];
      g -= F.U[k] * x;
      for (int j = 0; j < step.neighbours; ++j) f[N[j].link] -= F.W[N[j].W + k - link.iv] * x;
    }
    if (link.parent >= 0) f[link.parent] += g;
  }
  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    const auto& step = plan.steps[s];
    const auto& link = model.links[step.link];
    const auto* N = plan.neighbours.data() + step.neighbour;
    Vec6<C> b{};
    if (link.parent >= 0) b = a[link.parent];
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      C y = u[k] - dot(F.U[k], b);
      for (int j = 0; j < step.neighbours; ++j) y -= dot(F.W[N[j].W + k - link.iv], a[N[j].link]);
      nu[k] = y * F.Dinv[k];
      b += S[k] * nu[k];
    }
    a[step.link] = b;
  }
}

}  // namespace delassus
