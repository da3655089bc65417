#include "solvers/contacts/anderson.h"

#include "dense/small.h"

namespace delassus {
namespace {

using P = Pack<double, 8>;
P load(const double* x) {
  P p;
  __builtin_memcpy(&p, x, sizeof(P));
  return p;
}

}  // namespace

void Anderson::resize(int n) {
  n_ = n;
  for (auto* x : {&s_, &f_}) x->resize(std::size_t(n));
  for (auto* x : {&change_, &step_}) x->resize(std::size_t(n) * memory);
  forget();
}

bool Anderson::advance(const double* s, const double* f, double* to) {
  if (begun_) {
    double *change = &change_[std::size_t(next_) * n_], *step = &step_[std::size_t(next_) * n_];
    for (int r = 0; r < n_; ++r) {
      change[r] = f[r] - f_[r];
      step[r] = s[r] - s_[r] + change[r];
    }
    count_ = std::min(count_ + 1, memory);
  }
  // the newest column of ΔF replaces the oldest; then γ and the step
  double gamma[memory]{};
  const bool weighed = begun_ && weigh(f, gamma);
  if (begun_) next_ = (next_ + 1) % memory;
  begun_ = true;
  std::copy_n(s, n_, s_.data());
  std::copy_n(f, n_, f_.data());
  combine(gamma, weighed ? count_ : 0, to);
  return weighed;
}

// (ΔFᵀ ΔF + tiny) γ = ΔFᵀ f; products with the newest column and with f in one pass
bool Anderson::weigh(const double* f, double* gamma) {
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

  double trace = 0;
  for (int k = 0; k < count_; ++k) trace += gram_[k][k];
  return dense::solve_small(count_, gram_, 1e-10 * trace, gamma);
}

void Anderson::combine(const double* gamma, int count, double* to) const {
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

}  // namespace delassus
