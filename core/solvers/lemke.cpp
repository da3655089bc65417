#include "solvers/lemke.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "errors/interrupt.h"

namespace delassus {
namespace {

constexpr double singular = 1e-12;  // pivots of equations below this are none; entries are near one
constexpr double noise = 1e-10;     // ratios that differ by less are equal
constexpr double leave = 1e-12;     // what decreases slower does not leave
struct Attempt {
  double delta, spread;
};
constexpr Attempt attempts[] = {{0, 0}, {0, 1}, {1e-9, 0}, {1e-6, 0}, {1e-3, 0}};

// y = T x + t, with y_r and x_c exchanged; columns from `first`, the last one being t.
template <class Rows>
void exchange(Rows&& row, int first_row, int rows, int first, int columns, int r, int c) {
  double* pivot = row(r);
  const double inverse = 1 / pivot[c];
  for (int j = first; j < columns; ++j) pivot[j] *= -inverse;
  pivot[c] = inverse;
  for (int i = first_row; i < rows; ++i) {
    double* y = row(i);
    const double factor = y[c];
    if (i == r || factor == 0) continue;
    y[c] = 0;
    for (int j = first; j < columns; ++j) y[j] += factor * pivot[j];
  }
}

// Ruiz: rows and columns of M, `stride` apart, over the root of their largest entry, some times, to powers of two;
// returns the size of q then.
double equilibrate(const double* M, std::size_t stride, const double* q, std::size_t step, int n, double* r, double* c,
                   double* largest_in_column) {
  std::fill(r, r + n, 1.0);
  std::fill(c, c + n, 1.0);
  const auto scale = [](double& by, double largest) {
    if (largest > 0) by *= std::exp2(std::round(-0.5 * std::log2(largest)));
  };
  for (int pass = 0; pass < 4; ++pass) {
    std::fill(largest_in_column, largest_in_column + n, 0.0);
    for (int i = 0; i < n; ++i) {
      const double* m = M + std::size_t(i) * stride;
      double largest = 0;
      for (int j = 0; j < n; ++j) {
        const double x = std::abs(r[i] * m[j] * c[j]);
        largest = std::max(largest, x);
        largest_in_column[j] = std::max(largest_in_column[j], x);
      }
      scale(r[i], largest);
    }
    for (int j = 0; j < n; ++j) scale(c[j], largest_in_column[j]);
  }
  double size = 0;
  for (int i = 0; i < n; ++i) size = std::max(size, std::abs(r[i] * q[std::size_t(i) * step]));
  return size > 0 ? std::exp2(std::round(std::log2(size))) : 1.0;
}

}  // namespace

Lemke::Lemke(int capacity) : capacity_(std::max(capacity, 0)) {
  const auto n = std::size_t(capacity_);
  A_.resize(n * (n + 1));
  T_.resize(n * (n + 2));
  for (auto* x : {&r_, &c_, &row_scale_, &column_scale_, &p_, &x_, &trial_}) x->resize(n);
  for (auto* k : {&column_, &basic_}) k->resize(n);
  place_.resize(2 * n + 1);
  swapped_.resize(n);
  active_.resize(n);
}

std::size_t Lemke::bytes() const {
  return (A_.size() + T_.size() + 7 * r_.size()) * sizeof(double) +
         (column_.size() + basic_.size() + place_.size()) * sizeof(int) + swapped_.size() + active_.size();
}

LemkeReport Lemke::solve(int n, const bool* free, const double* M, const double* q, double* z, double tolerance,
                         int max_pivots) {
  n_ = n, M_ = M, q_ = q;
  double largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::abs(q[i]));
  const double goal = tolerance * largest;
  std::fill(z, z + n, 0.0);
  LemkeReport report{Pivoting::solved, 0, 0, residual(free, z)};
  if (report.residual == 0) return report;

  // keeps z if it is better than the best so far
  const auto consider = [&] {
    recover(trial_.data());
    for (int i = 0; i < n; ++i)
      if (!(free && free[i])) trial_[i] = std::max(trial_[i], 0.0);
    const double found = residual(free, trial_.data());
    if (found < report.residual) std::copy(trial_.begin(), trial_.begin() + n, z), report.residual = found;
    return found;
  };
  size_ = equilibrate(M, std::size_t(n), q, 1, n, r_.data(), c_.data(), p_.data());
  Pivoting first{};
  for (const auto& [delta, spread] : attempts) {
    for (int i = 0; i < n; ++i) active_[i] = free && free[i];
    eliminate(true);
    const Pivoting end = pivot(delta, spread, max_pivots, &report.pivots);
    if (report.attempts++ == 0) first = end;
    // the basis again, from M
    if (!(consider() <= 1e-3 * goal)) {
      for (int k = 0; k < n - out_; ++k) active_[column_[out_ + k]] = x_[out_ + k] > 0;
      eliminate(false);
      std::fill(x_.begin(), x_.begin() + n, 0.0);
      consider();
    }
    if (report.residual <= goal) return report;
  }
  report.outcome = first == Pivoting::solved ? Pivoting::inaccurate : first;
  return report;
}

