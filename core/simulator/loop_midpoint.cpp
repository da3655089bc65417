#include "simulator/loop_midpoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamics/rnea.h"
#include "state/configuration.h"

namespace delassus {

namespace {

// largest r of calm motion: at a size of 1 m [m/s], and as a share of ½ dt J̇v
constexpr double calm_velocity = 1e-5, calm_share = 0.02;
constexpr double far_error = 1e-3, far_speed = 1;  // of a loop that is far open [m or rad]; or what that is in a step

}  // namespace

LoopMidpoint::LoopMidpoint(const WorldDescription& world)
    : world_(world), remaining_(std::size_t(world.model.nv), 1.0), motions_(link_slots<double>(world.model)) {
  if (world.loops.empty()) return;
  // which trees these are, and their size
  const auto& m = world.model;
  for (const auto& d : world.loops) {
    rows_ += d.rows;
    set_velocities(m, d, 0.5, remaining_);
    for (std::size_t p = 0; p + 2 < d.points.size(); p += 3)
      size_ = std::max(size_, std::hypot(d.points[p], d.points[p + 1], d.points[p + 2]));
  }
  for (const auto& link : m.links)
    if (link.parent >= 0) size_ = std::max(size_, std::sqrt(dot(link.placement.p, link.placement.p)));
  size_ = size_ > 0 ? std::min(size_, 1.0) : 1.0;
  loops_ = make_constraints(m, world.loops);
  placement_ = std::make_unique<Placement<double>>(m);
  halfway_.assign(std::size_t(m.nq), 0.0);
  known_q_.assign(std::size_t(m.nq), std::numeric_limits<double>::quiet_NaN());
  for (auto* x : {&error_, &drift_, &rates_, &carried_}) x->assign(std::size_t(rows_), 0.0);
}

double LoopMidpoint::find_errors(const double* q) {
  if (std::equal(known_q_.begin(), known_q_.end(), q)) return largest_error_;
  std::copy_n(q, known_q_.size(), known_q_.data());
  kinematics(world_.model, *placement_, q);
  delassus::errors(world_.model, loops_, *placement_, q, error_.data());
  largest_error_ = 0;
  for (const double e : error_) largest_error_ = std::max(largest_error_, std::abs(e));
  return largest_error_;
}

double LoopMidpoint::find_start_errors(const double* q) {
  const double largest = find_errors(q);
  far_ = largest > std::max(far_error, far_speed * world_.options.timestep);
  return largest;
}

void LoopMidpoint::forget_errors() {
  std::fill(known_q_.begin(), known_q_.end(), std::numeric_limits<double>::quiet_NaN());
}

void LoopMidpoint::go_half_way(const std::vector<WorldPart::Range>& trees, double* q, const double* v) {
  integrate(world_.model, q, v, 0.5 * world_.options.timestep, halfway_.data());
  for (const auto& r : trees)
    if (remaining_[std::size_t(r.v)] != 1) std::copy_n(halfway_.data() + r.q, r.nq, q + r.q);
}

void LoopMidpoint::begin(RowSystem& s, const double* q, const double* v, const Motions<double>& motions) {
  for (auto* x : {&start_, &row_velocity_, &row_drift_, &free_rows_, &open_rows_}) x->resize(s.rows());
  closure_.begin(*s.G, s.matrix, rows_);
  // from nothing: of impulses that redundant rows do not feel, those of the step before would be felt in this one
  impulses_.assign(s.rows(), 0.0);
  s.G->jacobian(v, 1, start_.data());
  for (std::size_t r = 0; r < carried_.size(); ++r) start_[r] += carried_[r];
  find_drift(s, q, v, motions);
  closure_.soften(drift_.data());
  choose_kept();
}

// Among contacts, r below their solver's tolerance is not kept.
void LoopMidpoint::choose_kept() {
  const double half = 0.5 * world_.options.timestep;
  double off = 0, size = 0;
  for (std::size_t r = 0; r < drift_.size(); ++r) {
    off = std::max(off, std::abs(start_[r] - half * drift_[r]));
    size = std::max(size, half * std::abs(drift_[r]));
  }
  calm_ = off <= std::max(calm_velocity * size_, calm_share * size);
  const bool forget = start_.size() > drift_.size() && off <= 10 * world_.options.tolerance;
  kept_ = calm_ && !forget ? 0.5 : 0.0;
}

void LoopMidpoint::bend(RowSystem& s, ImpulseResponse& response, const std::vector<double>& free,
                        std::vector<double>& half) {
  s.G->jacobian(free.data(), 1, free_rows_.data());
  aim(free_rows_.data());
  closure_.close(free_rows_.data(), impulses_.data(), open_rows_.data(), 1e-6);
  const std::vector<double>& change = response.of(s, impulses_.data());
  for (std::size_t k = 0; k < half.size(); ++k) half[k] += 0.5 * change[k];
}

// Where motion is not calm, all of r is kept if forgetting it, whose work is ½ λᵀ r, would add energy.
void LoopMidpoint::revise(RowSystem& s, const double* q, const double* half, const Motions<double>& motions) {
  if (calm_) return;
  find_drift(s, q, half, motions);
  closure_.soften(drift_.data());
  double work = 0;
  for (std::size_t r = 0; r < drift_.size(); ++r)
    work += impulses_[r] * (start_[r] - 0.5 * world_.options.timestep * drift_[r]);
  kept_ = work > 0 ? 1.0 : 0.0;
}

void LoopMidpoint::aim(double* g) const {
  const double half = far_ ? 0.0 : 0.5 * world_.options.timestep, kept = far_ ? 0.0 : kept_;
  for (std::size_t r = 0; r < drift_.size(); ++r)
    g[r] += carried_[r] + half * drift_[r] + kept * (start_[r] - half * drift_[r]);
}

void LoopMidpoint::add_curve(RowSystem& s, const double* q, const double* w, double* g) {
  motions(world_.model, s.G->placement(), motions_, w, static_cast<const double*>(nullptr), Vec3<double>{});
  find_drift(s, q, w, motions_);
  for (std::size_t r = 0; r < drift_.size(); ++r) g[r] += 0.5 * world_.options.timestep * drift_[r];
}

// J̇x of loops
void LoopMidpoint::find_drift(RowSystem& s, const double* q, const double* x, const Motions<double>& motions) {
  rates(world_.model, s.layout->set, s.G->placement(), motions, q, x, row_velocity_.data(), row_drift_.data());
  std::copy_n(row_drift_.data(), rows_, drift_.data());
}

}  // namespace delassus
