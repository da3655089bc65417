// Elimination of all joints of a mechanism whose links are coupled by constraints: the loop-constrained articulated-body algorithm.
//
// Link i, all its children gone, has the neighbours N (its parent may be one). For each of its velocities, last first,
//
//   U = H_ii S,   W_j = H_ji S for j ∈ N,   D = Sᵀ U + armature + joint rows,   H_jk −= W_j D⁻¹ W_kᵀ for j, k ∈ N ∪ {i}  (W_i = U)
//
// then i merges into its parent p:  H_pp += H_ii (+ H_ip + H_pi if p ∈ N),   H_jp += H_ji for j ∈ N \ {p}.
// Right-hand sides: u = τ + Sᵀ f_i,  f_j −= W_j D⁻¹ u,  f_p += f_i;  back:  ν = D⁻¹ u − Σ_j (W_j D⁻¹)ᵀ a_j,  a_i = a_p + S ν.
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
    int merged;       // coupling of this one with the parent; −1 if there is nothing to add: no parent, this one is the parent, or it is the same memory
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
    bool pushed;          // joint rows act on it
    bool hands_over;      // the next step is its parent's: what passes between them stays in registers
    bool joined;          // its strip's next strip is made of its parents, lane for lane: so it does there
    bool holds_inertia;   // inertia waits for it in memory
    bool holds_force;     // so do forces
    bool shows;           // somebody reads its acceleration from memory
    bool lane_holds, lane_shows;  // the same two where strips are taken whole
    int strip;            // which of the strips, or of the free strips; −1: it stands alone
    int factor;           // free: which of the free links it is
    int kept;             // where the inertia that idle links hand down to it is kept, −1: there is none
    int neighbour, neighbours;
    int pair, pairs;
    int W;                // where its columns W_j start: velocity by velocity, or of a free link neighbour by neighbour
  };
  // Plain steps that know nothing of each other, side by side in a register.
  struct Strip {
    int step, count;
    bool joined, holds_inertia, holds_force, shows;  // all of its steps are; some do
    bool meets;                                      // full, and all its parents are one
    int parent[4], iv[4];                            // empty lanes repeat the first; the ground is one past the last link, where nothing ever is
    int inertia[4], force[4];                        // whose inertia and forces wait in memory, one past the last link if none
  };
  std::vector<Strip> strips;
  // Free links without neighbours, armature or joint rows, side by side.
  struct FreeStrip {
    int step, count;
    bool holds_inertia;
    int link[4], inertia[4], force[4];  // empty lanes repeat the first; whose inertia and forces wait in memory, one past the last link if none
  };
  std::vector<FreeStrip> free_strips;
  std::vector<Step> steps;             // in order of elimination: links that carry no constraint first, they never change with damping
  int idle = 0;                        // how many of these
  std::vector<int> holders, lane_holders;  // links of the others that hold forces; the same where strips are taken whole
  std::vector<Neighbour> neighbours;
  std::vector<Pair> pairs;
  std::vector<std::pair<int, int>> blocks;  // links of every coupling: columns (eliminated first), rows
  std::vector<int> slots;              // where each coupling is kept: what moves on to the parent unchanged stays where it is
  int slot_count = 0, W_size = 0, frees = 0, kept = 0, widest = 0;

  std::size_t bytes() const {
    return steps.size() * sizeof(Step) + neighbours.size() * sizeof(Neighbour) + pairs.size() * sizeof(Pair) + blocks.size() * (sizeof(blocks[0]) + sizeof(int)) +
           strips.size() * sizeof(Strip) + free_strips.size() * sizeof(FreeStrip) + (holders.size() + lane_holders.size()) * sizeof(int);
  }
};

// A link of the tree as the plan sees it.
struct PlannedLink {
  int parent, iv, nv;
  bool free;
  bool bare;   // no armature sits on the axes of its joint
  bool pushed; // joint rows act on its joint
  bool held;   // a constraint acts on it or on its joint
  bool stiff;  // and adds to its inertia
};

// Couples the links of every group with each other; orders by the fewest neighbours among the links whose children are gone. Strips have up to
// `lanes` steps.
EliminationPlan plan_elimination(const std::vector<PlannedLink>& links, const std::vector<std::vector<int>>& groups, int lanes);

// Links, or points, side by side in one state; of a pack of states one.
template <class T>
inline constexpr int strip_lanes = lanes_of<T> == 1 ? 4 : 1;
template <class T>
using StripPack = typename std::conditional_t<strip_lanes<T> == 1, std::type_identity<T>, pack_of<T, strip_lanes<T> == 1 ? 2 : strip_lanes<T>>>::type;

