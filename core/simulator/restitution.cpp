#include "simulator/restitution.h"

#include <algorithm>
#include <cmath>

namespace delassus {

bool Restitution::find_bouncing(const StepOptions& options, const RowSystem& s, const std::vector<Contact*>& contacts,
                                const double* v, const std::vector<double>& error, std::vector<double>& g) {
  bool any = false;
  coefficient_.assign(g.size(), 0.0);
  shares_.assign(g.size(), 0.0);
  approach_.resize(g.size());
  s.G->jacobian(v, 1, approach_.data());
  for (std::size_t k = 0; k < contacts.size(); ++k) {
    const std::size_t r = s.normal_row(k);
    const double gap = std::max(error[r] - options.slop, 0.0) / options.timestep;
    const double restitution = contacts[k]->touch.restitution;
    if (restitution == 0 || g[r] >= 0 || approach_[r] > -options.bounce_speed) continue;
    g[r] -= gap;
    // of the speed it came with, not of what the step's own forces added
    shares_[r] = std::min(approach_[r] / g[r], 1.0);
    coefficient_[r] = restitution * shares_[r];
    any = true;
  }
  return any;
}

void Restitution::decompress(const StepOptions& options, RowSystem& s, ContactMap& map, ContactSolvers& solvers,
                             const double* free, const std::vector<double>& g, std::vector<double>& impulses,
                             ContactReport& report) {
  const std::size_t rows = impulses.size();
  for (auto* x : {&given_back_, &g_, &second_, &sigma_, &change_}) x->resize(rows);
  compression_ = impulses;
  // velocities after what compression took was given back
  for (std::size_t r = 0; r < rows; ++r) given_back_[r] = impulses[r] * (1 + coefficient_[r]);
  s.G->apply(given_back_.data(), 1, g_.data());
  for (std::size_t r = 0; r < rows; ++r) g_[r] += g[r];
  // nothing may go in again; loops and dry friction have their say once more, within what remains of their sets
  narrow_sets(s);
  const ContactReport second = solvers.solve_velocities(options, {map, g_.data(), sets_}, *s.G, {false, report.rho},
                                                        second_.data(), sigma_.data());
  // as far from compression to the end as energy allows
  for (std::size_t r = 0; r < rows; ++r) change_[r] = given_back_[r] + (second_[r] - impulses[r]);
  const double share = energy_share(s, free, impulses);
  whole_ = share == 1;
  for (std::size_t r = 0; r < rows; ++r) impulses[r] += share * change_[r];
  report.iterations += second.iterations;
  report.factorizations += second.factorizations;
  if (second.outcome != ContactOutcome::solved) report.outcome = second.outcome;
  report.residuals = second.residuals;
}

// Sets of the impulses that are added to those of decompression.
void Restitution::narrow_sets(const RowSystem& s) {
  sets_ = s.sets;
  for (auto& i : sets_.intervals) {
    i.lower -= given_back_[std::size_t(i.row)];
    i.upper -= given_back_[std::size_t(i.row)];
  }
  for (int r = s.first_limit; r < s.first_contact; ++r)
    if (s.sets.intervals[std::size_t(r)].lower == 0) sets_.intervals[std::size_t(r)].lower = 0;  // ends of ranges
}

// The largest share x of the change, up to 1, with a x² + b x + c ≤ 0: the energy that impulses λ + x change put in.
double Restitution::energy_share(RowSystem& s, const double* free, const std::vector<double>& impulses) {
  const int rows = int(impulses.size());
  for (auto* x : {&free_rows_, &G_impulses_, &G_change_}) x->resize(impulses.size());
  const double *lambda = impulses.data(), *change = change_.data();
  s.G->jacobian(free, 1, free_rows_.data());
  for (const int row : s.inertia_rows) free_rows_[std::size_t(row)] = 0;  // what it is relative to goes along
  s.G->apply(lambda, 1, G_impulses_.data());
  s.G->apply(change, 1, G_change_.data());
  const double c = inner(rows, lambda, free_rows_.data()) + 0.5 * inner(rows, lambda, G_impulses_.data());
  const double b = inner(rows, change, free_rows_.data()) + inner(rows, change, G_impulses_.data()),
               a = 0.5 * inner(rows, change, G_change_.data());
  if (!(a + b + c > 0)) return 1;
  if (!(a > 0 && c <= 0)) return 0;
  return std::clamp((-b + std::sqrt(std::max(b * b - 4 * a * c, 0.0))) / (2 * a), 0.0, 1.0);
}

}  // namespace delassus
