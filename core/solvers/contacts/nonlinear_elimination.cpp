#include "solvers/contacts/nonlinear_elimination.h"

#include <limits>

#include "dense/lu.h"
#include "operators/selected_response.h"

namespace delassus {
namespace {

static_assert(NonlinearElimination::most_rows <= SelectedResponse<double>::most_rows);

constexpr double chosen_share = 0.99;  // of ‖d f‖ that the chosen contacts hold, if so few do
constexpr int max_local_iterations = 4, local_halvings = 6;
constexpr double small_enough = 1e-3;  // ‖d φ‖, over that of the linear step

// C' = P'(y) and φ of one contact whose forces are r, changed by dr. ‖d φ‖².
template <int N>
double evaluate_contact(const NonlinearElimination::Contact& c, const double* r, const double* dr, const double* sigma,
                        double* C, double* phi) {
  double y[N], P[N] = {};
  for (int a = 0; a < N; ++a) y[a] = r[a] - c.beta * sigma[a];
  std::fill_n(C, N * N, 0.0);
  if (y[0] > 0) {
    const double t = tangential<N>(y), radius = c.friction * y[0];
    const bool sticks = t <= radius;
    const double share = sticks ? 1 : radius / t;
    P[0] = y[0];
    C[0] = 1;
    for (int a = 1; a < N; ++a) {
      P[a] = share * y[a];
      C[a * N + a] = share;
      if (sticks) continue;
      const double h = y[a] / t;
      C[a * N] = c.friction * h;
      for (int b = 1; b < N; ++b) C[a * N + b] -= share * h * (y[b] / t);
    }
  }
  double sum = 0;
  for (int a = 0; a < N; ++a) {
    phi[a] = c.delta * dr[a] + r[a] - P[a];
    sum += phi[a] * phi[a];
  }
  return c.d * c.d * sum;
}

// f with the number of a contact's rows as a constant.
template <class F>
decltype(auto) with_rows_of(const NonlinearElimination::Contact& c, F&& f) {
  return with_rows(Cone{0, 0, c.rows}, f);
}

}  // namespace

int NonlinearElimination::choose(const ForceSets& K, const double* d, const double* f, double length) {
  // the largest first
  contacts_ = 0;
  for (std::size_t k = 0; k < K.cones.size(); ++k) {
    const Cone& c = K.cones[k];
    double weight = 0;
    for (int a = c.row; a < c.row + c.rows; ++a) weight += f[a] * f[a];
    weight *= d[c.row] * d[c.row];
    if (!(weight > 0) || (contacts_ == most_contacts && weight <= weight_[most_contacts - 1])) continue;
    int place = contacts_ < most_contacts ? contacts_++ : most_contacts - 1;
    for (; place > 0 && weight_[std::size_t(place - 1)] < weight; --place) {
      weight_[std::size_t(place)] = weight_[std::size_t(place - 1)];
      chosen_[std::size_t(place)].cone = chosen_[std::size_t(place - 1)].cone;
    }
    weight_[std::size_t(place)] = weight;
    chosen_[std::size_t(place)].cone = int(k);
  }
  // no more than it takes
  double sum = 0;
  rows_ = 0;
  for (int k = 0; k < contacts_; ++k) {
    if (sum >= chosen_share * chosen_share * length * length) {
      contacts_ = k;
      break;
    }
    Contact& c = chosen_[std::size_t(k)];
    const Cone& cone = K.cones[std::size_t(c.cone)];
    sum += weight_[std::size_t(k)];
    c.rows = cone.rows, c.friction = cone.friction, c.d = d[cone.row];
    for (int a = 0; a < cone.rows; ++a) row_[std::size_t(rows_++)] = cone.row + a;
  }
  return contacts_;
}

// φ and C' at z; ‖d φ‖.
double NonlinearElimination::evaluate(const double* z) {
  double sum = 0;
  std::size_t at = 0;
  double* C = C_.data();
  for (int k = 0; k < contacts_; ++k) {
    const Contact& c = chosen_[std::size_t(k)];
    sum += with_rows_of(c, [&](auto n) {
      double change[n()], r[n()], dr[n()], sigma[n()];
      for (std::size_t a = 0; a < n(); ++a) {
        const double* row = A_.data() + (at + a) * std::size_t(rows_);
        change[a] = 0;
        for (int j = 0; j < rows_; ++j) change[a] += row[j] * z[j];
      }
      for (std::size_t a = 0; a < n(); ++a) {
        double force = z[at + a];
        for (std::size_t b = 0; b < n(); ++b) force -= c.B[a * n() + b] * change[b];
        r[a] = c.r[a] + force, dr[a] = c.dr[a] + force, sigma[a] = c.sigma[a] + change[a];
      }
      return evaluate_contact<n()>(c, r, dr, sigma, C, phi_.data() + at);
    });
    at += std::size_t(c.rows), C += c.rows * c.rows;
  }
  return std::sqrt(sum);
}

// E' + Q A
void NonlinearElimination::set_matrix() {
  std::size_t at = 0;
  const std::size_t m = std::size_t(rows_);
  const double* C = C_.data();
  for (int k = 0; k < contacts_; ++k) {
    const Contact& c = chosen_[std::size_t(k)];
    with_rows_of(c, [&](auto n) {
      for (std::size_t a = 0; a < n(); ++a) {
        double E[n()], Q[n()];
        for (std::size_t b = 0; b < n(); ++b) E[b] = (a == b ? 1 + c.delta : 0) - C[a * n() + b];
        for (std::size_t b = 0; b < n(); ++b) {
          Q[b] = c.beta * C[a * n() + b];
          for (std::size_t e = 0; e < n(); ++e) Q[b] -= E[e] * c.B[e * n() + b];
        }
        double* row = matrix_.data() + (at + a) * m;
        for (std::size_t j = 0; j < m; ++j) {
          row[j] = 0;
          for (std::size_t b = 0; b < n(); ++b) row[j] += Q[b] * A_[(at + b) * m + j];
        }
        for (std::size_t b = 0; b < n(); ++b) row[at + b] += E[b];
      }
    });
    at += std::size_t(c.rows), C += c.rows * c.rows;
  }
}

bool NonlinearElimination::solve() {
  const std::size_t m = std::size_t(rows_);
  std::fill_n(z_.data(), m, 0.0);
  const double first = evaluate(z_.data());
  double now = first;
  for (int k = 0; k < max_local_iterations && now > small_enough * first; ++k) {
    set_matrix();
    if (dense::factor_lu(rows_, matrix_.data(), rows_, pivots_.data()) < rows_) break;
    for (std::size_t i = 0; i < m; ++i) step_[i] = -phi_[i];
    dense::solve_lu(rows_, matrix_.data(), rows_, pivots_.data(), step_.data());
    // all of the step, or a part that makes ‖d φ‖ smaller
    double t = 1, next = std::numeric_limits<double>::infinity();
    for (int h = 0; h < local_halvings; ++h, t /= 2) {
      for (std::size_t i = 0; i < m; ++i) trial_[i] = z_[i] + t * step_[i];
      next = evaluate(trial_.data());
      if (next < (1 - 0.1 * t) * now) break;
    }
    if (!(next < now)) break;
    now = next;
    std::copy_n(trial_.data(), m, z_.data());
  }
  return now < first;
}

}  // namespace delassus
