// Adjoints of an island's step: the equations of island_linearization.h from the last to the first.
#include <algorithm>
#include <cmath>

#include "derivatives/integrate_derivatives.h"
#include "simulator/island_linearization.h"
#include "simulator/sweep_memory.h"

namespace delassus {

void IslandLinearization::adjoints(const double* next_q_bar, const double* next_v_bar, int columns, double* q_bar,
                                   double* v_bar, double* f_bar, double* friction_bar,
                                   const ParameterBars& parameters) {
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(columns), count = n * k;
  const std::size_t contacts = s_->contact_rows.size();
  for (auto* x : {&middle_d_, &free_d_, &next_d_, &u_d_, &way_d_, &w_d_, &forces_, &work_, &part_q_, &part_v_})
    sized(*x, n, columns);
  for (auto* x : {&rows_d_, &lambda_d_, &work_rows_}) sized(*x, m, columns);
  sized(loop_rows_, std::size_t(l_), columns);
  for (auto* x : {&gaps_d_, &friction_d_}) sized(*x, contacts, columns);
  const Bars to{q_bar, v_bar, f_bar, friction_bar, columns, parameters};
  for (double* x : {v_bar, f_bar, middle_d_.data(), way_d_.data()}) std::fill_n(x, count, 0.0);
  std::fill_n(friction_bar, contacts * k, 0.0);

  // arrival, displacement, v⁺
  std::copy_n(next_q_bar, count, q_bar);
  if (arrives_) arrival_adjoints(columns, q_bar);
  std::fill_n(way_d_.data(), count, 0.0);
  integrate_adjoints(model_, way_.data(), dt_, columns, q_bar, way_d_.data());
  for (std::size_t e = 0; e < count; ++e) {
    u_d_[e] = way_d_[e];
    next_d_[e] = next_v_bar[e] + remaining_[e / k] * way_d_[e];
  }
  for (const auto& body : bodies_) {
    const std::size_t first = std::size_t(body.first) * k;
    for (std::size_t c = first; c < first + k; ++c) {
      double in[FreeBodies::inputs] = {}, out[FreeBodies::outputs];
      for (std::size_t o = 0; o < FreeBodies::outputs; ++o) {
        out[o] = o < 6 ? next_v_bar[c + o * k] : way_d_[c + (o - 6) * k];
        for (std::size_t i = 0; i < FreeBodies::inputs; ++i) in[i] += body.by[o][i] * out[o];
      }
      for (std::size_t i = 0; i < 3; ++i) q_bar[c + (3 + i) * k] += in[i];
      for (std::size_t i = 0; i < 6; ++i) u_d_[c + i * k] = in[3 + i], next_d_[c + i * k] = in[9 + i];
      if (parameters.inertial) body_parameter_adjoints(body, out, columns, c - first, parameters.inertial);
    }
  }
  if (corrects_) correction_adjoints(to);

  // impulses, and v' as it would be with the same
  copy(next_d_.data(), count, free_d_);
  if (m > 0) {
    mass_inverse(next_d_, columns, work_);
    s_->G->jacobian(work_.data(), columns, lambda_d_.data());
    sized(bound_d_, motion_.sets->intervals.size(), columns);
    if (smooths_) {
      use_smoothed();
      smoothed_.adjoints(lambda_d_.data(), nullptr, columns, rows_d_.data(), friction_d_.data(), nullptr, nullptr);
    } else {
      use(motion_);
      motion_.modes.adjoints(lambda_d_.data(), nullptr, columns, rows_d_.data(), friction_d_.data(), bound_d_.data());
    }
    for (std::size_t e = 0; e < contacts * k; ++e) friction_bar[e] += friction_d_[e];
    s_->G->jacobian_transpose(rows_d_.data(), columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) free_d_[e] += work_[e];
  }
  if (bounces_) {
    Numbers& given_bar = bounce_->given_d;
    sized(given_bar, m, columns);
    s_->G->apply(rows_d_.data(), columns, given_bar.data());
    for (std::size_t e = 0; e < m * k; ++e) given_bar[e] += lambda_d_[e];
    const auto& intervals = motion_.sets->intervals;
    for (std::size_t i = 0; i < intervals.size(); ++i)
      for (std::size_t c = 0; c < k; ++c)
        if (intervals[i].lower != 0) given_bar[std::size_t(intervals[i].row) * k + c] -= bound_d_[i * k + c];
  }
  motion_adjoints(to, motion_, free_d_, rows_d_);
  if (bounces_) bounce_adjoints(to);
  middle_adjoints(to);

  // q_m
  if (l_ > 0) {
    copy(q_bar, count, work_);
    std::fill_n(part_v_.data(), count, 0.0);
    integrate_adjoints(model_, v_.data(), 0.5 * dt_, columns, work_.data(), part_v_.data());
    for (std::size_t e = 0; e < count; ++e)
      if (remaining_[e / k] != 1) q_bar[e] = work_[e], v_bar[e] += part_v_[e];
  }
}

// From the adjoints of v' with the same impulses and of what the rows change by.
void IslandLinearization::motion_adjoints(const Bars& to, Motion& motion, const Numbers& free_bar,
                                          const Numbers& rows_bar) {
  const std::size_t m = std::size_t(m_), k = std::size_t(to.columns), count = std::size_t(n_) * k;
  for (std::size_t e = 0; e < count; ++e) forces_[e] = dt_ * free_bar[e];
  mass_inverse(forces_, to.columns, forces_);
  motion.force.adjoints(forces_.data(), nullptr, to.columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) {
    to.v[e] += free_bar[e], to.f[e] += forces_[e];
    to.q[e] -= part_q_[e], middle_d_[e] -= part_v_[e];
    work_[e] = forces_[e] / dt_;
  }
  if (to.parameters.inertial)
    motion.force.parameter_adjoints(forces_.data(), to.columns, -1.0, to.parameters.inertial, to.parameters.armature);
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c)
      gaps_d_[i * k + c] = gap_gain_[s_->normal_row(i)] * rows_bar[s_->normal_row(i) * k + c];
  motion.contacts.adjoints(rows_bar.data(), gaps_d_.data(), work_.data(), to.columns, to.q);
  if (m == 0) return;
  std::fill_n(work_rows_.data(), m * k, 0.0);
  for (std::size_t e = std::size_t(s_->first_limit) * k; e < std::size_t(s_->first_contact) * k; ++e)
    work_rows_[e] = gap_gain_[e / k] * rows_bar[e];
  s_->G->jacobian_transpose(work_rows_.data(), to.columns, work_.data());
  for (std::size_t e = 0; e < count; ++e) to.q[e] += work_[e];
  if (l_ == 0) return;
  const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
  motion.loop_rows->adjoints(nullptr, rows_bar.data(), to.columns, part_q_.data(), part_v_.data());
  loops_transposed(rows_bar.data(), to.columns, work_.data());
  double* turned = aim_.calm ? to.v : middle_d_.data();
  for (std::size_t e = 0; e < count; ++e) {
    to.q[e] += part_q_[e];
    to.v[e] += aim_.kept * work_[e];
    turned[e] += bend * part_v_[e];
  }
}