// A ← [M | q] scaled, active places first, these eliminated.
void Lemke::eliminate(bool with_pairs) {
  out_ = 0;
  for (int want = 1; want >= 0; --want)
    for (int i = 0, k = want ? 0 : out_; i < n_; ++i)
      if ((active_[i] != 0) == (want != 0)) column_[k++] = i, out_ += want;
  for (int i = 0; i < n_; ++i) {
    const int k = column_[i];
    const double* m = M_ + std::size_t(k) * std::size_t(n_);
    double* a = row(i);
    for (int j = 0; j < n_; ++j) a[j] = r_[k] * m[column_[j]] * c_[column_[j]];
    a[n_] = r_[k] * q_[k] / size_;
  }
  rank_ = paired_ = 0;
  for (int last = out_; rank_ < last;) {
    poll(2.0 * n_ * n_);
    int at = rank_;
    for (int i = rank_ + 1; i < out_; ++i)
      if (std::abs(row(i)[rank_]) > std::abs(row(at)[rank_])) at = i;
    double* a = row(rank_);
    if (!(std::abs(row(at)[rank_]) > singular)) {
      // no pivot: the column goes last
      --last;
      for (int i = 0; i < n_; ++i) std::swap(row(i)[rank_], row(i)[last]);
      std::swap(column_[rank_], column_[last]);
      continue;
    }
    if (at != rank_) std::swap_ranges(a + rank_, a + n_ + 1, row(at) + rank_);
    const double inverse = 1 / a[rank_];
    for (int i = rank_ + 1; i < n_; ++i) {
      double* b = row(i);
      const double factor = b[rank_] * inverse;
      if (factor == 0) continue;
      for (int j = rank_ + 1; j <= n_; ++j) b[j] -= factor * a[j];
    }
    ++rank_;
  }
  std::fill(swapped_.begin(), swapped_.begin() + n_, 0);
  if (with_pairs) pair_up();
}

// Columns without a pivot go out together with a pair.
void Lemke::pair_up() {
  for (int k = rank_; k < out_; ++k, ++paired_) {
    double best = 1e-9;
    int e = -1, l = -1, c = -1;
    for (int i = k; i < out_; ++i)
      for (int j = out_; j < n_; ++j)
        for (int h = k; h < out_ && std::abs(row(i)[j]) > best; ++h)
          if (const double both = std::min(std::abs(row(i)[j]), std::abs(row(j)[h])); both > best)
            best = both, e = i, l = h, c = j;
    if (c < 0) return;
    if (e != k) std::swap_ranges(row(k), row(k) + n_ + 1, row(e));
    for (int i = 0; i < n_; ++i) std::swap(row(i)[k], row(i)[l]);
    std::swap(column_[k], column_[l]);
    // e gives z_c, w_c gives z_l; each to its place
    const auto rows = [this](int i) { return row(i); };
    exchange(rows, rank_, n_, rank_, n_ + 1, k, c);
    exchange(rows, rank_, n_, rank_, n_ + 1, c, k);
    std::swap_ranges(row(k), row(k) + n_ + 1, row(c));
    for (int i = rank_; i < n_; ++i) std::swap(row(i)[k], row(i)[c]);
    swapped_[c] ^= 1;
  }
}

// Whether row i leaves before row k: the lesser of (q, ε, ε², …)_i / p_i.
bool Lemke::leaves_before(int i, int k) {
  const double *a = line(i), *b = line(k), pi = p_[i], pk = p_[k], tie = noise * (pi + pk);
  const double first = a[m_ + 1] * pk - b[m_ + 1] * pi;
  if (std::abs(first) > tie) return first < 0;
  for (int j = 0; j < m_; ++j) {
    const int at = place_[j];
    const double ai = at >= 0 ? -a[at] : at == -1 - i, bk = at >= 0 ? -b[at] : at == -1 - k;
    const double next = ai * pk - bk * pi;
    if (std::abs(next) > tie) return next < 0;
  }
  return pi > pk;
}

