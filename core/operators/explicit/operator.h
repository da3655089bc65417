// G as a dense matrix behind the verbs of the matrix-free operator: O(m²) a product and a solve, O(m³) a new damping.
//
//   inverse    x = (G + ε)⁻¹ y by the inverse itself
//   cholesky   x by substitution with G + ε = Uᵀ U
//
// A damping so small that rounding would make a pivot negative is replaced by a larger one in the factor; refinement
// with the true one makes up for it (refinement.h).
#pragma once

#include "operators/explicit.h"

namespace delassus {

enum class DenseSolve { inverse, cholesky };

template <class T, DenseSolve how>
class DenseDelassus final : public Operator<T> {
 public:
  using Real = real_of<T>;

  DenseDelassus(const Model<Real>& model, ConstraintSet<Real> constraints) : E_(model, std::move(constraints)) {
    const std::size_t m = std::size_t(rows());
    room_ = row_room<T>(rows());
    plain_.resize(m * m);
    for (auto* A : {&G_, &A_}) A->resize(m * room_);
    if constexpr (how == DenseSolve::inverse)
      for (auto* A : {&W_, &X_}) A->resize(m * room_);
    compliance_.resize(m);
    damping_.resize(m);
    product_.resize(room_);
    if (strip_lanes<T> > 1) columns_.resize(m);
    memory_.resize(m);
    floors_.resize(m);
  }

  int rows() const override { return E_.rows(); }
  const Layout<Real>& layout() const override { return E_.layout(); }
  std::size_t bytes() const override {
    return E_.bytes() + columns_.bytes() + memory_.bytes() +
           (plain_.size() + G_.size() + A_.size() + W_.size() + X_.size() + floors_.size() + A_aside_.size() +
            X_aside_.size() + damping_aside_.size() + compliance_.size() + damping_.size() + product_.size()) *
               sizeof(T);
  }

