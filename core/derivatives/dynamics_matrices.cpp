#include "derivatives/dynamics_matrices.h"

#include <algorithm>
#include <cmath>

#include "constraints/compiled.h"
#include "dense/cholesky.h"
#include "dense/square.h"
#include "derivatives/compiled.h"
#include "operators/layout.h"

namespace delassus {

namespace {

constexpr int lanes = dense::vector_lanes<double>;
constexpr int tile_columns = 3 * lanes;
// The least eigenvalue of G + C in the metric of d is at least 1 / Σ d_r X_rr. `Linearization` calls rows redundant if
// it is below about 0.1, with a hundredth of d.
constexpr double sure = 0.5;
// M_kk (M⁻¹)_kk measures the condition of M at one joint: at most 110 on the embedded robots, 5e3 on a chain of 20
// links, whose derivatives lose five digits. It grows with the fourth power of the number of links.
constexpr double steep = 1e4;
// Residuals of equations against their largest term.
constexpr double exact = 1e-11;

// Up to so many rows a matrix is inverted at once.
constexpr int small_rows = 24;

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
      set_(set),
      rows_(model, set),
      w_(model) {
  w_.prepare_inverse(model);
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), over = dense::tile_overhang;
  for (auto* x : {&by_q_, &by_v_}) x->resize((n + m) * n + std::size_t(tile_columns));
  Minv_.resize((n + over) * n + std::size_t(tile_columns));
  R_.resize((m + over) * std::size_t(n_stride_));
  Rt_.resize((n + over) * std::size_t(m_stride_));
  for (auto* x : {&X_, &half_}) x->resize((m + over) * std::size_t(m_stride_));
  answers_.resize((n + m + 2 * over) * std::size_t(stride_));
  for (const auto& b : rows_.blocks()) {
    support_offsets_.emplace_back();
    support_rows_.emplace_back();
    for (const int k : b.support) {
      support_offsets_.back().push_back(std::ptrdiff_t(k) * n_);
      support_rows_.back().push_back(std::ptrdiff_t(k) * m_stride_);
    }
  }
  own_.resize(w_.ranks.slots);
  for (auto* x : {&errors_, &speeds_, &bias_}) x->resize(m + lanes);
  for (auto* x : {&load_, &balance_}) x->resize(n + lanes);
  measured_ = false;
  for (const auto& c : set_.constraints) measured_ = measured_ || c.kp != 0;
  pivot_bound_ = Layout<double>(model, ConstraintSet<double>{}, 1).pivot_bound;
  plan();
}

std::size_t DynamicsMatrices::bytes() const {
  std::size_t count = 0;
  for (const auto* x : {&by_q_, &by_v_, &Minv_, &R_, &Rt_, &X_, &half_, &answers_}) count += x->size();
  return rows_.bytes() + count * sizeof(double);
}

// Strips of neighbours, by dynamic programming over where they end.
void DynamicsMatrices::plan() {
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
    for (std::size_t first = end; first-- > 0 && end - first <= std::size_t(lanes) && !idle[first];) {
      std::size_t rows = 0;
      for (std::size_t k = 0; k < all; ++k) rows += any[k] |= used[first][k];
      const double tried = cost[first] + double(rows) + 4.0;  // and what a strip costs besides
      if (tried < cost[end]) cost[end] = tried, start[end] = int(first);
    }
  }
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
      strip_offsets_.push_back((std::ptrdiff_t(k) + (int(k) < n_ ? 0 : dense::tile_overhang)) * stride_);
      strip_places_.push_back(std::ptrdiff_t(k) * n_ + first);
    }
    s.end = int(strip_rows_.size());
    strips_.push_back(s);
    end = first;
  }
  std::reverse(strips_.begin(), strips_.end());
}

// M⁻¹ there. False where M is singular.
bool DynamicsMatrices::place(const double* q) {
  kinematics(model_, w_, q);
  factorize(model_, w_);
  if (!regular()) return false;
  inverse_of_factor(model_, w_, Minv_.data());
  return true;
}

// Velocities, rates of subspaces and forces on links without joint accelerations; the ground's, that of gravity, in
// forces alone.
void DynamicsMatrices::find_forces(const DynamicsState& s, const Vec3<double>& up) {
  const double* none = nullptr;
  subspace_rates(model_, w_, w_, w_.rates, s.v, none, Vec3<double>{});
  inertial_forces(w_, w_, up);
  velocity_turn_forces(w_, w_, w_.B);
  if (s.external) {
    subtract_external(model_, w_, w_, s.external);
    external_turn_forces(model_, w_, s.external, w_.E);
  } else if (m_ > 0) {
    for (int b = 0; b < w_.E.blocks(); ++b) w_.E.block(b) = TurnForce<LinkPack<double>>{};
  }
}