// Numbers of four links side by side, and the way back: n components, `stride` apart, from p₀ … p₃.
template <class P, class T>
inline void gather(P* packs, std::size_t n, const T* p0, const T* p1, const T* p2, const T* p3, std::size_t stride = 1) {
  for (std::size_t k = 0; k < n; ++k) packs[k] = P{p0[k * stride], p1[k * stride], p2[k * stride], p3[k * stride]};
}
template <class P>
inline void transpose4(const P* in, P* out) {
  const P a = __builtin_shufflevector(in[0], in[1], 0, 4, 2, 6), b = __builtin_shufflevector(in[0], in[1], 1, 5, 3, 7);
  const P c = __builtin_shufflevector(in[2], in[3], 0, 4, 2, 6), d = __builtin_shufflevector(in[2], in[3], 1, 5, 3, 7);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  out[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
template <template <class> class V, class P, class T = real_of<P>>
inline V<P> gathered(const V<T>* from, const int* at) {
  V<P> packs;
  auto p = [&](int l) { return reinterpret_cast<const T*>(from + at[l]); };
  gather(reinterpret_cast<P*>(&packs), sizeof(V<T>) / sizeof(T), p(0), p(1), p(2), p(3));
  return packs;
}
// One lane of an aggregate of packs.
template <template <class> class V, class P>
inline V<real_of<P>> get_lane(const V<P>& packs, int l) {
  V<real_of<P>> value;
  for (std::size_t k = 0; k < sizeof(V<P>) / sizeof(P); ++k)
    reinterpret_cast<real_of<P>*>(&value)[k] = reinterpret_cast<const real_of<P>*>(&packs)[k * lanes_of<P> + l];
  return value;
}
template <template <class> class V, class P, class T>
inline void set_lane(V<P>& packs, int l, const V<T>& value) {
  for (std::size_t k = 0; k < sizeof(V<T>) / sizeof(T); ++k) reinterpret_cast<T*>(&packs)[k * lanes_of<P> + l] = reinterpret_cast<const T*>(&value)[k];
}

// Sums over the lanes of n packs, n a multiple of four.
template <class T, std::size_t n>
inline void sum_lanes(const StripPack<T> (&packs)[n], T (&sums)[n]) {
  static_assert(n % 4 == 0);
  if constexpr (strip_lanes<T> == 1) {
    for (std::size_t k = 0; k < n; ++k) sums[k] = packs[k];
  } else {
    using P = StripPack<T>;
    const auto paired = [](const P& a, const P& b) { return __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7); };
    for (std::size_t k = 0; k < n; k += 4) {
      const P a = paired(packs[k], packs[k + 1]), b = paired(packs[k + 2], packs[k + 3]);
      const P all = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
      __builtin_memcpy(sums + k, &all, sizeof(all));
    }
  }
}

// What strips have of a configuration: a strip each.
template <class T>
struct StripPlacement {
  using P = StripPack<T>;
  std::vector<Vec6<P>> S;
  std::vector<Inertia<P>> inertia;
  std::vector<P> armature;  // one in empty lanes
  std::vector<P> full;      // one in lanes that are not empty

  void resize(const Model<real_of<T>>& model, const EliminationPlan& plan) {
    const std::size_t n = plan.strips.size();
    S.resize(n);
    inertia.resize(n);
    armature.assign(n, constant<P>(1));
    full.assign(n, P{});
    for (std::size_t i = 0; i < n; ++i)
      for (int l = 0; l < plan.strips[i].count; ++l) {
        lane(armature[i], l) = model.armature[plan.strips[i].iv[l]];
        lane(full[i], l) = 1;
      }
  }
  void take_motions(const EliminationPlan& plan, const Placement<T>& w) {
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < S.size(); ++i) S[i] = gathered<Vec6, P>(w.S.data(), plan.strips[i].iv) * full[i];
  }
  void take_inertias(const EliminationPlan& plan, const Placement<T>& w) {
    if constexpr (strip_lanes<T> > 1)
      for (std::size_t i = 0; i < inertia.size(); ++i) {
        const auto& strip = plan.strips[i];
        auto p = [&](int l) { return w.inertia.lane(plan.steps[strip.step + (l < strip.count ? l : 0)].link); };
        gather(reinterpret_cast<P*>(&inertia[i]), sizeof(Inertia<T>) / sizeof(T), p(0), p(1), p(2), p(3), w.inertia.width);
      }
  }
  std::size_t bytes() const { return S.size() * (sizeof(Vec6<P>) + sizeof(Inertia<P>) + 2 * sizeof(P)); }
};

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
  std::vector<Vec6<T>> V;        // a velocity: U D⁻¹
  std::vector<T> Dinv;           // a velocity, of a free link along the world's axes
  std::vector<Ldl6<T>> free;     // a free link
  std::vector<Column<T>> W;      // a velocity and neighbour: W D⁻¹; of a free link without D⁻¹
  std::vector<Vec6<StripPack<T>>> strip_V;  // a strip
  std::vector<StripPack<T>> strip_Dinv;
  std::vector<Ldl6<StripPack<T>>> strip_free;  // a free strip

  void resize(std::size_t velocities, const EliminationPlan& plan) {
    strip_V.resize(plan.strips.size());
    strip_Dinv.resize(plan.strips.size());
    strip_free.resize(plan.free_strips.size());
    V.resize(velocities);
    Dinv.resize(velocities);
    free.resize(plan.frees);
    W.resize(plan.W_size);
  }
  std::size_t bytes() const {
    return V.size() * sizeof(Vec6<T>) + Dinv.size() * sizeof(T) + free.size() * sizeof(Ldl6<T>) + W.size() * sizeof(Column<T>) +
           strip_V.size() * (sizeof(Vec6<StripPack<T>>) + sizeof(StripPack<T>)) + strip_free.size() * sizeof(Ldl6<StripPack<T>>);
  }
};

