// Constrained dynamics by one dense factor of both equations together: O((n + m)³), for mechanisms where the fast
// methods lose too many digits. Any rows, loops included.
//
//   [ M   Jᵀ    ] [ δν̇ ]   [ f ]       f = τ − h − M ν̇ + Jᵀ λ,   r = −γ − J ν̇ − C λ,   ν̇ ← ν̇ + δν̇,   λ ← λ + δλ
//   [ J  −C − δ  ] [−δλ ] = [ r ]
//
// Neither M⁻¹ nor R = (C + ε)⁻¹ is in it, so a part of inertia 1e-12 beside one of 1 costs no digits. Rows and columns
// are scaled alike until the largest number of each is about one (Ruiz, "A scaling algorithm to equilibrate both rows
// and columns norms in matrices", 2001), which takes all units out. δ regularises dependent rows; it is not in f and r,
// so iterations remove its effect, as proximal iterations do.
#pragma once

#include <limits>
#include <memory>

#include "dense/lu.h"
#include "operators/explicit/ltl.h"
#include "solvers/single_state.h"

namespace delassus {

template <class T>
class Kkt final : public SingleStateSolver<T> {
  using Base = SingleStateSolver<T>;
  using Base::model_, Base::set_, Base::forcing_, Base::judge_, Base::compliance_;

 public:
  Kkt(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : Base(model, std::move(layout)),
        ltl_(model, set_),
        n_(std::size_t(model.nv + set_.rows)),
        A_(n_ * n_),
        scale_(n_),
        x_(n_),
        pivot_(n_),
        best_(n_) {}

  std::size_t bytes() const override {
    return Base::bytes() + ltl_.bytes() + (A_.size() + 3 * n_) * sizeof(T) + n_ * sizeof(int);
  }

  // As DynamicsSolver says; `damping` is the metric in which contradictory rows are met, and what rows give way by if
  // they do.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    const bool soft = this->gives_way_;
    const std::size_t nv = std::size_t(model_.nv);
    place(q);
    forcing_.find(model_, set_, ltl_.w, q, v, external, gamma);
    std::fill(vdot, vdot + nv, T{});
    *report = {Outcome::unfinished, 0, 0, 0, 0, 0, 0, false};
    const Equations<T> equations{ltl_.w, ltl_.terms.data(), forcing_.forces, tau, forcing_.bias.data(), nullptr};
    Best best{judge_.look(equations, damping, soft, vdot, lambda, tolerance, report)};
    keep(vdot, lambda);
    for (const T shift : shifts) {
      fill(damping);
      equilibrate(shift);
      factor();
      iterate(equations, damping, max_iterations, tolerance, lambda, vdot, report, history, best);
      if (restore(best, vdot, lambda, *report)) judge_.look(equations, damping, soft, vdot, lambda, tolerance, report);
      judge_.conclude(equations, damping, soft, best.solved, tolerance, report, history, max_iterations);
      if (report->outcome != Outcome::stalled) break;
      // from there with less on the diagonal, and the residual that was forgotten
      judge_.look(equations, damping, soft, vdot, lambda, tolerance, report);
    }
    if (report->outcome == Outcome::unfinished && report->iterations < max_iterations)
      report->outcome = Outcome::stalled;
  }

 private:
  // δ, against ones on the other diagonal. A row along which only light parts give way is smaller than the first one.
  static constexpr T shifts[] = {sizeof(T) == 8 ? T(1e-10) : T(1e-4), 64 * std::numeric_limits<T>::epsilon()};

  // Of all answers so far: whether both equations hold, and the larger of their residuals.
  struct Best {
    bool solved;
    T residual = std::numeric_limits<T>::max();
  };

  // Solves for the residuals of both equations and corrects by that, as long as they get smaller.
  void iterate(const Equations<T>& equations, const T* damping, int max_iterations, T tolerance, T* lambda, T* vdot,
               Report<T>* report, T* history, Best& best) {
    const std::size_t nv = std::size_t(model_.nv), m = std::size_t(set_.rows);
    for (int idle = 0; report->iterations < max_iterations;) {
      std::copy_n(judge_.certificate().dynamics(), nv, x_.begin());
      std::copy_n(judge_.certificate().constraints(), m, x_.begin() + std::ptrdiff_t(nv));
      substitute();
      for (std::size_t k = 0; k < nv; ++k) vdot[k] += x_[k];
      for (std::size_t r = 0; r < m; ++r) lambda[r] -= x_[nv + r];
      const int n = report->iterations;
      const bool all = judge_.look(equations, damping, this->gives_way_, vdot, lambda, tolerance, report);
      report->iterations = n + 1;
      report->change = T{};
      for (std::size_t r = 0; r < m; ++r) report->change = std::max(report->change, std::abs(x_[nv + r]));
      if (history) history[n] = report->primal;
      // keep the best; twice without a much better one is the end, or once where both equations hold
      const T residual = std::max(report->dynamics, report->constraints);
      idle = 2 * residual <= best.residual ? 0 : idle + 1;
      if (residual < best.residual) {
        best = {all, residual};
        keep(vdot, lambda);
      }
      if (idle == 2 || (best.solved && (idle == 1 || residual <= 16 * std::numeric_limits<T>::epsilon()))) break;
    }
  }

