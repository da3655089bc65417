#include "simulator/island_linearization.h"

#include <algorithm>
#include <cmath>

#include "solvers/contacts/problem.h"

namespace delassus {

namespace {

constexpr double gap_kink = 1e-6;  // gaps that are this near to where they begin to count [m or rad]

ConstraintSet<double> loops_of(const WorldDescription& world, double error_gain) {
  ConstraintSet<double> set = make_constraints(world.model, world.loops);
  for (auto& c : set.constraints) c.kd = 0, c.kp = error_gain;
  return set;
}

}  // namespace

void StepGaps::add(const StepGaps& o) {
  contradiction |= o.contradiction, open_loops |= o.open_loops, tendons |= o.tendons, moved_bodies |= o.moved_bodies,
      bounce |= o.bounce, contacts |= o.contacts, singular |= o.singular, isolated |= o.isolated,
      smoothing |= o.smoothing;
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
  if (redundant_ && !bounces_ && !smooths_ && l_ == 0) probe_redundancy();
}

// Redundant rows must stay so along any direction; otherwise what they ask for contradicts each other beside this
// configuration, and forces and velocities have a kink there.
void IslandLinearization::probe_redundancy() {
  for (auto* x : {&probe_q_, &probe_v_, &probe_f_}) x->assign(v_.size(), 0.0);
  for (std::size_t k = 0; k < v_.size(); ++k)
    probe_q_[k] = std::cos(1.0 + double(k)), probe_v_[k] = std::sin(2.0 + double(k) * double(k));
  find_impulse_rows({probe_q_.data(), probe_v_.data(), probe_f_.data(), nullptr, nullptr, 1});
  use(motion_);
  gaps_.isolated = !motion_.modes.solvable(rows_d_.data());
}

// F(q, v, α₀, λ₀ / dt) = f, and rows of loops J (v + dt α₀) + half J̇v + kept (J v − half J̇v)
void IslandLinearization::update_middle(const IslandStep& step) {
  has_middle_ = world_.options.midpoint && !step.bodies.all();
  held_ = has_middle_ && step.free_motion.is_held();
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
                 state.has_external && !held_ ? state.external.data() : nullptr, !held_);
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
  // a correction at its maximum speed does not depend on the gap
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
  // for contacts that bounced, their modes during compression
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

// Jᵀ of rows of loops alone.
void IslandLinearization::loops_transposed(const double* rows, int columns, double* forces) {
  const std::size_t k = std::size_t(columns);
  std::fill_n(work_rows_.data(), std::size_t(m_) * k, 0.0);
  std::copy_n(rows, std::size_t(l_) * k, work_rows_.data());
  s_->G->jacobian_transpose(work_rows_.data(), columns, forces);
}

}  // namespace delassus