// A free link with inertia H.
template <class T>
[[gnu::noinline]] void eliminate_free(const Model<real_of<T>>& model, const EliminationPlan& plan, const EliminationPlan::Step& step, const Placement<T>& w,
                                      const T* stiffness, Sym6<T> H, Sym6<T>* H_at, Mat6<T>* coupling, Factor<T>& F) {
  const auto* N = plan.neighbours.data() + step.neighbour;
  const auto* pairs = plan.pairs.data() + step.pair;
  const Mat3<T> R = w.pose[step.link].R;
  add_free(H, R, &model.armature[step.iv]);
  if (stiffness) add_free(H, R, stiffness + step.iv);
  const Ldl6<T> LD = factor(H);
  F.free[step.factor] = LD;
  for (int k = 0; k < 6; ++k) F.Dinv[step.iv + k] = LD.Dinv[k];
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
}

// What eliminating a velocity does to the neighbours: W, and H_jk −= W_j D⁻¹ W_kᵀ with them.
template <class T>
inline void eliminate_couplings(const EliminationPlan& plan, const EliminationPlan::Step& step, const Vec6<T>& S, const Vec6<T>& U, T d,
                                           Sym6<T>* H_at, Mat6<T>* coupling, Column<T>* W) {
  const auto* N = plan.neighbours.data() + step.neighbour;
  const auto* pairs = plan.pairs.data() + step.pair;
  const Vec6<T> Ud = U * -d;
  for (int j = 0; j < step.neighbours; ++j) {
    Mat6<T>& A = coupling[N[j].block];
    W[j] = A * S;
    add_outer(A, W[j], Ud);
    downdate(H_at[N[j].link], vector(W[j]), d);
  }
  for (int p = 0; p < step.pairs; ++p) {
    const int a = pairs[p].flipped ? pairs[p].second : pairs[p].first, b = pairs[p].flipped ? pairs[p].first : pairs[p].second;
    add_outer(coupling[pairs[p].block], scaled(W[a], T(-d)), W[b]);
  }
  for (int j = 0; j < step.neighbours; ++j) W[j] = scaled(W[j], d);
}

// Hands the couplings of a link to its parent.
template <class T>
inline void merge_couplings(const EliminationPlan& plan, const EliminationPlan::Step& step, Sym6<T>& H, Mat6<T>* coupling) {
  const auto* N = plan.neighbours.data() + step.neighbour;
  for (int j = 0; j < step.neighbours; ++j) {
    const Mat6<T>& A = coupling[N[j].block];
    if (N[j].link == step.parent)
      add_symmetric(H, A);
    else if (N[j].merged < 0)
      continue;
    else if (N[j].flipped)
      add_transposed(coupling[N[j].merged], A);
    else
      add(coupling[N[j].merged], A);
  }
}

