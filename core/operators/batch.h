// The Delassus operator for many states of one mechanism, on one or more threads. States are processed in groups of as
// many as a register holds, by the sweeps for one state (delassus.h) with T a pack of states.
#pragma once

#include "operators/delassus.h"
#include "operators/states.h"
#include "operators/team.h"
#include "operators/verbs.h"

namespace delassus {

template <class Real>
class BatchDelassus final : public BatchOperator<Real> {
 public:
  static constexpr int width = register_bytes / int(sizeof(Real));
  using P = Pack<Real, width>;

  BatchDelassus(const Model<Real>& model, const ConstraintSet<Real>& set, int batch, int threads)
      : model_(model), rows_(set.rows), batch_(batch), team_(std::min(threads, (batch + width - 1) / width)) {
    const int groups = (batch + width - 1) / width;
    layout_ = std::make_shared<const Layout<Real>>(model, set, 1);
    const std::size_t length = std::size_t(std::max({rows_, model.nv, model.nq}));
    std::vector<std::shared_ptr<Scratch<P>>> scratch;
    scratch.reserve(std::size_t(team_.size()));
    for (int t = 0; t < team_.size(); ++t) scratch.push_back(std::make_shared<Scratch<P>>(model, *layout_));
    for (int g = 0; g < groups; ++g) groups_.emplace_back(model, layout_, scratch[team_.whose(g, groups)]);
    scratch_bytes_ = scratch.empty() ? 0 : scratch.size() * scratch[0]->bytes();
    in_.assign(std::size_t(team_.size()), std::vector<P>(length));
    out_ = in_;
    regular_.resize(std::size_t(groups));
  }

  int rows() const override { return rows_; }
  int batch() const override { return batch_; }
  const Layout<Real>& layout() const override { return *layout_; }
  std::size_t bytes() const override {
    std::size_t sum = scratch_bytes_;
    for (const auto& g : groups_) sum += g.own_bytes();
    for (const auto* passages : {&in_, &out_})
      for (const auto& x : *passages) sum += x.size() * sizeof(P);
    return sum;
  }

  // Q: batch × nq; compliance, damping: batch × rows; X, Y: batch × rows × columns, all row-major
  bool update(const Real* Q) override {
    each([&](int g) {
      gather(g, Q, model_.nq, 1, 0);
      regular_[g] = groups_[g].update(in(g).data());
    });
    return std::all_of(regular_.begin(), regular_.end(), [](char r) { return r != 0; });
  }
  // Its parts, as of Delassus.
  void place(const Real* Q) {
    each([&](int g) {
      gather(g, Q, model_.nq, 1, 0);
      groups_[g].place(in(g).data());
    });
  }
  bool factorize() {
    each([&](int g) {
      groups_[g].prepare();
      regular_[g] = groups_[g].factorize();
    });
    return std::all_of(regular_.begin(), regular_.end(), [](char r) { return r != 0; });
  }
  void set_compliance(const Real* C) override {
    each([&](int g) {
      gather(g, C, rows_, 1, 0);
      groups_[g].set_compliance(in(g).data());
    });
  }
  void set_damping(const Real* D) override {
    each([&](int g) {
      gather(g, D, rows_, 1, 0);
      groups_[g].set_damping(in(g).data());
    });
  }
  void apply(const Real* X, int columns, Real* Y) override {
    by_columns(X, columns, Y, [&](int g) { groups_[g].apply(in(g).data(), 1, out(g).data()); });
  }
  void solve(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted = {}, Real* errors = nullptr) override {
    solve_each(Y, columns, X, errors, [&](int g) { return groups_[g].solve(in(g).data(), 1, out(g).data(), wanted); });
  }
  // errors: batch × columns
  void backward_error(const Real* Y, const Real* X, int columns, Real* errors) override {
    judge_each(Y, X, columns, errors,
               [&](int g, const P* y, const P* x, P* error) { groups_[g].backward_error(y, x, 1, error); });
  }

