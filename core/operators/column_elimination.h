// The elimination rule of block_elimination.h for large plans, by columns, so that threads share one elimination.
//
// There a link that goes downdates all its neighbours. Here a link that is about to go takes what those before it have
// for it, in the order of their steps, and then goes itself:
//
//   take     H_jj −= W_j D⁻¹ Z_jᵀ,   H_kj −= W_k D⁻¹ Z_jᵀ,   H_jk −= W_j D⁻¹ Z_kᵀ
//            of every step i that j is a neighbour of, and its neighbours k that go after j;
//            what i leaves to its parent, if j is the parent or goes before it
//   finish   D, U, V of j; W_k and Z_k of its neighbours k
//
// All that is written in the column of j (H_jj, H_kj, H_jk of k after j) is written by j's turn, so columns may be
// worked on at once. Each thread takes the next column in the order of the plan, and waits where a step is not finished
// that it needs; those were all begun before, so somebody always gets on. Independent branches of the elimination go
// side by side, and within a wide separator all but the last updates of its columns do. The first columns, which are
// short, are the caller's alone. Couplings that are zero are not left out here, but mostly in the plan (active_plan.h).
//
// The sums of a column are in the order of the plan whoever does them: bits are the same for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "operators/block_elimination.h"
#include "operators/team.h"

namespace delassus {

// Which columns of an elimination are finished, and which is next.
class ColumnProgress {
 public:
  void resize(std::size_t steps) {
    if (finished_.size() < steps) finished_ = std::vector<std::atomic<int>>(steps);
    for (auto& f : finished_) f.store(0, std::memory_order_relaxed);
    round_ = 0;
  }
  std::size_t bytes() const { return finished_.size() * sizeof(finished_[0]); }
  void start(int first) {
    ++round_;
    next_.store(first, std::memory_order_relaxed);
  }
  int take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void finish(int s) { finished_[std::size_t(s)].store(round_, std::memory_order_release); }
  void wait_for(int s) const {
    for (int look = 0; finished_[std::size_t(s)].load(std::memory_order_acquire) != round_; ++look)
      look < patience ? relax() : std::this_thread::yield();
  }

 private:
  static constexpr int patience = 1000;  // looks before another thread may have the core