// A step that is not plain: `H` is the link's inertia on entry, what it hands to its parent on exit.
template <class T>
[[gnu::noinline]] void eliminate_step(const Model<real_of<T>>& model, const EliminationPlan& plan, const EliminationPlan::Step& step, const Placement<T>& w,
                                      const T* stiffness, Sym6<T>& inertia, Sym6<T>* H_at, Mat6<T>* coupling, Factor<T>& F) {
  Sym6<T> H = inertia;
  if (step.free) {
    eliminate_free(model, plan, step, w, stiffness, H, H_at, coupling, F);
    return;
  }
  for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
    const Vec6<T> S = w.S[k], U = H * S;
    T D = dot(S, U) + model.armature[k];
    if (stiffness) D += stiffness[k];
    const T d = real_of<T>(1) / D;
    F.V[k] = U * d;
    F.Dinv[k] = d;
    downdate(H, U, d);
    if (step.neighbours > 0) eliminate_couplings(plan, step, S, U, d, H_at, coupling, F.W.data() + step.W + (k - step.iv) * step.neighbours);
  }
  if (step.neighbours > 0 && step.parent >= 0) merge_couplings(plan, step, H, coupling);
  inertia = H;
}

// A run of strips, each joined to the next: returns the last one.
template <class T>
[[gnu::noinline]] int eliminate_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips, const T* stiffness,
                                       Sym6<T>* __restrict H_at, Factor<T>& F) {
  using P = StripPack<T>;
  Sym6<P> H{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    add(H, strips.inertia[index]);
    if (strip.holds_inertia) H += gathered<Sym6, P>(H_at, strip.inertia);
    const Vec6<P> S = strips.S[index], U = H * S;
    P D = dot(S, U) + strips.armature[index];
    if (stiffness) D += P{stiffness[strip.iv[0]], stiffness[strip.iv[1]], stiffness[strip.iv[2]], stiffness[strip.iv[3]]};
    const P d = real_of<T>(1) / D;
    F.strip_V[index] = U * d;
    F.strip_Dinv[index] = d;
    for (int l = 0; l < strip.count; ++l) {
      F.V[strip.iv[l]] = get_lane(F.strip_V[index], l);
      F.Dinv[strip.iv[l]] = d[l];
    }
    downdate(H, U, d);
    if (!strip.joined) break;
  }
  const auto& strip = plan.strips[index];
  if (strip.meets) {
    P packs[24]{};
    T sums[24];
    __builtin_memcpy(packs, &H, sizeof(H));
    sum_lanes<T>(packs, sums);
    Sym6<T> all;
    __builtin_memcpy(&all, sums, sizeof(all));
    H_at[strip.parent[0]] += all;
  } else {
    const auto* steps = plan.steps.data() + strip.step;
    for (int l = 0; l < strip.count; ++l)
      if (steps[l].parent >= 0) H_at[steps[l].parent] += get_lane(H, l);
  }
  return index;
}

template <class T>
[[gnu::noinline]] void eliminate_free_strip(const EliminationPlan& plan, int index, const Placement<T>& w, const Sym6<T>* H_at, Factor<T>& F) {
  using P = StripPack<T>;
  const auto& strip = plan.free_strips[index];
  Inertia<P> own;
  auto p = [&](int l) { return w.inertia.lane(strip.link[l]); };
  gather(reinterpret_cast<P*>(&own), sizeof(Inertia<T>) / sizeof(T), p(0), p(1), p(2), p(3), w.inertia.width);
  Sym6<P> H = articulated(own);
  if (strip.holds_inertia) H += gathered<Sym6, P>(H_at, strip.inertia);
  F.strip_free[index] = factor(H);
  for (int l = 0; l < strip.count; ++l) {
    const auto& step = plan.steps[strip.step + l];
    F.free[step.factor] = get_lane(F.strip_free[index], l);
    for (int k = 0; k < 6; ++k) F.Dinv[step.iv + k] = F.free[step.factor].Dinv[k];
  }
}