  bool update(const T* q) override {
    const MatrixMethod method = E_.best_matrix();
    bool regular = E_.matrix(method, q, plain_.data());
    // J and M⁻¹ are the matrix-free operator's
    if (method == MatrixMethod::ltl) regular = E_.matrix_free().update(q);
    const std::size_t m = std::size_t(rows());
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j) G_[i * room_ + j] = plain_[i * m + j];
    settle();
    return regular;
  }
  void place(const T* q) override { E_.matrix_free().place(q); }
  void set_compliance(const T* compliance) override {
    for (int r = 0; r < rows(); ++r) compliance_[r] = compliance[r];
    settle();
  }
  void set_damping(const T* damping) override {
    const int n = rows();
    const T floor = norm_ * least_damping_share<Real>;
    largest_shift_ = T{};
    for (std::size_t e = 0; e < A_.size(); ++e) A_[e] = G_[e];
    for (int r = 0; r < n; ++r) {
      damping_[r] = damping[r];
      largest_shift_ = std::max(largest_shift_, T(damping[r] + compliance_[r]));
      T& pivot = A_[std::size_t(r) * room_ + r];
      pivot += damping[r] + compliance_[r] > floor ? damping[r] : floor;
    }
    for (int r = 0; r < n; ++r) floors_[r] = dense::pivot_floor(T{}, A_[std::size_t(r) * (room_ + 1)]);
    const auto apart = std::ptrdiff_t(room_);
    dense::factor_cholesky(n, A_.data(), apart, static_cast<const T*>(floors_.data()));
    if constexpr (how == DenseSolve::inverse) {
      for (auto& x : X_) x = T{};
      dense::invert_transposed(n, static_cast<const T*>(A_.data()), apart, W_.data(), apart);
      dense::add_square_transposed(n, static_cast<const T*>(W_.data()), apart, X_.data(), apart);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) X_[std::size_t(i) * room_ + j] = X_[std::size_t(j) * room_ + i];
    }
  }

  void exchange_damping() override {
    for (auto [here, aside] :
         {std::pair(&A_, &A_aside_), std::pair(&X_, &X_aside_), std::pair(&damping_, &damping_aside_)}) {
      aside->resize(here->size());
      here->swap(*aside);
    }
    std::swap(largest_shift_, largest_shift_aside_);
  }

  void apply(const T* X, int columns, T* Y) override {
    by_column_packs(columns_, X, rows(), columns, Y, rows(), [&](auto* x, auto* y) { multiply(x, y); });
  }
  T solve(const T* Y, int columns, T* X, const Accuracy<Real>& wanted) override {
    T worst{};
    by_column_packs(columns_, Y, rows(), columns, X, rows(),
                    [&](auto* y, auto* x) { worst = std::max(worst, refinement_.solve(*this, y, x, wanted)); });
    return worst;
  }
  void backward_error(const T* Y, const T* X, int columns, T* errors) override {
    refinement_.find_errors(*this, Y, X, columns, errors);
  }

  void diagonal(T* d) override {
    for (int r = 0; r < rows(); ++r) d[r] = G_[std::size_t(r) * room_ + r];
  }
  void jacobian(const T* X, int columns, T* Y) override { E_.matrix_free().jacobian(X, columns, Y); }
  void jacobian_transpose(const T* X, int columns, T* Y) override {
    E_.matrix_free().jacobian_transpose(X, columns, Y);
  }
  void mass_inverse(const T* X, int columns, T* Y) override { E_.matrix_free().mass_inverse(X, columns, Y); }

  // What refinement.h needs: one column or a pack of them; x and y apart. Compliance is on the diagonal of G, so that
  // only damping is left out.
  static constexpr bool has_fallbacks = false;
  template <class C>
  void multiply(const C* x, C* y) {
    multiply(G_, x, y);
  }
  // x ← (G + ε)⁻¹ y
  template <class C>
  void invert(const C* y, C* x) {
    if constexpr (how == DenseSolve::inverse) {
      multiply(X_, y, x);
    } else {
      // columns of a pack lie side by side, as those of a matrix do
      std::copy_n(y, rows(), x);
      if constexpr (std::is_same_v<C, T>)
        dense::solve_cholesky(rows(), A_.data(), std::ptrdiff_t(room_), x);
      else
        dense::solve_cholesky(rows(), A_.data(), std::ptrdiff_t(room_), lanes_of<C>, reinterpret_cast<T*>(x),
                              lanes_of<C>);
    }
  }
  DiagonalShift<T> shift() const { return {damping_.data()}; }
  const T& largest_shift() const { return largest_shift_; }
  const T& norm() const { return norm_; }

 private:
  // y ← A x of a symmetric A; of one column a pack of rows at once
  template <class C>
  void multiply(const std::vector<T>& A, const C* x, C* y) {
    const int m = rows();
    if constexpr (std::is_same_v<C, T>) {
      for (int i = 0; i < m; i += row_lanes<T>) {
        RowPack<T> sum{};
        for (int j = 0; j < m; ++j) sum += load_rows(A.data() + std::size_t(j) * room_ + i) * x[j];
        store_rows(product_.data() + i, sum);
      }
      std::copy_n(product_.data(), m, y);
    } else {
      for (int i = 0; i < m; ++i) {
        const T* row = A.data() + std::size_t(i) * room_;
        C sum{};
        for (int j = 0; j < m; ++j) sum += x[j] * row[j];
        y[i] = sum;
      }
    }
  }

  // Compliance on the diagonal, and ‖G‖ from below: its longest row.
  void settle() {
    const std::size_t m = std::size_t(rows());
    for (std::size_t i = 0; i < m; ++i) G_[i * room_ + i] = plain_[i * m + i] + compliance_[i];
    norm_ = longest_row(G_.data(), rows(), room_);
  }

  ExplicitDelassus<T> E_;
  std::size_t room_ = 0;
  std::vector<T> plain_;          // J M⁻¹ Jᵀ as the user's matrices are
  std::vector<T> G_, A_, W_, X_;  // rows `room_` apart: G, the factor of G + ε, the inverse of that, their inverse
  std::vector<T> floors_;         // a row: least pivot
  std::vector<T> compliance_, damping_;
  std::vector<T> A_aside_, X_aside_, damping_aside_;  // of another damping; taken when one is first put aside
  std::vector<T> product_;                            // a row, and room for a register past the last
  T norm_{}, largest_shift_{}, largest_shift_aside_{};
  ColumnPacks<T> columns_;
  RefinementMemory<T> memory_;
  Refinement<T> refinement_{memory_};
};

}  // namespace delassus
