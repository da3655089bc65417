// Anderson's extrapolation of a fixed-point iteration s ← s + f(s): the combination of the last steps whose f is smallest.
//
//   γ = argmin ‖f − Σ γₖ ΔFₖ‖² + tiny ‖γ‖²,   s ← s + f − Σ γₖ (ΔSₖ + ΔFₖ)
#pragma once

#include "solvers/contacts/problem.h"

namespace delassus {

class Anderson {
 public:
  static constexpr int memory = 8;

  void resize(int n) {
    n_ = n;
    for (auto* x : {&s_, &f_}) x->resize(std::size_t(n));
    for (auto* x : {&change_, &step_}) x->resize(std::size_t(n) * memory);
    forget();
  }
  void forget() { count_ = next_ = 0, begun_ = false; }

  // s: where f was found. Returns whether `to` is an extrapolation; the first time it is the plain step.
  bool advance(const double* s, const double* f, double* to) {
    if (begun_) {
      double *change = &change_[std::size_t(next_) * n_], *step = &step_[std::size_t(next_) * n_];
      for (int r = 0; r < n_; ++r) {
        change[r] = f[r] - f_[r];
        step[r] = s[r] - s_[r] + change[r];
      }
      count_ = std::min(count_ + 1, memory);
      for (int k = 0; k < count_; ++k) gram_[k][next_] = gram_[next_][k] = inner(n_, &change_[std::size_t(k) * n_], change);
      next_ = (next_ + 1) % memory;
    }
    begun_ = true;
    std::copy_n(s, n_, s_.data());
    std::copy_n(f, n_, f_.data());
    for (int r = 0; r < n_; ++r) to[r] = s[r] + f[r];
    double gamma[memory];
    if (count_ == 0 || !weigh(f, gamma)) return false;
    for (int k = 0; k < count_; ++k) {
      const double* step = &step_[std::size_t(k) * n_];
      for (int r = 0; r < n_; ++r) to[r] -= gamma[k] * step[r];
    }
    return true;
  }

 private:
  // (ΔFᵀ ΔF + tiny) γ = ΔFᵀ f by Cholesky's factor
  bool weigh(const double* f, double* gamma) const {
    double L[memory][memory], trace = 0;
    for (int k = 0; k < count_; ++k) trace += gram_[k][k];
    for (int i = 0; i < count_; ++i) {
      for (int j = 0; j <= i; ++j) {
        double x = gram_[i][j] + (i == j ? 1e-10 * trace : 0.0);
        for (int k = 0; k < j; ++k) x -= L[i][k] * L[j][k];
        if (i == j && !(x > 0)) return false;
        L[i][j] = i == j ? std::sqrt(x) : x / L[j][j];
      }
      gamma[i] = inner(n_, &change_[std::size_t(i) * n_], f);
      for (int k = 0; k < i; ++k) gamma[i] -= L[i][k] * gamma[k];
      gamma[i] /= L[i][i];
    }
    for (int i = count_; i-- > 0;) {
      for (int k = i + 1; k < count_; ++k) gamma[i] -= L[k][i] * gamma[k];
      gamma[i] /= L[i][i];
    }
    return true;
  }

  int n_ = 0, count_ = 0, next_ = 0;
  bool begun_ = false;
  std::vector<double> s_, f_, change_, step_;
  double gram_[memory][memory]{};
};

}  // namespace delassus
