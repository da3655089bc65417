#include <algorithm>

#include "operator.h"

namespace delassus::inline v0 {

namespace {

constexpr double open_end = std::numeric_limits<double>::infinity();
// Of the solve that takes all memory: so many that every method is tried.
constexpr int reserving_iterations = 700;

// Sets of the forces; bounds of dry friction are impulses in a time step.
ForceSets sets_of(const Constraints& constraints, double timestep) {
  ForceSets sets;
  sets.rows = constraints.rows();
  const auto& data = constraints.data();
  for (std::size_t k = 0; k < data.list.size(); ++k) {
    const auto& c = data.list[k];
    const int first = data.first_row[k];
    if (c.set == ForceSet::cone) {
      sets.cones.push_back({first, c.friction, c.core.rows});
      continue;
    }
    const double bound = c.friction * timestep;
    for (int r = 0; r < c.core.rows; ++r) {
      if (c.set == ForceSet::box)
        sets.intervals.push_back({first + r, -bound, bound});
      else
        sets.intervals.push_back({first + r, c.set == ForceSet::half_line ? 0 : -open_end, open_end});
    }
  }
  return sets;
}

// The damping that an operator has, and its factor, are put aside for as long as this lives.
class DampingAside {
 public:
  explicit DampingAside(Operator<double>& G) : G_(G) { G_.exchange_damping(); }
  ~DampingAside() { G_.exchange_damping(); }
  DampingAside(const DampingAside&) = delete;
  DampingAside& operator=(const DampingAside&) = delete;

 private:
  Operator<double>& G_;
};

}  // namespace

struct ContactSolver::Impl {
  std::shared_ptr<DelassusOperator::Impl> G;
  ForceSets sets;
  const ContactMethod* method;
  core::ContactSolver solver;
  core::ContactOptions options;
  double tolerance;
  std::vector<double> history;

  Impl(DelassusOperator& G_, const ContactOptions& o, double timestep)
      : G(G_.shared()), method(find_contact_method("auto")), tolerance(o.tolerance) {
    if (!(o.tolerance > 0) || std::isinf(o.tolerance))
      throw ArgumentError("tolerance: expected a finite positive number.");
    if (o.max_iterations < 1) throw ArgumentError("max_iterations: expected a positive number.");
    if (!(o.time_limit >= 0)) throw ArgumentError("time_limit: expected a time in seconds, or 0 for none.");
    if (!(timestep >= 0) || std::isinf(timestep)) throw ArgumentError("timestep: expected a time in seconds.");
    sets = sets_of(G->constraints, timestep);
    options.max_iterations = o.max_iterations;
    if (o.time_limit > 0) options.seconds = o.time_limit;
    reserve();
  }

  core::ContactReport run(const core::ContactOptions& how, const double* g, double* lambda, double* sigma) {
    OperatorMap map(*G->core, sets);
    const DampingAside aside(*G->core);
    return solver.solve(*method, ContactProblem{map, g, sets}, nullptr, how, lambda, sigma, history.data());
  }

  // Solvers and factors take memory when they need it first: a problem that none may solve, at the configuration of the
  // operator, or at the neutral one if it has none; then what no turn came to.
  void reserve() {
    core::ContactOptions how = options;
    how.max_iterations = reserving_iterations;
    how.tolerance = 0;
    how.seconds = open_end;
    history.resize(std::size_t(std::max(options.max_iterations, reserving_iterations)));
    const std::size_t n = G->rows();
    std::vector<double> g(n), lambda(n), sigma(n);
    for (const auto& cone : sets.cones) g[std::size_t(cone.row)] = -1, g[std::size_t(cone.row + 1)] = 0.5;
    for (const auto& interval : sets.intervals) g[std::size_t(interval.row)] = -1;
    if (!G->fresh && !G->core->update(G->model.neutral().data())) return;
    run(how, g.data(), lambda.data(), sigma.data());
    OperatorMap map(*G->core, sets);
    const DampingAside aside(*G->core);
    solver.automatic.reserve(ContactProblem{map, g.data(), sets}, lambda.data(), sigma.data());
  }
};

ContactSolver::ContactSolver(DelassusOperator& G, const ContactOptions& options, double timestep)
    : impl_(std::make_unique<Impl>(G, options, timestep)) {}
ContactSolver::ContactSolver(ContactSolver&&) noexcept = default;
ContactSolver& ContactSolver::operator=(ContactSolver&&) noexcept = default;
ContactSolver::~ContactSolver() = default;

ContactReport ContactSolver::solve(In g, Out forces, Out velocities, bool warm_start) noexcept {
  auto& s = *impl_;
  const std::size_t n = s.G->rows();
  ContactReport report;
  Check check;
  check.size(g, n)
      .size(forces, n)
      .size(velocities, n)
      .apart(forces, g, velocities)
      .apart(velocities, g)
      .require(s.G->fresh, Status::stale)
      .finite(g);
  if (warm_start) check.finite(forces);
  report.status = check.status;
  if (!check) return report;

  core::ContactReport found;
  core::ContactOptions how = s.options;
  how.warm = warm_start;
  how.tolerance = held_tolerance(s.tolerance, int(n), g.data());
  if (!warm_start) std::fill(forces.begin(), forces.end(), 0.0);
  report.status = contained([&] {
    found = s.run(how, g.data(), forces.data(), velocities.data());
    const Status status = finished(forces);
    return status == Status::ok ? finished(velocities) : status;
  });
  report.outcome = ContactOutcome(int(found.outcome));
  report.iterations = found.iterations, report.factorizations = found.factorizations;
  report.primal = found.residuals.primal, report.dual = found.residuals.dual;
  report.complementarity = found.residuals.complementarity, report.natural = found.residuals.natural;
  report.tolerance = how.tolerance;
  return report;
}

}  // namespace delassus::inline v0
