#include "simulator/loop_arrival.h"

#include <algorithm>

#include "state/configuration.h"

namespace delassus {

namespace {

constexpr int max_newton_steps = 3;    // Newton's
constexpr double closed_error = 1e-9;  // error below which there is none, at a size of 1 m [m or rad]

}  // namespace

LoopArrival::Result LoopArrival::arrive(RowSystem& s, const std::vector<double>& q, LoopMidpoint& loops,
                                        const PositionCorrection& correction, ImpulseResponse& response,
                                        std::vector<double>& w, std::vector<double>& next) {
  const double dt = world_.options.timestep;
  LoopClosure& closure = loops.closure();
  const auto go = [&] {
    integrate(world_.model, q.data(), w.data(), dt, next.data());
    return loops.find_errors(next.data());
  };
  Result result{go(), 0};
  if (correction.held_open()) return result;
  const double floor = std::max(closed_error * loops.size(), 2 * dt * correction.unreachable());
  for (int n = 0; n < max_newton_steps && result.error > floor; ++n) {
    // impulses that undo the error, as far as any motion does
    asked_.assign(s.rows(), 0.0);
    impulses_.assign(s.rows(), 0.0);
    open_.resize(s.rows());
    for (std::size_t r = 0; r < loops.errors().size(); ++r) asked_[r] = loops.errors()[r] / dt;
    result.iterations = std::max(result.iterations, closure.close(asked_.data(), impulses_.data(), open_.data()));
    if (!(dt * closure.largest(open_.data()) < 0.5 * result.error)) break;

    // w with their motion
    before_ = w;
    correction_.assign(w.size(), 0.0);
    response.add(s, impulses_.data(), correction_);
    shorten(s, asked_.data(), correction.max_ratio(), correction_);
    for (std::size_t k = 0; k < w.size(); ++k) w[k] += correction_[k];
    const double now = go();
    if (!(now < 0.5 * result.error)) {
      // it is no better for it: back
      w = before_;
      result.error = go();
      break;
    }
    result.error = now;
  }
  return result;
}

}  // namespace delassus
