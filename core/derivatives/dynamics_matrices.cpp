#include "derivatives/dynamics_matrices.h"

#include <algorithm>
#include <cmath>

#include "dense/cholesky.h"
#include "derivatives/compiled.h"

namespace delassus {

namespace {

constexpr int lanes = dense::vector_lanes<double>;
constexpr int tile_columns = 3 * lanes;
// Σ d_r X_rr below this is certain to be far from what `Linearization` calls redundant: the least eigenvalue of
// G + C in the metric of d is at least its reciprocal.
constexpr double sure = 0.02;

std::ptrdiff_t row_stride(int n) { return dense::padded<double>(n) + tile_columns; }

}  // namespace

DynamicsMatrices::DynamicsMatrices(const Model<double>& model, const ConstraintSet<double>& set)
    : model_(model),
      n_(model.nv),
      m_(set.rows),
      total_(n_ + m_),
      n_stride_(row_stride(n_)),
      m_stride_(row_stride(m_)),
      stride_(row_stride(total_)),
      rows_(model, set),
      w_(model) {
  w_.prepare_inverse(model);
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), over = dense::tile_overhang;
  F_q_.resize(n * n);
  F_v_.resize(n * n);
  Minv_.resize(n * n + std::size_t(tile_columns) + over);
  R_.resize((m + over) * std::size_t(n_stride_));
  Rt_.resize((n + over) * std::size_t(m_stride_));
  for (auto* x : {&X_, &factor_, &half_}) x->resize((m + over) * std::size_t(m_stride_));
  answers_.resize((n + m + over) * std::size_t(stride_));
  for (const auto& b : rows_.blocks()) {
    support_offsets_.emplace_back();
    support_rows_.emplace_back();
    for (const int k : b.support) {
      support_offsets_.back().push_back(std::ptrdiff_t(k) * n_);
      support_rows_.back().push_back(std::ptrdiff_t(k) * m_stride_);
    }
  }
  plan();
}

std::size_t DynamicsMatrices::bytes() const {
  std::size_t count = 0;
  for (const auto* x : {&F_q_, &F_v_, &Minv_, &R_, &Rt_, &X_, &factor_, &half_, &answers_, &packed_})
    count += x->size();
  return rows_.bytes() + count * sizeof(double);
}

// Strips of neighbours, by dynamic programming over where they end.
void DynamicsMatrices::plan() {
  constexpr int most = tile_columns / 2;
  const std::size_t n = std::size_t(n_), all = std::size_t(total_);
  std::vector<std::vector<char>> used(n, std::vector<char>(all, 0));  // a column: rows that are not zero
  for (std::size_t c = 0; c < n; ++c) {
    const auto& link = model_.links[std::size_t(model_.dof_link[c])];
    for (std::size_t k = 0; k < n; ++k) {
      const auto& other = model_.links[std::size_t(model_.dof_link[k])];
      used[c][k] = (int(k) >= link.iv && int(k) < link.end_v) || (int(c) >= other.iv && int(c) < other.end_v);
    }
  }
  for (const auto& b : rows_.blocks())
    for (const int c : b.support) {
      for (int r = 0; r < b.rows; ++r) used[std::size_t(c)][n + std::size_t(b.row + r)] = 1;
      if (b.kind == RowMatrices::Block::Kind::constant) continue;
      for (const int k : b.support) used[std::size_t(c)][std::size_t(k)] = 1;
    }
  // linear velocities of a free root
  std::vector<char> idle(n, 0);
  for (const auto& link : model_.links)
    if (link.type == Joint::free)
      for (int k = link.iv; k < link.iv + 3; ++k) idle[std::size_t(k)] = !rows_.feels(k);
  for (std::size_t k = 0; k < n; ++k)
    if (idle[k]) idle_.push_back(int(k));

  std::vector<double> cost(n + 1, 0);
  std::vector<int> start(n + 1, 0);
  std::vector<char> any(all);
  for (std::size_t end = 1; end <= n; ++end) {
    if (idle[end - 1]) {
      cost[end] = cost[end - 1], start[end] = -1;
      continue;
    }
    std::fill(any.begin(), any.end(), 0);
    cost[end] = HUGE_VAL;
    for (std::size_t first = end; first-- > 0 && end - first <= std::size_t(most) && !idle[first];) {
      std::size_t rows = 0;
      for (std::size_t k = 0; k < all; ++k) rows += any[k] |= used[first][k];
      // registers a row, and what a tile costs besides
      const std::size_t registers = (2 * (end - first) + lanes - 1) / lanes;
      const double tried = cost[first] + double(registers * rows) + 4.0 * double(registers) + 4.0;
      if (tried < cost[end]) cost[end] = tried, start[end] = int(first);
    }
  }
  std::size_t longest = 0;
  for (int end = n_; end > 0;) {
    const int first = start[std::size_t(end)];
    if (first < 0) {
      --end;
      continue;
    }
    Strip s{first, end - first, int(strip_rows_.size()), 0};
    for (std::size_t k = 0; k < all; ++k) {
      bool any_column = false;
      for (int c = first; c < end; ++c) any_column = any_column || used[std::size_t(c)][k];
      if (!any_column) continue;
      strip_rows_.push_back(int(k));
      strip_offsets_.push_back(std::ptrdiff_t(k) * stride_);
    }
    s.end = int(strip_rows_.size());
    longest = std::max(longest, std::size_t(s.end - s.begin));
    strips_.push_back(s);
    end = first;
  }
  std::reverse(strips_.begin(), strips_.end());
  packed_.resize(longest * tile_columns);
}