// Joint accelerations change those of links by δ = δ_p + S ν̇, with the ground's at the root; by that of what carries it
// each Χ = … + δ × S; and forces.
void DynamicsMatrices::find_accelerations(const Vec3<double>& up, const double* acceleration) {
  const int nl = int(model_.links.size());
  auto& delta = w_.momentum;  // memory for a motion a link
  Vec6<double> d{};
  for (int i = 0; i < nl; ++i) {
    const auto& link = model_.links[std::size_t(i)];
    if (link.parent < 0)
      d = Vec6<double>{up, {}};
    else if (link.parent != i - 1)
      d = delta[link.parent];
    int k = link.iv;
    if (link.type == Joint::free) {
      d.lin += Vec3<double>{acceleration[k], acceleration[k + 1], acceleration[k + 2]};
      k += 3;
    }
    const Vec6<double> carrier = d;
    for (; k < link.iv + link.nv; ++k) {
      const Vec6<double> S = w_.S[std::size_t(k)];
      w_.rates.Chi[std::size_t(k)] += cross_motion(carrier, S);
      d += S * acceleration[k];
    }
    delta.set(i, d);
  }
  for (int b = 0; b < w_.f.blocks(); ++b) {
    Vec6<LinkPack<double>> more = delta.block(b);
    w_.a.block(b) = w_.a.block(b) + more;
    more.lin = more.lin - up;
    w_.f.block(b) = w_.f.block(b) + w_.inertia.block(b) * more;
  }
}

// F_q, F_ν, g_q and g_ν
void DynamicsMatrices::linearize(const DynamicsState& s, const double* acceleration, const double* lambda,
                                 const Vec3<double>& up) {
  find_accelerations(up, acceleration);
  rows_.evaluate(w_, s.q, s.v, acceleration, lambda, up);
  const bool turning = s.external || m_ > 0;
  double* none = nullptr;
  subtree_forces(model_, w_, acceleration, turning, balance_.data());
  if (rows_.couples()) std::fill_n(by_q_.data(), std::ptrdiff_t(n_) * n_, 0.0);
  pair_derivatives(model_, w_, turning, s.v, acceleration, up, by_q_.data(), by_v_.data(), none);
  rows_.correct(w_, s.q, s.v, acceleration, lambda, by_q_.data());
  for (const auto& b : rows_.blocks()) {
    const double *g_q = rows_.g_q(b), *g_v = rows_.g_v(b);
    for (const int k : b.support) {
      const std::ptrdiff_t at = std::ptrdiff_t(n_ + b.row) * n_ + k;
      for (int r = 0; r < b.rows; ++r)
        by_q_[std::size_t(at + r * n_)] = g_q[r], by_v_[std::size_t(at + r * n_)] = g_v[r];
      g_q += b.padded, g_v += b.padded;
    }
  }
}

// Whether M is regular: by bounds, or where these do not tell by its composites.
bool DynamicsMatrices::regular() {
  for (std::size_t t = 0; t < model_.roots.size(); ++t) {
    const auto& root = model_.links[std::size_t(model_.roots[t])];
    if (root.type != Joint::free) continue;
    const Sym6<double>& H = w_.Hinv[t];
    const double d[6] = {H.A.xx, H.A.yy, H.A.zz, H.C.xx, H.C.yy, H.C.zz};
    std::copy_n(d, 6, w_.Dinv.data() + root.iv);
  }
  return is_surely_regular(pivot_bound_, w_.Dinv.data()) || is_regular(model_, w_);
}

DynamicsMatrices::Rows DynamicsMatrices::prepare(const DynamicsState& s, const double* acceleration,
                                                 const double* lambda) {
  const Vec3<double> up{-model_.gravity.x, -model_.gravity.y, -model_.gravity.z};
  if (!place(s.q)) return Rows::singular;
  find_forces(s, up);
  rows_.place(w_, s.q, s.v, acceleration);
  linearize(s, acceleration, lambda, up);
  if (loses_digits()) return Rows::inexact;
  find_rows();
  return invert_rows(s) ? Rows::independent : Rows::doubtful;
}

DynamicsMatrices::Rows DynamicsMatrices::solve(const DynamicsState& s, double* acceleration, double* lambda) {
  const Vec3<double> up{-model_.gravity.x, -model_.gravity.y, -model_.gravity.z};
  if (!place(s.q)) return Rows::singular;
  find_forces(s, up);
  std::fill_n(acceleration, n_, 0.0);
  rows_.place(w_, s.q, s.v, acceleration);
  find_rows();
  if (!invert_rows(s)) return Rows::doubtful;
  find_unknowns(s, acceleration, lambda);
  linearize(s, acceleration, lambda, up);
  if (loses_digits()) return Rows::inexact;
  return holds(s, acceleration, lambda) ? Rows::independent : Rows::doubtful;
}

