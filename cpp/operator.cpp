#include "operator.h"

#include <algorithm>

namespace delassus::inline v0 {

namespace {

// As the Python package has them.
constexpr double solve_goal = 2e-13, solve_limit = 1e-12;
constexpr int solve_refinements = 8, limit_roundings = 4;
constexpr double no_limit = std::numeric_limits<double>::infinity();

void expect_not_negative(double number, const char* name) {
  if (!(number >= 0 && std::isfinite(number)))
    throw ArgumentError(std::string(name) + ": expected a finite number that is not negative, got " +
                        std::to_string(number) + ".");
}

}  // namespace

DelassusOperator::Impl::Impl(const Constraints& c, const OperatorOptions& options)
    : constraints(c),
      model(constraints.model()),
      core(make_operator(Form::matrix_free, model.data().core, constraints.data().set())),
      compliance(std::size_t(core->rows()), options.compliance),
      damping(compliance.size()),
      units(compliance.size() * columns),
      products(units.size()),
      full(options.reserve_full) {
  expect_not_negative(options.compliance, "compliance");
  core->set_compliance(compliance.data());
  if (!(options.damping < 0)) {
    expect_not_negative(options.damping, "damping");
    std::fill(damping.begin(), damping.end(), options.damping);
    damped = true;
  }
  judge_damping();
  if (full) core->reserve_fallbacks();
}

void DelassusOperator::Impl::judge_damping() {
  invertible = damped;
  for (std::size_t r = 0; r < damping.size(); ++r) invertible = invertible && damping[r] + compliance[r] > 0;
}

// The factor of the inverse, where there is one.
void DelassusOperator::Impl::factor() {
  factored = false;
  if (!fresh || !invertible) return;
  core->set_damping(damping.data());
  factored = true;
}

Status DelassusOperator::Impl::update(In q) {
  fresh = factored = false;
  Check check;
  check.size(q, std::size_t(model.nq())).configuration(model.data().core, q);
  if (!check) return check.status;
  fresh = core->update(q.data());
  if (!fresh) return Status::singular;
  factor();
  return Status::ok;
}

Status DelassusOperator::Impl::take_rows(In values, std::vector<double>& rows) const {
  Check check;
  check.size(values, rows.size()).finite(values);
  for (const double x : values) check.require(x >= 0, Status::out_of_range);
  if (check) std::copy(values.begin(), values.end(), rows.begin());
  return check.status;
}
Status DelassusOperator::Impl::take_number(double value, std::vector<double>& rows) const {
  Check check;
  check.require(std::isfinite(value), Status::not_finite).require(value >= 0, Status::out_of_range);
  if (check) std::fill(rows.begin(), rows.end(), value);
  return check.status;
}
Status DelassusOperator::Impl::damp(Status taken) {
  if (taken != Status::ok) return taken;
  damped = true;
  judge_damping();
  factor();
  return taken;
}
Status DelassusOperator::Impl::comply(Status taken) {
  if (taken != Status::ok) return taken;
  core->set_compliance(compliance.data());
  judge_damping();
  factor();
  return taken;
}

DelassusOperator::DelassusOperator(const Constraints& constraints, const OperatorOptions& options)
    : impl_(std::make_shared<Impl>(constraints, options)) {}
DelassusOperator::DelassusOperator(DelassusOperator&&) noexcept = default;
DelassusOperator& DelassusOperator::operator=(DelassusOperator&&) noexcept = default;
DelassusOperator::~DelassusOperator() = default;

int DelassusOperator::rows() const noexcept { return int(impl_->rows()); }
const Model& DelassusOperator::model() const noexcept { return impl_->model; }
const Constraints& DelassusOperator::constraints() const noexcept { return impl_->constraints; }

Status DelassusOperator::update(In q) noexcept {
  return contained([&] { return impl_->update(q); });
}
Status DelassusOperator::set_damping(double damping) noexcept {
  return contained([&] { return impl_->damp(impl_->take_number(damping, impl_->damping)); });
}
Status DelassusOperator::set_damping(In damping) noexcept {
  return contained([&] { return impl_->damp(impl_->take_rows(damping, impl_->damping)); });
}
Status DelassusOperator::set_compliance(double compliance) noexcept {
  return contained([&] { return impl_->comply(impl_->take_number(compliance, impl_->compliance)); });
}
Status DelassusOperator::set_compliance(In compliance) noexcept {
  return contained([&] { return impl_->comply(impl_->take_rows(compliance, impl_->compliance)); });
}

Status DelassusOperator::apply(In x, Out y, int columns) noexcept {
  auto& s = *impl_;
  return s.map(x, s.rows(), y, s.rows(), columns, [&] { s.core->apply(x.data(), columns, y.data()); });
}
Status DelassusOperator::jacobian(In x, Out y, int columns) noexcept {
  auto& s = *impl_;
  return s.map(x, s.nv(), y, s.rows(), columns, [&] { s.core->jacobian(x.data(), columns, y.data()); });
}
Status DelassusOperator::jacobian_transpose(In x, Out y, int columns) noexcept {
  auto& s = *impl_;
  return s.map(x, s.rows(), y, s.nv(), columns, [&] { s.core->jacobian_transpose(x.data(), columns, y.data()); });
}
Status DelassusOperator::mass_inverse(In x, Out y, int columns) noexcept {
  auto& s = *impl_;
  return s.map(x, s.nv(), y, s.nv(), columns, [&] { s.core->mass_inverse(x.data(), columns, y.data()); });
}

SolveReport DelassusOperator::solve(In y, Out x, const SolveOptions& options, int columns) noexcept {
  auto& s = *impl_;
  const double rounding = limit_roundings * double(s.nv()) * std::numeric_limits<double>::epsilon();
  const double limit = options.tolerance > 0 ? options.tolerance : std::max(solve_limit, rounding);
  const bool refined = options.refinement != Refinement::none;
  Accuracy<double> wanted{refined ? solve_refinements : 0, solve_goal, limit};
  if (!s.full || options.refinement != Refinement::full) wanted.limit = no_limit;

  SolveReport report;
  report.status = !(options.tolerance >= 0) ? Status::out_of_range
                  : s.fresh && !s.factored  ? Status::no_inverse
                                            : Status::ok;
  if (report.status != Status::ok) return report;
  report.status = s.map(y, s.rows(), x, s.rows(), columns,
                        [&] { report.backward_error = s.core->solve(y.data(), columns, x.data(), wanted); });
  if (report.status == Status::ok && refined && !(report.backward_error <= limit)) report.status = Status::inaccurate;
  return report;
}

Status DelassusOperator::backward_error(In x, In y, double& error) noexcept {
  auto& s = *impl_;
  Check check;
  check.size(x, s.rows())
      .size(y, s.rows())
      .require(s.fresh, Status::stale)
      .require(s.factored, Status::no_inverse)
      .finite(x)
      .finite(y);
  if (!check) return check.status;
  return contained([&] {
    s.core->backward_error(y.data(), x.data(), 1, &error);
    return finished({&error, 1});
  });
}

// One product with the identity, some columns at a time
Status DelassusOperator::to_matrix(Out G) noexcept {
  auto& s = *impl_;
  const std::size_t m = s.rows();
  Check check;
  check.size(G, m * m).require(s.fresh, Status::stale);
  if (!check) return check.status;
  return contained([&] {
    for (std::size_t first = 0; first < m; first += Impl::columns) {
      const std::size_t count = std::min(m - first, std::size_t(Impl::columns));
      std::fill(s.units.begin(), s.units.end(), 0.0);
      for (std::size_t c = 0; c < count; ++c) s.units[(first + c) * count + c] = 1;
      s.core->apply(s.units.data(), int(count), s.products.data());
      for (std::size_t r = 0; r < m; ++r) std::copy_n(&s.products[r * count], count, &G[r * m + first]);
    }
    return finished(G);
  });
}

Status DelassusOperator::diagonal(Out d) noexcept {
  auto& s = *impl_;
  Check check;
  check.size(d, s.rows()).require(s.fresh, Status::stale);
  if (!check) return check.status;
  return contained([&] {
    s.core->diagonal(d.data());
    return finished(d);
  });
}

}  // namespace delassus::inline v0
