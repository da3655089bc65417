#include "solvers/operational.h"

#include <algorithm>

namespace delassus {

namespace {

// A matrix is formed only where a product with it has at most this many multiply-adds per row and velocity of the
// operator: about what the sweeps of a solution and its refinement take.
constexpr int multiply_adds_of_sweeps = 40;

// At least this many numbers; more are kept.
template <class Real>
Real* sized(std::vector<Real>& memory, int rows, int columns) {
  const std::size_t count = std::size_t(rows) * std::size_t(columns);
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

// Some numbers side by side, wherever they lie.
template <class Real>
Pack<Real, 8> load(const Real* x) {
  Pack<Real, 8> pack;
  __builtin_memcpy(&pack, x, sizeof pack);
  return pack;
}

// y = A x for A (rows × inner), row-major: eight partial sums a row.
template <class Real>
void multiply_vector(const Real* A, int rows, int inner, const Real* x, Real* y) {
  for (int i = 0; i < rows; ++i) {
    const Real* a = A + std::size_t(i) * std::size_t(inner);
    Pack<Real, 8> sums{};
    int j = 0;
    for (; j + 8 <= inner; j += 8) sums += load(a + j) * load(x + j);
    Real sum{};
    for (; j < inner; ++j) sum += a[j] * x[j];
    for (int k = 0; k < 8; ++k) sum += sums[k];
    y[i] = sum;
  }
}

// Y = A X for the entries A(i, j) = A[i down + j across], X (inner × columns) and Y (rows × columns) row-major. Eight
// columns of X at a time are put side by side in `panel`, and with them blocks of four rows are summed in registers.
template <class Real>
void multiply_columns(const Real* A, std::size_t down, std::size_t across, int rows, int inner, const Real* X,
                      int columns, Real* Y, Real* panel) {
  const std::size_t width = std::size_t(columns);
  for (int k = 0; k < columns; k += 8) {
    const int taken = std::min(8, columns - k);
    const std::size_t bytes = std::size_t(taken) * sizeof(Real);
    for (int j = 0; j < inner; ++j) {
      const Real* x = X + std::size_t(j) * width + std::size_t(k);
      Pack<Real, 8> row{};
      if (taken == 8)
        row = load(x);
      else
        __builtin_memcpy(&row, x, bytes);
      __builtin_memcpy(panel + 8 * j, &row, sizeof row);
    }
    for (int i = 0; i < rows; i += 4) {
      // rows beyond the last are summed as the last
      const int height = std::min(4, rows - i);
      const Real* a[4];
      for (int r = 0; r < 4; ++r) a[r] = A + std::size_t(i + std::min(r, height - 1)) * down;
      Pack<Real, 8> sums[4]{};
      for (int j = 0; j < inner; ++j) {
        const auto x = load(panel + 8 * j);
        for (int r = 0; r < 4; ++r) sums[r] += a[r][std::size_t(j) * across] * x;
      }
      for (int r = 0; r < height; ++r) {
        Real* y = Y + std::size_t(i + r) * width + std::size_t(k);
        if (taken == 8)
          __builtin_memcpy(y, &sums[r], sizeof sums[r]);
        else
          __builtin_memcpy(y, &sums[r], bytes);
      }
    }
  }
}

// Y = A X, or Aᵀ X, for A (rows × inner) as stored.
template <class Real>
void multiply(const Real* A, int rows, int inner, bool transposed, const Real* X, int columns, Real* Y,
              std::vector<Real>& panel) {
  if (transposed)
    multiply_columns(A, 1, std::size_t(inner), inner, rows, X, columns, Y, sized(panel, 8, rows));
  else if (columns == 1)
    multiply_vector(A, rows, inner, X, Y);
  else
    multiply_columns(A, std::size_t(inner), 1, rows, inner, X, columns, Y, sized(panel, 8, inner));
}

}  // namespace

template <class Real>
OperationalSpace<Real>::OperationalSpace(Operator<Real>& G, int velocities, int iterations)
    : G_(G), n_(velocities), m_(G.rows()), iterations_(iterations) {}

template <class Real>
Real OperationalSpace<Real>::apply(OperationalMap map, bool transposed, std::size_t version, const Real* X, int columns,
                                   Real* Y, const Accuracy<Real>& wanted) {
  if (version_ != version) {
    version_ = version;
    asked_ = 0;
    formed_ = {};
  }
  if (!pays(map)) return sweep(map, transposed, X, columns, Y, wanted);
  if (!formed_[std::size_t(map)]) {
    asked_ = std::min(asked_ + columns, m_ + 1);
    if (2 * asked_ <= m_) return sweep(map, transposed, X, columns, Y, wanted);
    form(map, wanted);
  }
  multiply(matrices_[std::size_t(map)].data(), rows_of(map), columns_of(map), transposed, X, columns, Y, panel_);
  return error_;
}

// Whether a product with the map's matrix is cheaper than one without.
template <class Real>
bool OperationalSpace<Real>::pays(OperationalMap map) const {
  return rows_of(map) * columns_of(map) <= multiply_adds_of_sweeps * (n_ + m_);
}

// Λ of the identity; J̄ = (M⁻¹ Jᵀ) Λ; N = 1 − J̄ J. Each needs those before it.
template <class Real>
void OperationalSpace<Real>::form(OperationalMap map, const Accuracy<Real>& wanted) {
  const std::size_t which = std::size_t(map);
  if (formed_[which]) return;
  if (which > 0) form(OperationalMap(which - 1), wanted);
  Real* matrix = sized(matrices_[which], rows_of(map), columns_of(map));
  const std::size_t n = std::size_t(n_), m = std::size_t(m_);
  switch (map) {
    case OperationalMap::inertia: {
      Real* identity = sized(identity_, m_, m_);
      std::fill_n(identity, m * m, Real(0));
      for (std::size_t i = 0; i < m; ++i) identity[i * (m + 1)] = Real(1);
      error_ = forces(identity, m_, matrix, wanted);
      break;
    }
    case OperationalMap::pseudo_inverse: {
      Real* JT = sized(transposed_, n_, m_);
      Real* MinvJT = sized(accelerations_, n_, m_);
      G_.jacobian_transpose(identity_.data(), m_, JT);
      G_.mass_inverse(JT, m_, MinvJT);
      multiply(MinvJT, n_, m_, false, matrices_[0].data(), m_, matrix, panel_);
      break;
    }
    case OperationalMap::null_space: {
      // Nᵀ = 1 − Jᵀ J̄ᵀ row by row: N(i, j) = δ(i, j) − Σ J̄(i, r) Jᵀ(j, r)
      for (std::size_t i = 0; i < n; ++i) {
        multiply_vector(transposed_.data(), n_, m_, matrices_[1].data() + i * m, matrix + i * n);
        for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] = Real(i == j) - matrix[i * n + j];
      }
    }
  }
  formed_[which] = true;
}

template <class Real>
Real OperationalSpace<Real>::sweep(OperationalMap map, bool transposed, const Real* X, int columns, Real* Y,
                                   const Accuracy<Real>& wanted) {
  const std::size_t count = std::size_t(n_) * std::size_t(columns);
  Real error{};
  switch (map) {
    case OperationalMap::inertia:
      return forces(X, columns, Y, wanted);
    case OperationalMap::pseudo_inverse:
      return transposed ? row_forces(X, columns, Y, wanted) : velocities(X, columns, Y, wanted);
    case OperationalMap::null_space: {
      Real* rows = sized(rows_, m_, columns);
      if (transposed) {  // τ − Jᵀ (J̄ᵀ τ)
        error = row_forces(X, columns, rows, wanted);
        G_.jacobian_transpose(rows, columns, Y);
      } else {  // v − J̄ (J v)
        G_.jacobian(X, columns, rows);
        error = velocities(rows, columns, Y, wanted);
      }
      for (std::size_t k = 0; k < count; ++k) Y[k] = X[k] - Y[k];
    }
  }
  return error;
}

// Λ Y by proximal iterations.
template <class Real>
Real OperationalSpace<Real>::forces(const Real* Y, int columns, Real* X, const Accuracy<Real>& wanted) {
  Real worst = G_.solve(Y, columns, X, wanted);
  if (iterations_ == 1) return worst;
  const std::size_t count = std::size_t(m_) * std::size_t(columns);
  Real* residual = sized(residual_, m_, columns);
  Real* correction = sized(correction_, m_, columns);
  for (int k = 1; k < iterations_; ++k) {
    G_.apply(X, columns, residual);
    for (std::size_t i = 0; i < count; ++i) residual[i] = Y[i] - residual[i];
    worst = std::max(worst, G_.solve(residual, columns, correction, wanted));
    for (std::size_t i = 0; i < count; ++i) X[i] += correction[i];
  }
  return worst;
}

// J̄ Y = M⁻¹ Jᵀ Λ Y
template <class Real>
Real OperationalSpace<Real>::velocities(const Real* Y, int columns, Real* V, const Accuracy<Real>& wanted) {
  Real* lambda = sized(lambda_, m_, columns);
  Real* tau = sized(accelerations_, n_, columns);
  const Real error = forces(Y, columns, lambda, wanted);
  G_.jacobian_transpose(lambda, columns, tau);
  G_.mass_inverse(tau, columns, V);
  return error;
}

// J̄ᵀ τ = Λ J M⁻¹ τ
template <class Real>
Real OperationalSpace<Real>::row_forces(const Real* tau, int columns, Real* lambda, const Accuracy<Real>& wanted) {
  Real* accelerations = sized(accelerations_, n_, columns);
  Real* y = sized(lambda_, m_, columns);
  G_.mass_inverse(tau, columns, accelerations);
  G_.jacobian(accelerations, columns, y);
  return forces(y, columns, lambda, wanted);
}

template class OperationalSpace<double>;
template class OperationalSpace<float>;

}  // namespace delassus
