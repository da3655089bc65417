// Elimination of all joints of a mechanism whose links are coupled by constraints: the loop-constrained articulated-body algorithm.
//
// Link i, all its children gone, has the neighbours N (its parent may be one). For each of its velocities, last first,
//
//   U = H_ii S,   W_j = H_ji S for j ∈ N,   D = Sᵀ U + armature + joint rows,   H_jk −= W_j D⁻¹ W_kᵀ for j, k ∈ N ∪ {i}  (W_i = U)
//
// then i merges into its parent p:  H_pp += H_ii (+ H_ip + H_pi if p ∈ N),   H_jp += H_ji for j ∈ N \ {p}.
// Right-hand sides: u = τ + Sᵀ f_i,  f_j −= W_j D⁻¹ u,  f_p += f_i;  back:  ν = D⁻¹ (u − Σ_j W_jᵀ a_j),  a_i = a_p + S ν.
// A free link goes at once, S being the world's axes: H_ii = L D Lᵀ, W_j = H_ji L⁻ᵀ; u = L⁻¹ f_i; back: a_i = L⁻ᵀ D⁻¹ (u − Σ_j W_jᵀ a_j).
//
// No couplings: articulated bodies. Ground contacts only: constrainedABA. Algorithm 4 of "Matrix-Free Delassus Operations", derived anew
// from Gauss' principle. The ground has a = 0 and is nobody's neighbour.
#pragma once

#include <vector>

#include "dynamics/aba.h"

namespace delassus {

// The symbolic part: which links are neighbours when their turn comes, and where the couplings are kept.
struct EliminationPlan {
  struct Neighbour {
    int link;
    int block;        // coupling H_ji of this one (rows) with the eliminated link (columns)
    int merged;       // coupling of this one with the parent, −1 if this one is the parent or there is no parent
    bool flipped;     // that coupling has the parent's rows
  };
  struct Pair {
    int first, second;  // neighbours of one link, by their place in its list
    int block;          // their coupling, rows of `first` unless flipped
    bool flipped;
  };
  struct Step {
    int link, parent;     // parent −1: the ground
    int iv, nv;
    bool plain;           // one velocity, no neighbours: most steps, and they go their own short way
    bool free;            // its joint is
    bool hands_over;      // the next step is its parent's: what passes between them stays in registers
    bool holds_inertia;   // inertia waits for it in memory
    bool holds_force;     // so do forces
    bool shows;           // somebody reads its acceleration from memory
    int factor;           // free: which of the free links it is
    int kept;             // where the inertia that idle links hand down to it is kept, −1: there is none
    int neighbour, neighbours;
    int pair, pairs;
    int W;                // where its columns W_j start: velocity by velocity, or of a free link neighbour by neighbour
  };
  std::vector<Step> steps;             // in order of elimination: links that carry no constraint first, they never change with damping
  int idle = 0;                        // how many of these
  std::vector<int> holders;            // links of the others that hold forces
  std::vector<Neighbour> neighbours;
  std::vector<Pair> pairs;
  std::vector<std::pair<int, int>> blocks;  // links of every coupling: columns (eliminated first), rows
  int W_size = 0, frees = 0, kept = 0, widest = 0;

  std::size_t bytes() const {
    return steps.size() * sizeof(Step) + neighbours.size() * sizeof(Neighbour) + pairs.size() * sizeof(Pair) + blocks.size() * sizeof(blocks[0]) + holders.size() * sizeof(int);
  }
};

// A link of the tree as the plan sees it.
struct PlannedLink {
  int parent, iv, nv;
  bool free;
  bool held;   // a constraint acts on it or on its joint
  bool stiff;  // and adds to its inertia
};

// Couples the links of every group with each other; orders by the fewest neighbours among the links whose children are gone.
EliminationPlan plan_elimination(const std::vector<PlannedLink>& links, const std::vector<std::vector<int>>& groups);

// Six numbers in whole registers, the last two unused; of a pack of states, six packs.
template <class T>
struct Column {
  static constexpr int lanes = lanes_of<T> > 1 ? 1 : std::min(8, register_bytes / int(sizeof(T)));
  static constexpr int parts = lanes_of<T> > 1 ? 6 : 8 / lanes;
  using Part = typename std::conditional_t<(lanes_of<T> > 1), std::type_identity<T>, pack_of<T, lanes == 1 ? 2 : lanes>>::type;
  Part part[parts];