void DynamicsMatrices::find_unknowns(const DynamicsState& s, double* acceleration, double* lambda) {
  using dense::dot;
  // h, for which forces of links are added up
  own_ = w_.f;
  const double* none = nullptr;
  joint_forces(model_, w_, w_, none, load_.data());
  std::swap(own_, w_.f);
  for (int k = 0; k < n_; ++k) load_[std::size_t(k)] = (s.tau ? s.tau[k] : 0.0) - load_[std::size_t(k)];
  // γ
  if (m_ > 0) {
    if (rows_.all_constant()) {
      rows_.drifts(w_, bias_.data());
    } else {
      rates(model_, set_, w_, w_, s.q, s.v, speeds_.data(), bias_.data());
      for (const auto& c : set_.constraints)
        for (int r = c.row; r < c.row + c.rows; ++r) bias_[std::size_t(r)] += speeds_[std::size_t(r)] * c.kd;
    }
    if (measured_) {
      errors(model_, set_, w_, s.q, errors_.data());
      for (const auto& c : set_.constraints)
        for (int r = c.row; r < c.row + c.rows; ++r) bias_[std::size_t(r)] += errors_[std::size_t(r)] * c.kp;
    }
  }
  for (int r = 0; r < m_; ++r)
    speeds_[std::size_t(r)] = bias_[std::size_t(r)] + dot(n_, R_.data() + r * n_stride_, load_.data());
  for (int r = 0; r < m_; ++r) lambda[r] = -dot(m_, X_.data() + r * m_stride_, speeds_.data());
  for (int k = 0; k < n_; ++k)
    acceleration[k] =
        dot(n_, Minv_.data() + std::ptrdiff_t(k) * n_, load_.data()) + dot(m_, Rt_.data() + k * m_stride_, lambda);
}

// After `linearize`, which leaves Iᶜ S.
bool DynamicsMatrices::loses_digits() const {
  for (int k = 0; k < n_; ++k) {
    const auto mass = dot(w_.U_strips[k], w_.S[std::size_t(k)]);
    if (!((mass[0] + model_.armature[std::size_t(k)]) * Minv_[std::size_t(k) * std::size_t(n_ + 1)] < steep))
      return true;
  }
  return false;
}

// Both equations by their terms, against the largest of these.
bool DynamicsMatrices::holds(const DynamicsState& s, const double* acceleration, const double* lambda) const {
  double worst = 0, scale = 0;
  for (int k = 0; k < n_; ++k) {
    const double tau = s.tau ? s.tau[k] : 0.0, F = balance_[std::size_t(k)];
    worst = std::max(worst, std::abs(F - tau));
    scale = std::max({scale, std::abs(load_[std::size_t(k)]), std::abs(tau)});
  }
  if (!(worst <= exact * scale)) return false;
  worst = scale = 0;
  for (const auto& b : rows_.blocks())
    for (int r = 0; r < b.rows; ++r) {
      const int row = b.row + r;
      const double gamma = bias_[std::size_t(row)], give = s.compliance[row] * lambda[row];
      double sum = gamma + give, terms = std::abs(gamma) + std::abs(give);
      const double* J = rows_.J(b) + r;
      for (const int k : b.support) {
        const double x = *J * acceleration[k];
        sum += x, terms += std::abs(x), J += b.padded;
      }
      worst = std::max(worst, std::abs(sum)), scale = std::max(scale, terms);
    }
  return worst <= exact * scale;
}

void DynamicsMatrices::find_rows() {
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
  dense::transpose(m_, n_, R_.data(), n_stride_, Rt_.data(), m_stride_);
  e = 0;
  for (const auto& b : rows_.blocks()) {
    const auto& offsets = support_rows_[e++];
    dense::gathered_product<double>(b.rows, m_, int(offsets.size()), Stepped{rows_.J(b), b.padded},
                                    Picked{Rt_.data(), offsets.data()}, everything,
                                    [&](int i, int j, const auto& tile) {
                                      tile.write(X_.data() + (b.row + i) * m_stride_ + j, m_stride_, b.rows - i);
                                    });
  }
}

