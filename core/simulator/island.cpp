#include "simulator/island.h"

#include <algorithm>

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_additions = 4;  // of ends of limits, in a step

// The report of a solution, with the work of those before it.
void add_work(const ContactReport& last, ContactReport& all) {
  const int iterations = all.iterations, factorizations = all.factorizations;
  all = last;
  all.iterations += iterations;
  all.factorizations += factorizations;
}

}  // namespace

Island::Island(const WorldDescription& whole, const TreeContents& contents, const std::vector<int>& trees,
               KeptSystems kept)
    : part_(whole, contents, trees),
      world_(part_.world),
      trees_(trees),
      loops_(world_),
      bodies_(world_, loops_.remaining()),
      free_motion_(world_, loops_, bodies_),
      systems_(whole.model, part_, kept),
      response_(std::size_t(world_.model.nv)),
      correction_(world_),
      arrival_(world_) {
  for (auto* x : {&state_.q, &next_q_}) x->assign(std::size_t(world_.model.nq), 0.0);
  for (auto* x : {&state_.v, &state_.forces, &next_v_, &row_forces_, &way_})
    x->assign(std::size_t(world_.model.nv), 0.0);
  state_.external.assign(6 * world_.model.bodies.size(), 0.0);
  spans_ = make_span_values(world_.spans);
  if (!whole.mocap_bodies.empty()) body_mocap_.assign(whole.model.bodies.size(), -1);
  for (const MocapBody& b : whole.mocap_bodies) {
    body_mocap_[std::size_t(b.body)] = b.mocap;
    const auto here = std::lower_bound(part_.bodies.begin(), part_.bodies.end(), b.body);
    if (here != part_.bodies.end() && *here == b.body)
      mocap_bodies_.push_back({int(here - part_.bodies.begin()), b.mocap, b.relative});
  }
}

void Island::step(const WorldState& now, const StepMemory& before, ContactSolvers& solvers, Team* team,
                  StepReport& report) {
  StageClock clock;
  team_ = team;
  take(now, report);
  RowSystem* s = pose(before, solvers, report, clock);
  ContactReport solved;  // the last solution, and the work of all
  double loop_error = 0;
  for (int additions = 0; s; ++additions) {
    loop_error = move(*s, solvers, solved, report, clock);
    if (additions == max_additions) break;
    if (!rows_.add_broken_limits(world_, next_q_, next_v_, loops_.remaining(), allowed_limit_error(world_.options)))
      break;
    s = pose_again(before, solvers, report, clock);
  }
  last_system_ = s;
  if (!s) return;

  judge_gaps(world_.options, *s, rows_, correction_.gaps_after(), report);
  if (loops_.rows() > 0) judge_loops(loop_error, loops_.size(), report);
  judge_limits(world_, next_q_, report);
  judge_spans(world_.options, *s, rows_, velocities_.error, correction_.gaps_after(), report);
  if (report.worst_limit >= 0) report.worst_limit = part_.limits[std::size_t(report.worst_limit)];
  if (report.worst_span >= 0) report.worst_span = part_.spans[std::size_t(report.worst_span)];
  report.contacts = solved;
  clock.end(report.times.correct);
}

// Of the whole, what is this island's; trees in loops go half of their way. Which rows there are.
void Island::take(const WorldState& now, StepReport& report) {
  for (const auto& r : part_.ranges) {
    std::copy_n(now.q + r.whole_q, r.nq, state_.q.data() + r.q);
    std::copy_n(now.v + r.whole_v, r.nv, state_.v.data() + r.v);
    std::copy_n(now.forces + r.whole_v, r.nv, state_.forces.data() + r.v);
  }
  state_.has_external = now.external != nullptr;
  if (state_.has_external)
    for (std::size_t b = 0; b < part_.bodies.size(); ++b)
      std::copy_n(now.external + 6 * part_.bodies[b], 6, state_.external.data() + 6 * b);
  mocaps_ = now.mocaps;
  if (loops_.rows() > 0) {
    if (place_mocaps(*mocaps_, &MocapMotion::now)) loops_.forget_errors();
    report.loop_error = std::max(report.loop_error, loops_.find_start_errors(state_.q.data()));
    carry_loops(*mocaps_);
    loops_.go_half_way(part_.ranges, state_.q.data(), state_.v.data());
  }
  take_spans(*now.spans);
  rows_.find(world_, state_.q.data(), state_.v.data(), spans_);
  note_penetration(rows_, report);
}

