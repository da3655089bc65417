#include "solvers/contacts/automatic.h"

#include <algorithm>
#include <limits>

namespace delassus {
namespace {

//                                      s   δ first  least  by residual  iterations  patience
constexpr SemismoothRule first_rule = {3, 0.3, 1e-3, true, 60, 20, 2};
constexpr SemismoothRule near_rule = {10, 1e-3, 1e-3, false, 40, 15};
constexpr SemismoothRule polish_rules[] = {{10, 1e-3, 1e-3, false, 40, 15},
                                           {3, 1e-3, 1e-4, false, 40, 15, 10},
                                           {30, 1e-2, 1e-3, false, 40, 15, 3},
                                           {3, 1e-3, 1e-5, false, 40, 15, 10}};
constexpr double near_residual = 1e-3;  // over the largest |g|: the second rule is tried
constexpr double path_share = 10;       // m₀ of a path from the best forces, over their residual
constexpr double good_best = 100;       // residual of forces that are an approximate answer, over the tolerance
constexpr double no_start = 10;         // residual of a warm start that is not taken, over that of no forces
constexpr unsigned random_paths = 2;
constexpr int long_path = 250;       // factorizations
constexpr int few_iterations = 300;  // of ADMM

}  // namespace

ContactReport AutomaticContacts::solve(const ContactProblem& p, const ContactOptions& options, double* lambda,
                                       double* sigma, double* history) {
  if (!p.G.block_index(p.sets)) return admm_.solve(p, options, lambda, sigma, history);
  problem_ = &p, options_ = &options, history_ = history;
  using Clock = std::chrono::steady_clock;
  end_ =
      std::isinf(options.seconds)
          ? Clock::time_point::max()
          : Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  report_ = {};
  best_residual_ = std::numeric_limits<double>::infinity();
  const std::size_t n = std::size_t(p.rows());
  best_.assign(n, 0.0);
  semismooth_.begin(p);
  // the start may already be a solution; the largest residual may grow while most contacts are near their forces
  bool judged = false;
  if (options.warm) {
    project(p.sets, lambda, lambda);
    report_.residuals = judge(p, true, semismooth_.d(), lambda, sigma);
    const double none = residuals(p.sets, true, semismooth_.d(), best_.data(), p.g).natural;
    judged = report_.residuals.natural <= no_start * none;
  }
  if (!judged) std::fill_n(lambda, n, 0.0);
  start_.assign(lambda, lambda + n);

  // Newton's method from the given start
  double speed = 0;
  for (std::size_t r = 0; r < n; ++r) speed = std::max(speed, std::abs(p.g[r]));
  if (newton(first_rule, lambda, sigma, judged)) return report_;
  if (best_residual_ <= near_residual * speed && !over_budget() && newton(near_rule, lambda, sigma)) return report_;

  // loops may contradict each other, which ADMM finds out
  const auto is_free = [](const Interval& i) { return std::isinf(i.lower) && std::isinf(i.upper); };
  if (std::any_of(p.sets.intervals.begin(), p.sets.intervals.end(), is_free) && admm(few_iterations, lambda, sigma))
    return report_;

  // paths, each with Newton's method from its end
  path_.begin(p, semismooth_.d());
  const double share = std::min(std::max(path_share * best_residual_ / speed, 1e-3), 0.3);
  if (path({.m = path_.speed() * share}, best_, lambda, sigma)) return report_;
  if (path({.fast_fading = true}, start_, lambda, sigma)) return report_;
  for (unsigned seed = 1; seed <= random_paths; ++seed) {
    const PathStart far{.fast_fading = seed % 2 == 0, .random = 0.3, .seed = seed, .max_factorizations = long_path};
    if (path(far, start_, lambda, sigma)) return report_;
  }

  // ADMM with the rest of the budget
  if (admm(options.max_iterations, lambda, sigma)) return report_;
  approximate(lambda, sigma);
  report_.iterations = std::min(report_.iterations, options.max_iterations);
  return report_;
}

void AutomaticContacts::reserve(const ContactProblem& p, double* lambda, double* sigma) {
  for (auto* x : {&best_, &start_}) x->resize(std::size_t(p.rows()));
  if (p.G.block_index(p.sets)) {
    semismooth_.begin(p);
    path_.begin(p, semismooth_.d());
    path_.reserve();
  }
  ContactReport report;
  admm_.begin(p, {.tolerance = 0}, lambda, sigma, report);
}

bool AutomaticContacts::over_budget() const { return report_.iterations >= options_->max_iterations || is_over(end_); }

bool AutomaticContacts::newton(const SemismoothRule& rule, double* lambda, double* sigma, bool judged) {
  SemismoothRule limited = rule;
  limited.max_iterations = std::min(rule.max_iterations, options_->max_iterations - report_.iterations);
  limited.end = end_;
  const bool solved = semismooth_.run(limited, *options_, lambda, sigma, history_, report_, judged);
  if (!solved) keep_best(lambda);
  return solved;
}

// ADMM from nothing. Whether it found the solution, or that there is none.
bool AutomaticContacts::admm(int iterations, double* lambda, double* sigma) {
  if (over_budget()) return false;
  ContactOptions rest = *options_;
  rest.max_iterations = std::min(iterations, options_->max_iterations - report_.iterations);
  rest.warm = false;
  const ContactReport last = admm_.solve(*problem_, rest, lambda, sigma, history_ + report_.iterations);
  report_.iterations += last.iterations, report_.factorizations += last.factorizations;
  report_.residuals = last.residuals, report_.rho = last.rho;
  if (last.outcome == ContactOutcome::solved || last.outcome == ContactOutcome::infeasible) {
    report_.outcome = last.outcome;
    return true;
  }
  keep_best(lambda);
  return false;
}

// A path from these forces, and Newton's method from its end.
bool AutomaticContacts::path(const PathStart& start, const std::vector<double>& from, double* lambda, double* sigma) {
  if (over_budget()) return false;
  PathStart limited = start;
  limited.max_factorizations = std::min(start.max_factorizations, options_->max_iterations - report_.iterations);
  limited.end = end_;
  const int before = report_.iterations;
  std::copy(from.begin(), from.end(), lambda);
  path_.follow(limited, lambda, report_);
  std::fill(history_ + before, history_ + std::min(report_.iterations, options_->max_iterations), best_residual_);
  for (const auto& rule : polish_rules) {
    if (over_budget()) return false;
    if (newton(rule, lambda, sigma)) return true;
  }
  return false;
}

// Forces that were judged last, if they are the best.
void AutomaticContacts::keep_best(const double* lambda) {
  if (!(report_.residuals.natural < best_residual_)) return;
  best_residual_ = report_.residuals.natural;
  std::copy_n(lambda, best_.size(), best_.data());
}

// Another problem that has a solution: Γ held at the best forces, then at the smaller of that and what came of it.
void AutomaticContacts::approximate(double* lambda, double* sigma) {
  const ContactProblem& p = *problem_;
  std::copy(best_.begin(), best_.end(), lambda);
  report_.residuals = judge(p, true, semismooth_.d(), lambda, sigma);
  report_.outcome = ContactOutcome::approximate;
  if (best_residual_ <= good_best * options_->tolerance) return;
  path_.begin(p, semismooth_.d());
  for (int pass = 0; pass < 2; ++pass) {
    path_.hold_gamma(sigma, pass == 0);
    path_.follow({.max_factorizations = long_path}, lambda, report_);
    report_.residuals = judge(p, true, semismooth_.d(), lambda, sigma);
    if (std::isfinite(report_.residuals.natural)) continue;
    // numbers were lost: the best forces found
    std::copy(best_.begin(), best_.end(), lambda);
    report_.residuals = judge(p, true, semismooth_.d(), lambda, sigma);
    break;
  }
  path_.release_gamma();
}

}  // namespace delassus