  // D: batch × numbers of all blocks
  const BlockIndex* block_index() override { return &groups_[0].block_index(); }
  void set_block_damping(const Real* D) override {
    const std::size_t size = block_index()->size;
    for (auto& x : in_)
      if (x.size() < size) x.resize(size);
    each([&](int g) {
      gather(g, D, int(size), 1, 0);
      groups_[g].set_block_damping(in(g).data());
    });
  }
  void solve_blocks(const Real* Y, int columns, Real* X, bool transposed, const Accuracy<Real>& wanted,
                    Real* errors) override {
    solve_each(Y, columns, X, errors,
               [&](int g) { return groups_[g].solve_blocks(in(g).data(), 1, out(g).data(), transposed, wanted); });
  }
  void block_backward_error(const Real* Y, const Real* X, int columns, bool transposed, Real* errors) override {
    judge_each(Y, X, columns, errors, [&](int g, const P* y, const P* x, P* error) {
      groups_[g].block_backward_error(y, x, 1, transposed, error);
    });
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

  // the same with errors, the largest of a state's columns
  template <class F>
  void solve_each(const Real* Y, int columns, Real* X, Real* errors, F&& work) {
    if (errors) std::fill_n(errors, batch_, Real(0));
    by_columns(Y, columns, X, [&](int g) {
      const P error = work(g);
      if (!errors) return;
      for (int k = 0; k < count(g); ++k) errors[g * width + k] = std::max(errors[g * width + k], lane(error, k));
    });
  }
  template <class F>
  void judge_each(const Real* Y, const Real* X, int columns, Real* errors, F&& judge) {
    each([&](int g) {
      auto &y = in(g), &x = out(g);
      for (int c = 0; c < columns; ++c) {
        gather(g, X, rows_, columns, c);
        std::copy_n(y.begin(), rows_, x.begin());
        gather(g, Y, rows_, columns, c);
        P error{};
        judge(g, y.data(), x.data(), &error);
        for (int k = 0; k < count(g); ++k) errors[std::size_t(g * width + k) * columns + c] = lane(error, k);
      }
    });
  }

  int count(int g) const { return std::min(width, batch_ - g * width); }

  // what a group's thread moves numbers in
  std::vector<P>& in(int g) { return in_[team_.whose(g, int(groups_.size()))]; }
  std::vector<P>& out(int g) { return out_[team_.whose(g, int(groups_.size()))]; }

  // every group once
  template <class F>
  void each(F&& work) {
    team_.each(int(groups_.size()), work);
  }

  // one column of n numbers of every state of a group; lanes beyond the batch repeat its last state
  void gather(int g, const Real* X, int n, int columns, int c) {
    P* to = in(g).data();
    if (columns == 1) {
      const Real* x[width];
      for (int k = 0; k < width; ++k) x[k] = X + std::size_t(std::min(g * width + k, batch_ - 1)) * n;
      gather_states(x, n, to);
      return;
    }
    for (int k = 0; k < width; ++k) {
      const std::size_t state = std::size_t(std::min(g * width + k, batch_ - 1));
      const Real* x = X + state * n * columns + c;
      for (int r = 0; r < n; ++r) lane(to[r], k) = x[std::size_t(r) * columns];
    }
  }
  void scatter(int g, Real* Y, int n, int columns, int c) {
    const P* from = out(g).data();
    if (columns == 1) {
      Real* y[width];
      for (int k = 0; k < width; ++k) y[k] = Y + std::size_t(std::min(g * width + k, batch_ - 1)) * n;
      scatter_states(from, n, y, count(g));
      return;
    }
    for (int k = 0; k < width && g * width + k < batch_; ++k) {
      Real* y = Y + std::size_t(g * width + k) * n * columns + c;
      for (int r = 0; r < n; ++r) y[std::size_t(r) * columns] = lane(from[r], k);
    }
  }

  const Model<Real>& model_;
  int rows_, batch_;
  std::shared_ptr<const Layout<Real>> layout_;
  Team team_;
  std::vector<Delassus<P>> groups_;
  std::vector<std::vector<P>> in_, out_;  // a thread
  std::size_t scratch_bytes_ = 0;
  std::vector<char> regular_;  // a group: its mass matrices are
};

}  // namespace delassus
