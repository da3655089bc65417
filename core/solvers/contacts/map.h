// G as a contact solver sees it: products, an estimate of its diagonal, and for those who ask (G + ε)⁻¹.
#pragma once

#include <utility>

#include "operators/explicit/dense.h"
#include "operators/verbs.h"
#include "solvers/contacts/sets.h"

namespace delassus {

class ContactMap {
 public:
  virtual ~ContactMap() = default;
  virtual int rows() const = 0;
  virtual void apply(const double* x, double* y) = 0;
  virtual void diagonal(double* d) = 0;
  virtual void set_damping(const double* damping) = 0;
  virtual void solve(const double* y, double* x) = 0;
  // From now on solves as exactly as it can; whether that is more than before.
  virtual bool sharpen() { return false; }
};

// One of our operators. Leaves it with another damping. Where there are rows without a set, which have hardly any
// damping and may bear large forces, solutions may need to be refined once, which costs as much again and a half.
class OperatorMap final : public ContactMap {
 public:
  OperatorMap(Operator<double>& G, const ForceSets& sets) : G_(G) {
    for (const auto& i : sets.intervals) loops_ = loops_ || (std::isinf(i.lower) && std::isinf(i.upper));
  }
  int rows() const override { return G_.rows(); }
  void apply(const double* x, double* y) override { G_.apply(x, 1, y); }
  void diagonal(double* d) override { G_.diagonal(d); }
  void set_damping(const double* damping) override { G_.set_damping(damping); }
  void solve(const double* y, double* x) override { G_.solve(y, 1, x, {.refinements = refine_, .goal = 1e-15}); }
  bool sharpen() override { return std::exchange(refine_, loops_) != loops_; }

 private:
  Operator<double>& G_;
  bool loops_ = false, refine_ = false;
};

// A symmetric positive semidefinite matrix, row-major, that outlives this.
class DenseMap final : public ContactMap {
 public:
  DenseMap(const double* G, int rows) : G_(G), rows_(rows), room_(row_room<double>(rows)) {}
  int rows() const override { return rows_; }
  const double* matrix() const { return G_; }
  void apply(const double* x, double* y) override {
    for (int i = 0; i < rows_; ++i) {
      const double* row = G_ + std::size_t(i) * rows_;
      double sum = 0;
      for (int j = 0; j < rows_; ++j) sum += row[j] * x[j];
      y[i] = sum;
    }
  }
  void diagonal(double* d) override {
    for (int i = 0; i < rows_; ++i) d[i] = G_[std::size_t(i) * rows_ + i];
  }
  void set_damping(const double* damping) override {
    A_.assign(std::size_t(rows_) * room_, 0.0);
    Dinv_.resize(std::size_t(rows_));
    for (int i = 0; i < rows_; ++i) {
      std::copy_n(G_ + std::size_t(i) * rows_, rows_, &A_[std::size_t(i) * room_]);
      A_[std::size_t(i) * room_ + i] += damping[i];
    }
    factor_upper(A_.data(), rows_, room_, damping, Dinv_.data());
  }
  void solve(const double* y, double* x) override {
    x_.assign(room_, 0.0);
    std::copy_n(y, rows_, x_.data());
    solve_upper_factor(A_.data(), rows_, room_, Dinv_.data(), x_.data());
    std::copy_n(x_.data(), rows_, x);
  }

 private:
  const double* G_;
  int rows_;
  std::size_t room_;
  std::vector<double> A_, Dinv_, x_;
};

}  // namespace delassus
