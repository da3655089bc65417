#include "simulator/island_linearization.h"

#include <algorithm>
#include <cmath>

#include "derivatives/integrate_derivatives.h"
#include "solvers/contacts/problem.h"

namespace delassus {

namespace {

using Numbers = std::vector<double>;

constexpr int max_closing_steps = 12;   // of loops at the end, each a thousandth of the one before
constexpr double closed_share = 1e-13;  // of what they were open, that is left

ConstraintSet<double> loops_of(const WorldDescription& world, double error_gain) {
  ConstraintSet<double> set = make_constraints(world.model, world.loops);
  for (auto& c : set.constraints) c.kd = 0, c.kp = error_gain;
  return set;
}

double* sized(Numbers& x, std::size_t rows, int columns) {
  x.resize(std::max(x.size(), rows * std::size_t(columns)));
  return x.data();
}
void copy(const double* from, std::size_t count, Numbers& to) { std::copy_n(from, count, to.data()); }

}  // namespace

void StepGaps::add(const StepGaps& o) {
  contradiction |= o.contradiction, open_loops |= o.open_loops, tendons |= o.tendons, moved_bodies |= o.moved_bodies,
      bounce |= o.bounce, contacts |= o.contacts, singular |= o.singular;
}

IslandLinearization::IslandLinearization(const WorldDescription& world, int loop_rows)
    : world_(world),
      model_(world.model),
      n_(world.model.nv),
      l_(loop_rows),
      middle_(model_, loops_of(world, 0)),
      motion_(model_, loops_of(world, 0)),
      correction_(model_, loops_of(world, 0)),
      contacts_(model_),
      corrected_(model_),
      going_(model_) {
  if (l_ == 0) return;
  middle_rows_ = std::make_unique<Residual>(model_, loops_of(world, 0));
  rows_ = std::make_unique<Residual>(model_, loops_of(world, 0));
  corrected_rows_ = std::make_unique<Residual>(model_, loops_of(world, 1 / world.options.timestep));
  end_ = std::make_unique<Residual>(model_, loops_of(world, 1));
}

// ---- the step, around which derivatives are taken

void IslandLinearization::update(const IslandStep& step, const std::vector<const ContactMotion*>& motions) {
  s_ = &step.system, loops_ = &step.loops;
  m_ = int(s_->rows()), dt_ = world_.options.timestep;
  user_ = nullptr, motion_factored_ = correction_factored_ = false;
  v_ = step.state.v, way_ = step.way, remaining_ = loops_->remaining();
  owned_.resize(v_.size());
  for (std::size_t k = 0; k < v_.size(); ++k) owned_[k] = step.bodies.owns(k);
  aim_ = l_ > 0 ? loops_->aim() : LoopMidpoint::Aim{};
  middle_kept_ = aim_.calm ? aim_.kept : 0;
  for (auto* x : {&acceleration_, &moved_, &next_v_}) x->resize(v_.size());
  for (auto* x : {&sigma_, &inverse_masses_, &scaled_, &column_g_, &column_lambda_, &column_sigma_})
    x->assign(std::size_t(m_), 0.0);
  gaps_ = {};
  update_middle(step);
  update_motion(step, motions);
  update_correction(step, motions);
  step.bodies.find_rates(step.state.q.data(), step.correction.velocity(), next_v_, bodies_);
  arrives_ = l_ > 0 && !step.correction.held_open();
  if (arrives_) end_->update(step.next_q.data(), nullptr, nullptr, nullptr, nullptr, false);
  find_gaps(step);
}

// F(q, v, α₀, λ₀ / dt) = f, and rows of loops J (v + dt α₀) + half J̇v + kept (J v − half J̇v)
void IslandLinearization::update_middle(const IslandStep& step) {
  has_middle_ = world_.options.midpoint && !step.bodies.all();
  if (!has_middle_) return;
  const IslandState& state = step.state;
  acceleration_ = step.free_motion.first_acceleration();
  if (l_ > 0) {
    s_->G->jacobian_transpose(loops_->impulses().data(), 1, moved_.data());
    s_->G->mass_inverse(moved_.data(), 1, moved_.data());
    for (std::size_t k = 0; k < v_.size(); ++k) acceleration_[k] += moved_[k] / dt_;
    for (std::size_t r = 0; r < std::size_t(l_); ++r) scaled_[r] = loops_->impulses()[r] / dt_;
  }
  for (std::size_t k = 0; k < v_.size(); ++k) moved_[k] = owned_[k] ? 0.0 : v_[k];
  middle_.update(state.q.data(), moved_.data(), acceleration_.data(), l_ > 0 ? scaled_.data() : nullptr,
                 state.has_external ? state.external.data() : nullptr, true);
  if (l_ == 0) return;
  const double bend = std::sqrt(aim_.half * (1 - middle_kept_));
  for (std::size_t k = 0; k < v_.size(); ++k) {
    moved_[k] = bend * v_[k];
    acceleration_[k] = v_[k] * (1 + middle_kept_) + dt_ * acceleration_[k];
  }
  middle_rows_->update(state.q.data(), moved_.data(), acceleration_.data(), nullptr, nullptr, false);
}

// F(q, v½, (v' − v) / dt, λ / dt) = f, rows σ = J v' + b, and the modes of their forces
void IslandLinearization::update_motion(const IslandStep& step, const std::vector<const ContactMotion*>& motions) {
  const IslandState& state = step.state;
  const Numbers& lambda = step.velocities.impulses();
  s_->G->jacobian_transpose(lambda.data(), 1, moved_.data());
  s_->G->mass_inverse(moved_.data(), 1, moved_.data());
  for (std::size_t k = 0; k < v_.size(); ++k) {
    next_v_[k] = step.free_motion.velocity()[k] + moved_[k];
    acceleration_[k] = (next_v_[k] - v_[k]) / dt_;
  }
  for (std::size_t r = 0; r < std::size_t(l_); ++r) scaled_[r] = lambda[r] / dt_;
  motion_.update(state.q.data(), step.free_motion.middle().data(), acceleration_.data(),
                 l_ > 0 ? scaled_.data() : nullptr, state.has_external ? state.external.data() : nullptr, true);
  if (l_ > 0) {
    const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
    for (std::size_t k = 0; k < v_.size(); ++k) {
      moved_[k] = bend * (aim_.calm ? v_[k] : step.free_motion.middle()[k]);
      acceleration_[k] = next_v_[k] + aim_.kept * v_[k];
    }
    rows_->update(state.q.data(), moved_.data(), acceleration_.data(), nullptr, nullptr, false);
  }
  contacts_.update(*s_, step.rows, motions, next_v_.data(), lambda.data());

  // gaps that may be closed within the step (row_system.h)
  const double slop = world_.options.slop;
  const Numbers& error = step.velocities.error;
  gap_gain_.assign(std::size_t(m_), 0.0);
  for (std::size_t r = std::size_t(s_->first_limit); r < std::size_t(s_->first_contact); ++r) {
    const Interval& i = s_->sets.intervals[r];
    if (i.lower == 0 && std::isinf(i.upper) && error[r] > slop) gap_gain_[r] = 1 / dt_;
  }
  for (const int row : s_->contact_rows) {
    const std::size_t r = std::size_t(row);
    const bool bears = step.start_impulses[r] > 0 && error[r] < 2 * slop;
    if (!bears && error[r] > slop) gap_gain_[r] = 1 / dt_;
  }

  if (m_ == 0) return;
  s_->G->apply(lambda.data(), 1, sigma_.data());
  for (std::size_t r = 0; r < sigma_.size(); ++r) sigma_[r] += step.velocities.g[r];
  operator_.emplace(*s_->G, s_->sets);
  find_inverse_masses(s_->sets, s_->map_or(*operator_), inverse_masses_.data());
  modes_.find(s_->sets, lambda.data(), sigma_.data(), inverse_masses_.data());
  use(modes_);
}

// M̂ u = Jᵀ µ, and rows J (u + w) + e / dt that are corrected
void IslandLinearization::update_correction(const IslandStep& step, const std::vector<const ContactMotion*>& motions) {
  const Numbers &u = step.correction.velocity(), &mu = step.correction.impulses(), &asked = step.correction.asked();
  corrects_ = std::any_of(u.begin(), u.end(), [](double x) { return x != 0; });
  if (!corrects_) return;
  const IslandState& state = step.state;
  correction_.update(state.q.data(), nullptr, u.data(), mu.data(), nullptr, false);
  corrected_.update(*s_, step.rows, motions, u.data(), mu.data());
  for (std::size_t k = 0; k < v_.size(); ++k) moved_[k] = remaining_[k] * next_v_[k];
  std::fill(column_lambda_.begin(), column_lambda_.end(), 0.0);
  going_.update(*s_, step.rows, motions, moved_.data(), column_lambda_.data());
  if (l_ > 0) {
    const double bend = std::sqrt(0.5 * dt_);
    for (std::size_t k = 0; k < v_.size(); ++k) acceleration_[k] = moved_[k] + u[k], moved_[k] *= bend;
    corrected_rows_->update(state.q.data(), moved_.data(), acceleration_.data(), nullptr, nullptr, false);
  }
  // what comes out as fast as it may does not follow its gap
  correction_gain_.assign(std::size_t(m_), 0.0);
  for (const Interval& i : s_->position_sets.intervals) {
    const bool fast = i.row >= l_ && std::abs(asked[std::size_t(i.row)]) >= PositionCorrection::max_out_speed;
    correction_gain_[std::size_t(i.row)] = i.upper == 0 || fast ? 0.0 : 1.0;
  }
  s_->G->jacobian(u.data(), 1, sigma_.data());
  for (std::size_t r = 0; r < sigma_.size(); ++r) sigma_[r] += asked[r];
  corrected_operator_.emplace(*s_->G, s_->position_sets);
  find_inverse_masses(s_->position_sets, s_->map_or(*corrected_operator_), inverse_masses_.data());
  corrected_modes_.find(s_->position_sets, mu.data(), sigma_.data(), inverse_masses_.data());
  use(corrected_modes_);
}

void IslandLinearization::find_gaps(const IslandStep& step) {
  gaps_.contradiction = !step.correction.separated() || step.correction.shortened();
  gaps_.open_loops = l_ > 0 && (loops_->far() || step.correction.held_open());
  gaps_.tendons = !step.rows.span_rows.empty();
  gaps_.bounce = step.velocities.bounced();
}

// The operator has one factor with blocks, and one with damping: whoever uses it last is not the only one.
void IslandLinearization::use(ContactModes& modes) {
  bool& factored = &modes == &modes_ ? motion_factored_ : correction_factored_;
  if (user_ == &modes || (factored && modes.is_dense())) return;
  factored = true;
  ContactMap& map = s_->map_or(&modes == &modes_ ? *operator_ : *corrected_operator_);
  gaps_.singular = !modes.factor(map) || gaps_.singular;
  user_ = &modes;
}

// ---- along directions

void IslandLinearization::tangents(const double* dq, const double* dv, const double* df, const double* dfriction,
                                   int columns, double* next_dq, double* next_dv) {
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(columns), count = n * k;
  for (auto* x : {&q_, &middle_d_, &free_d_, &next_d_, &u_d_, &way_d_, &forces_, &work_}) sized(*x, n, columns);
  for (auto* x : {&rows_d_, &lambda_d_, &work_rows_}) sized(*x, m, columns);
  sized(loop_rows_, std::size_t(l_), columns), sized(gaps_d_, s_->contact_rows.size(), columns);

  // q_m
  copy(dq, count, q_);
  if (l_ > 0) {
    copy(dq, count, work_);
    integrate_tangents(model_, v_.data(), 0.5 * dt_, dv, columns, work_.data());
    for (std::size_t i = 0; i < n; ++i)
      if (remaining_[i] != 1) std::copy_n(work_.data() + i * k, k, q_.data() + i * k);
  }

  // v½, and v' as it would be with the same impulses
  middle_tangents(q_.data(), dv, df, columns, middle_d_.data());
  motion_.tangents(q_.data(), middle_d_.data(), nullptr, nullptr, columns, free_d_.data(), loop_rows_.data());
  std::fill_n(rows_d_.data(), m * k, 0.0);
  contacts_.tangents(q_.data(), columns, rows_d_.data(), gaps_d_.data(), forces_.data());
  for (std::size_t e = 0; e < count; ++e) free_d_[e] = (df ? df[e] : 0.0) - free_d_[e] + forces_[e] / dt_;
  mass_inverse(free_d_, columns, free_d_);
  for (std::size_t e = 0; e < count; ++e) free_d_[e] = dv[e] + dt_ * free_d_[e];
  copy(free_d_.data(), count, next_d_);

  // rows and their forces
  if (m > 0) {
    s_->G->jacobian(free_d_.data(), columns, work_rows_.data());
    for (std::size_t e = std::size_t(l_) * k; e < m * k; ++e) rows_d_[e] += work_rows_[e];
    s_->G->jacobian(q_.data(), columns, work_rows_.data());
    for (std::size_t e = std::size_t(s_->first_limit) * k; e < std::size_t(s_->first_contact) * k; ++e)
      rows_d_[e] += gap_gain_[e / k] * work_rows_[e];
    for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
      for (std::size_t c = 0; c < k; ++c)
        rows_d_[s_->normal_row(i) * k + c] += gap_gain_[s_->normal_row(i)] * gaps_d_[i * k + c];
    if (l_ > 0) {
      const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
      const double* from = aim_.calm ? dv : middle_d_.data();
      for (std::size_t e = 0; e < count; ++e) {
        work_[e] = bend * from[e];
        forces_[e] = free_d_[e] + aim_.kept * dv[e];
      }
      rows_->tangents(q_.data(), work_.data(), forces_.data(), nullptr, columns, way_d_.data(), rows_d_.data());
    }
    use(modes_);
    modes_.tangents(rows_d_.data(), dfriction, nullptr, columns, lambda_d_.data(), nullptr);
    s_->G->jacobian_transpose(lambda_d_.data(), columns, work_.data());
    mass_inverse(work_, columns, work_);
    for (std::size_t e = 0; e < count; ++e) next_d_[e] += work_[e];
  }

  // u, the way, v⁺
  if (corrects_)
    correction_tangents(columns);
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
  integrate_tangents(model_, way_.data(), dt_, way_d_.data(), columns, next_dq);
  if (arrives_) arrival_tangents(columns, next_dq);
}

void IslandLinearization::middle_tangents(const double* dq, const double* dv, const double* df, int columns,
                                          double* d_middle) {
  const std::size_t k = std::size_t(columns), count = std::size_t(n_) * k;
  for (std::size_t e = 0; e < count; ++e) d_middle[e] = owned_[e / k] ? 0.0 : dv[e];
  if (!has_middle_) return;
  middle_.tangents(dq, d_middle, nullptr, nullptr, columns, forces_.data(), loop_rows_.data());
  for (std::size_t e = 0; e < count; ++e) forces_[e] = (df ? df[e] : 0.0) - forces_[e];
  mass_inverse(forces_, columns, forces_);
  if (l_ > 0) {
    const double bend = std::sqrt(aim_.half * (1 - middle_kept_));
    for (std::size_t e = 0; e < count; ++e) {
      work_[e] = bend * dv[e];
      next_d_[e] = (1 + middle_kept_) * dv[e] + dt_ * forces_[e];
    }
    middle_rows_->tangents(dq, work_.data(), next_d_.data(), nullptr, columns, way_d_.data(), loop_rows_.data());
    close_loops(loop_rows_.data(), columns, lambda_d_.data());
    s_->G->jacobian_transpose(lambda_d_.data(), columns, work_.data());
    mass_inverse(work_, columns, work_);
    for (std::size_t e = 0; e < count; ++e) forces_[e] += work_[e] / dt_;
  }
  for (std::size_t e = 0; e < count; ++e)
    if (!owned_[e / k]) d_middle[e] += 0.5 * dt_ * forces_[e];
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
  use(corrected_modes_);
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

// Impulses of loops by themselves: G_ll λ = −rows, but for a ten-millionth; zero of all other rows.
void IslandLinearization::close_loops(const double* rows, int columns, double* impulses) {
  LoopClosure& closure = loops_->closure();
  const std::size_t k = std::size_t(columns), l = std::size_t(l_), m = std::size_t(m_);
  if (closure.is_formed()) {
    for (std::size_t e = 0; e < l * k; ++e) impulses[e] = -rows[e];
    closure.solve(columns, impulses);
    std::fill(impulses + l * k, impulses + m * k, 0.0);
    return;
  }
  // a column at a time
  if (user_ != &closure) closure.forget();
  user_ = &closure;
  for (std::size_t c = 0; c < k; ++c) {
    std::fill(column_g_.begin(), column_g_.end(), 0.0);
    std::fill(column_lambda_.begin(), column_lambda_.end(), 0.0);
    for (std::size_t r = 0; r < l; ++r) column_g_[r] = rows[r * k + c];
    closure.close(column_g_.data(), column_lambda_.data(), column_sigma_.data());
    for (std::size_t r = 0; r < m; ++r) impulses[r * k + c] = column_lambda_[r];
  }
}

// ---- adjoints: the same equations from the last to the first

void IslandLinearization::adjoints(const double* next_q_bar, const double* next_v_bar, int columns, double* q_bar,
                                   double* v_bar, double* f_bar, double* friction_bar) {
  const std::size_t n = std::size_t(n_), m = std::size_t(m_), k = std::size_t(columns), count = n * k;
  for (auto* x : {&middle_d_, &free_d_, &next_d_, &u_d_, &way_d_, &w_d_, &forces_, &work_, &part_q_, &part_v_})
    sized(*x, n, columns);
  for (auto* x : {&rows_d_, &lambda_d_, &work_rows_}) sized(*x, m, columns);
  sized(loop_rows_, std::size_t(l_), columns), sized(gaps_d_, s_->contact_rows.size(), columns);
  Numbers &middle_bar = middle_d_, &free_bar = free_d_, &end_bar = next_d_, &u_bar = u_d_, &way_bar = way_d_;

  // arrival, the way, v⁺
  std::copy_n(next_q_bar, count, q_bar);
  if (arrives_) arrival_adjoints(columns, q_bar);
  std::fill_n(way_bar.data(), count, 0.0);
  integrate_adjoints(model_, way_.data(), dt_, columns, q_bar, way_bar.data());
  for (std::size_t e = 0; e < count; ++e) {
    u_bar[e] = way_bar[e];
    end_bar[e] = next_v_bar[e] + remaining_[e / k] * way_bar[e];
  }
  for (const auto& body : bodies_) {
    const std::size_t first = std::size_t(body.first) * k;
    for (std::size_t c = first; c < first + k; ++c) {
      double in[FreeBodies::inputs] = {};
      for (std::size_t o = 0; o < FreeBodies::outputs; ++o) {
        const double out = o < 6 ? next_v_bar[c + o * k] : way_bar[c + (o - 6) * k];
        for (std::size_t i = 0; i < FreeBodies::inputs; ++i) in[i] += body.by[o][i] * out;
      }
      for (std::size_t i = 0; i < 3; ++i) q_bar[c + (3 + i) * k] += in[i];
      for (std::size_t i = 0; i < 6; ++i) u_bar[c + i * k] = in[3 + i], end_bar[c + i * k] = in[9 + i];
    }
  }
  if (corrects_) correction_adjoints(columns, q_bar);

  // rows and their forces
  copy(end_bar.data(), count, free_bar);
  if (m > 0) {
    mass_inverse(end_bar, columns, work_);
    s_->G->jacobian(work_.data(), columns, lambda_d_.data());
    use(modes_);
    modes_.adjoints(lambda_d_.data(), nullptr, columns, rows_d_.data(), friction_bar, nullptr);
    s_->G->jacobian_transpose(rows_d_.data(), columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) free_bar[e] += work_[e];
  }

  // v' as it would be with the same impulses: dt M̂⁻¹ of the forces
  copy(free_bar.data(), count, forces_);
  for (std::size_t e = 0; e < count; ++e) forces_[e] *= dt_;
  mass_inverse(forces_, columns, forces_);
  std::copy_n(free_bar.data(), count, v_bar);
  std::copy_n(forces_.data(), count, f_bar);
  motion_.adjoints(forces_.data(), nullptr, columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) q_bar[e] -= part_q_[e], middle_bar[e] = -part_v_[e];
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c)
      gaps_d_[i * k + c] = gap_gain_[s_->normal_row(i)] * rows_d_[s_->normal_row(i) * k + c];
  for (std::size_t e = 0; e < count; ++e) work_[e] = forces_[e] / dt_;
  contacts_.adjoints(rows_d_.data(), gaps_d_.data(), work_.data(), columns, q_bar);
  if (m > 0) {
    std::fill_n(work_rows_.data(), m * k, 0.0);
    for (std::size_t e = std::size_t(s_->first_limit) * k; e < std::size_t(s_->first_contact) * k; ++e)
      work_rows_[e] = gap_gain_[e / k] * rows_d_[e];
    s_->G->jacobian_transpose(work_rows_.data(), columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) q_bar[e] += work_[e];
  }
  if (l_ > 0) {
    const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
    rows_->adjoints(nullptr, rows_d_.data(), columns, part_q_.data(), part_v_.data());
    loops_transposed(rows_d_.data(), columns, work_.data());
    double* to = aim_.calm ? v_bar : middle_bar.data();
    for (std::size_t e = 0; e < count; ++e) {
      q_bar[e] += part_q_[e];
      v_bar[e] += aim_.kept * work_[e];
      to[e] += bend * part_v_[e];
    }
  }
  middle_adjoints(columns, q_bar, v_bar, f_bar);

  // q_m
  if (l_ > 0) {
    copy(q_bar, count, work_);
    std::fill_n(part_v_.data(), count, 0.0);
    integrate_adjoints(model_, v_.data(), 0.5 * dt_, columns, work_.data(), part_v_.data());
    for (std::size_t e = 0; e < count; ++e)
      if (remaining_[e / k] != 1) q_bar[e] = work_[e], v_bar[e] += part_v_[e];
  }
}

// From the adjoint of v½.
void IslandLinearization::middle_adjoints(int columns, double* q_bar, double* v_bar, double* f_bar) {
  const std::size_t k = std::size_t(columns), count = std::size_t(n_) * k;
  for (std::size_t e = 0; e < count; ++e) {
    if (owned_[e / k]) middle_d_[e] = 0;
    v_bar[e] += middle_d_[e];
  }
  if (!has_middle_) return;
  Numbers& alpha_bar = forces_;
  for (std::size_t e = 0; e < count; ++e) alpha_bar[e] = 0.5 * dt_ * middle_d_[e];
  if (l_ > 0) {
    // λ₀ of loops
    mass_inverse(alpha_bar, columns, work_);
    s_->G->jacobian(work_.data(), columns, work_rows_.data());
    for (std::size_t e = 0; e < std::size_t(l_) * k; ++e) loop_rows_[e] = work_rows_[e] / dt_;
    close_loops(loop_rows_.data(), columns, lambda_d_.data());  // −G_ll⁻¹ of the adjoint of λ₀: that of the rows
    const double bend = std::sqrt(aim_.half * (1 - middle_kept_));
    middle_rows_->adjoints(nullptr, lambda_d_.data(), columns, part_q_.data(), part_v_.data());
    s_->G->jacobian_transpose(lambda_d_.data(), columns, work_.data());
    for (std::size_t e = 0; e < count; ++e) {
      q_bar[e] += part_q_[e];
      v_bar[e] += bend * part_v_[e] + (1 + middle_kept_) * work_[e];
      alpha_bar[e] += dt_ * work_[e];
    }
  }
  mass_inverse(alpha_bar, columns, alpha_bar);
  middle_.adjoints(alpha_bar.data(), nullptr, columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) {
    f_bar[e] += alpha_bar[e];
    q_bar[e] -= part_q_[e];
    if (!owned_[e / k]) v_bar[e] -= part_v_[e];
  }
}

// From the adjoint of u: what it adds to those of q_m and of v'.
void IslandLinearization::correction_adjoints(int columns, double* q_bar) {
  const std::size_t m = std::size_t(m_), k = std::size_t(columns), count = std::size_t(n_) * k;
  mass_inverse(u_d_, columns, work_);
  s_->G->jacobian(work_.data(), columns, lambda_d_.data());
  use(corrected_modes_);
  corrected_modes_.adjoints(lambda_d_.data(), nullptr, columns, rows_d_.data(), nullptr, nullptr);

  // u as it would be with the same µ
  s_->G->jacobian_transpose(rows_d_.data(), columns, work_.data());
  for (std::size_t e = 0; e < count; ++e) forces_[e] = u_d_[e] + work_[e];
  mass_inverse(forces_, columns, forces_);
  correction_.adjoints(forces_.data(), nullptr, columns, part_q_.data(), part_v_.data());
  for (std::size_t e = 0; e < count; ++e) q_bar[e] -= part_q_[e];
  for (std::size_t e = 0; e < s_->contact_rows.size() * k; ++e) gaps_d_[e] = 0;
  corrected_.adjoints(rows_d_.data(), gaps_d_.data(), forces_.data(), columns, q_bar);

  // rows that follow w and gaps
  for (std::size_t e = 0; e < m * k; ++e) work_rows_[e] = correction_gain_[e / k] * rows_d_[e];
  for (std::size_t i = 0; i < s_->contact_rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c) gaps_d_[i * k + c] = work_rows_[s_->normal_row(i) * k + c] / dt_;
  std::fill_n(work_.data(), count, 0.0);
  going_.adjoints(work_rows_.data(), gaps_d_.data(), work_.data(), columns, q_bar);
  s_->G->jacobian_transpose(work_rows_.data(), columns, w_d_.data());
  for (std::size_t e = 0; e < m * k; ++e) {
    const int row = int(e / k);
    work_rows_[e] = row >= s_->first_limit && row < s_->first_contact ? work_rows_[e] / dt_ : 0.0;
  }
  s_->G->jacobian_transpose(work_rows_.data(), columns, work_.data());
  for (std::size_t e = 0; e < count; ++e) q_bar[e] += work_[e];
  if (l_ > 0) {
    corrected_rows_->adjoints(nullptr, rows_d_.data(), columns, part_q_.data(), part_v_.data());
    const double bend = std::sqrt(0.5 * dt_);
    for (std::size_t e = 0; e < count; ++e) q_bar[e] += part_q_[e], w_d_[e] += bend * part_v_[e];
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

// Jᵀ of rows of loops alone.
void IslandLinearization::loops_transposed(const double* rows, int columns, double* forces) {
  const std::size_t k = std::size_t(columns);
  std::fill_n(work_rows_.data(), std::size_t(m_) * k, 0.0);
  std::copy_n(rows, std::size_t(l_) * k, work_rows_.data());
  s_->G->jacobian_transpose(work_rows_.data(), columns, forces);
}

}  // namespace delassus
