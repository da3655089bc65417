#include "simulator/position_correction.h"

#include <algorithm>
#include <cmath>

namespace delassus {

namespace {

constexpr double closed_loop = 1e-10;     // errors of loops below that are none [m or rad]
constexpr double kept_value = 1e-8;       // the same of values that spans keep
constexpr double worthwhile_depth = 0.1;  // penetration that is corrected, over the slop
// with which loops that are far open are closed [m/s], [rad/s], and errors that are not far [m], [rad]
constexpr double max_close_speed = 1, max_turn_speed = 3, near_point = 1e-3, near_turn = 3e-3;

// Of position_sets: a row of loops, of a limit or a normal, of nothing.
bool is_loop(const Interval& i) { return std::isinf(i.lower); }
bool is_unused(const Interval& i) { return i.upper == 0; }

}  // namespace

PositionCorrection::PositionCorrection(const WorldDescription& world) : world_(world) {
  for (auto* x : {&moving_, &u_}) x->assign(std::size_t(world.model.nv), 0.0);
}

int PositionCorrection::find(ContactSolvers& solvers, RowSystem& s, const double* q, const std::vector<double>& v,
                             const std::vector<double>& error, LoopMidpoint& loops, const WarmStart& start,
                             ImpulseResponse& response) {
  const StepOptions& options = world_.options;
  for (auto* x : {&asked_, &loops_mu_, &sigma_, &Ju_}) x->resize(s.rows());
  mu_.assign(s.rows(), 0.0);
  gap_.assign(s.rows(), 0.0);
  std::fill(u_.begin(), u_.end(), 0.0);
  penalty_ = start.penalties.positions;
  unreachable_ = limits_deep_ = 0;
  held_open_ = shortened_ = on_the_edge_ = false;
  separated_ = true;
  if (s.rows() == 0) return 0;

  const double shallow = worthwhile_depth * options.slop;
  auto [open, off, deep] = ask(s, q, v, error, loops);
  on_the_edge_ = deep > 0 && deep < 2 * shallow;
  if (!open && !off && !(deep > shallow)) return 0;
  int iterations = 0;
  soften(s, loops);
  held_open_ = open && slow_down(s, loops);
  if ((held_open_ || off) && LoopReach::takes(s)) {
    if (!held_open_) rest_contacts(s);
    iterations = approach(solvers, s, loops, start, true, response);
  } else {
    if (open) iterations = close_loops(s, loops, response, deep);
    if (deep > shallow) iterations = std::max(iterations, separate(solvers, s, loops, start, response));
  }
  shortened_ = shorten(s, asked_.data(), max_ratio(), u_);

  // gaps with u
  s.G->jacobian(u_.data(), 1, Ju_.data());
  for (std::size_t r = std::size_t(s.first_limit); r < gap_.size(); ++r) gap_[r] += options.timestep * Ju_[r];
  return iterations;
}

// asked = J w + e / dt with w what v⁺ still moves, and of loops ½ dt J̇w: how they curve on their way. Gaps without u.
PositionCorrection::Errors PositionCorrection::ask(RowSystem& s, const double* q, const std::vector<double>& v,
                                                   const std::vector<double>& error, LoopMidpoint& loops) {
  const double dt = world_.options.timestep;
  for (std::size_t k = 0; k < v.size(); ++k) moving_[k] = loops.remaining()[k] * v[k];
  s.G->jacobian(moving_.data(), 1, asked_.data());
  if (loops.rows() > 0) loops.add_curve(s, q, moving_.data(), asked_.data());
  Errors found{false, false, 0};
  for (const auto& i : s.position_sets.intervals) {
    const std::size_t r = std::size_t(i.row);
    double& g = asked_[r];
    g += error[r] / dt;
    if (is_unused(i)) {
      g = 0;
    } else if (is_loop(i) && i.row >= s.first_span) {
      gap_[r] = g * dt;
      found.off = found.off || std::abs(gap_[r]) > kept_value;
      g = std::clamp(g, -max_out_speed, max_out_speed);
    } else if (is_loop(i)) {
      found.open = found.open || std::abs(g) * dt > closed_loop;
    } else {
      gap_[r] = g * dt;
      g = std::max(g + world_.options.slop / dt, -max_out_speed);
      found.deep = std::max(found.deep, -g * dt);
      if (i.row < s.first_contact) limits_deep_ = std::max(limits_deep_, -g * dt);
    }
  }
  return found;
}

// Softness of rows where loops are not far open: values that spans keep yield to contacts and limits.
void PositionCorrection::soften(const RowSystem& s, const LoopMidpoint& loops) {
  has_values_ = false;
  if (loops.rows() == 0 && s.first_contact == s.first_span) return;
  softness_.assign(s.rows(), 0.0);
  std::fill_n(softness_.begin(), loops.rows(), LoopReach::closed_softness);
  for (const auto& i : s.position_sets.intervals)
    if (is_loop(i) && i.row >= s.first_span) {
      softness_[std::size_t(i.row)] = LoopReach::open_softness;
      has_values_ = true;
    }
}

// While values that spans keep are corrected, contacts get no deeper, and are not asked to come apart: fingers whose
// shapes overlap would be bent wide open for it.
void PositionCorrection::rest_contacts(const RowSystem& s) {
  for (std::size_t r = std::size_t(s.first_contact); r < asked_.size(); ++r) asked_[r] = std::max(asked_[r], 0.0);
}

// What is asked of loops that are far open: no more than a step's share of their way, each straight; those that are led
// may move that much faster. Whether any is far open.
bool PositionCorrection::slow_down(const RowSystem& s, const LoopMidpoint& loops) {
  const double dt = world_.options.timestep;
  const auto length = [](const std::vector<double>& x, int first, int past) {
    double square = 0;
    for (int r = first; r < past; ++r) square += x[std::size_t(r)] * x[std::size_t(r)];
    return std::sqrt(square);
  };
  const auto share = [&](int first, int past, double speed, double near) {
    const double most = std::max(speed, near / dt) + length(loops.leading_rates(), first, past);
    const double all = length(asked_, first, past);
    return all > most ? most / all : 1.0;
  };
  bool far = false;
  for (const auto& c : s.layout->set.constraints) {
    if (c.row >= loops.rows()) break;
    const int end = c.row + c.rows, turns = c.kind == Kind::frame ? c.row + c.point_rows : end;
    const double slower =
        std::min(share(c.row, turns, max_close_speed, near_point), share(turns, end, max_turn_speed, near_turn));
    if (slower == 1) continue;
    far = true;
    std::fill(softness_.begin() + c.row, softness_.begin() + end, LoopReach::open_softness);
    for (int r = c.row; r < end; ++r) asked_[std::size_t(r)] *= slower;
  }
  return far;
}

// Loops as near as limits and contacts allow (loop_reach.h); where contacts contradict each other, as limits alone do.
int PositionCorrection::approach(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops, const WarmStart& start,
                                 bool contacts, ImpulseResponse& response) {
  reach_.begin(s, softness_);
  mu_ = start.corrections;
  ContactReport end;
  if (contacts)
    end = reach_.solve(world_.options, solvers, s.position_sets, asked_.data(), {start.warm, 0.0}, mu_, sigma_);
  if (end.outcome != ContactOutcome::solved) {
    leave_contacts(s);
    const int iterations = end.iterations;
    mu_.assign(s.rows(), 0.0);
    end = reach_.solve(world_.options, solvers, only_limits_, asked_.data(), {false, 0.0}, mu_, sigma_);
    end.iterations += iterations;
  }
  loops.closure().forget();
  separated_ = end.outcome == ContactOutcome::solved;
  std::fill(u_.begin(), u_.end(), 0.0);
  response.add(s, mu_.data(), u_);
  return end.iterations;
}

// Loops by themselves: µ, u, and how deep things then are inside of each other. What no motion closes is taken for
// closed.
int PositionCorrection::close_loops(RowSystem& s, LoopMidpoint& loops, ImpulseResponse& response, double& deep) {
  LoopClosure& closure = loops.closure();
  const int iterations = closure.close(asked_.data(), mu_.data(), sigma_.data());
  unreachable_ = closure.largest(sigma_.data());
  for (std::size_t r = 0; r < std::size_t(loops.rows()); ++r) asked_[r] -= sigma_[r];
  response.add(s, mu_.data(), u_);
  deep = limits_deep_ = 0;
  for (const auto& i : s.position_sets.intervals) {
    if (is_unused(i) || is_loop(i)) continue;
    const double depth = -sigma_[std::size_t(i.row)] * world_.options.timestep;
    deep = std::max(deep, depth);
    if (i.row < s.first_contact) limits_deep_ = std::max(limits_deep_, depth);
  }
  return iterations;
}

// Loops, limits and contacts together. Shapes that overlap where a loop or a tendon ties them ask for what cannot be:
// then only loops are closed, unless most of it helps. Where closing them would break limits, or bodies lead them into
// something, they stay open.
int PositionCorrection::separate(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops, const WarmStart& start,
                                 ImpulseResponse& response) {
  loops_mu_ = mu_;
  mu_ = start.corrections;
  OperatorMap of_operator(*s.G, s.position_sets);
  const ContactReport end =
      solvers.solve_positions(world_.options, {s.map_or(of_operator), asked_.data(), s.position_sets},
                              {start.warm, start.penalties.positions}, mu_.data(), sigma_.data());
  loops.closure().forget();
  penalty_ = end.rho;
  separated_ = end.outcome == ContactOutcome::solved;
  const bool ties = loops.rows() > 0 || has_values_;
  const bool yields = loops.led() || (ties && limits_deep_ > worthwhile_depth * world_.options.slop);
  if (!separated_ && yields && LoopReach::takes(s)) {
    std::fill_n(softness_.begin(), loops.rows(), LoopReach::open_softness);
    held_open_ = true;
    return end.iterations + approach(solvers, s, loops, start, loops.led(), response);
  }
  if (!separated_ && (has_values_ || !(largest_asked(s, sigma_.data()) < 0.9 * largest_asked(s, asked_.data())))) {
    mu_ = loops_mu_;
    const bool beyond = limits_deep_ > worthwhile_depth * world_.options.slop;
    return end.iterations + (beyond ? hold_limits(solvers, s, loops, response) : 0);
  }
  std::fill(u_.begin(), u_.end(), 0.0);
  response.add(s, mu_.data(), u_);
  return end.iterations;
}

// Where contacts ask for what cannot be: loops and limits alone are corrected, and contacts get no deeper by it; where
// that cannot be either, without contacts. Else µ and u stay as they are.
int PositionCorrection::hold_limits(ContactSolvers& solvers, RowSystem& s, LoopMidpoint& loops,
                                    ImpulseResponse& response) {
  rest_contacts(s);
  OperatorMap of_operator(*s.G, s.position_sets);
  ContactMap& map = s.map_or(of_operator);
  int iterations = 0;
  for (const bool contacts : {true, false}) {
    if (!contacts) leave_contacts(s);
    limits_mu_.assign(s.rows(), 0.0);
    const ForceSets& sets = contacts ? s.position_sets : only_limits_;
    const ContactReport end = solvers.solve_positions(world_.options, {map, asked_.data(), sets}, {false, 0.0},
                                                      limits_mu_.data(), sigma_.data());
    iterations += end.iterations;
    separated_ = end.outcome == ContactOutcome::solved;
    if (separated_) break;
  }
  loops.closure().forget();
  if (!separated_) return iterations;
  mu_ = limits_mu_;
  std::fill(u_.begin(), u_.end(), 0.0);
  response.add(s, mu_.data(), u_);
  return iterations;
}

// Position sets in which contact forces are zero.
void PositionCorrection::leave_contacts(const RowSystem& s) {
  only_limits_ = s.position_sets;
  for (Interval& i : only_limits_.intervals)
    if (i.row >= s.first_contact) i.upper = 0;
}

double largest_asked(const RowSystem& s, const double* velocity) {
  double largest = 0;
  for (const auto& i : s.position_sets.intervals)
    if (!is_unused(i)) largest = std::max(largest, is_loop(i) ? std::abs(velocity[i.row]) : -velocity[i.row]);
  return largest;
}

bool shorten(const RowSystem& s, const double* asked, double max_ratio, std::vector<double>& u) {
  double way = 0;
  for (const double x : u) way = std::max(way, std::abs(x));
  const double longest = max_ratio * largest_asked(s, asked);
  if (!(way > longest)) return false;
  for (auto& x : u) x *= longest / way;
  return true;
}

}  // namespace delassus
