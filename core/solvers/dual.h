// Proximal iterations on the dual of constrained dynamics, its matrix dense: O(m³ / 3) once, O(m²) each.
//
//   λₖ₊₁ = (G + C + ε)⁻¹ (β + ε λₖ) = λₖ + (G + C + ε)⁻¹ rₖ,   r = β − (G + C) λ,   β = b − J M⁻¹ (τ − h)
//
// r is the residual of the constraints. It is computed from G itself, so it is free of the rounding of the factor. J ν̇
// = b − C λ − r.
//
// "Constrained Articulated Body Dynamics Algorithms", equation 13.
#pragma once

#include "dense/cholesky.h"
#include "operators/explicit/packs.h"
#include "solvers/progress.h"

namespace delassus {

template <class T>
class Dual {
  static_assert(lanes_of<T> == 1);

 public:
  // `order` has the user's numbers of the matrix' rows; all others act on nothing.
  Dual(int rows, std::vector<int> order) : n_(int(order.size())), row_(std::move(order)) {
    room_ = row_room<T>(n_);
    std::vector<char> known(std::size_t(rows), 0);
    for (const int r : row_) known[std::size_t(r)] = 1;
    for (int r = 0; r < rows; ++r)
      if (!known[std::size_t(r)]) row_.push_back(r);
    A_.assign(std::size_t(n_) * room_, T{});
    for (auto* x : {&floors_, &shift_, &target_, &lambda_, &left_, &step_, &moved_})
      x->assign(room_ + row_.size() - std::size_t(n_), T{});
  }
  std::size_t bytes() const { return (A_.size() + 7 * step_.size()) * sizeof(T) + row_.size() * sizeof(int); }

  // To be filled with J M⁻¹ (τ − h) in the order of the matrix, zero beyond it; and the forces in that order.
  T* target() {
    std::fill(target_.begin(), target_.end(), T{});
    return target_.data();
  }
  const T* forces() const { return lambda_.data(); }

  // x ← (G + C + ε)⁻¹ y, both in the user's order, with the factor of the last solution
  void invert(const T* y, T* x) {
    for (int i = 0; i < int(row_.size()); ++i) step_[at(i)] = y[row_[std::size_t(i)]];
    dense::solve_cholesky(n_, static_cast<const T*>(A_.data()), std::ptrdiff_t(room_), step_.data());
    for (int i = 0; i < int(row_.size()); ++i)
      x[row_[std::size_t(i)]] = i < n_ ? step_[at(i)] : step_[at(i)] / shift_[at(i)];
  }

  // The same in the order of the matrix, as it was last found.
  const T* inverted() const { return step_.data(); }

  // G: its upper triangle on entry, both on exit; rows `stride` apart, a register of room past every row. λ: what to
  // start from on entry, the forces on exit.
  void solve(T* G, std::size_t stride, const T* bias, const T* compliance, const T* damping, int max_iterations,
             T tolerance, T* lambda, Report<T>* report, T* history) {
    const int m = int(row_.size());
    for (int i = 0; i < m; ++i) {
      const int r = row_[std::size_t(i)];
      shift_[at(i)] = compliance[r] + damping[r];
      target_[at(i)] = -bias[r] - target_[at(i)];
      lambda_[at(i)] = lambda[r];
    }
    for (int i = 0; i < n_; ++i) {
      T *row = G + std::size_t(i) * stride, *copy = A_.data() + std::size_t(i) * room_;
      for (int j = 0; j < i; ++j) row[j] = G[std::size_t(j) * stride + i];
      for (int j = i; j < n_; ++j) copy[j] = row[j];
      copy[i] += shift_[i];
      floors_[i] = dense::pivot_floor(shift_[i], copy[i]);
    }
    dense::factor_cholesky(n_, A_.data(), std::ptrdiff_t(room_), static_cast<const T*>(floors_.data()));

    Progress<T> progress(m, max_iterations, tolerance, report, history);
    for (int i = 0; i < m; ++i) progress.expect(target_[at(i)], damping[row_[std::size_t(i)]]);
    find_left(G, stride, compliance);
    while (!progress.over()) {
      std::copy(left_.begin(), left_.end(), step_.begin());
      dense::solve_cholesky(n_, static_cast<const T*>(A_.data()), std::ptrdiff_t(room_), step_.data());
      for (int i = n_; i < m; ++i) step_[at(i)] /= shift_[at(i)];
      for (int i = 0; i < m; ++i) {
        lambda_[at(i)] += step_[at(i)];
        moved_[at(i)] = left_[at(i)] - compliance[row_[std::size_t(i)]] * step_[at(i)];
      }
      find_left(G, stride, compliance);
      for (int i = 0; i < m; ++i)
        progress.row(left_[at(i)], moved_[at(i)] - left_[at(i)], damping[row_[std::size_t(i)]]);
      progress.end_iteration();
    }
    progress.end(damping, m);
    for (int i = 0; i < m; ++i) lambda[row_[std::size_t(i)]] = lambda_[at(i)];
  }

 private:
  // rows that act on nothing are kept apart
  std::size_t at(int i) const { return i < n_ ? std::size_t(i) : room_ + std::size_t(i - n_); }

  // r = β − (G + C) λ
  void find_left(const T* G, std::size_t stride, const T* compliance) {
    constexpr int lanes = row_lanes<T>;
    for (int i = 0; i < int(row_.size()); ++i)
      left_[at(i)] = target_[at(i)] - compliance[row_[std::size_t(i)]] * lambda_[at(i)];
    for (int k = 0; k < n_; ++k)
      for (int c = 0; c < n_; c += lanes)
        store_rows(&left_[std::size_t(c)],
                   RowPack<T>(load_rows(&left_[std::size_t(c)]) -
                              load_rows(G + std::size_t(k) * stride + c) * lambda_[std::size_t(k)]));
    for (std::size_t i = std::size_t(n_); i < room_; ++i) left_[i] = T{};
  }

  int n_;
  std::size_t room_;
  std::vector<int> row_;
  std::vector<T> A_;  // the factor of G + C + ε
  std::vector<T> floors_, shift_, target_, lambda_, left_, step_,
      moved_;  // a row: least pivot, C + ε, β, λ, r, its step, r that J ν̇ alone would have changed
};

}  // namespace delassus