// Steps first … last − 1. Every link starts with its own inertia; `H_at` holds what else there is for those whose step says so, and takes what is
// handed down; `stiffness` is what joint rows add to a pivot, null for nothing.
template <class T>
void eliminate_steps(const Model<real_of<T>>& model, const EliminationPlan& plan, int first, int last, const Placement<T>& w,
                     const StripPlacement<T>& strips, const T* stiffness, Sym6<T>* __restrict H_at, Mat6<T>* coupling, Factor<T>& F) {
  const auto* armature = model.armature.data();
  const Vec6<T>* S_at = w.S.data();
  Vec6<T>* __restrict V = F.V.data();
  T* __restrict Dinv = F.Dinv.data();
  Sym6<T> H{};  // of the step before, if it handed over
  for (int s = first; s < last; ++s) {
    const auto& step = plan.steps[s];
    if constexpr (strip_lanes<T> > 1)
      if (step.strip >= 0 && step.free) {
        eliminate_free_strip(plan, step.strip, w, H_at, F);
        s += plan.free_strips[step.strip].count - 1;
        continue;
      } else if (step.strip >= 0) {
        const auto& end = plan.strips[eliminate_strips(plan, step.strip, strips, stiffness, H_at, F)];
        s = end.step + end.count - 1;
        continue;
      }
    add(H, w.inertia[step.link]);
    if (step.holds_inertia) H += H_at[step.link];
    if (step.plain) {
      const int k = step.iv;
      const Vec6<T> S = S_at[k], U = H * S;
      T D = dot(S, U) + armature[k];
      if (stiffness) D += stiffness[k];
      const T d = real_of<T>(1) / D;
      V[k] = U * d;
      Dinv[k] = d;
      downdate(H, U, d);
    } else {
      Sym6<T> inertia = H;  // a copy, so that H itself may live in registers
      eliminate_step(model, plan, step, w, stiffness, inertia, H_at, coupling, F);
      H = inertia;
    }
    if (step.parent < 0) {
      H = Sym6<T>{};
      continue;
    }
    if (step.hands_over) continue;
    H_at[step.parent] += H;
    H = Sym6<T>{};
  }
}

// A run of strips with forces m and u, each joined to the next: returns the last one.
template <bool driven, class T>
[[gnu::noinline]] int resolve_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips, const Factor<T>& F, Vec6<T>* __restrict m,
                                     const T* u, StripPack<T>* __restrict x_at) {
  using P = StripPack<T>;
  Vec6<P> g{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    if (strip.holds_force) g += gathered<Vec6, P>(m, strip.force);
    P x = dot(strips.S[index], g);
    if constexpr (driven) x += P{u[strip.iv[0]], u[strip.iv[1]], u[strip.iv[2]], u[strip.iv[3]]};
    x_at[index] = x;
    g -= F.strip_V[index] * x;
    if (!strip.joined) break;
  }
  const auto& strip = plan.strips[index];
  if (strip.meets) {
    P packs[8]{};
    T sums[8];
    __builtin_memcpy(packs, &g, sizeof(g));
    sum_lanes<T>(packs, sums);
    m[strip.parent[0]] += Vec6<T>{{sums[0], sums[1], sums[2]}, {sums[3], sums[4], sums[5]}};
  } else {
    for (int l = 0; l < strip.count; ++l)
      if (const int p = plan.steps[strip.step + l].parent; p >= 0) m[p] += get_lane(g, l);
  }
  return index;
}

// The same run on the way back, from its last strip, with the accelerations m of its parents: returns the first one.
template <bool driven, class T>
[[gnu::noinline]] int move_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips, const Factor<T>& F, Vec6<T>* __restrict m, T* u,
                                  const StripPack<T>* x_at) {
  using P = StripPack<T>;
  Vec6<P> a;
  if (plan.strips[index].meets) {
    const Vec6<T>& one = m[plan.strips[index].parent[0]];
    for (int k = 0; k < 6; ++k) entry(a, k) = constant<P>(entry(one, k));
  } else {
    a = gathered<Vec6, P>(m, plan.strips[index].parent);
  }
  for (;; --index) {
    const auto& strip = plan.strips[index];
    const P x = x_at[index] * F.strip_Dinv[index] - dot(F.strip_V[index], a);
    a += strips.S[index] * x;
    if constexpr (driven)
      for (int l = 0; l < strip.count; ++l) u[strip.iv[l]] = x[l];
    if (strip.shows)
      for (int l = 0; l < strip.count; ++l)
        if (const auto& step = plan.steps[strip.step + l]; step.lane_shows) m[step.link] = get_lane(a, l);
    if (index == 0 || !plan.strips[index - 1].joined) return index;
  }
}

// Forces on free links without neighbours become their accelerations at once.
template <class T, class P>
inline void resolve_free_strip(const EliminationPlan::FreeStrip& strip, const Ldl6<P>& LD, Vec6<T>* m) {
  Vec6<P> a = gathered<Vec6, P>(m, strip.force);
  solve_lower(LD, &a.lin.x);
  for (int k = 0; k < 6; ++k) entry(a, k) *= LD.Dinv[k];
  solve_upper(LD, &a.lin.x);
  for (int l = 0; l < strip.count; ++l) m[strip.link[l]] = get_lane(a, l);
}