  const T& operator[](int k) const { return reinterpret_cast<const T*>(part)[k]; }
  T& operator[](int k) { return reinterpret_cast<T*>(part)[k]; }
};

template <class T>
inline void add(Column<T>& y, const Column<T>& x) {
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] += x.part[i];
}
// y += x s
template <class T>
inline void add(Column<T>& y, const Column<T>& x, T s) {
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] += x.part[i] * s;
}
template <class T>
inline Column<T> scaled(const Column<T>& x, T s) {
  Column<T> y;
  for (int i = 0; i < Column<T>::parts; ++i) y.part[i] = x.part[i] * s;
  return y;
}
template <class T>
inline Vec6<T> vector(const Column<T>& x) {
  return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
}

template <class T>
inline T& entry(Vec6<T>& v, int k) {
  return reinterpret_cast<T*>(&v)[k];
}
template <class T>
inline const T& entry(const Vec6<T>& v, int k) {
  return reinterpret_cast<const T*>(&v)[k];
}

// A coupling of two links, by columns.
template <class T>
struct Mat6 {
  Column<T> column[6];
};

// A v
template <class T>
inline Column<T> operator*(const Mat6<T>& A, const Vec6<T>& v) {
  Column<T> y = scaled(A.column[0], v.lin.x);
  for (int k = 1; k < 6; ++k) add(y, A.column[k], entry(v, k));
  return y;
}
// A += a bᵀ
template <class T>
inline void add_outer(Mat6<T>& A, const Column<T>& a, const Column<T>& b) {
  for (int k = 0; k < 6; ++k) add(A.column[k], a, b[k]);
}
template <class T>
inline void add_outer(Mat6<T>& A, const Column<T>& a, const Vec6<T>& b) {
  for (int k = 0; k < 6; ++k) add(A.column[k], a, entry(b, k));
}
template <class T>
inline void add(Mat6<T>& A, const Mat6<T>& B) {
  for (int k = 0; k < 6; ++k) add(A.column[k], B.column[k]);
}
template <class T>
inline void add_transposed(Mat6<T>& A, const Mat6<T>& B) {
  for (int r = 0; r < 6; ++r)
    for (int k = 0; k < 6; ++k) A.column[r][k] += B.column[k][r];
}
// P += Σ A_l B_lᵀ over six columns
template <class T>
inline void add_product(Mat6<T>& P, const Column<T>* A, const Column<T>* B) {
  for (int k = 0; k < 6; ++k) {
    Column<T> c = P.column[k];
    for (int l = 0; l < 6; ++l) add(c, A[l], B[l][k]);
    P.column[k] = c;
  }
}
// H += A + Aᵀ
template <class T>
inline void add_symmetric(Sym6<T>& H, const Mat6<T>& A) {
  const auto* c = A.column;
  H.A += Sym3<T>{c[0][0] + c[0][0], c[1][0] + c[0][1], c[2][0] + c[0][2], c[1][1] + c[1][1], c[2][1] + c[1][2], c[2][2] + c[2][2]};
  H.B.x += Vec3<T>{c[3][0] + c[0][3], c[3][1] + c[1][3], c[3][2] + c[2][3]};
  H.B.y += Vec3<T>{c[4][0] + c[0][4], c[4][1] + c[1][4], c[4][2] + c[2][4]};
  H.B.z += Vec3<T>{c[5][0] + c[0][5], c[5][1] + c[1][5], c[5][2] + c[2][5]};
  H.C += Sym3<T>{c[3][3] + c[3][3], c[4][3] + c[3][4], c[5][3] + c[3][5], c[4][4] + c[4][4], c[5][4] + c[4][5], c[5][5] + c[5][5]};
}
// H += Σ A_l B_lᵀ, which is symmetric
template <class T>
inline void add_product(Sym6<T>& H, const Column<T>* A, const Column<T>* B) {
  Mat6<T> P{};
  add_product(P, A, B);
  const auto* c = P.column;
  H.A += Sym3<T>{c[0][0], c[1][0], c[2][0], c[1][1], c[2][1], c[2][2]};
  H.B.x += Vec3<T>{c[3][0], c[3][1], c[3][2]};
  H.B.y += Vec3<T>{c[4][0], c[4][1], c[4][2]};
  H.B.z += Vec3<T>{c[5][0], c[5][1], c[5][2]};
  H.C += Sym3<T>{c[3][3], c[4][3], c[5][3], c[4][4], c[5][4], c[5][5]};
}
// H = L D Lᵀ of a free link: L below its unit diagonal by rows, D⁻¹. An explicit inverse would not do: constraints may be a thousand million times
// stiffer than the link is heavy.
template <class T>
struct Ldl6 {
  T L[15], Dinv[6];
};
constexpr int below(int i, int k) { return i * (i - 1) / 2 + k; }