// From the adjoint of what is given back.
void IslandLinearization::bounce_adjoints(const Bars& to) {
  Bounce& b = *bounce_;
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(to.columns), count = n * k;
  const std::size_t contacts = s_->contact_rows.size();
  for (auto* x : {&b.coefficient_d, &b.rows_d}) sized(*x, m, to.columns);
  sized(b.velocity_d, n, to.columns);
  for (std::size_t e = 0; e < m * k; ++e) {
    b.coefficient_d[e] = b.share[e / k] > 0 ? b.compression.lambda[e / k] * b.given_d[e] : 0.0;
    lambda_d_[e] = (1 + b.coefficient[e / k]) * b.given_d[e];
  }
  if (to.parameters.restitution)
    for (std::size_t i = 0; i < contacts; ++i)
      for (std::size_t c = 0; c < k; ++c)
        to.parameters.restitution[i * k + c] += b.share[s_->normal_row(i)] * b.coefficient_d[s_->normal_row(i) * k + c];

  // compression
  use(b.compression);
  b.compression.modes.adjoints(lambda_d_.data(), nullptr, to.columns, b.rows_d.data(), friction_d_.data(), nullptr);
  for (std::size_t e = 0; e < contacts * k; ++e) to.friction[e] += friction_d_[e];
  s_->G->jacobian_transpose(b.rows_d.data(), to.columns, b.velocity_d.data());
  motion_adjoints(to, b.compression, b.velocity_d, b.rows_d);

  // e: approach, and g, which follows v_f
  const auto weigh = [&](bool falls) {
    for (std::size_t e = 0; e < m * k; ++e) {
      const double share = b.share[e / k];
      const bool follows = share > 0 && share < 1;
      const double rate = follows ? b.coefficient[e / k] / (share * b.g[e / k]) : 0.0;
      b.rows_d[e] = rate * (falls ? -share : 1) * b.coefficient_d[e];
    }
    std::fill_n(gaps_d_.data(), contacts * k, 0.0);
    std::fill_n(work_.data(), count, 0.0);
    (falls ? b.fall : b.approach).adjoints(b.rows_d.data(), gaps_d_.data(), work_.data(), to.columns, to.q);
    s_->G->jacobian_transpose(b.rows_d.data(), to.columns, b.velocity_d.data());
    for (std::size_t e = 0; e < count; ++e) to.v[e] += b.velocity_d[e];
  };
  weigh(false);
  weigh(true);
  for (std::size_t e = 0; e < count; ++e) forces_[e] = dt_ * b.velocity_d[e];
  mass_inverse(forces_, to.columns, forces_);
  b.free.adjoints(forces_.data(), nullptr, to.columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) to.f[e] += forces_[e], to.q[e] -= part_q_[e], middle_d_[e] -= part_v_[e];
  if (to.parameters.inertial)
    b.free.parameter_adjoints(forces_.data(), to.columns, -1.0, to.parameters.inertial, to.parameters.armature);
}

