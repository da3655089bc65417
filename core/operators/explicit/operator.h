// G as a dense matrix behind the verbs of the matrix-free operator: O(m²) a product and a solve, O(m³) a new damping.
//
//   inverse    x = (G + ε)⁻¹ y by the inverse itself
//   cholesky   x by substitution with G + ε = Uᵀ U
//
// A damping so small that rounding would make a pivot negative is replaced by a larger one in the factor; refinement
// with the true one makes up for it.
#pragma once

#include "operators/explicit.h"

namespace delassus {

enum class DenseSolve { inverse, cholesky };

template <class T, DenseSolve how>
class DenseDelassus final : public Operator<T> {
 public:
  using Real = real_of<T>;
  using Columns = StripPack<T>;

  DenseDelassus(const Model<Real>& model, ConstraintSet<Real> constraints) : E_(model, std::move(constraints)) {
    const std::size_t m = std::size_t(rows());
    room_ = row_room<T>(rows());
    plain_.resize(m * m);
    for (auto* A : {&G_, &A_}) A->resize(m * room_);
    if constexpr (how == DenseSolve::inverse)
      for (auto* A : {&W_, &X_}) A->resize(m * room_);
    compliance_.resize(m);
    damping_.resize(m);
    floors_.resize(m);
    one_.resize(m);
    many_.resize(m);
  }