  std::vector<std::atomic<int>> finished_;  // a step: the last round it was finished in
  std::atomic<int> next_{0};
  int round_ = 0;
};

// P += Σ A_l B_lᵀ over six columns, A in registers. A function of its own: inlined into a loop, GCC keeps numbers of B
// instead, in memory.
template <class T>
[[gnu::noinline]] void add_columns(Mat6<T>& P, const Column<T>* A, const Column<T>* B) {
  const Column<T> a[6] = {A[0], A[1], A[2], A[3], A[4], A[5]};
  for (int k = 0; k < 6; ++k) {
    Column<T> c = P.column[k];
#pragma GCC unroll 6
    for (int l = 0; l < 6; ++l) add(c, a[l], B[l][k]);
    P.column[k] = c;
  }
}

// The downdates of one velocity, or of the six of a free link, that a step has for its neighbour at place a: W and Z
// are those of all its neighbours; scaled are −D⁻¹ W_a and −D⁻¹ Z_a.
template <int count, class T>
[[gnu::always_inline]] inline void take_downdates(const BlockElimination<T>& e, const EliminationPlan::Source* source,
                                                  Twin6<T>& H, bool both, const Column<T>* W, const Column<T>* Z,
                                                  const Column<T>* scaled_W, const Column<T>* scaled_Z) {
  const auto add_to = [](Mat6<T> & P, const Column<T>* A, const Column<T>* B) __attribute__((always_inline)) {
    if constexpr (count == 6)
      add_columns(P, A, B);
    else
      add_outer(P, A[0], B[0]);
  };
  const int a = source->place;
  add_to(H.down, W + count * a, scaled_Z);
  if (both) add_to(H.up, Z + count * a, scaled_W);
  const auto *target = e.plan.targets.data() + source[0].target, *end = e.plan.targets.data() + source[1].target;
  for (; target < end; ++target) {
    Twin6<T>& C = e.coupling.open(target->block);
    add_to(C.down, W + count * target->place, scaled_Z);
    add_to(C.up, Z + count * target->place, scaled_W);
  }
}

// What step i leaves to its parent: the part of it that is in the column of j, the parent or, before it, neighbour `a`.
template <class T>
inline void take_merge(const BlockElimination<T>& e, const EliminationPlan::Step& step,
                       const EliminationPlan::StepStorage& at, int a, int j) {
  const auto* N = e.plan.neighbours.data() + at.neighbour;
  if (j != step.parent) {
    if (N[a].merged >= 0 && N[a].flipped) add_transposed(e.coupling.open(N[a].merged), e.coupling[N[a].block]);
    return;
  }
  add(e.H[j], e.H[step.link]);
  if (a >= 0) add_both(e.H[j], e.coupling[N[a].block]);
  for (int b = 0; b < at.neighbours; ++b)
    if (b != a && N[b].merged >= 0 && !N[b].flipped) add(e.coupling.open(N[b].merged), e.coupling[N[b].block]);
}

// All that a step has for the column of link j.
template <class T>
[[gnu::noinline]] void take(const BlockElimination<T>& e, const EliminationPlan::Source* source, int j, bool free) {
  const auto& step = e.plan.steps[source->step];
  const auto& at = e.plan.storage[source->step];
  const Factor<T>&left = e.factor.left, &right = e.factor.right;
  const int a = source->place;
  Column<T> scaled_W[6], scaled_Z[6];
  if (step.free) {
    const T* Dinv = left.free[at.factor].Dinv;
    const Column<T>*W = &left.W[at.W], *Z = &right.W[at.W];
    for (int k = 0; k < 6; ++k) {
      scaled_W[k] = scaled(W[6 * a + k], T(-Dinv[k]));
      scaled_Z[k] = scaled(Z[6 * a + k], T(-Dinv[k]));
    }
    take_downdates<6>(e, source, e.H[j], !free, W, Z, scaled_W, scaled_Z);  // a free link needs no H_jjᵀ
    return;
  }
  // kept are W D⁻¹ and Z D⁻¹
  for (int k = step.iv + step.nv - 1; k >= step.iv && a >= 0; --k) {
    const int first = at.W + (k - step.iv) * at.neighbours;
    const Column<T>*W = &left.W[first], *Z = &right.W[first];
    const T D = real_of<T>(-1) / left.Dinv[k];
    scaled_W[0] = scaled(W[a], D), scaled_Z[0] = scaled(Z[a], D);
    take_downdates<1>(e, source, e.H[j], true, W, Z, scaled_W, scaled_Z);
  }
  if (step.parent >= 0) take_merge(e, step, at, a, j);
}

// Step s after it took all: its part of the factor. H and couplings of a link with a parent are what it leaves to it.
template <class T>
[[gnu::noinline]] void finish(const BlockElimination<T>& e, int s) {
  const auto& plan = e.plan;
  const auto& step = plan.steps[s];
  const auto& at = plan.storage[s];
  const auto* N = plan.neighbours.data() + at.neighbour;
  Factor<T>&left = e.factor.left, &right = e.factor.right;
  Twin6<T>& H = e.H[step.link];
  if (step.free) {
    factor_free(e, s, H);
  } else {
    for (int k = step.iv + step.nv - 1; k >= step.iv; --k) {
      const VelocityPivot<T> pivot = factor_velocity(e, k, H);
      const int first = at.W + (k - step.iv) * at.neighbours;
      for (int j = 0; j < at.neighbours; ++j) {
        Twin6<T>& C = e.coupling.open(N[j].block);
        const Column<T> W = C.down * pivot.S, Z = C.up * pivot.S;
        add_outer(C.down, W, pivot.minus_V);
        add_outer(C.up, Z, pivot.minus_U);
        left.W[first + j] = scaled(W, pivot.Dinv);
        right.W[first + j] = scaled(Z, pivot.Dinv);
      }
    }
  }
  fill_lane(plan, s, left);
  fill_lane(plan, s, right);
}

// Steps first … last − 1, by all threads of the team if there is one.
template <class T>
void eliminate_by_columns(const BlockElimination<T>& e, int first, int last, ColumnProgress& progress, Team* team) {
  const auto& plan = e.plan;
  const auto column = [&](int s, int shared) {
    const auto& step = plan.steps[s];
    for (int k = s == 0 ? 0 : plan.sources_end[s - 1]; k < plan.sources_end[s]; ++k) {
      if (plan.sources[k].step >= shared) progress.wait_for(plan.sources[k].step);
      take(e, &plan.sources[k], step.link, step.free);
    }
    finish(e, s);
  };
  const int shared = !team || team->size() == 1 ? last : std::max(first, plan.shared);
  for (int s = first; s < shared; ++s) column(s, last);
  if (shared == last) return;
  progress.start(shared);
  team->each(team->size(), [&](int) {
    for (int s = progress.take(); s < last; s = progress.take()) {
      column(s, shared);
      progress.finish(s);
    }
  });
}

}  // namespace delassus
