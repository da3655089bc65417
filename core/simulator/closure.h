// Loops by themselves: impulses of their rows alone that close them as far as any motion can.
//
//   λ ← λ − (G_ll + ε)⁻¹ r,   r = G_ll λ + g          proximal steps, ε = 1e-8 of each row's diagonal
//
// Rows of loops may be redundant: exactly (planar loops in space, Bricard's mechanism) or to rounding (the same, a
// little out of plane). Then G_ll is singular, and g need not be in its range. Each step shrinks the part of r that
// motions reach by ε / (σ + ε), with σ an eigenvalue of G_ll. What remains when r no longer shrinks is the model's own
// error, which no motion changes. Cost: one factorization, and a solve and a product for each of mostly two or three
// steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "operators/verbs.h"

namespace delassus {

class LoopClosure {
 public:
  // loops: the first rows of G. After G was updated.
  void begin(Operator<double>& G, int loops) {
    G_ = &G;
    loops_ = std::size_t(loops);
    for (auto* x : {&damping_, &rhs_, &change_}) x->resize(std::size_t(G.rows()));
    G.diagonal(damping_.data());
    double largest = 0;
    for (const double d : damping_)
      if (std::isfinite(d)) largest = std::max(largest, d);
    if (!(largest > 0)) largest = 1;
    for (std::size_t r = 0; r < damping_.size(); ++r) {
      const double d = damping_[r] > 1e-12 * largest && std::isfinite(damping_[r]) ? damping_[r] : largest;
      damping_[r] = r < loops_ ? softness * d : largest / softness;  // others as if they were not there
    }
    factored_ = false;
  }
  // Another damping was set meanwhile.
  void forget() { factored_ = false; }

  // λ: where to start from on entry, zero but for loops. On exit σ = G λ + g of all rows; of loops, what no motion
  // closes. Stops where that is small beside g, or no longer shrinks. Returns the number of steps.
  int close(const double* g, double* lambda, double* sigma, double small = 1e-13) {
    factor();
    const double floor = small * largest(g);
    double open = residual(g, lambda, sigma);
    for (int n = 0;; ++n) {
      if (!(open > floor) || n == max_steps) return n;
      for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? -sigma[r] : 0.0;
      G_->solve(rhs_.data(), 1, change_.data());
      for (std::size_t r = 0; r < loops_; ++r) lambda[r] += change_[r];
      const double now = residual(g, lambda, sigma);
      const bool helps = now < 0.7 * open;
      open = now;
      if (!helps) return n + 1;
    }
  }
  // x ← G (G + ε)⁻¹ x of loops: without the part that no motion reaches, or only one ten thousand times its size.
  void soften(double* x) {
    factor();
    for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? x[r] : 0.0;
    G_->solve(rhs_.data(), 1, change_.data());
    for (std::size_t r = 0; r < loops_; ++r) x[r] -= damping_[r] * change_[r];
  }
  // λ ← λ − ((G + ε)⁻¹ ε)² λ of loops: without impulses that redundant rows hardly feel. These may be huge, and what
  // rows that are redundant only to rounding make of them is not nothing. Squared, so that G λ stays as it is: it
  // changes by no more than ε λ / 4.
  void purify(double* lambda) {
    factor();
    std::copy_n(lambda, rhs_.size(), change_.data());
    for (int n = 0; n < 2; ++n) {
      for (std::size_t r = 0; r < rhs_.size(); ++r) rhs_[r] = r < loops_ ? damping_[r] * change_[r] : 0.0;
      G_->solve(rhs_.data(), 1, change_.data());
    }
    for (std::size_t r = 0; r < loops_; ++r) lambda[r] -= change_[r];
  }
  // The largest of the loops' rows.
  double largest(const double* x) const {
    double most = 0;
    for (std::size_t r = 0; r < loops_; ++r) most = std::max(most, std::abs(x[r]));
    return most;
  }

 private:
  static constexpr double softness = 1e-8;
  static constexpr int max_steps = 8;

  void factor() {
    if (!factored_) G_->set_damping(damping_.data());
    factored_ = true;
  }
  double residual(const double* g, const double* lambda, double* sigma) {
    if (largest(lambda) > 0)
      G_->apply(lambda, 1, sigma);
    else
      std::fill_n(sigma, rhs_.size(), 0.0);
    for (std::size_t r = 0; r < rhs_.size(); ++r) sigma[r] += g[r];
    return largest(sigma);
  }

  Operator<double>* G_ = nullptr;
  std::size_t loops_ = 0;
  bool factored_ = false;
  std::vector<double> damping_, rhs_, change_;  // a row
};

}  // namespace delassus
