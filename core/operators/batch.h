// The Delassus operator of many states of one mechanism: as many states side by side as a register holds, groups of them in turn, on
// one or more threads. The sweeps are those of one state (delassus.h), with T a pack of states.
#pragma once

#include <thread>

#include "operators/delassus.h"

namespace delassus {

template <class Real>
class BatchDelassus {
 public:
  static constexpr int width = register_bytes / int(sizeof(Real));
  using P = Pack<Real, width>;

  BatchDelassus(const Model<Real>& model, const ConstraintSet<Real>& set, int batch, int threads)
      : model_(model), rows_(set.rows), batch_(batch), threads_(threads) {
    const int groups = (batch + width - 1) / width;
    if (groups > 0) groups_.emplace_back(model, std::make_shared<const Layout<Real>>(model, set, 1));
    while (int(groups_.size()) < groups) groups_.push_back(groups_[0]);
    const std::size_t most = std::size_t(std::max({rows_, model.nv, model.nq}));
    in_.assign(std::size_t(groups), std::vector<P>(most));
    out_ = in_;
    regular_.resize(std::size_t(groups));
  }

  int rows() const { return rows_; }
  int batch() const { return batch_; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& g : groups_) sum += g.bytes();
    for (const auto& x : in_) sum += 2 * x.size() * sizeof(P);
    return sum;
  }

  // Q: batch × nq; compliance, damping: batch × rows; X, Y: batch × rows × columns, all row-major
  bool update(const Real* Q) {
    each([&](int g) {
      gather(g, Q, model_.nq, 1, 0);
      regular_[g] = groups_[g].update(in_[g].data());
    });
    return std::all_of(regular_.begin(), regular_.end(), [](char r) { return r != 0; });
  }
  void set_compliance(const Real* C) {
    each([&](int g) {
      gather(g, C, rows_, 1, 0);
      groups_[g].set_compliance(in_[g].data());
    });
  }
  void set_damping(const Real* D) {
    each([&](int g) {
      gather(g, D, rows_, 1, 0);
      groups_[g].set_damping(in_[g].data());
    });
  }
  void apply(const Real* X, int columns, Real* Y) {
    by_columns(X, columns, Y, [&](int g) { groups_[g].apply(in_[g].data(), 1, out_[g].data()); });
  }
  void solve(const Real* Y, int columns, Real* X, int most, Real tolerance) {
    by_columns(Y, columns, X, [&](int g) { groups_[g].solve(in_[g].data(), 1, out_[g].data(), most, tolerance); });
  }

 private:
  template <class F>
  void by_columns(const Real* X, int columns, Real* Y, F&& work) {
    each([&](int g) {
      for (int c = 0; c < columns; ++c) {
        gather(g, X, rows_, columns, c);
        work(g);
        scatter(g, Y, rows_, columns, c);
      }
    });
  }

  // every group once; thread t takes the groups t, t + threads, …
  template <class F>
  void each(F&& work) {
    const int groups = int(groups_.size()), threads = std::min(threads_, groups);
    if (threads <= 1) {
      for (int g = 0; g < groups; ++g) work(g);
      return;
    }
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        for (int g = t; g < groups; g += threads) work(g);
      });
    for (auto& thread : team) thread.join();
  }

  // one column of n numbers of every state of a group; lanes beyond the batch repeat its last state
  void gather(int g, const Real* X, int n, int columns, int c) {
    for (int k = 0; k < width; ++k) {
      const std::size_t state = std::size_t(std::min(g * width + k, batch_ - 1));
      const Real* x = X + state * n * columns + c;
      for (int r = 0; r < n; ++r) lane(in_[g][r], k) = x[std::size_t(r) * columns];
    }
  }
  void scatter(int g, Real* Y, int n, int columns, int c) const {
    for (int k = 0; k < width && g * width + k < batch_; ++k) {
      Real* y = Y + std::size_t(g * width + k) * n * columns + c;
      for (int r = 0; r < n; ++r) y[std::size_t(r) * columns] = lane(out_[g][r], k);
    }
  }

  const Model<Real>& model_;
  int rows_, batch_, threads_;
  std::vector<Delassus<P>> groups_;
  std::vector<std::vector<P>> in_, out_;
  std::vector<char> regular_;  // a group: its mass matrices are
};

}  // namespace delassus
