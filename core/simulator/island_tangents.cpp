// An island's step along directions: the equations of island_linearization.h from the first to the last.
#include <algorithm>
#include <cmath>

#include "derivatives/integrate_derivatives.h"
#include "simulator/island_linearization.h"
#include "simulator/sweep_memory.h"

namespace delassus {

// v' as it would be with the same impulses, and what rows then change by.
void IslandLinearization::find_impulse_rows(const Direction& d) {
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(d.columns), count = n * k;
  for (auto* x : {&q_, &middle_d_, &free_d_, &next_d_, &u_d_, &way_d_, &forces_, &work_}) sized(*x, n, d.columns);
  for (auto* x : {&rows_d_, &lambda_d_, &work_rows_}) sized(*x, m, d.columns);
  sized(loop_rows_, std::size_t(l_), d.columns), sized(gaps_d_, s_->contact_rows.size(), d.columns);

  // q_m
  copy(d.q, count, q_);
  if (l_ > 0) {
    copy(d.q, count, work_);
    integrate_tangents(model_, v_.data(), 0.5 * dt_, d.v, d.columns, work_.data());
    for (std::size_t i = 0; i < n; ++i)
      if (remaining_[i] != 1) std::copy_n(work_.data() + i * k, k, q_.data() + i * k);
  }

  middle_tangents(d);
  if (bounces_) bounce_tangents(d);
  motion_tangents(d, motion_, free_d_, rows_d_);
}

void IslandLinearization::tangents(const Direction& d, double* next_dq, double* next_dv) {
  const std::size_t m = std::size_t(m_), k = std::size_t(d.columns), count = std::size_t(n_) * k;
  find_impulse_rows(d);

  // v' with its impulses
  copy(free_d_.data(), count, next_d_);
  if (m > 0) {
    const double* bounds = nullptr;
    if (bounces_) {
      const Numbers& given = bounce_->given_d;
      s_->G->apply(given.data(), d.columns, work_rows_.data());
      for (std::size_t e = 0; e < m * k; ++e) rows_d_[e] += work_rows_[e];
      const auto& intervals = motion_.sets->intervals;
      sized(bound_d_, intervals.size(), d.columns);
      for (std::size_t i = 0; i < intervals.size(); ++i)
        for (std::size_t c = 0; c < k; ++c)
          bound_d_[i * k + c] = intervals[i].lower == 0 ? 0.0 : -given[std::size_t(intervals[i].row) * k + c];
      bounds = bound_d_.data();
    }
    if (smooths_) {
      use_smoothed();
      smoothed_.tangents(rows_d_.data(), d.friction, nullptr, nullptr, d.columns, lambda_d_.data(), nullptr);
    } else {
      use(motion_);
      motion_.modes.tangents(rows_d_.data(), d.friction, bounds, d.columns, lambda_d_.data(), nullptr);
    }
    if (bounces_)
      for (std::size_t e = 0; e < m * k; ++e) lambda_d_[e] += bounce_->given_d[e];
    s_->G->jacobian_transpose(lambda_d_.data(), d.columns, work_.data());
    mass_inverse(work_, d.columns, work_);
    for (std::size_t e = 0; e < count; ++e) next_d_[e] += work_[e];
  }

  // u, displacement, v⁺
  if (corrects_)
    correction_tangents(d.columns);
  else
    std::fill_n(u_d_.data(), count, 0.0);
  for (std::size_t e = 0; e < count; ++e) way_d_[e] = u_d_[e] + remaining_[e / k] * next_d_[e];
  std::copy_n(next_d_.data(), count, next_dv);
  for (const auto& body : bodies_) {
    const std::size_t first = std::size_t(body.first) * k;
    for (std::size_t c = first; c < first + k; ++c) {
      double in[FreeBodies::inputs];
      for (std::size_t i = 0; i < 3; ++i) in[i] = q_[c + (3 + i) * k];
      for (std::size_t i = 0; i < 6; ++i) in[3 + i] = u_d_[c + i * k], in[9 + i] = next_d_[c + i * k];
      for (std::size_t o = 0; o < FreeBodies::outputs; ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < FreeBodies::inputs; ++i) sum += body.by[o][i] * in[i];
        (o < 6 ? next_dv[c + o * k] : way_d_[c + (o - 6) * k]) = sum;
      }
    }
  }
  std::copy_n(q_.data(), count, next_dq);
  integrate_tangents(model_, way_.data(), dt_, way_d_.data(), d.columns, next_dq);
  if (arrives_) arrival_tangents(d.columns, next_dq);
}

