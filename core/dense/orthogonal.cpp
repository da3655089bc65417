#include "dense/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace delassus::dense {

double* OrthogonalFactor::resize(int n) {
  n_ = n;
  const std::size_t size = std::size_t(n);
  A_.resize(size * size);
  for (auto* x : {&left_, &right_, &lengths_, &work_}) x->resize(size);
  order_.resize(size);
  return A_.data();
}

// Column k and all behind it: what is below the diagonal of column k becomes the reflection v, v_k = 1.
void OrthogonalFactor::reflect_rows(int k) {
  double length = 0;
  for (int i = k; i < n_; ++i) length += row(i)[k] * row(i)[k];
  length = std::sqrt(length);
  double* top = row(k);
  if (length == 0) {
    left_[std::size_t(k)] = 0;
    return;
  }
  const double first = top[k], r = first > 0 ? -length : length, over = 1 / (first - r);
  const double tau = left_[std::size_t(k)] = (r - first) / r;
  for (int i = k + 1; i < n_; ++i) row(i)[k] *= over;
  top[k] = r;
  // w = vᵀ A, A ← A − τ v w
  double* w = work_.data();
  for (int j = k + 1; j < n_; ++j) w[j] = top[j];
  for (int i = k + 1; i < n_; ++i) {
    const double *a = row(i), v = a[k];
    for (int j = k + 1; j < n_; ++j) w[j] += v * a[j];
  }
  for (int j = k + 1; j < n_; ++j) w[j] *= tau, top[j] -= w[j];
  for (int i = k + 1; i < n_; ++i) {
    double* a = row(i);
    const double v = a[k];
    for (int j = k + 1; j < n_; ++j) a[j] -= v * w[j];
  }
}

// Row k: what is behind the rank becomes zero, and the reflection w, w_k = 1; rows above are reflected too.
void OrthogonalFactor::reflect_right(int k) {
  double *a = row(k), length = a[k] * a[k];
  for (int j = rank_; j < n_; ++j) length += a[j] * a[j];
  length = std::sqrt(length);
  const double first = a[k], r = first > 0 ? -length : length, over = 1 / (first - r);
  const double tau = right_[std::size_t(k)] = (r - first) / r;
  for (int j = rank_; j < n_; ++j) a[j] *= over;
  a[k] = r;
  for (int i = 0; i < k; ++i) {
    double *b = row(i), sum = b[k];
    for (int j = rank_; j < n_; ++j) sum += a[j] * b[j];
    sum *= tau;
    b[k] -= sum;
    for (int j = rank_; j < n_; ++j) b[j] -= sum * a[j];
  }
}

bool OrthogonalFactor::factor(double threshold) {
  std::iota(order_.begin(), order_.end(), 0);
  std::fill(lengths_.begin(), lengths_.end(), 0.0);
  const auto measure = [&](int k) {
    std::fill(lengths_.begin() + k, lengths_.end(), 0.0);
    for (int i = k; i < n_; ++i)
      for (int j = k; j < n_; ++j) lengths_[std::size_t(j)] += row(i)[j] * row(i)[j];
    return k < n_ ? *std::max_element(lengths_.begin() + k, lengths_.end()) : 0.0;
  };
  double measured = measure(0);  // the longest when lengths were last computed anew
  const bool finite = std::isfinite(std::accumulate(lengths_.begin(), lengths_.end(), 0.0));
  const double least = threshold * threshold * measured;
  rank_ = n_;
  for (int k = 0; k < n_; ++k) {
    // the downdated lengths have rounding errors relative to their initial values
    double longest = *std::max_element(lengths_.begin() + k, lengths_.end());
    if (!(longest > 1e-6 * measured)) longest = measured = measure(k);
    if (!(longest > least)) {
      rank_ = k;
      break;
    }
    const int at = int(std::max_element(lengths_.begin() + k, lengths_.end()) - lengths_.begin());
    if (at != k) {
      for (int i = 0; i < n_; ++i) std::swap(row(i)[k], row(i)[at]);
      std::swap(lengths_[std::size_t(k)], lengths_[std::size_t(at)]);
      std::swap(order_[std::size_t(k)], order_[std::size_t(at)]);
    }
    reflect_rows(k);
    for (int j = k + 1; j < n_; ++j) lengths_[std::size_t(j)] -= row(k)[j] * row(k)[j];
  }
  if (rank_ < n_)
    for (int k = rank_ - 1; k >= 0; --k) reflect_right(k);
  return finite;
}

void OrthogonalFactor::apply_reflection(int k, double* x) const {
  const double *column = A_.data() + k, tau = left_[std::size_t(k)];
  const std::size_t n = std::size_t(n_);
  double sum = x[k];
  for (int i = k + 1; i < n_; ++i) sum += column[std::size_t(i) * n] * x[i];
  sum *= tau;
  x[k] -= sum;
  for (int i = k + 1; i < n_; ++i) x[i] -= sum * column[std::size_t(i) * n];
}
void OrthogonalFactor::apply_right(int k, double* x) const {
  const double *a = A_.data() + std::size_t(k) * std::size_t(n_), tau = right_[std::size_t(k)];
  double sum = x[k];
  for (int j = rank_; j < n_; ++j) sum += a[j] * x[j];
  sum *= tau;
  x[k] -= sum;
  for (int j = rank_; j < n_; ++j) x[j] -= sum * a[j];
}

void OrthogonalFactor::solve(double* x) {
  for (int k = 0; k < rank_; ++k) apply_reflection(k, x);
  // T⁻¹
  for (int i = rank_ - 1; i >= 0; --i) {
    const double* a = row(i);
    double sum = x[i];
    for (int j = i + 1; j < rank_; ++j) sum -= a[j] * x[j];
    x[i] = sum / a[i];
  }
  std::fill(x + rank_, x + n_, 0.0);
  if (rank_ < n_)
    for (int k = 0; k < rank_; ++k) apply_right(k, x);
  for (int k = 0; k < n_; ++k) work_[std::size_t(order_[std::size_t(k)])] = x[k];
  std::copy_n(work_.data(), n_, x);
}

void OrthogonalFactor::solve_transposed(double* x) {
  for (int k = 0; k < n_; ++k) work_[std::size_t(k)] = x[order_[std::size_t(k)]];
  std::copy_n(work_.data(), n_, x);
  if (rank_ < n_)
    for (int k = rank_ - 1; k >= 0; --k) apply_right(k, x);
  // T⁻ᵀ
  for (int i = 0; i < rank_; ++i) {
    const double *a = row(i), now = x[i] /= a[i];
    for (int j = i + 1; j < rank_; ++j) x[j] -= a[j] * now;
  }
  std::fill(x + rank_, x + n_, 0.0);
  for (int k = rank_ - 1; k >= 0; --k) apply_reflection(k, x);
}

}  // namespace delassus::dense