// F_q, F_ν, J, g_q, g_ν and M⁻¹
void DynamicsMatrices::linearize(const DynamicsState& s) {
  const Vec3<double> up{-model_.gravity.x, -model_.gravity.y, -model_.gravity.z};
  subspace_rates(model_, w_, w_, w_.rates, s.v, s.acceleration, up);
  inertial_forces(w_, w_);
  velocity_turn_forces(w_, w_, w_.B);
  const bool turning = s.external || m_ > 0;
  if (s.external) {
    subtract_external(model_, w_, w_, s.external);
    external_turn_forces(model_, w_, s.external, w_.E);
  } else if (turning) {
    for (int b = 0; b < w_.E.blocks(); ++b) w_.E.block(b) = TurnForce<LinkPack<double>>{};
  }
  rows_.evaluate(w_, s.q, s.v, s.acceleration, s.lambda, up);
  double* none = nullptr;
  subtree_forces(model_, w_, s.acceleration, turning, none);
  if (rows_.couples()) std::fill(F_q_.begin(), F_q_.end(), 0.0);
  pair_derivatives(model_, w_, turning, s.v, s.acceleration, up, F_q_.data(), F_v_.data(), none);
  rows_.correct(w_, s.q, s.v, s.acceleration, s.lambda, F_q_.data());
}

DynamicsMatrices::Rows DynamicsMatrices::prepare(const DynamicsState& s) {
  kinematics(model_, w_, s.q);
  factorize(model_, w_);
  if (!is_regular(model_, w_)) return Rows::singular;
  inverse_of_factor(model_, w_, Minv_.data());
  linearize(s);

  // R = J M⁻¹ and its transpose, then G = J Rᵀ, a block of rows at a time
  using Picked = dense::PickedRows<double>;
  using Stepped = dense::SteppedRows<double>;
  const auto everything = [](int) { return 0; };
  std::size_t e = 0;
  for (const auto& b : rows_.blocks()) {
    const auto& offsets = support_offsets_[e++];
    dense::gathered_product<double>(b.rows, n_, int(offsets.size()), Stepped{rows_.J(b), b.padded},
                                    Picked{Minv_.data(), offsets.data()}, everything,
                                    [&](int i, int j, const auto& tile) {
                                      tile.write(R_.data() + (b.row + i) * n_stride_ + j, n_stride_, b.rows - i);
                                    });
  }
  for (int r = 0; r < m_; ++r)
    for (int k = 0; k < n_; ++k) Rt_[std::size_t(k * m_stride_ + r)] = R_[std::size_t(r * n_stride_ + k)];
  e = 0;
  for (const auto& b : rows_.blocks()) {
    const auto& offsets = support_rows_[e++];
    dense::gathered_product<double>(b.rows, m_, int(offsets.size()), Stepped{rows_.J(b), b.padded},
                                    Picked{Rt_.data(), offsets.data()}, everything,
                                    [&](int i, int j, const auto& tile) {
                                      tile.write(factor_.data() + (b.row + i) * m_stride_ + j, m_stride_, b.rows - i);
                                    });
  }
  return m_ == 0 || invert_rows(s) ? Rows::independent : Rows::doubtful;
}

// X = (G + C)⁻¹ by Cholesky's factor. False where rows may depend on each other.
bool DynamicsMatrices::invert_rows(const DynamicsState& s) {
  for (int r = 0; r < m_; ++r) factor_[std::size_t(r * (m_stride_ + 1))] += s.compliance[r];
  if (dense::factor_cholesky(m_, factor_.data(), m_stride_) != m_) return false;
  dense::invert_transposed(m_, factor_.data(), m_stride_, half_.data(), m_stride_);
  std::fill(X_.begin(), X_.end(), 0.0);
  dense::add_square_transposed(m_, half_.data(), m_stride_, X_.data(), m_stride_);
  for (int r = 0; r < m_; ++r)
    for (int c = 0; c < r; ++c) X_[std::size_t(r * m_stride_ + c)] = X_[std::size_t(c * m_stride_ + r)];
  double sum = 0;
  for (int r = 0; r < m_; ++r) sum += s.damping[r] * X_[std::size_t(r * (m_stride_ + 1))];
  return sum < sure;
}

void DynamicsMatrices::set_row_inverse(const double* X) {
  for (int r = 0; r < m_; ++r) std::copy_n(X + std::ptrdiff_t(r) * m_, m_, X_.data() + r * m_stride_);
}