  int rows() const override { return E_.rows(); }
  const Layout<Real>& layout() const override { return E_.layout(); }
  std::size_t bytes() const override {
    return E_.bytes() + one_.bytes() + many_.bytes() +
           (plain_.size() + G_.size() + A_.size() + W_.size() + X_.size() + floors_.size() + A_aside_.size() +
            X_aside_.size() + damping_aside_.size() + compliance_.size() + damping_.size()) *
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
    const T floor = norm_ * (1400 * std::numeric_limits<Real>::epsilon());
    for (std::size_t e = 0; e < A_.size(); ++e) A_[e] = G_[e];
    for (int r = 0; r < n; ++r) {
      damping_[r] = damping[r];
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
  }

  void apply(const T* X, int columns, T* Y) override {
    pass(X, columns, Y, [&](auto& s, auto* x, auto* y) { multiply(G_, x, y, s); });
  }
  T solve(const T* Y, int columns, T* X, const Accuracy<Real>& wanted) override {
    T worst{};
    pass(Y, columns, X, [&](auto& s, auto* y, auto* x) {
      invert(y, x, s);
      if (wanted.refinements > 0) worst = std::max(worst, refine(s, y, x, wanted));
    });
    return worst;
  }
  void backward_error(const T* Y, const T* X, int columns, T* errors) override {
    T *x = one_.out.data(), *y = one_.in.data();
    for (int c = 0; c < columns; ++c) {
      for (int r = 0; r < rows(); ++r) x[r] = X[std::size_t(r) * columns + c], y[r] = Y[std::size_t(r) * columns + c];
      find_errors(one_, y, x, &errors[c]);
    }
  }

  void diagonal(T* d) override {
    for (int r = 0; r < rows(); ++r) d[r] = G_[std::size_t(r) * room_ + r];
  }
  void jacobian(const T* X, int columns, T* Y) override { E_.matrix_free().jacobian(X, columns, Y); }
  void jacobian_transpose(const T* X, int columns, T* Y) override {
    E_.matrix_free().jacobian_transpose(X, columns, Y);
  }
  void mass_inverse(const T* X, int columns, T* Y) override { E_.matrix_free().mass_inverse(X, columns, Y); }

 private:
  // Memory of one column or of a pack of columns.
  template <class C>
  struct Passage {
    std::vector<C> in, out, rest, part, best;
    void resize(std::size_t m) {
      for (auto* x : {&in, &out, &rest, &part, &best}) x->resize(m + row_lanes<T>);
    }
    std::size_t bytes() const { return 5 * in.size() * sizeof(C); }
  };

  template <class F>
  void pass(const T* X, int columns, T* Y, F&& work) {
    const int m = rows();
    if (columns == 1) {
      std::copy_n(X, m, one_.in.data());
      work(one_, one_.in.data(), one_.out.data());
      std::copy_n(one_.out.data(), m, Y);
      return;
    }
    if constexpr (strip_lanes<T> > 1)
      for (int first = 0; first < columns; first += strip_lanes<T>) {
        const int count = std::min(columns - first, strip_lanes<T>);
        for (int r = 0; r < m; ++r) many_.in[r] = load_columns<Columns>(X + std::size_t(r) * columns + first, count);
        work(many_, many_.in.data(), many_.out.data());
        for (int r = 0; r < m; ++r) store_columns<Columns>(Y + std::size_t(r) * columns + first, many_.out[r], count);
      }
  }

  // y ← A x of a symmetric A; of one column a pack of rows at once
  template <class C, class S>
  void multiply(const std::vector<T>& A, const C* x, C* y, S&) const {
    const int m = rows();
    if constexpr (std::is_same_v<C, T>) {
      for (int i = 0; i < m; i += row_lanes<T>) {
        RowPack<T> sum{};
        for (int j = 0; j < m; ++j) sum += load_rows(A.data() + std::size_t(j) * room_ + i) * x[j];
        store_rows(y + i, sum);
      }
    } else {
      for (int i = 0; i < m; ++i) {
        const T* row = A.data() + std::size_t(i) * room_;
        C sum{};
        for (int j = 0; j < m; ++j) sum += x[j] * row[j];
        y[i] = sum;
      }
    }
  }

  // x ← (G + ε)⁻¹ y, y and x apart
  template <class C, class S>
  void invert(const C* y, C* x, S& s) const {
    if constexpr (how == DenseSolve::inverse) {
      multiply(X_, y, x, s);
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

  // Residual of x to `rest`, and the normwise backward errors of its columns.
  template <class C, class S>
  void find_errors(S& s, const C* y, const C* x, Real* errors) {
    const int m = rows();
    T shift{};
    for (int r = 0; r < m; ++r) shift = std::max(shift, T(damping_[r] + compliance_[r]));
    const T size = std::max(shift, norm_);
    C rr{}, xx{}, yy{};
    multiply(G_, x, s.rest.data(), s);
    for (int r = 0; r < m; ++r) {
      s.rest[r] = y[r] - s.rest[r] - x[r] * damping_[r];
      rr += s.rest[r] * s.rest[r];
      xx += x[r] * x[r];
      yy += y[r] * y[r];
    }
    for (int k = 0; k < lanes_of<C>; ++k) {
      const Real all = size * std::sqrt(lane(xx, k)) + std::sqrt(lane(yy, k));
      errors[k] = all > 0 ? std::sqrt(lane(rr, k)) / all : Real(0);
    }
  }

  // Refines x by its residual as long as that brings the normwise backward error down, column by column. Returns the
  // largest.
  template <class C, class S>
  Real refine(S& s, const C* y, C* x, const Accuracy<Real>& wanted) {
    constexpr int lanes = lanes_of<C>;
    const int m = rows();
    Real best[lanes], now[lanes];
    std::fill_n(best, lanes, std::numeric_limits<Real>::infinity());
    for (int n = 0;; ++n) {
      find_errors(s, y, static_cast<const C*>(x), now);
      bool go_on = false;
      for (int k = 0; k < lanes; ++k) {
        const bool better = now[k] < best[k];
        if (better || !std::isinf(best[k]))
          for (int r = 0; r < m; ++r) better ? lane(s.best[r], k) = lane(x[r], k) : lane(x[r], k) = lane(s.best[r], k);
        go_on = go_on || (better && now[k] > wanted.goal);
        if (better) best[k] = now[k];
      }
      if (!go_on || n == wanted.refinements) return *std::max_element(best, best + lanes);
      invert(static_cast<const C*>(s.rest.data()), s.part.data(), s);
      for (int r = 0; r < m; ++r) x[r] += s.part[r];
    }
  }

  // Compliance on the diagonal, and ‖G‖ from below: its longest column.
  void settle() {
    const std::size_t m = std::size_t(rows());
    T most{};
    for (std::size_t i = 0; i < m; ++i) {
      T* row = &G_[i * room_];
      row[i] = plain_[i * m + i] + compliance_[i];
      T sum{};
      for (std::size_t j = 0; j < m; ++j) sum += row[j] * row[j];
      most = std::max(most, sum);
    }
    norm_ = std::sqrt(most);
  }

  ExplicitDelassus<T> E_;
  std::size_t room_ = 0;
  std::vector<T> plain_;          // J M⁻¹ Jᵀ as the user's matrices are
  std::vector<T> G_, A_, W_, X_;  // rows `room_` apart: G, the factor of G + ε, the inverse of that, their inverse
  std::vector<T> floors_;         // a row: least pivot
  std::vector<T> compliance_, damping_;
  std::vector<T> A_aside_, X_aside_, damping_aside_;  // of another damping; taken when one is first put aside
  Passage<T> one_;
  Passage<Columns> many_;
  T norm_{};
};

}  // namespace delassus
