#include "simulator/island_linearization.h"

#include <algorithm>
#include <cmath>

#include "derivatives/integrate_derivatives.h"
#include "solvers/contacts/problem.h"

namespace delassus {

namespace {

using Numbers = std::vector<double>;

constexpr int max_closing_steps = 12;   // of loops at the end, each a thousandth of the one before
constexpr double gap_kink = 1e-6;       // gaps that are this near to where they begin to count [m or rad]
constexpr double closed_share = 1e-12;  // of what they were open, that is left

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
      bounce |= o.bounce, contacts |= o.contacts, singular |= o.singular, smoothing |= o.smoothing;
}

IslandLinearization::Motion::Motion(const WorldDescription& world, bool loops)
    : force(world.model, loops_of(world, 0)), contacts(world.model) {
  if (loops) loop_rows = std::make_unique<Residual>(world.model, loops_of(world, 0));
}

void IslandLinearization::Motion::read_inertias() {
  force.read_inertias();
  if (loop_rows) loop_rows->read_inertias();
}

IslandLinearization::Bounce::Bounce(const WorldDescription& world, bool loops)
    : compression(world, loops), free(world.model, loops_of(world, 0)), approach(world.model), fall(world.model) {}

IslandLinearization::IslandLinearization(const WorldDescription& world, int loop_rows)
    : world_(world),
      model_(world.model),
      n_(world.model.nv),
      l_(loop_rows),
      middle_(model_, loops_of(world, 0)),
      correction_(model_, loops_of(world, 0)),
      motion_(world, loop_rows > 0),
      corrected_(model_),
      going_(model_) {
  if (l_ == 0) return;
  middle_rows_ = std::make_unique<Residual>(model_, loops_of(world, 0));
  corrected_rows_ = std::make_unique<Residual>(model_, loops_of(world, 1 / world.options.timestep));
  end_ = std::make_unique<Residual>(model_, loops_of(world, 1));
}

void IslandLinearization::read_numbers() {
  middle_.read_inertias(), correction_.read_inertias(), motion_.read_inertias();
  for (auto* rows : {&middle_rows_, &corrected_rows_, &end_})
    if (*rows) (*rows)->read_inertias();
  if (bounce_) bounce_->compression.read_inertias(), bounce_->free.read_inertias();
}

// ---- the step, around which derivatives are taken

void IslandLinearization::update(const IslandStep& step, const std::vector<const ContactMotion*>& motions,
                                 double smoothing) {
  s_ = &step.system, loops_ = &step.loops, free_bodies_ = &step.bodies;
  m_ = int(s_->rows()), dt_ = world_.options.timestep;
  user_ = nullptr, correction_factored_ = false;
  gaps_ = {};
  start_q_ = step.state.q, v_ = step.state.v, u_ = step.correction.velocity(), way_ = step.way;
  remaining_ = loops_->remaining();
  owned_.resize(v_.size());
  for (std::size_t k = 0; k < v_.size(); ++k) owned_[k] = step.bodies.owns(k);
  aim_ = l_ > 0 ? loops_->aim() : LoopMidpoint::Aim{};
  middle_kept_ = aim_.calm ? aim_.kept : 0;
  for (auto* x : {&acceleration_, &moved_, &next_v_}) x->resize(v_.size());
  for (auto* x : {&sigma_, &inverse_masses_, &scaled_, &column_g_, &column_lambda_, &column_sigma_})
    x->assign(std::size_t(m_), 0.0);

  update_middle(step);
  find_gap_gains(step);
  bounces_ = step.velocities.bounced();
  const Numbers& impulses = step.velocities.impulses();
  if (bounces_) {
    update_bounce(step, motions);
    const Restitution& r = step.velocities.restitution();
    motion_.sigma = r.second_velocities();
    update_motion(step, motions, impulses, r.second_impulses(), r.second_sets(), motion_);
  } else {
    motion_.sigma.resize(std::size_t(m_));
    if (m_ > 0) s_->G->apply(impulses.data(), 1, motion_.sigma.data());
    for (std::size_t r = 0; r < motion_.sigma.size(); ++r) motion_.sigma[r] += step.velocities.g[r];
    update_motion(step, motions, impulses, impulses, s_->sets, motion_);
  }
  smooths_ = smoothing > 0 && m_ > 0 && !bounces_ && smooth(step, smoothing);
  gaps_.smoothing = smoothing > 0 && m_ > 0 && !smooths_;
  if (smooths_) update_motion(step, motions, smoothed_.forces(), impulses, s_->sets, motion_);
  update_correction(step, motions);
  step.bodies.find_rates(start_q_.data(), u_, next_v_, bodies_);
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

// Gaps that may be closed within the step (row_system.h), and which of these is about to, or about not to, be one.
void IslandLinearization::find_gap_gains(const IslandStep& step) {
  const double slop = world_.options.slop;
  const Numbers &error = step.velocities.error, &impulses = step.velocities.impulses();
  gap_gain_.assign(std::size_t(m_), 0.0);
  contact_kinks_.assign(step.rows.contacts.size(), 0);
  row_kinks_ = false;
  for (std::size_t r = std::size_t(s_->first_limit); r < std::size_t(s_->first_contact); ++r) {
    const Interval& i = s_->sets.intervals[r];
    if (i.lower != 0 || !std::isinf(i.upper)) continue;
    if (error[r] > slop) gap_gain_[r] = 1 / dt_;
    row_kinks_ = row_kinks_ || (impulses[r] > 0 && std::abs(error[r] - slop) < gap_kink);
  }
  const bool bounces = step.velocities.bounced();
  for (std::size_t k = 0; k < s_->contact_rows.size(); ++k) {
    const std::size_t r = s_->normal_row(k);
    if (bounces && step.velocities.restitution().shares()[r] > 0) continue;  // it does not wait for its gap
    const double edge = step.start_impulses[r] > 0 ? 2 * slop : slop;
    if (error[r] > slop && error[r] >= edge) gap_gain_[r] = 1 / dt_;
    contact_kinks_[k] = impulses[r] > 0 && std::abs(error[r] - edge) < gap_kink;
  }
}

// F(q, v½, (v' − v) / dt, λ / dt) = f, rows σ = J v' + b, and the modes of their forces. impulses: λ; law_impulses:
// those that are in the sets.
void IslandLinearization::update_motion(const IslandStep& step, const std::vector<const ContactMotion*>& motions,
                                        const Numbers& impulses, const Numbers& law_impulses, const ForceSets& sets,
                                        Motion& motion) {
  const IslandState& state = step.state;
  s_->G->jacobian_transpose(impulses.data(), 1, moved_.data());
  s_->G->mass_inverse(moved_.data(), 1, moved_.data());
  for (std::size_t k = 0; k < v_.size(); ++k) {
    next_v_[k] = step.free_motion.velocity()[k] + moved_[k];
    acceleration_[k] = (next_v_[k] - v_[k]) / dt_;
  }
  for (std::size_t r = 0; r < std::size_t(l_); ++r) scaled_[r] = impulses[r] / dt_;
  motion.force.update(state.q.data(), step.free_motion.middle().data(), acceleration_.data(),
                      l_ > 0 ? scaled_.data() : nullptr, state.has_external ? state.external.data() : nullptr, true);
  if (l_ > 0) {
    const double bend = std::sqrt(aim_.half * (1 - aim_.kept));
    for (std::size_t k = 0; k < v_.size(); ++k) {
      moved_[k] = bend * (aim_.calm ? v_[k] : step.free_motion.middle()[k]);
      acceleration_[k] = next_v_[k] + aim_.kept * v_[k];
    }
    motion.loop_rows->update(state.q.data(), moved_.data(), acceleration_.data(), nullptr, nullptr, false);
  }
  motion.contacts.update(*s_, step.rows, motions, next_v_.data(), impulses.data());
  motion.factored = false;
  if (m_ == 0) return;
  motion.lambda = law_impulses, motion.sets = &sets;
  motion.map.emplace(*s_->G, sets);
  find_inverse_masses(sets, s_->map_or(*motion.map), inverse_masses_.data());
  motion.modes.find(sets, motion.lambda.data(), motion.sigma.data(), inverse_masses_.data());
  use(motion);
}

void IslandLinearization::update_bounce(const IslandStep& step, const std::vector<const ContactMotion*>& motions) {
  if (!bounce_) bounce_ = std::make_unique<Bounce>(world_, l_ > 0);
  Bounce& b = *bounce_;
  const Restitution& r = step.velocities.restitution();
  const IslandState& state = step.state;
  b.coefficient = r.coefficients(), b.share = r.shares(), b.g = step.velocities.g;
  b.compression.sigma.resize(std::size_t(m_));
  s_->G->apply(r.compression().data(), 1, b.compression.sigma.data());
  for (std::size_t k = 0; k < b.g.size(); ++k) b.compression.sigma[k] += b.g[k];
  update_motion(step, motions, r.compression(), r.compression(), s_->sets, b.compression);

  // how fast contacts approach, and would without impulses
  const Numbers& free = step.free_motion.velocity();
  for (std::size_t k = 0; k < v_.size(); ++k) acceleration_[k] = (free[k] - v_[k]) / dt_;
  b.free.update(state.q.data(), step.free_motion.middle().data(), acceleration_.data(), nullptr,
                state.has_external ? state.external.data() : nullptr, true);
  std::fill(column_lambda_.begin(), column_lambda_.end(), 0.0);
  b.approach.update(*s_, step.rows, motions, v_.data(), column_lambda_.data());
  b.fall.update(*s_, step.rows, motions, free.data(), column_lambda_.data());
}

// M̂ u = Jᵀ µ, and rows J (u + w) + e / dt that are corrected
void IslandLinearization::update_correction(const IslandStep& step, const std::vector<const ContactMotion*>& motions) {
  const Numbers &mu = step.correction.impulses(), &asked = step.correction.asked();
  corrects_ = std::any_of(u_.begin(), u_.end(), [](double x) { return x != 0; });
  if (!corrects_) return;
  const IslandState& state = step.state;
  correction_.update(state.q.data(), nullptr, u_.data(), mu.data(), nullptr, false);
  corrected_.update(*s_, step.rows, motions, u_.data(), mu.data());
  for (std::size_t k = 0; k < v_.size(); ++k) moved_[k] = remaining_[k] * next_v_[k];
  std::fill(column_lambda_.begin(), column_lambda_.end(), 0.0);
  going_.update(*s_, step.rows, motions, moved_.data(), column_lambda_.data());
  if (l_ > 0) {
    const double bend = std::sqrt(0.5 * dt_);
    for (std::size_t k = 0; k < v_.size(); ++k) acceleration_[k] = moved_[k] + u_[k], moved_[k] *= bend;
    corrected_rows_->update(state.q.data(), moved_.data(), acceleration_.data(), nullptr, nullptr, false);
  }
  // what comes out as fast as it may does not follow its gap
  correction_gain_.assign(std::size_t(m_), 0.0);
  for (const Interval& i : s_->position_sets.intervals) {
    const bool fast = i.row >= l_ && std::abs(asked[std::size_t(i.row)]) >= PositionCorrection::max_out_speed;
    correction_gain_[std::size_t(i.row)] = i.upper == 0 || fast ? 0.0 : 1.0;
  }
  s_->G->jacobian(u_.data(), 1, sigma_.data());
  for (std::size_t r = 0; r < sigma_.size(); ++r) sigma_[r] += asked[r];
  corrected_map_.emplace(*s_->G, s_->position_sets);
  find_inverse_masses(s_->position_sets, s_->map_or(*corrected_map_), inverse_masses_.data());
  corrected_modes_.find(s_->position_sets, mu.data(), sigma_.data(), inverse_masses_.data());
  use(corrected_modes_, *corrected_map_, correction_factored_);
}

// Impulses on the central path. False: they were not found.
bool IslandLinearization::smooth(const IslandStep& step, double smoothing) {
  find_inverse_masses(s_->sets, s_->map_or(*motion_.map), inverse_masses_.data());
  user_ = nullptr;
  return smoothed_.solve(s_->sets, s_->map_or(*motion_.map), step.velocities.g.data(), inverse_masses_.data(),
                         smoothing, step.velocities.impulses().data());
}

void IslandLinearization::use_smoothed() {
  if (user_ == &smoothed_ || smoothed_.is_dense()) return;
  gaps_.singular = !smoothed_.factor() || gaps_.singular;
  user_ = &smoothed_;
}

void IslandLinearization::find_gaps(const IslandStep& step) {
  gaps_.contradiction = !step.correction.separated() || step.correction.shortened();
  gaps_.open_loops = l_ > 0 && (loops_->far() || step.correction.held_open());
  gaps_.tendons = !step.rows.span_rows.empty();
  gaps_.bounce = bounces_ && !step.velocities.restitution().whole();
  correction_kink_ = step.correction.on_the_edge();
  const std::size_t contacts = step.rows.contacts.size();
  contact_modes_.assign(contacts, ContactModes::open);
  redundant_ = m_ > 0 && (motion_.modes.redundant() || (bounces_ && bounce_->compression.modes.redundant()));
  if (m_ == 0) return;
  // of contacts that bounced, what they did while they were compressed
  const auto take = [&](const ContactModes& modes) {
    for (std::size_t k = 0; k < contacts; ++k) {
      contact_modes_[k] = std::max(contact_modes_[k], modes.modes()[k]);
      contact_kinks_[k] = contact_kinks_[k] || modes.kinks()[k];
    }
    for (std::size_t k = contacts; k < modes.kinks().size(); ++k) row_kinks_ = row_kinks_ || modes.kinks()[k];
  };
  take(motion_.modes);
  if (bounces_) take(bounce_->compression.modes);
}

// The operator has one factor with blocks, and one with damping: whoever uses it last is not the only one.
void IslandLinearization::use(ContactModes& modes, OperatorMap& map, bool& factored) {
  if (user_ == &modes || (factored && modes.is_dense())) return;
  factored = true;
  gaps_.singular = !modes.factor(s_->map_or(map)) || gaps_.singular;
  user_ = &modes;
}

// ---- along directions

void IslandLinearization::tangents(const Direction& d, double* next_dq, double* next_dv) {
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

  // v½, v' as it would be with the same impulses, and impulses
  middle_tangents(d);
  if (bounces_) bounce_tangents(d);
  motion_tangents(d, motion_, free_d_, rows_d_);
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

  // u, the way, v⁺
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
  for (std::size_t e = 0; e < count; ++e) forces_[e] = d.f[e] - forces_[e];
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

  // arrival, the way, v⁺
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
    to.f[e] += forces_[e];
    to.q[e] -= part_q_[e];
    if (!owned_[e / k]) to.v[e] -= part_v_[e];
  }
  if (to.parameters.inertial)
    middle_.parameter_adjoints(forces_.data(), to.columns, -1.0, to.parameters.inertial, to.parameters.armature);
}

// From the adjoint of u: what it adds to those of q_m and of v'.
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

// Jᵀ of rows of loops alone.
void IslandLinearization::loops_transposed(const double* rows, int columns, double* forces) {
  const std::size_t k = std::size_t(columns);
  std::fill_n(work_rows_.data(), std::size_t(m_) * k, 0.0);
  std::copy_n(rows, std::size_t(l_) * k, work_rows_.data());
  s_->G->jacobian_transpose(work_rows_.data(), columns, forces);
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
