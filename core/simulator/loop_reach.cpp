#include "simulator/loop_reach.h"

#include <algorithm>
#include <cmath>

namespace delassus {

namespace {

constexpr int max_following_steps = 4;
constexpr double followed = 1e-8;  // velocity of loops' errors that is none, per unit of what leads them

}  // namespace

void LoopReach::begin(RowSystem& s, const std::vector<double>& softness) {
  const std::size_t m = s.rows();
  const bool formed = s.matrix.whole();
  if (formed)
    matrix_.assign(s.matrix.numbers(), s.matrix.numbers() + m * m);
  else
    form_matrix(*s.G, identity_, matrix_);
  epsilon_.resize(m);
  double largest = 0;
  for (std::size_t r = 0; r < m; ++r) largest = std::max(largest, matrix_[r * (m + 1)]);
  for (std::size_t r = 0; r < m; ++r) {
    const double d = formed ? s.matrix.diagonal()[r] : matrix_[r * (m + 1)];
    epsilon_[r] = softness[r] * (d > 1e-12 * largest ? d : largest > 0 ? largest : 1.0);
    matrix_[r * (m + 1)] += epsilon_[r];
  }
  map_.look_at(matrix_.data(), int(m), formed ? s.matrix.diagonal().data() : nullptr);
}

ContactReport LoopReach::solve(const StepOptions& options, ContactSolvers& solvers, const ForceSets& sets,
                               const double* g, SolveStart start, std::vector<double>& mu, std::vector<double>& sigma) {
  const ContactReport end = solvers.solve_positions(options, {map_, g, sets}, start, mu.data(), sigma.data());
  for (std::size_t r = 0; r < epsilon_.size(); ++r) sigma[r] -= epsilon_[r] * mu[r];
  return end;
}

// Whether loops by themselves can follow, and meet neither limits nor contacts.
bool LoopReach::is_free(RowSystem& s, int loops, double leads) {
  closure_.begin(*s.G, s.matrix, loops);
  closure_.close(g_.data(), mu_.data(), sigma_.data(), followed);
  if (closure_.largest(sigma_.data()) > followed * leads) return false;
  for (const auto& i : s.position_sets.intervals)
    if (i.lower == 0 && i.upper > 0 && sigma_[std::size_t(i.row)] < -followed * leads) return false;
  return true;
}

void LoopReach::follow(const StepOptions& options, ContactSolvers& solvers, RowSystem& s,
                       const std::vector<double>& error, std::vector<double>& c) {
  const std::size_t loops = c.size();
  double leads = 0;
  for (const double x : c) leads = std::max(leads, std::abs(x));
  if (leads == 0 || !takes(s)) return;

  // from rest: what is apart may come together within the step
  g_.assign(s.rows(), 0.0);
  std::copy(c.begin(), c.end(), g_.begin());
  for (const auto& i : s.position_sets.intervals) {
    const std::size_t r = std::size_t(i.row);
    if (i.lower == 0 && i.upper > 0) g_[r] = std::max(error[r] - options.slop, 0.0) / options.timestep;
  }

  mu_.assign(s.rows(), 0.0);
  sigma_.resize(s.rows());
  if (is_free(s, int(loops), leads)) return;

  // steps of a proximal method: the error of loops that can be closed goes to zero, that of others to its minimum
  softness_.assign(s.rows(), 0.0);
  std::fill_n(softness_.begin(), loops, open_softness);
  begin(s, softness_);
  shifted_ = g_;
  std::fill(mu_.begin(), mu_.end(), 0.0);
  for (int n = 0; n < max_following_steps; ++n) {
    solve(options, solvers, s.position_sets, shifted_.data(), {n > 0, 0.0}, mu_, sigma_);
    double open = 0;
    for (std::size_t r = 0; r < loops; ++r) {
      sigma_[r] += g_[r] - shifted_[r];
      shifted_[r] = g_[r] - epsilon_[r] * mu_[r];
      open = std::max(open, std::abs(sigma_[r]));
    }
    if (open <= followed * leads) return;
  }
  for (std::size_t r = 0; r < loops; ++r) c[r] -= sigma_[r];
}

}  // namespace delassus