// Bodies of loops that are moved, where they are then. Whether any was elsewhere.
bool Island::place_mocaps(const std::vector<MocapMotion>& mocaps, Pose<double> MocapMotion::*when) {
  bool moved = false;
  for (const MocapBody& b : mocap_bodies_) {
    Pose<double>& placement = part_.world.model.bodies[std::size_t(b.body)].placement;
    const Pose<double> there = mocaps[std::size_t(b.mocap)].*when * b.relative;
    const Vec3<double> way = there.p - placement.p, x = there.R.x - placement.R.x, y = there.R.y - placement.R.y;
    moved = moved || dot(way, way) + dot(x, x) + dot(y, y) > 0;
    placement = there;
  }
  return moved;
}

// Loops to bodies that are moved: how their errors change by it, at the same q. From then on these are where they will
// be.
void Island::carry_loops(const std::vector<MocapMotion>& mocaps) {
  if (mocap_bodies_.empty()) return;
  loop_errors_ = loops_.errors();
  carried_.assign(loop_errors_.size(), 0.0);
  if (place_mocaps(mocaps, &MocapMotion::next)) {
    loops_.forget_errors();
    loops_.find_errors(state_.q.data());
    for (std::size_t r = 0; r < carried_.size(); ++r)
      carried_[r] = (loops_.errors()[r] - loop_errors_[r]) / world_.options.timestep;
  }
}

// Surfaces that move by themselves: along their contacts, and about the normal; they neither press nor roll.
void Island::meet_surfaces(const RowSystem& s) {
  for (std::size_t k = 0; k < rows_.contacts.size(); ++k) {
    const Touch& t = rows_.contacts[k]->touch;
    if (dot(t.surface, t.surface) + dot(t.surface_spin, t.surface_spin) == 0) continue;
    double* g = velocities_.g.data() + s.normal_row(k);
    for (int r = 1; r < 3; ++r) g[r] += row_scale(t, r) * dot(rows_.frames[k][std::size_t(r)], t.surface);
    if (t.rows > 3) g[3] += row_scale(t, 3) * dot(rows_.frames[k][0], t.surface_spin);
  }
}

// Contacts with bodies that are moved: velocities and gaps of their rows.
void Island::meet_mocaps(const RowSystem& s) {
  if (body_mocap_.empty()) return;
  for (std::size_t k = 0; k < rows_.contacts.size(); ++k)
    for (int side = 0; side < 2; ++side) {
      const Touch& t = rows_.contacts[k]->touch;
      const int id = body_mocap_[std::size_t(t.body[side])];
      if (id < 0) continue;
      const MocapMotion& motion = (*mocaps_)[std::size_t(id)];
      const double sign = side == 0 ? 1 : -1;
      const Vec3<double> velocity = motion.velocity(t.position) * sign, spin = motion.angular * sign;
      const std::size_t row = s.normal_row(k);
      for (int r = 0; r < t.rows; ++r)
        velocities_.g[row + std::size_t(r)] +=
            row_scale(t, r) * dot(rows_.frames[k][std::size_t(r % 3)], r < 3 ? velocity : spin);
      velocities_.error[row] += world_.options.timestep * dot(rows_.frames[k][0], velocity);
    }
}

void Island::take_spans(const SpanValues& whole) {
  for (std::size_t k = 0; k < part_.spans.size(); ++k) {
    const std::size_t from = std::size_t(part_.spans[k]);
    spans_.x[k] = whole.x[from];
    std::copy_n(whole.coefficients.data() + whole.first[from], world_.spans[k].velocities.size(),
                spans_.coefficients.data() + spans_.first[k]);
  }
}

// The rows' system, velocities g that they have without forces and with gaps, and impulses to start from.
// Null: the mass matrix is singular.
RowSystem* Island::pose(const StepMemory& before, ContactSolvers& solvers, StepReport& report, StageClock& clock) {
  RowSystem& s = systems_.find(rows_, spans_);
  s.G->share(team_);
  clock.end(report.times.constrain);

  report.regular = s.G->update(state_.q.data());
  if (!report.regular) return nullptr;
  s.matrix.form(*s.G, s.layout->set, loops_.rows());
  find_row_errors(world_, s, rows_, spans_, state_.q.data(), velocities_.error);
  if (!mocap_bodies_.empty()) {
    followed_ = carried_;
    if (loops_.far())
      std::fill(followed_.begin(), followed_.end(), 0.0);
    else
      reach_.follow(world_.options, solvers, s, velocities_.error, followed_);
    loops_.carry(carried_, followed_);
  }
  inertia_.begin(s, state_.v.size());
  const std::vector<double>& free = free_motion_.find(s, rows_, state_, velocities_.error, response_, inertia_);
  std::vector<double>& g = velocities_.g;
  g.resize(s.rows());
  s.G->jacobian(free.data(), 1, g.data());
  if (loops_.rows() > 0) loops_.aim(g.data());
  inertia_.aim(s, world_.options.timestep, state_.v.data(), g);
  start_.recall(part_, s, rows_, before, trees_);
  allow_approach(world_.options, s, rows_, velocities_.error, start_.impulses, g);
  meet_mocaps(s);
  meet_surfaces(s);
  clock.end(report.times.operate);
  return &s;
}

