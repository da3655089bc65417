// Elimination of all joints of a mechanism whose links are coupled by constraints: the loop-constrained
// articulated-body algorithm.
//
// Link i, all its children gone, has the neighbours N (its parent may be one). For each of its velocities, last first,
//
//   U = H_ii S,   W_j = H_ji S for j ∈ N,   D = Sᵀ U + armature + joint rows,
//       H_jk −= W_j D⁻¹ W_kᵀ for j, k ∈ N ∪ {i}  (W_i = U)
//
// then i merges into its parent p:  H_pp += H_ii (+ H_ip + H_pi if p ∈ N),   H_jp += H_ji for j ∈ N \ {p}.
// Right-hand sides: u = τ + Sᵀ f_i,  f_j −= W_j D⁻¹ u,  f_p += f_i;  back:  ν = D⁻¹ u − Σ_j (W_j D⁻¹)ᵀ a_j,  a_i = a_p
// + S ν. A free link goes at once, S being the world's axes: H_ii = L D Lᵀ, W_j = H_ji L⁻ᵀ; u = L⁻¹ f_i; back: a_i =
// L⁻ᵀ D⁻¹ (u − Σ_j W_jᵀ a_j).
//
// No couplings: articulated bodies. Ground contacts only: constrainedABA. Algorithm 4 of "Matrix-Free Delassus
// Operations", derived anew from Gauss' principle. The ground has a = 0 and is nobody's neighbour.
#pragma once

#include <type_traits>
#include <vector>

#include "dynamics/aba.h"
#include "operators/blocks.h"
#include "operators/plan.h"
#include "operators/strips.h"

namespace delassus {

// What an elimination leaves behind for right-hand sides.
template <class T>
struct Factor {
  std::vector<Vec6<T>> V;                   // a velocity: U D⁻¹
  std::vector<T> Dinv;                      // a velocity, of a free link along the world's axes
  std::vector<Ldl6<T>> free;                // a free link
  std::vector<Column<T>> W;                 // a velocity and neighbour: W D⁻¹; of a free link without D⁻¹
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
    return V.size() * sizeof(Vec6<T>) + Dinv.size() * sizeof(T) + free.size() * sizeof(Ldl6<T>) +
           W.size() * sizeof(Column<T>) + strip_V.size() * (sizeof(Vec6<StripPack<T>>) + sizeof(StripPack<T>)) +
           strip_free.size() * sizeof(Ldl6<StripPack<T>>);
  }
};

// A free link with inertia H.
template <class T>
[[gnu::noinline]] void eliminate_free(const Model<real_of<T>>& model, const EliminationPlan& plan, int s,
                                      const Placement<T>& w, const T* stiffness, Sym6<T> H, Sym6<T>* H_at,
                                      Mat6<T>* coupling, Factor<T>& F) {
  const auto& step = plan.steps[s];
  const auto& at = plan.places[s];
  const auto* N = plan.neighbours.data() + at.neighbour;
  const auto* pairs = plan.pairs.data() + at.pair;
  const Mat3<T> R = w.pose[step.link].R;
  add_free(H, R, &model.armature[step.iv]);
  if (stiffness) add_free(H, R, stiffness + step.iv);
  const Ldl6<T> LD = factor(H);
  F.free[at.factor] = LD;
  for (int k = 0; k < 6; ++k) F.Dinv[step.iv + k] = LD.Dinv[k];
  for (int j = 0; j < at.neighbours; ++j) solve_columns(LD, coupling[N[j].block], &F.W[at.W + 6 * j]);
  for (int j = 0, p = 0; j < at.neighbours; ++j) {
    // −W_j D⁻¹, with its own transpose and with those of the neighbours after it
    Column<T> scaled_W[6];
    for (int k = 0; k < 6; ++k) scaled_W[k] = scaled(F.W[at.W + 6 * j + k], T(-LD.Dinv[k]));
    add_product(H_at[N[j].link], scaled_W, &F.W[at.W + 6 * j]);
    for (; p < at.pairs && pairs[p].first == j; ++p) {
      const Column<T>* other = &F.W[at.W + 6 * pairs[p].second];
      if (pairs[p].flipped)
        add_product(coupling[pairs[p].block], other, scaled_W);
      else
        add_product(coupling[pairs[p].block], scaled_W, other);
    }
  }
}

