// Solutions of A x = y where a direct factor has lost its digits: flexible GMRES, a factor of a better conditioned
// matrix as its preconditioner.
//
//   minimise ‖r − A Z c‖ over c,   Z = [P v₁ … P vₖ],   A Z = V H,   v₁ = r / ‖r‖,   x ← x + Z c
//
// P stands for (G + δ)⁻¹ with δ ≥ ε so large that the matrix inversion lemma keeps most digits. A P has the eigenvalues
// (λ + ε) / (λ + δ): one for all λ ≫ δ, ε / δ for the null space of G, and others only for λ between ε and δ. So a few
// iterations suffice, each with one product with G and one with P; "flexible" since P need not be exact.
//
// Saad, "A flexible inner-outer preconditioned GMRES algorithm", 1993. T is one state or a pack of states, each with
// its own coefficients.
#pragma once

#include <algorithm>
#include <vector>

#include "spatial/scalar.h"

namespace delassus {

template <class T>
class FlexibleGmres {
 public:
  using Real = real_of<T>;
  static constexpr int max_depth = 32;

  FlexibleGmres() = default;
  explicit FlexibleGmres(int rows) { resize(rows); }
  // Memory for as many rows, and at most so many iterations in a cycle.
  void resize(int rows, int depth = max_depth) {
    rows_ = rows, depth_ = std::min(rows + 1, depth);
    const std::size_t m = std::size_t(rows), k = std::size_t(depth_);
    V_.resize((k + 1) * m);
    Z_.resize(k * m);
    H_.resize((k + 1) * k);
    for (auto* x : {&g_, &c_, &cosine_, &sine_}) x->resize(k + 1);
    trial_.resize(m);
  }
  std::size_t bytes() const {
    return (V_.size() + Z_.size() + H_.size() + g_.size() + c_.size() + cosine_.size() + sine_.size() + trial_.size()) *
           sizeof(T);
  }

  // One cycle: x ← x + Z c, r the residual of x. apply(v, w): w ← A v. precondition(v, z): z ← P v. enough(‖r‖², x):
  // whether the iteration may end.
  template <class Apply, class Precondition, class Enough>
  void cycle(const T* r, T* x, Apply&& apply, Precondition&& precondition, Enough&& enough) {
    const T length = square_root(dot(r, r));
    scale(r, inverse(length), V(0));
    std::fill(g_.begin(), g_.end(), T{});
    g_[0] = length;
    for (int k = 0; k < depth_; ++k) {
      // H's next column: A P v, orthogonal to all before; twice, since once leaves rounding of the size of what was
      // taken away
      precondition(static_cast<const T*>(V(k)), Z(k));
      T* w = V(k + 1);
      apply(static_cast<const T*>(Z(k)), w);
      for (int i = 0; i <= k + 1; ++i) H(i, k) = T{};
      for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i <= k; ++i) {
          const T h = dot(V(i), w);
          H(i, k) += h;
          for (int r = 0; r < rows_; ++r) w[r] -= V(i)[r] * h;
        }
      const T rest = square_root(dot(w, w));
      H(k + 1, k) = rest;
      scale(w, inverse(rest), w);
      rotate(k);

      // the solution so far, and ‖r‖ = |g_{k+1}|
      combine(k + 1, x);
      if (k + 1 == depth_ || enough(T(g_[k + 1] * g_[k + 1]), static_cast<const T*>(trial_.data()))) break;
    }
    std::copy(trial_.begin(), trial_.end(), x);
  }

 private:
  T* V(int k) { return V_.data() + std::size_t(k) * rows_; }
  T* Z(int k) { return Z_.data() + std::size_t(k) * rows_; }
  T& H(int i, int k) { return H_[std::size_t(k) * (depth_ + 1) + i]; }

  T dot(const T* a, const T* b) const {
    T sum{};
    for (int r = 0; r < rows_; ++r) sum += a[r] * b[r];
    return sum;
  }
  void scale(const T* a, const T& s, T* b) const {
    for (int r = 0; r < rows_; ++r) b[r] = a[r] * s;
  }
  // 1 / x, and nothing where x is zero: a direction that is spent has no part in what follows
  static T inverse(const T& x) {
    const T one = constant<T>(1), safe = x == T{} ? one : x;
    return x == T{} ? T{} : T(one / safe);
  }

  // Givens rotations make H triangular, and g with it.
  void rotate(int k) {
    for (int i = 0; i < k; ++i) turn(H(i, k), H(i + 1, k), cosine_[i], sine_[i]);
    const T a = H(k, k), b = H(k + 1, k), n = inverse(square_root(T(a * a + b * b)));
    cosine_[k] = a * n;
    sine_[k] = b * n;
    turn(H(k, k), H(k + 1, k), cosine_[k], sine_[k]);
    turn(g_[k], g_[k + 1], cosine_[k], sine_[k]);
  }
  static void turn(T& a, T& b, const T& c, const T& s) {
    const T was = a;
    a = c * was + s * b;
    b = c * b - s * was;
  }

  // trial ← x + Z c,   c from the triangle of the first n columns of H
  void combine(int n, const T* x) {
    for (int i = n - 1; i >= 0; --i) {
      T sum = g_[i];
      for (int k = i + 1; k < n; ++k) sum -= H(i, k) * c_[k];
      c_[i] = sum * inverse(H(i, i));
    }
    std::copy(x, x + rows_, trial_.begin());
    for (int k = 0; k < n; ++k)
      for (int r = 0; r < rows_; ++r) trial_[r] += Z(k)[r] * c_[k];
  }

  int rows_ = 0, depth_ = 0;
  std::vector<T> V_, Z_;                  // orthonormal directions; the same preconditioned
  std::vector<T> H_;                      // by columns, depth + 1 apart
  std::vector<T> g_, c_, cosine_, sine_;  // right-hand side of the triangle, its solution, rotations
  std::vector<T> trial_;                  // a row: the solution so far
};

}  // namespace delassus