template <class T>
inline Ldl6<T> factor(const Sym6<T>& H) {
  T a[6][6] = {{H.A.xx}, {H.A.xy, H.A.yy}, {H.A.xz, H.A.yz, H.A.zz}, {H.B.x.x, H.B.x.y, H.B.x.z, H.C.xx}, {H.B.y.x, H.B.y.y, H.B.y.z, H.C.xy, H.C.yy},
               {H.B.z.x, H.B.z.y, H.B.z.z, H.C.xz, H.C.yz, H.C.zz}};
  Ldl6<T> F;
#pragma GCC unroll 6
  for (int k = 0; k < 6; ++k) {
    F.Dinv[k] = real_of<T>(1) / a[k][k];
#pragma GCC unroll 6
    for (int i = k + 1; i < 6; ++i) {
      const T l = a[i][k] * F.Dinv[k];
      F.L[below(i, k)] = l;
#pragma GCC unroll 6
      for (int j = k + 1; j <= i; ++j) a[i][j] -= l * a[j][k];
    }
  }
  return F;
}
// x ← L⁻¹ x, x ← L⁻ᵀ x
template <class T, class C>
inline void solve_lower(const Ldl6<T>& F, C* x) {
#pragma GCC unroll 6
  for (int i = 1; i < 6; ++i)
#pragma GCC unroll 6
    for (int k = 0; k < i; ++k) x[i] -= F.L[below(i, k)] * x[k];
}
template <class T, class C>
inline void solve_upper(const Ldl6<T>& F, C* x) {
#pragma GCC unroll 6
  for (int k = 4; k >= 0; --k)
#pragma GCC unroll 6
    for (int i = 5; i > k; --i) x[k] -= F.L[below(i, k)] * x[i];
}
// W ← A L⁻ᵀ
template <class T>
inline void solve_columns(const Ldl6<T>& F, const Mat6<T>& A, Column<T>* W) {
  for (int i = 0; i < 6; ++i) {
    Column<T> c = A.column[i];
    for (int k = 0; k < i; ++k) add(c, W[k], T(-F.L[below(i, k)]));
    W[i] = c;
  }
}

// What an elimination leaves behind for right-hand sides.
template <class T>
struct Factor {
  std::vector<Vec6<T>> U;        // a velocity
  std::vector<T> Dinv;           // a velocity
  std::vector<Ldl6<T>> free;     // a free link
  std::vector<Column<T>> W;      // a velocity and neighbour

  void resize(std::size_t velocities, const EliminationPlan& plan) {
    U.resize(velocities);
    Dinv.resize(velocities);
    free.resize(plan.frees);
    W.resize(plan.W_size);
  }
  std::size_t bytes() const {
    return U.size() * sizeof(Vec6<T>) + Dinv.size() * sizeof(T) + free.size() * sizeof(Ldl6<T>) + W.size() * sizeof(Column<T>);
  }
};