// Q = X R and A = M⁻¹ − Rᵀ Q, into the answers.
void DynamicsMatrices::respond() {
  using Stepped = dense::SteppedRows<double>;
  double* A = answers_.data();
  double* Q = A + n_ * stride_;
  dense::gathered_product<double>(
      m_, n_, m_, Stepped{X_.data(), m_stride_}, Stepped{R_.data(), n_stride_}, [](int) { return 0; },
      [&](int i, int j, const auto& tile) { tile.write(Q + i * stride_ + j, stride_, m_ - i); });
  // upper triangle by tiles, then the other one
  dense::gathered_product<double>(
      n_, n_, m_, Stepped{R_.data(), n_stride_}, Stepped{Q, stride_}, [](int i) { return i; },
      [&]<int height, int vectors>(int i, int j, const dense::GatheredTile<double, height, vectors>& tile) {
        using V = dense::Vector<double>;
        for (int r = 0; r < height && i + r < n_; ++r)
          for (int v = 0; v < vectors; ++v) {
            const double* from = Minv_.data() + std::ptrdiff_t(i + r) * n_ + j + v * lanes;
            dense::store(A + (i + r) * stride_ + j + v * lanes, V(dense::load<V>(from) - tile.sums[r][v]));
          }
      });
  for (int k = 0; k < n_; ++k) {
    for (int c = 0; c < k; ++c) A[k * stride_ + c] = A[c * stride_ + k];
    for (int r = 0; r < m_; ++r) A[k * stride_ + n_ + r] = -Q[r * stride_ + k];
  }
  for (int r = 0; r < m_; ++r) std::copy_n(X_.data() + r * m_stride_, m_, Q + r * stride_ + n_);
}

// ∂[ν̇; λ]/∂x = −[A, Qᵀ; −Q, X] [F_x; g_x] in the columns of a strip, by q and by ν side by side.
void DynamicsMatrices::solve_strip(const Strip& strip, const DynamicsDerivatives& out) {
  const int c = strip.count, width = dense::padded<double>(2 * c), rows = strip.end - strip.begin;
  const int* row = strip_rows_.data() + strip.begin;
  double* B = packed_.data();
  for (int e = 0; e < rows; ++e, B += width) {
    std::fill_n(B + 2 * c, width - 2 * c, 0.0);
    const int p = row[e];
    if (p < n_) {
      const std::ptrdiff_t at = std::ptrdiff_t(p) * n_ + strip.first;
      std::copy_n(F_q_.data() + at, c, B);
      std::copy_n(F_v_.data() + at, c, B + c);
    } else {
      std::fill_n(B, 2 * c, 0.0);
    }
  }
  // rows of constraints, where their support meets the strip
  const int* begin_g = std::lower_bound(row, row + rows, n_);
  for (const auto& b : rows_.blocks()) {
    const auto first = std::lower_bound(b.support.begin(), b.support.end(), strip.first);
    if (first == b.support.end() || *first >= strip.first + c) continue;
    const std::ptrdiff_t e = std::lower_bound(begin_g, row + rows, n_ + b.row) - row;
    for (auto k = first; k != b.support.end() && *k < strip.first + c; ++k) {
      const std::ptrdiff_t from = (k - b.support.begin()) * b.padded;
      double* to = packed_.data() + e * width + (*k - strip.first);
      for (int r = 0; r < b.rows; ++r, to += width) to[0] = rows_.g_q(b)[from + r], to[c] = rows_.g_v(b)[from + r];
    }
  }
  const dense::PickedRows<double> a{answers_.data(), strip_offsets_.data() + strip.begin};
  const dense::SteppedRows<double> b{packed_.data(), width};
  dense::gathered_product<double>(
      total_, width, rows, a, b, [](int) { return 0; },
      [&]<int height, int vectors>(int i, int, const dense::GatheredTile<double, height, vectors>& tile) {
        alignas(64) double numbers[vectors * lanes];
        for (int r = 0; r < height && i + r < total_; ++r) {
          for (int v = 0; v < vectors; ++v) dense::store(numbers + v * lanes, -tile.sums[r][v]);
          const bool force = i + r >= n_;
          const std::ptrdiff_t at = std::ptrdiff_t(force ? i + r - n_ : i + r) * n_ + strip.first;
          std::copy_n(numbers, c, (force ? out.forces_q : out.acceleration_q) + at);
          std::copy_n(numbers + c, c, (force ? out.forces_v : out.acceleration_v) + at);
        }
      });
}

void DynamicsMatrices::solve(const DynamicsDerivatives& out) {
  respond();
  for (const Strip& strip : strips_) solve_strip(strip, out);
  for (int r = 0; r < total_; ++r) {
    const bool force = r >= n_;
    const std::ptrdiff_t at = std::ptrdiff_t(force ? r - n_ : r) * n_;
    const double* from = answers_.data() + r * stride_;
    double* to = (force ? out.forces_tau : out.acceleration_tau) + at;
    for (int k = 0; k < n_; ++k) to[k] = force ? -from[k] : from[k];
    for (const int k : idle_)
      (force ? out.forces_q : out.acceleration_q)[at + k] = (force ? out.forces_v : out.acceleration_v)[at + k] = 0;
  }
}

}  // namespace delassus
