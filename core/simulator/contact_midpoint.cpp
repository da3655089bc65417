#include "simulator/contact_midpoint.h"

#include <algorithm>

namespace delassus {

ContactMidpoint::Rule ContactMidpoint::find(const StepOptions& options, RowSystem& s, const ActiveRows& rows,
                                            const std::vector<double>& error, const WarmStart& start,
                                            std::size_t loop_rows, ImpulseResponse& response,
                                            const std::vector<double>& free) {
  // λ̂ and M̂⁻¹ Jᵀ λ̂
  impulses_ = start.impulses;
  std::fill_n(impulses_.begin(), loop_rows, 0.0);
  const bool known = std::any_of(impulses_.begin(), impulses_.end(), [](double x) { return x != 0; });
  if (known)
    response_ = response.of(s, impulses_.data());
  else
    std::fill(response_.begin(), response_.end(), 0.0);

  // rows that only push: what λ̂ does, and what is needed
  approach_.resize(s.rows());
  s.G->jacobian(free.data(), 1, approach_.data());
  allow_approach(options, s, rows, error, impulses_, approach_);
  change_.assign(s.rows(), 0.0);
  if (known) s.G->jacobian(response_.data(), 1, change_.data());
  double needed = 0, given = 0;
  bool presses = false, pushed = false;
  for_each_push(s, rows, [&](std::size_t r) {
    needed -= impulses_[r] * approach_[r];
    given += impulses_[r] * change_[r];
    pushed = pushed || impulses_[r] > 0;
    presses = presses || approach_[r] < -options.tolerance;
  });
  if (pushed) return needed >= 0.5 * given ? Rule::held : Rule::start;
  if (presses) return Rule::start;
  return known ? Rule::held : Rule::free;
}

}  // namespace delassus