// A step that is not plain: `H` is the link's inertia on entry, what it hands to its parent on exit.
template <class T>
[[gnu::noinline]] void eliminate_step(const Model<real_of<T>>& model, const EliminationPlan& plan, const EliminationPlan::Step& step, const Placement<T>& w,
                    const T* stiffness, Sym6<T>& H, Sym6<T>* H_at, Mat6<T>* coupling, Factor<T>& F) {
  using Real = real_of<T>;
  const auto* N = plan.neighbours.data() + step.neighbour;
  const auto* pairs = plan.pairs.data() + step.pair;

  if (step.free) {
    const Mat3<T> R = w.pose[step.link].R;
    add_free(H, R, &model.armature[step.iv]);
    if (stiffness) add_free(H, R, stiffness + step.iv);
    const Ldl6<T> LD = factor(H);
    F.free[step.factor] = LD;
    for (int j = 0; j < step.neighbours; ++j) solve_columns(LD, coupling[N[j].block], &F.W[step.W + 6 * j]);
    for (int j = 0, p = 0; j < step.neighbours; ++j) {
      // −W_j D⁻¹, with its own transpose and with those of the neighbours after it
      Column<T> scaled_W[6];
      for (int k = 0; k < 6; ++k) scaled_W[k] = scaled(F.W[step.W + 6 * j + k], T(-LD.Dinv[k]));
      add_product(H_at[N[j].link], scaled_W, &F.W[step.W + 6 * j]);
      for (; p < step.pairs && pairs[p].first == j; ++p) {
        const Column<T>* other = &F.W[step.W + 6 * pairs[p].second];
        if (pairs[p].flipped)
          add_product(coupling[pairs[p].block], other, scaled_W);
        else
          add_product(coupling[pairs[p].block], scaled_W, other);
      }
    }
    return;
  }

  for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
    const Vec6<T> S = w.S[k], U = H * S;
    T D = dot(S, U) + model.armature[k];
    if (stiffness) D += stiffness[k];
    const T d = Real(1) / D;
    F.U[k] = U;
    F.Dinv[k] = d;
    downdate(H, U, d);
    if (step.neighbours == 0) continue;
    Column<T>* W = &F.W[step.W + (k - step.iv) * step.neighbours];
    const Vec6<T> Ud = U * -d;
    for (int j = 0; j < step.neighbours; ++j) {
      Mat6<T>& A = coupling[N[j].block];
      W[j] = A * S;
      downdate(H_at[N[j].link], vector(W[j]), d);
      add_outer(A, W[j], Ud);
    }
    for (int p = 0; p < step.pairs; ++p) {
      const int a = pairs[p].flipped ? pairs[p].second : pairs[p].first, b = pairs[p].flipped ? pairs[p].first : pairs[p].second;
      add_outer(coupling[pairs[p].block], scaled(W[a], T(-d)), W[b]);
    }
  }

  // merge into the parent; what is tied to the ground is gone
  if (step.parent < 0) return;
  for (int j = 0; j < step.neighbours; ++j) {
    const Mat6<T>& A = coupling[N[j].block];
    if (N[j].link == step.parent)
      add_symmetric(H, A);
    else if (N[j].flipped)
      add_transposed(coupling[N[j].merged], A);
    else
      add(coupling[N[j].merged], A);
  }
}

// Steps first … last − 1. Every link starts with its own inertia; `H_at` holds what else there is for those whose step says so, and takes what is
// handed down; `stiffness` is what joint rows add to a pivot, null for nothing.
template <class T>
void eliminate_steps(const Model<real_of<T>>& model, const EliminationPlan& plan, int first, int last, const Placement<T>& w, const T* stiffness,
                     Sym6<T>* __restrict H_at, Mat6<T>* coupling, Factor<T>& F) {
  const auto* armature = model.armature.data();
  const Vec6<T>* S_at = w.S.data();
  Vec6<T>* __restrict U_at = F.U.data();
  T* __restrict Dinv = F.Dinv.data();
  Sym6<T> H{};  // of the step before, if it handed over
  for (int s = first; s < last; ++s) {
    const auto& step = plan.steps[s];
    add(H, w.inertia[step.link]);
    if (step.holds_inertia) H += H_at[step.link];
    if (step.plain) {
      const int k = step.iv;
      const Vec6<T> S = S_at[k], U = H * S;
      T D = dot(S, U) + armature[k];
      if (stiffness) D += stiffness[k];
      const T d = real_of<T>(1) / D;
      U_at[k] = U;
      Dinv[k] = d;
      if (step.parent < 0) {
        H = Sym6<T>{};
        continue;
      }
      downdate(H, U, d);
    } else {
      eliminate_step(model, plan, step, w, stiffness, H, H_at, coupling, F);
      if (step.parent < 0) {
        H = Sym6<T>{};
        continue;
      }
    }
    if (step.hands_over) continue;
    H_at[step.parent] += H;
    H = Sym6<T>{};
  }
}