void IslandLinearization::middle_tangents(const Direction& d) {
  const std::size_t k = std::size_t(d.columns), count = std::size_t(n_) * k;
  for (std::size_t e = 0; e < count; ++e) middle_d_[e] = owned_[e / k] ? 0.0 : d.v[e];
  if (!has_middle_) return;
  middle_.tangents(q_.data(), middle_d_.data(), nullptr, nullptr, d.columns, forces_.data(), loop_rows_.data());
  for (std::size_t e = 0; e < count; ++e) forces_[e] = (held_ ? 0.0 : d.f[e]) - forces_[e];
  mass_inverse(forces_, d.columns, forces_);
  if (l_ > 0) {
    const double bend = std::sqrt(aim_.half * (1 - middle_kept_));
    for (std::size_t e = 0; e < count; ++e) {
      work_[e] = bend * d.v[e];
      next_d_[e] = (1 + middle_kept_) * d.v[e] + dt_ * forces_[e];
    }
    middle_rows_->tangents(q_.data(), work_.data(), next_d_.data(), nullptr, d.columns, way_d_.data(),
                           loop_rows_.data());
    close_loops(loop_rows_.data(), d.columns, lambda_d_.data());
    s_->G->jacobian_transpose(lambda_d_.data(), d.columns, work_.data());
    mass_inverse(work_, d.columns, work_);
    for (std::size_t e = 0; e < count; ++e) forces_[e] += work_[e] / dt_;
  }
  for (std::size_t e = 0; e < count; ++e)
    if (!owned_[e / k]) middle_d_[e] += 0.5 * dt_ * forces_[e];
}

// dv' with the same impulses, and what the rows then change by.
void IslandLinearization::motion_tangents(const Direction& d, Motion& motion, Numbers& free, Numbers& rows) {
  const std::size_t m = std::size_t(m_), k = std::size_t(d.columns), count = std::size_t(n_) * k;
  motion.force.tangents(q_.data(), middle_d_.data(), nullptr, nullptr, d.columns, free.data(), loop_rows_.data());
  std::fill_n(rows.data(), m * k, 0.0);
  motion.contacts.tangents(q_.data(), d.columns, rows.data(), gaps_d_.data(), forces_.data());
  for (std::size_t e = 0; e < count; ++e) free[e] = d.f[e] - free[e] + forces_[e] / dt_;
  mass_inverse(free, d.columns, free);
  for (std::size_t e = 0; e < count; ++e) free[e] = d.v[e] + dt_ * free[e];
  if (m == 0) return;
  s_->G->jacobian(free.data(), d.columns, work_rows_.data());
  for (std::size_t e = std::size_t(l_) * k; e < m * k; ++e) rows[e] += work_rows_[e];
  s_->G->jacobian(q_.data(), d.columns, work_rows_.data());
  for (std::size_t e = std::size_t(s_->first_limit) * k; e < std::size_t(s_->first_contact) * k; ++e)
    rows[e] += gap_gain_[e / k] * work_rows_[e];
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c)
      rows[s_->normal_row(i) * k + c] += gap_gain_[s_->normal_row(i)] * gaps_d_[i * k + c];
  if (l_ == 0) return;
  const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
  const double* from = aim_.calm ? d.v : middle_d_.data();
  for (std::size_t e = 0; e < count; ++e) {
    work_[e] = bend * from[e];
    forces_[e] = free[e] + aim_.kept * d.v[e];
  }
  motion.loop_rows->tangents(q_.data(), work_.data(), forces_.data(), nullptr, d.columns, way_d_.data(), rows.data());
}

// What is given back: d((1 + e) λ) of compression, with e = restitution · (J v) / (J v_f) where it bounces.
void IslandLinearization::bounce_tangents(const Direction& d) {
  Bounce& b = *bounce_;
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(d.columns), count = n * k;
  for (auto* x : {&b.given_d, &b.coefficient_d, &b.rows_d}) sized(*x, m, d.columns);
  sized(b.velocity_d, n, d.columns);
  motion_tangents(d, b.compression, b.velocity_d, b.rows_d);
  use(b.compression);
  b.compression.modes.tangents(b.rows_d.data(), d.friction, nullptr, d.columns, b.given_d.data(), nullptr);

  // e
  std::fill_n(b.coefficient_d.data(), m * k, 0.0);
  const auto add = [&](ContactRates& rates, const double* dv, bool falls) {
    std::fill_n(b.rows_d.data(), m * k, 0.0);
    rates.tangents(q_.data(), d.columns, b.rows_d.data(), gaps_d_.data(), forces_.data());
    s_->G->jacobian(dv, d.columns, work_rows_.data());
    for (std::size_t e = 0; e < m * k; ++e) {
      const double share = b.share[e / k];
      if (!(share > 0 && share < 1)) continue;
      const double rate = b.coefficient[e / k] / (share * b.g[e / k]);
      b.coefficient_d[e] += rate * (falls ? -share : 1) * (b.rows_d[e] + work_rows_[e]);
    }
  };
  add(b.approach, d.v, false);
  b.free.tangents(q_.data(), middle_d_.data(), nullptr, nullptr, d.columns, b.velocity_d.data(), loop_rows_.data());
  for (std::size_t e = 0; e < count; ++e) b.velocity_d[e] = d.f[e] - b.velocity_d[e];
  mass_inverse(b.velocity_d, d.columns, b.velocity_d);
  for (std::size_t e = 0; e < count; ++e) b.velocity_d[e] = d.v[e] + dt_ * b.velocity_d[e];
  add(b.fall, b.velocity_d.data(), true);
  if (d.restitution)
    for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
      for (std::size_t c = 0; c < k; ++c)
        b.coefficient_d[s_->normal_row(i) * k + c] += b.share[s_->normal_row(i)] * d.restitution[i * k + c];
  for (std::size_t e = 0; e < m * k; ++e)
    b.given_d[e] = (1 + b.coefficient[e / k]) * b.given_d[e] + b.compression.lambda[e / k] * b.coefficient_d[e];
}

