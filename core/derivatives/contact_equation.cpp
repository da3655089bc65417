#include "derivatives/contact_equation.h"

#include <algorithm>
#include <cmath>

#include "dense/vectors.h"
#include "operators/block_inverse.h"

namespace delassus {
namespace {

constexpr double first_delta = 0x1p-30, last_delta = 0x1p-24;  // δ, powers of two: 1 + δ − C is exact where C is one
constexpr double good_factor = 1e-3;  // residual of A_δ⁻¹, over the right-hand side, with which refinement goes well
constexpr double good_rest = 1e-10;   // of a solution, and of a projection
constexpr double product_rounding = 1e-12;  // of G over many links, over the forces
constexpr double good_null = 1e-14;         // what A feels of what it should not
constexpr double at_rounding = 1e-15;       // of a residual, over the right-hand side
constexpr double consistent = 1e-12;        // the same: what is above is a part of b that no x meets
constexpr int refinements = 12, lsqr_iterations = 60;

double length(int n, const double* x) { return std::sqrt(dense::dot(n, x, x)); }

}  // namespace

void ContactEquation::resize(const ForceSets& K) {
  K_ = &K, rows_ = K.rows;
  const std::size_t m = std::size_t(rows_);
  begin_.assign(1, 0);
  for (const auto& c : K.cones) begin_.push_back(begin_.back() + std::size_t(c.rows) * std::size_t(c.rows));
  const std::size_t size = begin_.back() + K.intervals.size();
  E_.assign(size, 0.0);
  C_.assign(size, 0.0);
  for (auto* x : {&inverse_, &stiffness_}) x->resize(size);
  for (auto* x : {&unit_, &in_, &out_, &w_, &z_, &b_, &x_, &rest_, &step_, &u_, &v_, &t_, &p_, &next_}) x->resize(m);
  active_.reserve(m);
}

void ContactEquation::multiply(const std::vector<double>& blocks, bool transposed, const double* x, double* y) const {
  for (std::size_t k = 0; k < K_->cones.size(); ++k)
    with_rows(K_->cones[k], [&](auto n) {
      const double *B = blocks.data() + begin_[k], *from = x + K_->cones[k].row;
      double* to = y + K_->cones[k].row;
      for (int a = 0; a < n(); ++a) {
        double sum = 0;
        for (int c = 0; c < n(); ++c) sum += (transposed ? B[n() * c + a] : B[n() * a + c]) * from[c];
        to[a] = sum;
      }
    });
  const double* B = blocks.data() + begin_.back();
  for (std::size_t k = 0; k < K_->intervals.size(); ++k) y[K_->intervals[k].row] = B[k] * x[K_->intervals[k].row];
}

bool ContactEquation::factor(ContactMap& G, const double* d, int max_dense, double threshold) {
  G_ = &G;
  for (int r = 0; r < rows_; ++r) unit_[std::size_t(r)] = 1 / std::sqrt(d[r]);
  // rows of C that are not zero
  is_active_.assign(std::size_t(rows_), 0);
  for (std::size_t k = 0; k < K_->cones.size(); ++k) {
    const int n = K_->cones[k].rows;
    const double* C = cone_C(k);
    for (int a = 0; a < n; ++a)
      is_active_[std::size_t(K_->cones[k].row + a)] =
          std::any_of(C + n * a, C + n * (a + 1), [](double x) { return x != 0; });
  }
  for (std::size_t k = 0; k < K_->intervals.size(); ++k)
    is_active_[std::size_t(K_->intervals[k].row)] = interval_C(k) != 0;
  active_.clear();
  for (int r = 0; r < rows_; ++r)
    if (is_active_[std::size_t(r)]) active_.push_back(r);

  dense_ = int(active_.size()) <= max_dense || dynamic_cast<DenseMap*>(&G) || !factor_blocks(G);
  threshold_ = threshold;
  return !dense_ || factor_densely();
}

bool ContactEquation::factor_densely() {
  form_matrix(*G_);
  const bool finite = factor_.factor(threshold_);
  redundant_ = factor_.rank() < factor_.size();
  return dense_ = true, finite;
}

// A in active rows and columns, in the unit of √d dλ: E + C Ĝ, Ĝ = G / √(d dᵀ)
void ContactEquation::form_matrix(ContactMap& G) {
  const std::size_t n = active_.size();
  const auto* matrix = dynamic_cast<const DenseMap*>(&G);
  if (!matrix) {
    matrix_.resize(std::size_t(rows_) * n);
    std::fill(in_.begin(), in_.end(), 0.0);
    for (std::size_t j = 0; j < n; ++j) {
      in_[std::size_t(active_[j])] = 1;
      G.apply(in_.data(), out_.data());
      in_[std::size_t(active_[j])] = 0;
      for (std::size_t r = 0; r < out_.size(); ++r) matrix_[r * n + j] = out_[r];
    }
  }
  double* A = factor_.resize(int(n));
  packed_.resize(n);
  std::fill_n(A, n * n, 0.0);
  place_.assign(std::size_t(rows_), -1);
  for (std::size_t i = 0; i < n; ++i) place_[std::size_t(active_[i])] = int(i);
  // row i: Σ_k C_ik ĝ_k + E_i
  const auto add_row = [&](std::size_t i, int first, int count, const double* E, const double* C) {
    double* to = A + i * n;
    for (int k = 0; k < count; ++k) {
      if (C[k] == 0) continue;
      const std::size_t row = std::size_t(first + k);
      const double scaled = C[k] * unit_[row];
      if (matrix) {
        const double* g = matrix->matrix() + row * std::size_t(rows_);
        for (std::size_t j = 0; j < n; ++j) to[j] += scaled * g[active_[j]];
      } else {
        const double* g = matrix_.data() + row * n;
        for (std::size_t j = 0; j < n; ++j) to[j] += scaled * g[j];
      }
    }
    for (std::size_t j = 0; j < n; ++j) to[j] *= unit_[std::size_t(active_[j])];
    for (int k = 0; k < count; ++k)
      if (const int j = place_[std::size_t(first + k)]; j >= 0) to[j] += E[k];
  };
  for (std::size_t k = 0; k < K_->cones.size(); ++k) {
    const Cone& c = K_->cones[k];
    for (int a = 0; a < c.rows; ++a)
      if (const int i = place_[std::size_t(c.row + a)]; i >= 0)
        add_row(std::size_t(i), c.row, c.rows, cone_E(k) + c.rows * a, cone_C(k) + c.rows * a);
  }
  for (std::size_t k = 0; k < K_->intervals.size(); ++k)
    if (const int i = place_[std::size_t(K_->intervals[k].row)]; i >= 0)
      add_row(std::size_t(i), K_->intervals[k].row, 1, &interval_E(k), &interval_C(k));
}

// The factor with the least δ that leaves digits. Loops with stiff blocks may have none; then it is used only where
// there are too many rows for a dense one.
bool ContactEquation::factor_blocks(ContactMap& G) {
  for (delta_ = first_delta; delta_ <= last_delta; delta_ *= 64) {
    if (!set_stiffness(G)) return false;
    if (judge_factor()) return true;
  }
  delta_ = last_delta;
  return int(active_.size()) > DenseMap::max_block_rows;
}

// E_δ⁻¹ and B of all sets. Whether G has such a factor, and its transposed.
bool ContactEquation::set_stiffness(ContactMap& G) {
  const BlockIndex* index = G.block_index(*K_);
  if (!index || !G.has_transposed_response()) return false;
  real_stiffness_.assign(index->size, 0.0);
  double shifted[max_cone_rows * max_cone_rows];
  int exchanged[max_cone_rows];
  const auto set = [&](int row, int n, std::size_t begin) {
    const double *E = E_.data() + begin, *C = C_.data() + begin;
    double *inverse = inverse_.data() + begin, *stiffness = stiffness_.data() + begin;
    std::copy_n(E, n * n, shifted);
    for (int a = 0; a < n; ++a) shifted[(n + 1) * a] += is_active_[std::size_t(row + a)] ? delta_ : 0;
    invert_block(n, shifted, inverse, exchanged);
    const double unit = unit_[std::size_t(row)] * unit_[std::size_t(row)];
    for (int a = 0; a < n; ++a)
      for (int c = 0; c < n; ++c) {
        double sum = 0;
        for (int k = 0; k < n; ++k) sum += inverse[n * a + k] * C[n * k + c];
        stiffness[n * a + c] = sum;
        real_stiffness_[std::size_t(index->at(row + a, row + c))] = unit * sum;
      }
  };
  for (std::size_t k = 0; k < K_->cones.size(); ++k) set(K_->cones[k].row, K_->cones[k].rows, begin_[k]);
  for (std::size_t k = 0; k < K_->intervals.size(); ++k) set(K_->intervals[k].row, 1, begin_.back() + k);
  G.set_blocks(real_stiffness_.data());
  return true;
}

// y ← A x or, in all rows, Aᵀ x, in the unit of √d dλ; of inactive rows x only.
void ContactEquation::product_of_all(bool transposed, const double* x, double* y) {
  const std::size_t m = std::size_t(rows_);
  if (transposed) {
    multiply(C_, true, x, w_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * w_[r];
    G_->apply(in_.data(), out_.data());
    multiply(E_, true, x, w_.data());
    for (std::size_t r = 0; r < m; ++r) y[r] = w_[r] + unit_[r] * out_[r];
  } else {
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * x[r];
    G_->apply(in_.data(), out_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * out_[r];
    multiply(C_, false, in_.data(), w_.data());
    multiply(E_, false, x, out_.data());
    for (std::size_t r = 0; r < m; ++r) y[r] = w_[r] + out_[r];
  }
}
// The same in active rows.
void ContactEquation::product(bool transposed, const double* x, double* y) {
  product_of_all(transposed, x, y);
  for (std::size_t r = 0; r < x_.size(); ++r) y[r] = is_active_[r] ? y[r] : 0;
}

// y ← A_δ⁻¹ x or A_δ⁻ᵀ x, in the unit of √d dλ
void ContactEquation::invert(bool transposed, const double* x, double* y) {
  const std::size_t m = std::size_t(rows_);
  if (transposed) {
    multiply(stiffness_, true, x, w_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * w_[r];
    G_->respond_transposed(in_.data(), out_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = is_active_[r] ? x[r] - unit_[r] * out_[r] : 0;
    multiply(inverse_, true, in_.data(), y);
  } else {
    multiply(inverse_, false, x, w_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * w_[r];
    G_->respond(in_.data(), out_.data());
    for (std::size_t r = 0; r < m; ++r) in_[r] = unit_[r] * out_[r];
    multiply(stiffness_, false, in_.data(), out_.data());
    for (std::size_t r = 0; r < m; ++r) y[r] = w_[r] - out_[r];
  }
  for (std::size_t r = 0; r < m; ++r) y[r] = is_active_[r] ? y[r] : 0;
}

// Whether δ A_δ⁻¹ keeps a part of a vector z that has components in all directions; and whether the factor is accurate
// enough: ‖A_δ A_δ⁻¹ z − z‖ / ‖z‖, and A times the part that was kept.
bool ContactEquation::judge_factor() {
  unsigned seed = 12345;
  for (std::size_t r = 0; r < z_.size(); ++r) {
    seed = seed * 1664525u + 1013904223u;
    z_[r] = is_active_[r] ? double(seed >> 8) * 0x1p-24 - 0.5 : 0;
  }
  double before = length(rows_, z_.data()), now = before;
  if (!(before > 0)) return true;
  invert(false, z_.data(), step_.data());
  product(false, step_.data(), rest_.data());
  for (std::size_t r = 0; r < z_.size(); ++r) {
    rest_[r] += delta_ * step_[r] - z_[r];
    z_[r] = delta_ * step_[r];
  }
  if (!(length(rows_, rest_.data()) <= good_factor * before)) return false;
  for (int k = 0; k < 2; ++k) {
    before = length(rows_, z_.data());
    invert(false, z_.data(), step_.data());
    for (std::size_t r = 0; r < z_.size(); ++r) z_[r] = delta_ * step_[r];
    now = length(rows_, z_.data());
  }
  redundant_ = now > 0.5 * before;
  product(false, z_.data(), rest_.data());
  return !redundant_ || length(rows_, rest_.data()) <= good_null * now;
}

// x ← its projection onto the range of K or, with `transposed`, of Kᵀ: LSQR on ‖K u − x‖. K = A A_δ⁻¹ = A_δ⁻¹ A = 1 − δ
// A_δ⁻¹ is computed without A, so that the null space of A stays free of its rounding errors. Returns whether it
// converged.
bool ContactEquation::project(bool transposed, double* x) {
  const std::size_t m = std::size_t(rows_);
  const auto multiply_K = [&](bool turned, const double* from, double* to) {
    invert(turned != transposed, from, to);
    for (std::size_t r = 0; r < m; ++r) to[r] = from[r] - delta_ * to[r];
  };
  // Golub and Kahan's bidiagonalization from x; p: directions of K u, next_: their sum
  const double size = length(rows_, x);
  if (!(size > 0)) return true;
  bool converged = true;
  for (std::size_t r = 0; r < m; ++r) u_[r] = x[r] / size;
  multiply_K(true, u_.data(), v_.data());
  double alpha = length(rows_, v_.data());
  std::fill(next_.begin(), next_.end(), 0.0);
  if (alpha > at_rounding) {
    for (std::size_t r = 0; r < m; ++r) p_[r] = v_[r] /= alpha;
    double phi = size, rho = alpha;
    double slope = size;  // ‖Kᵀ (x − K u)‖ = φ α |c|
    for (int k = 0; k < lsqr_iterations && slope > at_rounding * size; ++k) {
      multiply_K(false, v_.data(), t_.data());
      for (std::size_t r = 0; r < m; ++r) u_[r] = t_[r] - alpha * u_[r];
      const double beta = length(rows_, u_.data());
      if (beta > 0)
        for (std::size_t r = 0; r < m; ++r) u_[r] /= beta;
      multiply_K(true, u_.data(), t_.data());
      for (std::size_t r = 0; r < m; ++r) v_[r] = t_[r] - beta * v_[r];
      alpha = length(rows_, v_.data());
      if (alpha > 0)
        for (std::size_t r = 0; r < m; ++r) v_[r] /= alpha;
      const double full = std::hypot(rho, beta), c = rho / full, s = beta / full, part = c * phi / full;
      for (std::size_t r = 0; r < m; ++r) next_[r] += part * p_[r];
      for (std::size_t r = 0; r < m; ++r) p_[r] = v_[r] - s * alpha / full * p_[r];
      phi *= s, rho = -c * alpha;
      slope = phi * alpha * std::abs(c);
    }
    converged = slope <= good_rest * size;
  }
  multiply_K(false, next_.data(), x);
  return converged;
}

// x with A x = b as near as refinement comes; ‖A x − b‖.
double ContactEquation::refine(bool transposed, const double* b, double* x) {
  const std::size_t m = std::size_t(rows_);
  std::fill_n(x, m, 0.0);
  std::copy_n(b, m, rest_.data());
  const double size = length(rows_, b);
  double now = size;
  for (int k = 0; k < refinements && now > at_rounding * size; ++k) {
    invert(transposed, rest_.data(), step_.data());
    for (std::size_t r = 0; r < m; ++r) next_[r] = x[r] + step_[r];
    product(transposed, next_.data(), step_.data());
    for (std::size_t r = 0; r < m; ++r) step_[r] = b[r] - step_[r];
    const double then = length(rows_, step_.data());
    if (!(then < now)) break;
    const bool slow = then > 0.5 * now;
    std::copy_n(next_.data(), m, x);
    rest_.swap(step_);
    now = then;
    if (slow) break;
  }
  return now;
}

// In the unit of √d dλ, active rows only. Whether A x = b holds then, by G itself.
bool ContactEquation::solve_by_blocks(bool transposed, double* b, double* x) {
  // a part of b that no x meets is left out
  double rest = refine(transposed, b, x);
  bool converged = true;
  if (redundant_ && rest > consistent * length(rows_, b)) {
    converged = project(transposed, b);
    rest = refine(transposed, b, x);
  }
  // and what A does not feel
  if (redundant_) {
    converged = project(!transposed, x) && converged;
    product(transposed, x, step_.data());
    for (std::size_t r = 0; r < step_.size(); ++r) step_[r] -= b[r];
    rest = length(rows_, step_.data());
  }
  return converged && rest <= good_rest * length(rows_, b) + product_rounding * length(rows_, x);
}

// Inactive rows say x = b; the others A_aa x_a = b_a − A_ai b_i.
void ContactEquation::solve(const double* b, double* x) {
  const std::size_t m = std::size_t(rows_);
  bool others = false;
  for (std::size_t r = 0; r < m; ++r) {
    z_[r] = b[r] / unit_[r];
    others = others || (!is_active_[r] && b[r] != 0);
    b_[r] = is_active_[r] ? 0 : z_[r];
  }
  if (others) {
    product(false, b_.data(), t_.data());
    for (std::size_t r = 0; r < m; ++r) z_[r] -= t_[r];
  }
  solve_active(false);
  for (std::size_t r = 0; r < m; ++r) x[r] = is_active_[r] ? x_[r] * unit_[r] : b[r];
}

// p_a = A_aa⁻ᵀ b_a, p_i = b_i − (Aᵀ p_a)_i
void ContactEquation::solve_transposed(const double* b, double* x) {
  const std::size_t m = std::size_t(rows_);
  for (std::size_t r = 0; r < m; ++r) z_[r] = b[r] * unit_[r];
  solve_active(true);
  if (active_.size() < m) {
    product_of_all(true, x_.data(), t_.data());
    for (std::size_t r = 0; r < m; ++r)
      if (!is_active_[r]) x_[r] = b[r] * unit_[r] - t_[r];
  }
  for (std::size_t r = 0; r < m; ++r) x[r] = x_[r] / unit_[r];
}

// x_ ← the solution for z_ in active rows, zero in others.
void ContactEquation::solve_active(bool transposed) {
  const std::size_t n = active_.size();
  std::fill(x_.begin(), x_.end(), 0.0);
  if (n == 0) return;
  // a solution that is not good enough sends all that follow along the dense way
  if (!dense_) {
    for (std::size_t r = 0; r < z_.size(); ++r) b_[r] = is_active_[r] ? z_[r] : 0;
    if (solve_by_blocks(transposed, b_.data(), x_.data()) || int(n) > DenseMap::max_block_rows) return;
    factor_densely();
  }
  for (std::size_t i = 0; i < n; ++i) packed_[i] = z_[std::size_t(active_[i])];
  if (transposed)
    factor_.solve_transposed(packed_.data());
  else
    factor_.solve(packed_.data());
  for (std::size_t i = 0; i < n; ++i) x_[std::size_t(active_[i])] = packed_[i];
}

}  // namespace delassus