// From the adjoint of v½.
void IslandLinearization::middle_adjoints(const Bars& to) {
  const std::size_t k = std::size_t(to.columns), count = std::size_t(n_) * k;
  for (std::size_t e = 0; e < count; ++e) {
    if (owned_[e / k]) middle_d_[e] = 0;
    to.v[e] += middle_d_[e];
  }
  if (!has_middle_) return;
  for (std::size_t e = 0; e < count; ++e) forces_[e] = 0.5 * dt_ * middle_d_[e];  // of α₀
  if (l_ > 0) {
    // λ₀ of loops: −G_ll⁻¹ of its adjoint is that of the rows
    mass_inverse(forces_, to.columns, work_);
    s_->G->jacobian(work_.data(), to.columns, work_rows_.data());
    for (std::size_t e = 0; e < std::size_t(l_) * k; ++e) loop_rows_[e] = work_rows_[e] / dt_;
    close_loops(loop_rows_.data(), to.columns, lambda_d_.data());
    const double bend = std::sqrt(aim_.half * (1 - middle_kept_));
    middle_rows_->adjoints(nullptr, lambda_d_.data(), to.columns, part_q_.data(), part_v_.data());
    s_->G->jacobian_transpose(lambda_d_.data(), to.columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) {
      to.q[e] += part_q_[e];
      to.v[e] += bend * part_v_[e] + (1 + middle_kept_) * work_[e];
      forces_[e] += dt_ * work_[e];
    }
  }
  mass_inverse(forces_, to.columns, forces_);
  middle_.adjoints(forces_.data(), nullptr, to.columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) {
    if (!held_) to.f[e] += forces_[e];
    to.q[e] -= part_q_[e];
    if (!owned_[e / k]) to.v[e] -= part_v_[e];
  }
  if (to.parameters.inertial)
    middle_.parameter_adjoints(forces_.data(), to.columns, -1.0, to.parameters.inertial, to.parameters.armature);
}