// Steps first … last − 1 and back. Forces m on links that hold some and u on joints on entry, accelerations on exit: of joints in u, of links that show in m.
// C is T or a pack of columns of T. Without `driven` u is taken for zero. With `in_strips` only joints that are pushed have u,
// and one column takes strips whole and keeps their numbers in `x_at`.
template <bool driven, bool in_strips, class T, class C>
void substitute(const EliminationPlan& plan, int first, int last, const Placement<T>& w, const StripPlacement<T>& strips, const Factor<T>& F,
                Vec6<C>* __restrict m, C* __restrict u, StripPack<T>* __restrict x_at) {
  constexpr bool whole = in_strips && strip_lanes<T> > 1 && std::is_same_v<T, C>;
  const EliminationPlan::Step* steps = plan.steps.data();
  const EliminationPlan::Neighbour* neighbours = plan.neighbours.data();
  const Column<T>* W_at = F.W.data();
  const Vec6<T>*S = w.S.data(), *V = F.V.data();
  const T* Dinv = F.Dinv.data();
  Vec6<C> g{};
  for (int s = first; s < last; ++s) {
    const auto& step = steps[s];
    if constexpr (whole)
      if (step.strip >= 0 && step.free) {
        resolve_free_strip(plan.free_strips[step.strip], F.strip_free[step.strip], m);
        s += plan.free_strips[step.strip].count - 1;
        continue;
      } else if (step.strip >= 0) {
        const auto& end = plan.strips[resolve_strips<driven>(plan, step.strip, strips, F, m, u, x_at)];
        s = end.step + end.count - 1;
        continue;
      }
    if (step.holds_force) g += m[step.link];
    if (step.nv == 1) {
      const int k = step.iv;
      C y = dot(S[k], g);
      if constexpr (driven) y += u[k];
      u[k] = y;
      g -= V[k] * y;
      for (int j = 0; j < step.neighbours; ++j) m[neighbours[step.neighbour + j].link] -= vector(W_at[step.W + j]) * y;
    } else if (step.free) {
      const auto* N = plan.neighbours.data() + step.neighbour;
      const Ldl6<T>& LD = F.free[step.factor];
      if (driven && (!in_strips || step.pushed)) g += free_force(w.pose[step.link].R, u + step.iv);
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
        g -= V[k] * y;
        const Column<T>* W = W_at + step.W + (k - step.iv) * step.neighbours;
        for (int j = 0; j < step.neighbours; ++j) m[N[j].link] -= vector(W[j]) * y;
      }
    }
    if (step.hands_over) continue;
    if (step.parent >= 0) m[step.parent] += g;
    g = Vec6<C>{};
  }

  Vec6<C> a{};
  for (int s = last - 1; s >= first; --s) {
    const auto& step = steps[s];
    if constexpr (whole)
      if (step.strip >= 0 && step.free) {
        s = plan.free_strips[step.strip].step;
        continue;
      } else if (step.strip >= 0) {
        s = plan.strips[move_strips<driven>(plan, step.strip, strips, F, m, u, x_at)].step;
        continue;
      }
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
      if (driven && (!in_strips || step.pushed)) free_velocities(w.pose[step.link].R, a, u + step.iv);
      m[step.link] = a;
      continue;
    }
    if (!step.hands_over) {
      if (step.parent >= 0)
        a = m[step.parent];
      else
        a = Vec6<C>{};
    }
    if (step.nv == 1) {
      const int k = step.iv;
      C x = u[k] * Dinv[k];
      for (int j = 0; j < step.neighbours; ++j) x -= dot(vector(W_at[step.W + j]), m[neighbours[step.neighbour + j].link]);
      x -= dot(V[k], a);
      u[k] = x;
      a += S[k] * x;
    } else {
      const auto* N = plan.neighbours.data() + step.neighbour;
      for (int k = step.iv; k < step.iv + step.nv; ++k) {
        C x = u[k] * Dinv[k];
        const Column<T>* W = W_at + step.W + (k - step.iv) * step.neighbours;
        for (int j = 0; j < step.neighbours; ++j) x -= dot(vector(W[j]), m[N[j].link]);
        x -= dot(V[k], a);
        u[k] = x;
        a += S[k] * x;
      }
    }
    if (step.shows) m[step.link] = a;
  }
}

}  // namespace delassus