// What eliminating a velocity does to the neighbours: W, and H_jk −= W_j D⁻¹ W_kᵀ with them.
template <class T>
inline void eliminate_couplings(const EliminationPlan& plan, const EliminationPlan::Place& at, const Vec6<T>& S,
                                const Vec6<T>& U, T d, Sym6<T>* H_at, Mat6<T>* coupling, Column<T>* W) {
  const auto* N = plan.neighbours.data() + at.neighbour;
  const auto* pairs = plan.pairs.data() + at.pair;
  const Vec6<T> Ud = U * -d;
  for (int j = 0; j < at.neighbours; ++j) {
    Mat6<T>& A = coupling[N[j].block];
    W[j] = A * S;
    add_outer(A, W[j], Ud);
    downdate(H_at[N[j].link], vector(W[j]), d);
  }
  for (int p = 0; p < at.pairs; ++p) {
    const int a = pairs[p].flipped ? pairs[p].second : pairs[p].first,
              b = pairs[p].flipped ? pairs[p].first : pairs[p].second;
    add_outer(coupling[pairs[p].block], scaled(W[a], T(-d)), W[b]);
  }
  for (int j = 0; j < at.neighbours; ++j) W[j] = scaled(W[j], d);
}

// Hands the couplings of a link to its parent.
template <class T>
inline void merge_couplings(const EliminationPlan& plan, const EliminationPlan::Place& at, int parent, Sym6<T>& H,
                            Mat6<T>* coupling) {
  const auto* N = plan.neighbours.data() + at.neighbour;
  for (int j = 0; j < at.neighbours; ++j) {
    const Mat6<T>& A = coupling[N[j].block];
    if (N[j].link == parent)
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
[[gnu::noinline]] void eliminate_step(const Model<real_of<T>>& model, const EliminationPlan& plan, int s,
                                      const Placement<T>& w, const T* stiffness, Sym6<T>& inertia, Sym6<T>* H_at,
                                      Mat6<T>* coupling, Factor<T>& F) {
  const auto& step = plan.steps[s];
  const auto& at = plan.places[s];
  Sym6<T> H = inertia;
  if (step.free) {
    eliminate_free(model, plan, s, w, stiffness, H, H_at, coupling, F);
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
    if (step.coupled)
      eliminate_couplings(plan, at, S, U, d, H_at, coupling, F.W.data() + at.W + (k - step.iv) * at.neighbours);
  }
  if (step.coupled && step.parent >= 0) merge_couplings(plan, at, step.parent, H, coupling);
  inertia = H;
}

// A run of strips, each joined to the next: returns the last one.
template <class T>
[[gnu::noinline]] int eliminate_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips,
                                       const T* stiffness, Sym6<T>* __restrict H_at, Factor<T>& F) {
  using P = StripPack<T>;
  Sym6<P> H{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    add(H, strips.inertia[index]);
    if (strip.holds_inertia) H += gathered<Sym6, P>(H_at, strip.inertia);
    const Vec6<P> S = strips.S[index], U = H * S;
    P D = dot(S, U) + strips.armature[index];
    if (stiffness)
      D += P{stiffness[strip.iv[0]], stiffness[strip.iv[1]], stiffness[strip.iv[2]], stiffness[strip.iv[3]]};
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
  const Sym6<P> last = H;  // a copy, so that H itself may live in registers
  if (strip.meets) {
    P packs[24]{};
    T sums[24];
    __builtin_memcpy(packs, &last, sizeof(last));
    sum_lanes<T>(packs, sums);
    Sym6<T> all;
    __builtin_memcpy(&all, sums, sizeof(all));
    H_at[strip.parent[0]] += all;
  } else {
    const auto* steps = plan.steps.data() + strip.step;
    for (int l = 0; l < strip.count; ++l)
      if (steps[l].parent >= 0) H_at[steps[l].parent] += get_lane(last, l);
  }
  return index;
}

template <class T>
[[gnu::noinline]] void eliminate_free_strip(const EliminationPlan& plan, int index, const Placement<T>& w,
                                            const Sym6<T>* H_at, Factor<T>& F) {
  using P = StripPack<T>;
  const auto& strip = plan.free_strips[index];
  Inertia<P> own;
  auto p = [&](int l) { return w.inertia.lane(strip.link[l]); };
  gather(reinterpret_cast<P*>(&own), sizeof(Inertia<T>) / sizeof(T), p(0), p(1), p(2), p(3), w.inertia.width);
  Sym6<P> H = articulated(own);
  if (strip.holds_inertia) H += gathered<Sym6, P>(H_at, strip.inertia);
  F.strip_free[index] = factor(H);
  for (int l = 0; l < strip.count; ++l) {
    const int factor = plan.places[strip.step + l].factor, iv = plan.steps[strip.step + l].iv;
    F.free[factor] = get_lane(F.strip_free[index], l);
    for (int k = 0; k < 6; ++k) F.Dinv[iv + k] = F.free[factor].Dinv[k];
  }
}

// Steps first … last − 1. Every link starts with its own inertia; `H_at` holds what else there is for those whose step
// says so, and takes what is handed down; `stiffness` is what joint rows add to a pivot, null for nothing.
template <class T>
void eliminate_steps(const Model<real_of<T>>& model, const EliminationPlan& plan, int first, int last,
                     const Placement<T>& w, const StripPlacement<T>& strips, const T* stiffness,
                     Sym6<T>* __restrict H_at, Mat6<T>* coupling, Factor<T>& F) {
  const auto* armature = model.armature.data();
  const Vec6<T>* S_at = w.S.data();
  Vec6<T>* __restrict V = F.V.data();
  T* __restrict Dinv = F.Dinv.data();
  Sym6<T> H{};  // of the step before, if it handed over
  for (int s = first; s < last; ++s) {
    const auto& step = plan.steps[s];
    if constexpr (strip_lanes<T> > 1) {
      if (step.strip >= 0 && step.free) {
        eliminate_free_strip(plan, step.strip, w, H_at, F);
        s += plan.free_strips[step.strip].count - 1;
        continue;
      } else if (step.strip >= 0) {
        const auto& end = plan.strips[eliminate_strips(plan, step.strip, strips, stiffness, H_at, F)];
        s = end.step + end.count - 1;
        continue;
      }
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
      eliminate_step(model, plan, s, w, stiffness, inertia, H_at, coupling, F);
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

// What a right-hand side is: forces on links that hold some, joints being pushed only where the plan says so; the same
// and on all joints; on all links and joints.
enum class Load { rows, joints, all };

// A run of strips with forces m, f and u, each joined to the next: returns the last one.
template <bool driven, Load load, class T>
[[gnu::noinline]] int resolve_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips,
                                     const Factor<T>& F, Vec6<T>* __restrict m, T* u, StripPack<T>* __restrict x_at,
                                     const Loads<T>* loads) {
  using P = StripPack<T>;
  Vec6<P> g{};
  for (;; ++index) {
    const auto& strip = plan.strips[index];
    if (strip.holds_force) g += gathered<Vec6, P>(m, strip.force);
    if constexpr (load == Load::all) g -= loads->strips.f[index];
    P x = dot(strips.S[index], g);
    if constexpr (driven) x += P{u[strip.iv[0]], u[strip.iv[1]], u[strip.iv[2]], u[strip.iv[3]]};
    if constexpr (load == Load::all)
      for (int l = 0; l < strip.count; ++l) u[strip.iv[l]] = x[l];
    else
      x_at[index] = x;
    g -= F.strip_V[index] * x;
    if (!strip.joined) break;
  }
  const auto& strip = plan.strips[index];
  const Vec6<P> last = g;
  if (strip.meets) {
    P packs[8]{};
    T sums[8];
    __builtin_memcpy(packs, &last, sizeof(last));
    sum_lanes<T>(packs, sums);
    m[strip.parent[0]] += Vec6<T>{{sums[0], sums[1], sums[2]}, {sums[3], sums[4], sums[5]}};
  } else {
    for (int l = 0; l < strip.count; ++l)
      if (const int p = plan.steps[strip.step + l].parent; p >= 0) m[p] += get_lane(last, l);
  }
  return index;
}

// The same run on the way back, from its last strip, with the accelerations m of its parents: returns the first one.
template <bool driven, Load load, class T>
[[gnu::noinline]] int move_strips(const EliminationPlan& plan, int index, const StripPlacement<T>& strips,
                                  const Factor<T>& F, Vec6<T>* __restrict m, T* u, const StripPack<T>* x_at,
                                  const Loads<T>* loads) {
  using P = StripPack<T>;
  Vec6<P> a;
  if (plan.strips[index].meets) {
    const Vec6<T>& one = m[plan.strips[index].parent[0]];
    a = {{constant<P>(one.lin.x), constant<P>(one.lin.y), constant<P>(one.lin.z)},
         {constant<P>(one.ang.x), constant<P>(one.ang.y), constant<P>(one.ang.z)}};
  } else {
    a = gathered<Vec6, P>(m, plan.strips[index].parent);
  }
  for (;; --index) {
    const auto& strip = plan.strips[index];
    P x;
    if constexpr (load == Load::all)
      x = P{u[strip.iv[0]], u[strip.iv[1]], u[strip.iv[2]], u[strip.iv[3]]};
    else
      x = x_at[index];
    x = x * F.strip_Dinv[index] - dot(F.strip_V[index], a);
    a += strips.S[index] * x;
    if constexpr (load == Load::all) loads->strips.a[index] = a;
    if constexpr (driven)
      for (int l = 0; l < strip.count; ++l) u[strip.iv[l]] = x[l];
    if (strip.shows) {
      const Vec6<P> now = a;
      for (int l = 0; l < strip.count; ++l)
        if (const auto& step = plan.steps[strip.step + l]; step.lane_shows) m[step.link] = get_lane(now, l);
    }
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

// One column takes strips whole, if forces on links are not to be left out; of rows their numbers are kept in `x_at`,
// else in u.
template <Load load, class T, class C>
inline constexpr bool takes_strips = load != Load::joints && strip_lanes<T> > 1 && std::is_same_v<T, C>;
// But not those of free joints where they are pushed.
template <Load load>
inline bool goes_whole(const EliminationPlan::Step& step) {
  return step.strip >= 0 && (load == Load::rows || !step.free);
}

// Steps first … last − 1: forces m on links that hold some and u on joints on entry; what waits for `spread` on exit. C
// is T or a pack of columns of T. Without `driven` u is taken for zero. With forces on all links there are also −f of
// `loads`, which is not read otherwise.
template <bool driven, Load load, class T, class C>
void collect(const EliminationPlan& plan, int first, int last, const Placement<T>& w, const StripPlacement<T>& strips,
             const Factor<T>& F, Vec6<C>* __restrict m, C* __restrict u, StripPack<T>* __restrict x_at,
             const Loads<T>* loads = nullptr) {
  constexpr bool whole = takes_strips<load, T, C>;
  const EliminationPlan::Step* steps = plan.steps.data();
  const EliminationPlan::Place* places = plan.places.data();
  const EliminationPlan::Neighbour* neighbours = plan.neighbours.data();
  const Column<T>* W_at = F.W.data();
  const Vec6<T>*S = w.S.data(), *V = F.V.data();
  Vec6<C> g{};
  for (int s = first; s < last; ++s) {
    const auto& step = steps[s];
    if constexpr (whole)
      if (goes_whole<load>(step)) {
        if (step.free) {
          resolve_free_strip(plan.free_strips[step.strip], F.strip_free[step.strip], m);
          s += plan.free_strips[step.strip].count - 1;
        } else {
          const auto& end = plan.strips[resolve_strips<driven, load>(plan, step.strip, strips, F, m, u, x_at, loads)];
          s = end.step + end.count - 1;
        }
        continue;
      }
    if (step.holds_force) g += m[step.link];
    if constexpr (load == Load::all) g -= loads->links.f[step.link];
    if (step.nv == 1) {
      const int k = step.iv;
      C y = dot(S[k], g);
      if constexpr (driven) y += u[k];
      u[k] = y;
      g -= V[k] * y;
      if (step.coupled) {
        const auto& at = places[s];
        for (int j = 0; j < at.neighbours; ++j) m[neighbours[at.neighbour + j].link] -= vector(W_at[at.W + j]) * y;
      }
    } else if (step.free) {
      const auto& at = places[s];
      const auto* N = neighbours + at.neighbour;
      const Ldl6<T>& LD = F.free[at.factor];
      if (driven && (load != Load::rows || step.pushed)) g += free_force(w.pose[step.link].R, u + step.iv);
      solve_lower(LD, &g.lin.x);
      Vec6<C> x;
      for (int k = 0; k < 6; ++k) entry(x, k) = entry(g, k) * LD.Dinv[k];
      for (int j = 0; j < at.neighbours; ++j) {
        const Column<T>* W = &F.W[at.W + 6 * j];
        Vec6<C> f = m[N[j].link];
        for (int k = 0; k < 6; ++k) f -= vector(W[k]) * entry(x, k);
        m[N[j].link] = f;
      }
      m[step.link] = x;
      g = Vec6<C>{};
      continue;
    } else {
      const auto& at = places[s];
      const auto* N = neighbours + at.neighbour;
      for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
        C y = dot(S[k], g);
        if constexpr (driven) y += u[k];
        u[k] = y;
        g -= V[k] * y;
        const Column<T>* W = W_at + at.W + (k - step.iv) * at.neighbours;
        for (int j = 0; j < at.neighbours; ++j) m[N[j].link] -= vector(W[j]) * y;
      }
    }
    if (step.hands_over) continue;
    if (step.parent >= 0) m[step.parent] += g;
    g = Vec6<C>{};
  }
}

// And back: accelerations of joints in u, of links that show in m; with forces on all links those of all links in a of
// `loads`.
template <bool driven, Load load, class T, class C>
void spread(const EliminationPlan& plan, int first, int last, const Placement<T>& w, const StripPlacement<T>& strips,
            const Factor<T>& F, Vec6<C>* __restrict m, C* __restrict u, StripPack<T>* __restrict x_at,
            const Loads<T>* loads = nullptr) {
  constexpr bool whole = takes_strips<load, T, C>;
  const EliminationPlan::Step* steps = plan.steps.data();
  const EliminationPlan::Place* places = plan.places.data();
  const EliminationPlan::Neighbour* neighbours = plan.neighbours.data();
  const Column<T>* W_at = F.W.data();
  const Vec6<T>*S = w.S.data(), *V = F.V.data();
  const T* Dinv = F.Dinv.data();
  Vec6<C> a{};
  for (int s = last - 1; s >= first; --s) {
    const auto& step = steps[s];
    if constexpr (whole)
      if (goes_whole<load>(step)) {
        s = step.free ? plan.free_strips[step.strip].step
                      : plan.strips[move_strips<driven, load>(plan, step.strip, strips, F, m, u, x_at, loads)].step;
        continue;
      }
    if (step.free) {
      const auto& at = places[s];
      const auto* N = neighbours + at.neighbour;
      const Ldl6<T>& LD = F.free[at.factor];
      a = m[step.link];
      if (step.coupled) {
        Vec6<C> y{};
        for (int j = 0; j < at.neighbours; ++j) {
          const Column<T>* W = &F.W[at.W + 6 * j];
          const Vec6<C> b = m[N[j].link];
          for (int k = 0; k < 6; ++k) entry(y, k) += dot(vector(W[k]), b);
        }
        for (int k = 0; k < 6; ++k) entry(a, k) -= entry(y, k) * LD.Dinv[k];
      }
      solve_upper(LD, &a.lin.x);
      if (driven && (load != Load::rows || step.pushed)) free_velocities(w.pose[step.link].R, a, u + step.iv);
      m[step.link] = a;
      if constexpr (load == Load::all) loads->links.a.set(step.link, a);
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
      if (step.coupled) {
        const auto& at = places[s];
        for (int j = 0; j < at.neighbours; ++j) x -= dot(vector(W_at[at.W + j]), m[neighbours[at.neighbour + j].link]);
      }
      x -= dot(V[k], a);
      u[k] = x;
      a += S[k] * x;
    } else {
      const auto& at = places[s];
      const auto* N = neighbours + at.neighbour;
      for (int k = step.iv; k < step.iv + step.nv; ++k) {
        C x = u[k] * Dinv[k];
        const Column<T>* W = W_at + at.W + (k - step.iv) * at.neighbours;
        for (int j = 0; j < at.neighbours; ++j) x -= dot(vector(W[j]), m[N[j].link]);
        x -= dot(V[k], a);
        u[k] = x;
        a += S[k] * x;
      }
    }
    if (step.shows) m[step.link] = a;
    if constexpr (load == Load::all) loads->links.a.set(step.link, a);
  }
}

template <bool driven, Load load, class T, class C>
void substitute(const EliminationPlan& plan, int first, int last, const Placement<T>& w,
                const StripPlacement<T>& strips, const Factor<T>& F, Vec6<C>* __restrict m, C* __restrict u,
                StripPack<T>* __restrict x_at, const Loads<T>* loads = nullptr) {
  collect<driven, load>(plan, first, last, w, strips, F, m, u, x_at, loads);
  spread<driven, load>(plan, first, last, w, strips, F, m, u, x_at, loads);
}

}  // namespace delassus