// Pairs' variables: w 0 … m − 1, z m … 2m − 1, z₀ 2m. Leaves z in x, by place.
Pivoting Lemke::pivot(double delta, double spread, int max_pivots, int* pivots) {
  m_ = n_ - out_;
  const int m = m_, artificial = 2 * m;
  if (max_pivots < 0) max_pivots = 100 + 10 * m;
  // in the units of M and q again, so that pivots do not depend on what was eliminated; then scaled by itself
  for (int i = 0; i < m; ++i) {
    const double *a = row(out_ + i) + out_, by = r_[column_[out_ + i]];
    double* t = line(i);
    for (int j = 0; j < m; ++j) t[j] = a[j] / (by * c_[column_[out_ + j]]);
    t[m + 1] = a[m] / by;
  }
  double *by_row = row_scale_.data(), *by_column = column_scale_.data();
  const std::size_t width = std::size_t(m) + 2;
  const double size = equilibrate(T_.data(), width, T_.data() + m + 1, width, m, by_row, by_column, p_.data());
  for (int i = 0; i < m; ++i) {
    double* t = line(i);
    for (int j = 0; j < m; ++j) t[j] *= by_row[i] * by_column[j];
    t[i] += delta;
    const double turn = (i + 1) * 0.6180339887498949;
    t[m] = 1 + spread * (turn - std::floor(turn));
    t[m + 1] *= by_row[i] / size;
    basic_[i] = i, place_[i] = -1 - i;
    place_[m + i] = i;
  }
  place_[artificial] = m;

  bool done = true;
  for (int i = 0; i < m; ++i) done &= line(i)[m + 1] >= 0;
  Pivoting end = done ? Pivoting::solved : Pivoting::limit;
  for (int count = 0, enter = artificial; end == Pivoting::limit && count < max_pivots; ++count) {
    poll(2.0 * m * m);
    const int e = place_[enter];
    double largest = 1;
    for (int i = 0; i < m; ++i) {
      p_[i] = count == 0 ? line(i)[e] : -line(i)[e];
      largest = std::max(largest, std::abs(p_[i]));
    }
    int r = -1;
    for (int i = 0; i < m; ++i)
      if (p_[i] > leave * largest && (r < 0 || leaves_before(i, r))) r = i;
    if (r < 0) {
      end = Pivoting::ray;
      break;
    }
    // z₀ leaves whenever it may
    if (const int z0 = -1 - place_[artificial]; z0 >= 0 && p_[z0] > leave * largest) {
      const double *a = line(z0), *b = line(r), pa = p_[z0], pb = p_[r];
      if (a[m + 1] * pb - b[m + 1] * pa <= noise * (pa + pb)) r = z0;
    }
    exchange([this](int i) { return line(i); }, 0, m, 0, m + 2, r, e);
    if (count > 0)
      for (int i = 0; i < m; ++i)
        if (double& b = line(i)[m + 1]; b < 0 && b > -1e2 * noise) b = 0;
    const int leaving = basic_[r];
    basic_[r] = enter, place_[enter] = -1 - r;
    place_[leaving] = e;
    ++*pivots;
    if (leaving == artificial) end = Pivoting::solved;
    enter = leaving < m ? leaving + m : leaving - m;
  }
  for (int i = 0; i < m; ++i) {
    const int at = place_[m + i];
    x_[out_ + i] = at < 0 ? line(-1 - at)[m + 1] * by_column[i] * size / c_[column_[out_ + i]] : 0.0;
  }
  return end;
}

// z of all places from those of the pairs, unscaled; what is not finite becomes zero.
void Lemke::recover(double* z) {
  const auto sum = [this](int i, int from) {
    const double* a = row(i);
    double s = a[n_];
    for (int j = from; j < n_; ++j) s += a[j] * x_[j];
    return s;
  };
  // pairs that were exchanged, and columns that went out with them
  for (int k = out_; k < n_; ++k)
    if (swapped_[k]) p_[k] = sum(k, out_);
  for (int k = rank_; k < out_; ++k) x_[k] = k < rank_ + paired_ ? sum(k, out_) : 0.0;
  for (int k = out_; k < n_; ++k)
    if (swapped_[k]) x_[k] = p_[k];
  for (int k = rank_ - 1; k >= 0; --k) x_[k] = -sum(k, k + 1) / row(k)[k];
  for (int k = 0; k < n_; ++k) {
    const auto i = std::size_t(column_[k]);
    z[i] = c_[i] * x_[k] * size_;
    if (!std::isfinite(z[i])) z[i] = 0;
  }
}

double Lemke::residual(const bool* free, const double* z) const {
  double largest = 0;
  for (int i = 0; i < n_; ++i) {
    const double* m = M_ + std::size_t(i) * std::size_t(n_);
    double w = q_[i];
    for (int j = 0; j < n_; ++j) w += m[j] * z[j];
    const double wrong = (free && free[i]) || z[i] > 0 ? std::abs(w) : -w;
    if (!(wrong <= largest)) largest = std::isfinite(wrong) ? wrong : std::numeric_limits<double>::infinity();
  }
  return largest;
}

}  // namespace delassus
