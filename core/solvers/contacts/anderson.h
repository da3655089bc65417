// Anderson's extrapolation of a fixed-point iteration s ← s + f(s): the combination of the last steps whose f is
// smallest.
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

  // s: where f was found. Returns whether `to` is an extrapolation; the first time it is the plain step. `to` may be s.
  bool advance(const double* s, const double* f, double* to) {
    if (begun_) {
      double *change = &change_[std::size_t(next_) * n_], *step = &step_[std::size_t(next_) * n_];
      for (int r = 0; r < n_; ++r) {
        change[r] = f[r] - f_[r];
        step[r] = s[r] - s_[r] + change[r];
      }
      count_ = std::min(count_ + 1, memory);
    }
    double gamma[memory]{};
    const bool weighed = begun_ && weigh(f, gamma);
    if (begun_) next_ = (next_ + 1) % memory;
    begun_ = true;
    std::copy_n(s, n_, s_.data());
    std::copy_n(f, n_, f_.data());
    combine(gamma, weighed ? count_ : 0, to);
    return weighed;
  }

 private:
  using P = Pack<double, 8>;
  static P load(const double* x) {
    P p;
    __builtin_memcpy(&p, x, sizeof(P));
    return p;
  }

  // (ΔFᵀ ΔF + tiny) γ = ΔFᵀ f by Cholesky's factor; products with the newest column and with f in one pass
  bool weigh(const double* f, double* gamma) {
    const double* newest = &change_[std::size_t(next_) * n_];
    P grams[memory]{}, sums[memory]{};
    double rest[2][memory]{};
    int r = 0;
    for (; r + 8 <= n_; r += 8) {
      const P x = load(newest + r), y = load(f + r);
      for (int k = 0; k < count_; ++k) {
        const P c = load(&change_[std::size_t(k) * n_ + r]);
        grams[k] += c * x;
        sums[k] += c * y;
      }
    }
    for (; r < n_; ++r)
      for (int k = 0; k < count_; ++k) {
        const double c = change_[std::size_t(k) * n_ + r];
        rest[0][k] += c * newest[r];
        rest[1][k] += c * f[r];
      }
    for (int k = 0; k < count_; ++k) {
      gamma[k] = rest[1][k];
      gram_[next_][k] = rest[0][k];
      for (int l = 0; l < 8; ++l) gamma[k] += sums[k][l], gram_[next_][k] += grams[k][l];
      gram_[k][next_] = gram_[next_][k];
    }

    double L[memory][memory], trace = 0;
    for (int k = 0; k < count_; ++k) trace += gram_[k][k];
    for (int i = 0; i < count_; ++i) {
      for (int j = 0; j <= i; ++j) {
        double x = gram_[i][j] + (i == j ? 1e-10 * trace : 0.0);
        for (int k = 0; k < j; ++k) x -= L[i][k] * L[j][k];
        if (i == j && !(x > 0)) return false;
        L[i][j] = i == j ? std::sqrt(x) : x / L[j][j];
      }
      for (int k = 0; k < i; ++k) gamma[i] -= L[i][k] * gamma[k];
      gamma[i] /= L[i][i];
    }
    for (int i = count_; i-- > 0;) {
      for (int k = i + 1; k < count_; ++k) gamma[i] -= L[k][i] * gamma[k];
      gamma[i] /= L[i][i];
    }
    return true;
  }
  // to ← s + f − Σ γ (ΔS + ΔF)
  void combine(const double* gamma, int count, double* to) const {
    int r = 0;
    for (; r + 8 <= n_; r += 8) {
      P x = load(&s_[std::size_t(r)]) + load(&f_[std::size_t(r)]);
      for (int k = 0; k < count; ++k) x -= load(&step_[std::size_t(k) * n_ + r]) * gamma[k];
      __builtin_memcpy(to + r, &x, sizeof(P));
    }
    for (; r < n_; ++r) {
      to[r] = s_[std::size_t(r)] + f_[std::size_t(r)];
      for (int k = 0; k < count; ++k) to[r] -= gamma[k] * step_[std::size_t(k) * n_ + r];
    }
  }

  int n_ = 0, count_ = 0, next_ = 0;
  bool begun_ = false;
  std::vector<double> s_, f_, change_, step_;
  double gram_[memory][memory]{};
};

}  // namespace delassus