// X ← (G + C)⁻¹ where G was. False where rows may depend on each other.
bool DynamicsMatrices::invert_rows(const DynamicsState& s) {
  if (m_ == 0) return true;
  for (int r = 0; r < m_; ++r) X_[std::size_t(r * (m_stride_ + 1))] += s.compliance[r];
  if (m_ <= small_rows) {
    if (!dense::invert_positive(m_, X_.data(), m_stride_)) return false;
  } else {
    if (dense::factor_cholesky(m_, X_.data(), m_stride_) != m_) return false;
    dense::invert_transposed(m_, X_.data(), m_stride_, half_.data(), m_stride_);
    std::fill(X_.begin(), X_.end(), 0.0);
    dense::add_square_transposed(m_, half_.data(), m_stride_, X_.data(), m_stride_);
    dense::mirror_upper(m_, X_.data(), m_stride_);
  }
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
  double* Q = A + (n_ + dense::tile_overhang) * stride_;
  dense::gathered_product<double>(
      m_, n_, m_, Stepped{X_.data(), m_stride_}, Stepped{R_.data(), n_stride_}, [](int) { return 0; },
      [&](int i, int j, const auto& tile) { tile.write(Q + i * stride_ + j, stride_, m_ - i); });
  dense::subtract_symmetric_product(n_, m_, Minv_.data(), std::ptrdiff_t(n_), R_.data(), n_stride_, Q, stride_, A,
                                    stride_);
  dense::transpose(m_, n_, Q, stride_, A + n_, stride_);
  for (int r = 0; r < m_; ++r)
    for (int c = 0; c < m_; ++c) Q[r * stride_ + n_ + c] = -X_[std::size_t(r * m_stride_ + c)];
}

namespace {

// `height` rows of both products of a strip: ± Σ_e a_e of the answers with rows of F and g by q and by ν.
template <int height, bool minus>
[[gnu::always_inline]] inline void strip_rows(int count, const std::ptrdiff_t* from, const double* answers,
                                              const std::ptrdiff_t* place, const double* by_q, const double* by_v,
                                              int width, std::ptrdiff_t stride, double* to_q, double* to_v) {
  using V = dense::Vector<double>;
  V q[height]{}, v[height]{};
  for (int e = 0; e < count; ++e) {
    const double* a = answers + from[e];
    const V x = dense::load<V>(by_q + place[e]), y = dense::load<V>(by_v + place[e]);
#pragma GCC unroll 8
    for (int r = 0; r < height; ++r) {
      if constexpr (minus)
        q[r] -= x * a[r], v[r] -= y * a[r];
      else
        q[r] += x * a[r], v[r] += y * a[r];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < height; ++r) {
    dense::store_first(to_q + r * stride, q[r], width);
    dense::store_first(to_v + r * stride, v[r], width);
  }
}

}  // namespace

// ∂ν̇/∂x = −[A, Qᵀ] [F_x; g_x], ∂λ/∂x = [Q, −X] [F_x; g_x] in the columns of a strip. A whole register is written where
// a row has room for it: what is beyond the strip belongs to one that follows.
void DynamicsMatrices::solve_strip(const Strip& strip, const DynamicsDerivatives& out) {
  const std::ptrdiff_t *from = strip_offsets_.data() + strip.begin, *place = strip_places_.data() + strip.begin;
  const int count = strip.end - strip.begin, width = strip.first + lanes <= n_ ? lanes : n_ - strip.first;
  const double *by_q = by_q_.data(), *by_v = by_v_.data();
  const auto rows = [&]<bool minus>(const double* answers, int height, double* to_q, double* to_v) {
    int i = 0;
    to_q += strip.first, to_v += strip.first;
    const auto next = [&]<int h>() __attribute__((always_inline)) {
      strip_rows<h, minus>(count, from, answers + i, place, by_q, by_v, width, n_, to_q, to_v);
      i += h, to_q += h * n_, to_v += h * n_;
    };
    while (i + 6 <= height) next.template operator()<6>();
    if (i + 4 <= height) next.template operator()<4>();
    if (i + 2 <= height) next.template operator()<2>();
    if (i < height) next.template operator()<1>();
  };
  rows.template operator()<true>(answers_.data(), n_, out.acceleration_q, out.acceleration_v);
  rows.template operator()<false>(answers_.data() + n_, m_, out.forces_q, out.forces_v);
}

void DynamicsMatrices::differentiate(const DynamicsDerivatives& out) {
  respond();
  for (const Strip& strip : strips_) solve_strip(strip, out);
  using V = dense::Vector<double>;
  const auto copy = [&]<bool minus>(int rows, const double* from, double* to) {
    for (int r = 0; r < rows; ++r, from += stride_, to += n_)
      for (int k = 0; k < n_; k += lanes) {
        const V x = dense::load<V>(from + k);
        dense::store_first(to + k, minus ? V(-x) : x, n_ - k);
      }
  };
  copy.template operator()<false>(n_, answers_.data(), out.acceleration_tau);
  copy.template operator()<true>(m_, answers_.data() + (n_ + dense::tile_overhang) * stride_, out.forces_tau);
  for (const int k : idle_) {
    for (int r = 0; r < n_; ++r) out.acceleration_q[r * n_ + k] = out.acceleration_v[r * n_ + k] = 0;
    for (int r = 0; r < m_; ++r) out.forces_q[r * n_ + k] = out.forces_v[r * n_ + k] = 0;
  }
}

}  // namespace delassus