  void keep(const T* vdot, const T* lambda) {
    std::copy(vdot, vdot + model_.nv, best_.begin());
    std::copy(lambda, lambda + set_.rows, best_.begin() + model_.nv);
  }
  // Returns whether the best answer is another than the last, which then it takes the place of.
  bool restore(const Best& best, T* vdot, T* lambda, const Report<T>& last) {
    if (best.residual == std::max(last.dynamics, last.constraints)) return false;
    std::copy(best_.begin(), best_.begin() + model_.nv, vdot);
    std::copy(best_.begin() + model_.nv, best_.end(), lambda);
    return true;
  }

  void place(const T* q) {
    place_mass_matrix(model_, set_, ltl_, q);
    place_rows(set_, ltl_);
    fill_jacobian(model_, set_, ltl_);
  }

  // The matrix without δ.
  void fill(const T* damping) {
    const std::size_t nv = std::size_t(model_.nv), m = std::size_t(set_.rows);
    std::fill(A_.begin(), A_.end(), T{});
    for (std::size_t k = 0; k < nv; ++k) {
      const T* row = ltl_.M.data() + ltl_.start[k];
      int d = ltl_.depth[k];
      for (int j = int(k); j >= 0; j = model_.dof_parent[j], --d)
        A_[k * n_ + std::size_t(j)] = A_[std::size_t(j) * n_ + k] = row[d];
      if (ltl_.place[k] < 0) continue;
      const T* J = ltl_.Y.data() + std::size_t(ltl_.place[k]) * ltl_.room;
      for (const int p : ltl_.groups[ltl_.group[k]].packs) {
        const std::size_t first = std::size_t(p) * row_lanes<T>, past = std::min(m, first + row_lanes<T>);
        for (std::size_t r = first; r < past; ++r) A_[k * n_ + nv + r] = A_[(nv + r) * n_ + k] = J[r];
      }
    }
    for (std::size_t r = 0; r < m; ++r)
      A_[(nv + r) * n_ + nv + r] = -(this->gives_way_ ? compliance_[r] + damping[r] : compliance_[r]);
  }

  // A ← s A s, eight times, with s = 1 / √(largest entry of the row, or of a constraint's rows): this reduces a spread
  // of 1e30 to 1.3. Then −δ.
  void equilibrate(T shift) {
    std::fill(scale_.begin(), scale_.end(), T(1));
    for (int n = 0; n < 8; ++n) {
      for (std::size_t i = 0; i < n_; ++i) {
        T largest{};
        for (std::size_t j = 0; j < n_; ++j) largest = std::max(largest, std::abs(A_[i * n_ + j]));
        x_[i] = largest;
      }
      // rows of one constraint are scaled alike, lengths and angles separately: a row that is much smaller than its
      // siblings is nearly dependent on others
      for (const auto& c : set_.constraints)
        for (int first : {0, 3}) {
          T* rows = x_.data() + model_.nv + c.row;
          const int past = first == 0 ? std::min(c.rows, 3) : c.rows;
          if (first < past) std::fill(rows + first, rows + past, *std::max_element(rows + first, rows + past));
        }
      for (std::size_t i = 0; i < n_; ++i) {
        x_[i] = x_[i] > 0 ? 1 / std::sqrt(x_[i]) : T(1);
        scale_[i] *= x_[i];
      }
      for (std::size_t i = 0; i < n_; ++i)
        for (std::size_t j = 0; j < n_; ++j) A_[i * n_ + j] *= x_[i] * x_[j];
    }
    for (std::size_t i = std::size_t(model_.nv); i < n_; ++i) A_[i * n_ + i] -= shift;
  }

  // P A = L U in place; a pivot of zero becomes one of rounding
  void factor() {
    dense::factor_lu(int(n_), A_.data(), std::ptrdiff_t(n_), pivot_.data(), std::numeric_limits<T>::epsilon());
  }
  // x ← s (L U)⁻¹ P s x
  void substitute() {
    for (std::size_t i = 0; i < n_; ++i) x_[i] *= scale_[i];
    dense::solve_lu(int(n_), static_cast<const T*>(A_.data()), std::ptrdiff_t(n_),
                    static_cast<const int*>(pivot_.data()), x_.data());
    for (std::size_t i = 0; i < n_; ++i) x_[i] *= scale_[i];
  }

  LtlWork<T> ltl_;                // placements, M and J; no factor
  std::size_t n_;                 // velocities and rows
  std::vector<T> A_, scale_, x_;  // the matrix or its factor; s; a right-hand side or solution
  std::vector<int> pivot_;
  std::vector<T> best_;  // ν̇ and λ
};

}  // namespace delassus