// Repeats the solve after limits were added. The solvers start from the solution without them.
RowSystem* Island::pose_again(const StepMemory& before, ContactSolvers& solvers, StepReport& report,
                              StageClock& clock) {
  RowSystem* const s = pose(before, solvers, report, clock);
  if (s)
    start_.resume(*s, rows_, velocities_.impulses(), correction_.impulses(),
                  {velocities_.report().rho, correction_.penalty()});
  return s;
}

// Impulses, v⁺, u and q⁺. Returns the error of loops there.
double Island::move(RowSystem& s, ContactSolvers& solvers, ContactReport& solved, StepReport& report,
                    StageClock& clock) {
  // v⁺ = v_f + M̂⁻¹ Jᵀ λ
  const std::vector<double>& free = free_motion_.velocity();
  velocities_.solve(world_.options, solvers, s, rows_.contacts, state_.v, free, loops_, start_);
  add_work(velocities_.report(), solved);
  next_v_ = free;
  if (s.rows() > 0) {
    response_.add(s, velocities_.impulses().data(), next_v_);
    row_forces_ = response_.forces();
    inertia_.take_out(s, velocities_.impulses(), row_forces_);
    const double over = 1 / world_.options.timestep;
    for (double& force : row_forces_) force *= over;
  } else {
    std::fill(row_forces_.begin(), row_forces_.end(), 0.0);
  }
  clock.end(report.times.solve);

  // q⁺ = q ⊕ dt (v⁺ + u)
  const int iterations =
      correction_.find(solvers, s, state_.q.data(), next_v_, velocities_.error, loops_, start_, response_);
  const LoopArrival::Result end = arrive(s);
  report.corrections = std::max({report.corrections, iterations, end.iterations});
  clock.end(report.times.correct);
  return end.error;
}

// q⁺ from the share of the step that v⁺ moves, and u; free bodies turn, which is the last that changes v⁺.
LoopArrival::Result Island::arrive(RowSystem& s) {
  const std::vector<double>&u = correction_.velocity(), &remaining = loops_.remaining();
  for (std::size_t k = 0; k < way_.size(); ++k) way_[k] = u[k] + remaining[k] * next_v_[k];
  bodies_.move(state_.q.data(), u, next_v_, way_);
  if (loops_.rows() > 0) return arrival_.arrive(s, state_.q, loops_, correction_, response_, way_, next_q_);
  integrate(world_.model, state_.q.data(), way_.data(), world_.options.timestep, next_q_.data());
  return {0, 0};
}

void Island::give(double* q, double* v, double* row_forces, StepMemory& after) const {
  for (const auto& r : part_.ranges) {
    std::copy_n(row_forces_.data() + r.v, r.nv, row_forces + r.whole_v);
    std::copy_n(next_q_.data() + r.q, r.nq, q + r.whole_q);
    std::copy_n(next_v_.data() + r.v, r.nv, v + r.whole_v);
  }
  remember(part_, rows_, velocities_.impulses(), correction_.impulses(),
           {velocities_.report().rho, correction_.penalty()}, trees_, after);
}

IslandLinearization& Island::linearize(const ContactMotions& motions, const Contact* first, double smoothing) {
  if (!linearization_) linearization_ = std::make_unique<IslandLinearization>(world_, loops_.rows());
  linearized_.clear();
  motions_.clear();
  for (const Contact* c : rows_.contacts) {
    linearized_.push_back(int(c - first));
    motions_.push_back(&motions[std::size_t(c - first)]);
  }
  linearization_->update({world_, *last_system_, rows_, state_, free_motion_, loops_, bodies_, velocities_,
                          start_.impulses, correction_, next_q_, way_},
                         motions_, smoothing);
  return *linearization_;
}

void Island::pose_problem(const WorldState& now, const StepMemory& before, StepReport& report, PosedProblem& problem) {
  StageClock clock;
  team_ = nullptr;
  take(now, report);
  ContactSolvers solvers;
  RowSystem* const s = pose(before, solvers, report, clock);
  if (!s) return;
  problem.g = velocities_.g;
  problem.warm_start = start_.impulses;
  problem.sets = s->sets;
  problem.loop_rows = loops_.rows();
  problem.friction_rows = s->first_limit - loops_.rows();
  problem.limit_rows = s->first_contact - s->first_limit;  // those of spans too
  problem.frames = rows_.frames;
  problem.contacts.clear();
  for (const Contact* c : rows_.contacts) problem.contacts.push_back(*c);
  std::vector<double> identity;
  form_matrix(*s->G, identity, problem.matrix);
}

}  // namespace delassus