// Contribution of the adjoint of u to those of q_m and of v'.
void IslandLinearization::correction_adjoints(const Bars& to) {
  const int columns = to.columns;
  const std::size_t m = std::size_t(m_), k = std::size_t(columns), count = std::size_t(n_) * k;
  mass_inverse(u_d_, columns, work_);
  s_->G->jacobian(work_.data(), columns, lambda_d_.data());
  use(corrected_modes_, *corrected_map_, correction_factored_);
  corrected_modes_.adjoints(lambda_d_.data(), nullptr, columns, rows_d_.data(), nullptr, nullptr);

  // u as it would be with the same µ
  s_->G->jacobian_transpose(rows_d_.data(), columns, work_.data());
  for (std::size_t e = 0; e < count; ++e) forces_[e] = u_d_[e] + work_[e];
  mass_inverse(forces_, columns, forces_);
  correction_.adjoints(forces_.data(), nullptr, columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) to.q[e] -= part_q_[e];
  if (to.parameters.inertial)
    correction_.parameter_adjoints(forces_.data(), columns, -1.0, to.parameters.inertial, to.parameters.armature);
  for (std::size_t e = 0; e < s_->contact_rows.size() * k; ++e) gaps_d_[e] = 0;
  corrected_.adjoints(rows_d_.data(), gaps_d_.data(), forces_.data(), columns, to.q);

  // rows that follow w and gaps
  for (std::size_t e = 0; e < m * k; ++e) work_rows_[e] = correction_gain_[e / k] * rows_d_[e];
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c) gaps_d_[i * k + c] = work_rows_[s_->normal_row(i) * k + c] / dt_;
  std::fill_n(work_.data(), count, 0.0);
  going_.adjoints(work_rows_.data(), gaps_d_.data(), work_.data(), columns, to.q);
  s_->G->jacobian_transpose(work_rows_.data(), columns, w_d_.data());
  for (std::size_t e = 0; e < m * k; ++e) {
    const int row = int(e / k);
    work_rows_[e] = row >= s_->first_limit && row < s_->first_contact ? work_rows_[e] / dt_ : 0.0;
  }
  s_->G->jacobian_transpose(work_rows_.data(), columns, work_.data());
  for (std::size_t e = 0; e < count; ++e) to.q[e] += work_[e];
  if (l_ > 0) {
    corrected_rows_->adjoints(nullptr, rows_d_.data(), columns, part_q_.data(), part_v_.data());
    const double bend = std::sqrt(0.5 * dt_);
    for (std::size_t e = 0; e < count; ++e) to.q[e] += part_q_[e], w_d_[e] += bend * part_v_[e];
  }
  for (std::size_t e = 0; e < count; ++e) next_d_[e] += remaining_[e / k] * w_d_[e];
}

