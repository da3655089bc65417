// Some rows and columns of J (M + Jᵀ B J)⁻¹ Jᵀ, without the others.
//
// A force on a row acts on the links of that row, and the backward sweep (substitution.h) passes it on to neighbours
// and parents only, not to links that are eliminated earlier or lie on other branches. The forward sweep needs no
// others either. So both visit only the links of the chosen rows and those that can be reached from them,
//
//   reached(i) → reached(j) for j ∈ N(i) ∪ {parent of i}
//
// which is usually a third to a half of the bodies of a pile. Several columns share a register.
#pragma once

#include <vector>

#include "operators/column_packs.h"
#include "operators/points.h"
#include "operators/substitution.h"
#include "operators/terms.h"

namespace delassus {

template <class T>
class SelectedResponse {
 public:
  using Columns = StripPack<T>;
  static constexpr int width = strip_lanes<T>, most_rows = 24;

  explicit SelectedResponse(const Layout<real_of<T>>& layout)
      : place_(std::size_t(layout.set.rows)), reached_(layout.coupled.steps.size()), sums_(most_rows) {
    pushes_.reserve(4 * most_rows);  // a contact's rows act on two links at most
    runs_.reserve(reached_.size() / 2 + 1);
  }
  std::size_t bytes() const {
    return pushes_.capacity() * sizeof(Push) + runs_.capacity() * sizeof(Run) + sums_.size() * sizeof(Columns) +
           place_.size() * sizeof(int) + reached_.size();
  }

  // Rows by their numbers, most_rows at most, none twice and none of a joint alone.
  void choose(const Points<T>& points, const Terms<T>& terms, const EliminationPlan& plan, const int* chosen,
              int count) {
    count_ = count;
    std::fill(place_.begin(), place_.end(), -1);
    std::fill(reached_.begin(), reached_.end(), 0);
    pushes_.clear();
    for (int i = 0; i < count; ++i) place_[std::size_t(chosen[i])] = i;
    const auto add = [&](int row, int link, const Vec6<T>& K) {
      const int i = place_[std::size_t(row)];
      if (i < 0) return;
      pushes_.push_back({i, link, K});
      reached_[std::size_t(link)] = 1;
    };
    points.each_row([&](int row) { return place_[std::size_t(row)] >= 0; }, add);
    terms.each(add);
    find_runs(plan);
  }

  // A ← these rows of the response to forces on these rows, count × count, row-major. x: the sweeps with a pack of
  // columns.
  void respond(const EliminationPlan& plan, const Substitution<T, Columns>& x, T* A) {
    for (int first = 0; first < count_; first += width) {
      for (const auto& run : runs_)
        for (int s = run.first; s < run.last; ++s) x.m[plan.steps[std::size_t(s)].link] = Vec6<Columns>{};
      for (const auto& p : pushes_)
        if (p.place >= first && p.place < first + width)
          for (int k = 0; k < 6; ++k) lane(entry(x.m[p.link], k), p.place - first) += entry(p.K, k);
      for (const auto& run : runs_) collect<false, Load::rows>(x, run.first, run.last);
      for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) spread<false, Load::rows>(x, run->first, run->last);
      std::fill(sums_.begin(), sums_.end(), Columns{});
      for (const auto& p : pushes_) sums_[std::size_t(p.place)] += dot(p.K, x.m[p.link]);
      for (int i = 0; i < count_; ++i)
        store_columns<Columns>(A + std::size_t(i) * count_ + first, sums_[std::size_t(i)],
                               std::min(width, count_ - first));
    }
  }

 private:
  struct Push {
    int place, link;  // which of the chosen rows
    Vec6<T> K;        // its row of J on that link
  };
  struct Run {
    int first, last;  // steps, one past the last: where forces pass from step to step in registers they are in one run
  };

  void find_runs(const EliminationPlan& plan) {
    runs_.clear();
    const int steps = int(plan.steps.size());
    for (int s = plan.idle; s < steps; ++s) {
      const auto& step = plan.steps[std::size_t(s)];
      if (!reached_[std::size_t(step.link)]) continue;
      const auto& at = plan.storage[std::size_t(s)];
      for (int j = 0; j < at.neighbours; ++j) reached_[std::size_t(plan.neighbours[at.neighbour + j].link)] = 1;
      if (step.parent >= 0) reached_[std::size_t(step.parent)] = 1;
      if (!runs_.empty() && runs_.back().last == s)
        ++runs_.back().last;
      else
        runs_.push_back({s, s + 1});
    }
  }

  int count_ = 0;
  std::vector<Push> pushes_;
  std::vector<Run> runs_;      // in order of elimination
  std::vector<int> place_;     // a row: which of the chosen ones, or −1
  std::vector<char> reached_;  // a link
  std::vector<Columns> sums_;  // a chosen row
};

}  // namespace delassus