// From dq_m and dv': du
void IslandLinearization::correction_tangents(int columns) {
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(columns), count = n * k;
  sized(w_d_, n, columns);
  // u as it would be with the same µ
  correction_.tangents(q_.data(), nullptr, nullptr, nullptr, columns, u_d_.data(), loop_rows_.data());
  std::fill_n(rows_d_.data(), m * k, 0.0);
  going_.tangents(q_.data(), columns, rows_d_.data(), gaps_d_.data(), forces_.data());
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c) rows_d_[s_->normal_row(i) * k + c] += gaps_d_[i * k + c] / dt_;
  for (std::size_t e = 0; e < m * k; ++e) rows_d_[e] *= correction_gain_[e / k];
  corrected_.tangents(q_.data(), columns, rows_d_.data(), gaps_d_.data(), forces_.data());
  for (std::size_t e = 0; e < count; ++e) u_d_[e] = forces_[e] - u_d_[e], w_d_[e] = remaining_[e / k] * next_d_[e];
  mass_inverse(u_d_, columns, u_d_);

  // rows, and µ
  s_->G->jacobian(u_d_.data(), columns, work_rows_.data());
  for (std::size_t e = std::size_t(l_) * k; e < m * k; ++e) rows_d_[e] += work_rows_[e];
  s_->G->jacobian(w_d_.data(), columns, work_rows_.data());
  for (std::size_t e = std::size_t(l_) * k; e < m * k; ++e) rows_d_[e] += correction_gain_[e / k] * work_rows_[e];
  s_->G->jacobian(q_.data(), columns, work_rows_.data());
  for (std::size_t e = std::size_t(s_->first_limit) * k; e < std::size_t(s_->first_contact) * k; ++e)
    rows_d_[e] += correction_gain_[e / k] / dt_ * work_rows_[e];
  if (l_ > 0) {
    const double bend = std::sqrt(0.5 * dt_);
    for (std::size_t e = 0; e < count; ++e) forces_[e] = w_d_[e] + u_d_[e], w_d_[e] *= bend;
    corrected_rows_->tangents(q_.data(), w_d_.data(), forces_.data(), nullptr, columns, work_.data(), rows_d_.data());
  }
  use(corrected_modes_, *corrected_map_, correction_factored_);
  corrected_modes_.tangents(rows_d_.data(), nullptr, nullptr, columns, lambda_d_.data(), nullptr);
  s_->G->jacobian_transpose(lambda_d_.data(), columns, work_.data());
  mass_inverse(work_, columns, work_);
  for (std::size_t e = 0; e < count; ++e) u_d_[e] += work_[e];
}

// dq⁺ such that loops stay closed there: moved along M̂⁻¹ Jᵀ, J at q_m, until errors at q⁺ do not change.
void IslandLinearization::arrival_tangents(int columns, double* next_dq) {
  const std::size_t k = std::size_t(columns), count = std::size_t(n_) * k, l = std::size_t(l_) * k;
  double first = 0, before = 0;
  for (int step = 0; step < max_closing_steps; ++step) {
    end_->tangents(next_dq, nullptr, nullptr, nullptr, columns, work_.data(), loop_rows_.data());
    double open = 0;
    for (std::size_t e = 0; e < l; ++e) open = std::max(open, std::abs(loop_rows_[e]));
    if (step == 0) first = open;
    // what no motion closes stays
    if (!(open > closed_share * first) || (step > 0 && !(open < 0.5 * before))) return;
    before = open;
    for (std::size_t e = 0; e < l; ++e) loop_rows_[e] /= dt_;
    close_loops(loop_rows_.data(), columns, lambda_d_.data());
    s_->G->jacobian_transpose(lambda_d_.data(), columns, way_d_.data());
    mass_inverse(way_d_, columns, way_d_);
    std::fill_n(work_.data(), count, 0.0);
    integrate_tangents(model_, way_.data(), dt_, way_d_.data(), columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) next_dq[e] += work_[e];
  }
}

}  // namespace delassus