// dq⁺ = (1 − P N⁻¹ J⁺) dq with P = dt J_r M̂⁻¹ Jᵀ and N = J⁺ P, which is all but dt G_ll: its transposed.
void IslandLinearization::arrival_adjoints(int columns, double* next_q_bar) {
  const std::size_t k = std::size_t(columns), count = std::size_t(n_) * k, l = std::size_t(l_) * k;
  Numbers& z = lambda_d_;
  std::fill_n(z.data(), std::size_t(m_) * k, 0.0);
  double first = 0, before = 0;
  for (int step = 0; step <= max_closing_steps; ++step) {
    // Pᵀ (q_bar − J⁺ᵀ z)
    end_->adjoints(nullptr, z.data(), columns, part_q_.data(), part_v_.data());
    for (std::size_t e = 0; e < count; ++e) part_q_[e] = next_q_bar[e] - part_q_[e], work_[e] = part_q_[e];
    std::fill_n(part_v_.data(), count, 0.0);
    integrate_adjoints(model_, way_.data(), dt_, columns, work_.data(), part_v_.data());
    mass_inverse(part_v_, columns, part_v_);
    s_->G->jacobian(part_v_.data(), columns, work_rows_.data());
    double open = 0;
    for (std::size_t e = 0; e < l; ++e) open = std::max(open, std::abs(work_rows_[e]));
    if (step == 0) first = open;
    if (!(open > closed_share * first) || (step > 0 && !(open < 0.5 * before)) || step == max_closing_steps) break;
    before = open;
    for (std::size_t e = 0; e < l; ++e) loop_rows_[e] = -work_rows_[e] / dt_;
    close_loops(loop_rows_.data(), columns, work_rows_.data());
    for (std::size_t e = 0; e < l; ++e) z[e] += work_rows_[e];
  }
  std::copy_n(part_q_.data(), count, next_q_bar);
}

// How a free body turns depends on its inertia (free_bodies.h). Parameters of a link are those of its bodies, each
// moved to the link's frame: with t, R the place of a body, m c' = R m c,
//
//   m,   m c' + m t,   R I Rᵀ + 2 (t · m c') − t m c'ᵀ − m c' tᵀ + m (t · t − t tᵀ)
void IslandLinearization::body_parameter_adjoints(const FreeBodies::Rates& body, const double* out, int columns,
                                                  std::size_t column, double* inertial_bar) const {
  double by[FreeBodies::outputs][10];
  free_bodies_->find_inertial_rates(start_q_.data(), u_, next_v_, body.link, by);
  double bar[10] = {};
  for (int o = 0; o < FreeBodies::outputs; ++o)
    for (int p = 0; p < 10; ++p) bar[p] += by[o][p] * out[o];
  constexpr int entry[6][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}};
  for (std::size_t b = 0; b < model_.bodies.size(); ++b) {
    if (model_.bodies[b].link != body.link) continue;
    const Pose<double>& X = model_.bodies[b].placement;
    for (std::size_t p = 0; p < 10; ++p) {
      // one unit of this parameter, in the link's frame
      const double mass = p == 0 ? 1 : 0;
      const Vec3<double> axis[3] = {X.R.x, X.R.y, X.R.z}, t = X.p;
      const Vec3<double> moment = p >= 1 && p < 4 ? axis[p - 1] : Vec3<double>{};
      const Vec3<double> first = moment + t * mass;
      double I[3][3] = {};
      const auto add = [&](const Vec3<double>& a, const Vec3<double>& c, double x) {
        const double u[3] = {a.x, a.y, a.z}, w[3] = {c.x, c.y, c.z};
        for (int r = 0; r < 3; ++r)
          for (int q = 0; q < 3; ++q) I[r][q] += x * u[r] * w[q];
      };
      if (p >= 4) {
        const int r = entry[p - 4][0], q = entry[p - 4][1];
        add(axis[r], axis[q], 1);
        if (r != q) add(axis[q], axis[r], 1);
      }
      const double trace = 2 * dot(t, moment) + mass * dot(t, t);
      for (int r = 0; r < 3; ++r) I[r][r] += trace;
      add(t, moment, -1), add(moment, t, -1), add(t, t, -mass);
      double sum = bar[0] * mass + bar[1] * first.x + bar[2] * first.y + bar[3] * first.z;
      for (int e = 0; e < 6; ++e) sum += bar[4 + e] * I[entry[e][0]][entry[e][1]];
      inertial_bar[(10 * b + p) * std::size_t(columns) + column] += sum;
    }
  }
}

}  // namespace delassus