// Steps first … last − 1 and back. Forces m on links that hold some and u on joints on entry, accelerations on exit: of joints in u, of links that show in m.
// C is T or a pack of columns of T. Without `driven` u is taken for zero.
template <bool driven, class T, class C>
void substitute(const EliminationPlan& plan, int first, int last, const Placement<T>& w, const Factor<T>& F, Vec6<C>* __restrict m, C* __restrict u) {
  const EliminationPlan::Step* steps = plan.steps.data();
  const Vec6<T>*S = w.S.data(), *U = F.U.data();
  const T* Dinv = F.Dinv.data();
  Vec6<C> g{};
  for (int s = first; s < last; ++s) {
    const auto& step = steps[s];
    if (step.holds_force) g += m[step.link];
    if (step.plain) {
      const int k = step.iv;
      C x = dot(S[k], g);
      if constexpr (driven) x += u[k];
      u[k] = x;
      g -= U[k] * (x * Dinv[k]);
    } else if (step.free) {
      const auto* N = plan.neighbours.data() + step.neighbour;
      const Ldl6<T>& LD = F.free[step.factor];
      if constexpr (driven) g += free_force(w.pose[step.link].R, u + step.iv);
      solve_lower(LD, &g.lin.x);
      Vec6<C> x;
      for (int k = 0; k < 6; ++k) entry(x, k) = entry(g, k) * LD.Dinv[k];
      for (int j = 0; j < step.neighbours; ++j) {
        const Column<T>* W = &F.W[step.W + 6 * j];
        Vec6<C> f = m[N[j].link];
        for (int k = 0; k < 6; ++k) f -= vector(W[k]) * entry(x, k);
        m[N[j].link] = f;
      }
      m[step.link] = x;
      g = Vec6<C>{};
      continue;
    } else {
      const auto* N = plan.neighbours.data() + step.neighbour;
      for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
        C y = dot(S[k], g);
        if constexpr (driven) y += u[k];
        u[k] = y;
        const C x = y * Dinv[k];
        g -= U[k] * x;
        const Column<T>* W = F.W.data() + step.W + (k - step.iv) * step.neighbours;
        for (int j = 0; j < step.neighbours; ++j) m[N[j].link] -= vector(W[j]) * x;
      }
    }
    if (step.hands_over) continue;
    if (step.parent >= 0) m[step.parent] += g;
    g = Vec6<C>{};
  }

  Vec6<C> a{};
  for (int s = last - 1; s >= first; --s) {
    const auto& step = steps[s];
    if (step.free) {
      const auto* N = plan.neighbours.data() + step.neighbour;
      const Ldl6<T>& LD = F.free[step.factor];
      a = m[step.link];
      if (step.neighbours > 0) {
        Vec6<C> y{};
        for (int j = 0; j < step.neighbours; ++j) {
          const Column<T>* W = &F.W[step.W + 6 * j];
          const Vec6<C> b = m[N[j].link];
          for (int k = 0; k < 6; ++k) entry(y, k) += dot(vector(W[k]), b);
        }
        for (int k = 0; k < 6; ++k) entry(a, k) -= entry(y, k) * LD.Dinv[k];
      }
      solve_upper(LD, &a.lin.x);
      if constexpr (driven) free_velocities(w.pose[step.link].R, a, u + step.iv);
      m[step.link] = a;
      continue;
    }
    if (!step.hands_over) {
      if (step.parent >= 0)
        a = m[step.parent];
      else
        a = Vec6<C>{};
    }
    if (step.plain) {
      const int k = step.iv;
      const C x = (u[k] - dot(U[k], a)) * Dinv[k];
      u[k] = x;
      a += S[k] * x;
    } else {
      const auto* N = plan.neighbours.data() + step.neighbour;
      for (int k = step.iv; k < step.iv + step.nv; ++k) {
        C y = u[k] - dot(U[k], a);
        const Column<T>* W = F.W.data() + step.W + (k - step.iv) * step.neighbours;
        for (int j = 0; j < step.neighbours; ++j) y -= dot(vector(W[j]), m[N[j].link]);
        u[k] = y * Dinv[k];
        a += S[k] * u[k];
      }
    }
    if (step.shows) m[step.link] = a;
  }
}

}  // namespace delassus
