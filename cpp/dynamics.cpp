#include <algorithm>
#include <cmath>
#include <random>

#include "check.h"

namespace delassus::inline v0 {

// ---- the tree ----

struct TreeDynamics::Impl {
  Model model;
  const core::Model<double>& m;
  Workspace<double> w;

  explicit Impl(const Model& model_) : model(model_), m(model.data().core), w(m) {
    // sweeps take memory when they need it first
    const std::vector<double> y(2 * nv());
    std::vector<double> x(y.size()), inverse(nv() * nv());
    kinematics(m, w, model.data().neutral.data());
    delassus::mass_matrix_inverse(m, w, inverse.data());
    factorize(m, w);
    delassus::solve_mass_matrix(m, w, y.data(), 2, x.data());
  }
  std::size_t nv() const { return std::size_t(m.nv); }

  // A configuration, arguments of nv numbers each, forces on bodies or none, and an output.
  template <class... Velocities>
  Check check(In q, In external, Out out, std::size_t out_size, Velocities... v) const {
    Check check;
    check.size(q, std::size_t(m.nq));
    (check.size(v, nv()), ...);
    check.size_or_none(external, 6 * m.bodies.size()).size(out, out_size).apart(out, q, external, v...);
    check.configuration(m, q).finite(external);
    (check.finite(v), ...);
    return check;
  }
  // Work at q; it says whether the mass matrix is regular.
  template <class F>
  Status at(In q, Out out, F&& work) {
    return contained([&] {
      kinematics(m, w, q.data());
      if (!work()) return Status::singular;
      return finished(out);
    });
  }
};

TreeDynamics::TreeDynamics(const Model& model) : impl_(std::make_unique<Impl>(model)) {}
TreeDynamics::TreeDynamics(TreeDynamics&&) noexcept = default;
TreeDynamics& TreeDynamics::operator=(TreeDynamics&&) noexcept = default;
TreeDynamics::~TreeDynamics() = default;

const Model& TreeDynamics::model() const noexcept { return impl_->model; }

Status TreeDynamics::mass_matrix(In q, Out M) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, {}, M, s.nv() * s.nv()); !check) return check.status;
  return s.at(q, M, [&] {
    crba(s.m, s.w, M.data());
    return true;
  });
}
Status TreeDynamics::mass_matrix_inverse(In q, Out inverse) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, {}, inverse, s.nv() * s.nv()); !check) return check.status;
  return s.at(q, inverse, [&] {
    delassus::mass_matrix_inverse(s.m, s.w, inverse.data());
    return is_regular(s.m, s.w);
  });
}
Status TreeDynamics::solve_mass_matrix(In q, In y, Out x, int columns) noexcept {
  auto& s = *impl_;
  if (columns < 1) return Status::out_of_range;
  Check check = s.check(q, {}, x, s.nv() * std::size_t(columns));
  check.size(y, x.size()).apart(x, y).finite(y);
  if (!check) return check.status;
  return s.at(q, x, [&] {
    factorize(s.m, s.w);
    const bool regular = is_regular(s.m, s.w);
    delassus::solve_mass_matrix(s.m, s.w, y.data(), columns, x.data());
    return regular;
  });
}
Status TreeDynamics::inverse_dynamics(In q, In v, In a, Out tau, In external) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, external, tau, s.nv(), v, a); !check) return check.status;
  return s.at(q, tau, [&] {
    rnea(s.m, s.w, v.data(), a.data(), or_null(external), tau.data());
    return true;
  });
}
Status TreeDynamics::forward_dynamics(In q, In v, In tau, Out a, In external) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, external, a, s.nv(), v, tau); !check) return check.status;
  return s.at(q, a, [&] {
    aba(s.m, s.w, v.data(), tau.data(), or_null(external), a.data());
    return is_regular(s.m, s.w);
  });
}
Status TreeDynamics::bias_forces(In q, In v, Out h) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, {}, h, s.nv(), v); !check) return check.status;
  return s.at(q, h, [&] {
    rnea(s.m, s.w, v.data(), static_cast<const double*>(nullptr), static_cast<const double*>(nullptr), h.data());
    return true;
  });
}
Status TreeDynamics::body_placements(In q, Out X) noexcept {
  auto& s = *impl_;
  if (const Check check = s.check(q, {}, X, 16 * s.m.bodies.size()); !check) return check.status;
  return s.at(q, X, [&] {
    for (std::size_t b = 0; b < s.m.bodies.size(); ++b) {
      const Pose<double> P = body_pose(s.m, s.w, int(b));
      const double rows[16] = {P.R.x.x, P.R.y.x, P.R.z.x, P.p.x, P.R.x.y, P.R.y.y, P.R.z.y, P.p.y,
                               P.R.x.z, P.R.y.z, P.R.z.z, P.p.z, 0,       0,       0,       1};
      std::copy(rows, rows + 16, X.data() + 16 * b);
    }
    return true;
  });
}
Status TreeDynamics::point_jacobian(In q, int body, const Vec3& point, Out J) noexcept {
  auto& s = *impl_;
  Check check = s.check(q, {}, J, 6 * s.nv());
  check.finite(point).require(body >= 0 && std::size_t(body) < s.m.bodies.size(), Status::out_of_range);
  if (!check) return check.status;
  return s.at(q, J, [&] {
    frame_jacobian(s.m, s.w, body, {point[0], point[1], point[2]}, J.data());
    return true;
  });
}

// ---- the tree with constraints ----

namespace {

// Part of G's own diagonal that ε is where none is given, of rows of lengths and of rotations.
constexpr double length_share = 5e-8, rotation_share = 3e-9;

// Configurations of a model at which G's diagonal is looked at: neutral, and joints turned and slid from there.
std::vector<std::vector<double>> probes(const Model& model) {
  std::mt19937_64 random(0);
  const auto uniform = [&](double low, double high) { return low + (high - low) * (double(random() >> 11) * 0x1p-53); };
  std::vector<std::vector<double>> found{model.neutral()};
  for (int n = 0; n < 2; ++n) {
    std::vector<double> q = model.neutral();
    for (int j = 0; j < model.njoint(); ++j) {
      const auto& joint = model.joint(j);
      double* x = &q[std::size_t(model.joint_q(j))];
      if (joint.type == JointType::hinge || joint.type == JointType::slide) {
        const double reach = joint.type == JointType::hinge ? 3.14159 : 1.0;
        const auto [low, high] = joint.range;
        *x = uniform(std::isfinite(low) ? low : std::min(joint.reference, high) - reach,
                     std::isfinite(high) ? high : std::max(joint.reference, low) + reach);
        continue;
      }
      if (joint.type == JointType::free) x += 3;
      double squares = 0;
      for (int k = 0; k < 4; ++k) x[k] = uniform(-1, 1), squares += x[k] * x[k];
      for (int k = 0; k < 4; ++k) x[k] /= std::sqrt(squares);
    }
    found.push_back(std::move(q));
  }
  return found;
}

// ε of every row: what was saved with a constraint, else a share of G's own diagonal, its geometric mean over some
// configurations and over the three rows of a point.
std::vector<double> own_damping(const Constraints& constraints) {
  const auto& data = constraints.data();
  const std::size_t m = std::size_t(data.rows());
  std::vector<double> sums(m), times(m), diagonal(m), damping(m);
  const auto set = data.set();
  for (const auto& q : probes(data.model)) {
    find_diagonal(data.model.data().core, set, q.data(), diagonal.data());
    for (std::size_t k = 0; k < data.list.size(); ++k) {
      const auto first = diagonal.begin() + data.first_row[k], last = diagonal.begin() + data.first_row[k + 1];
      const auto middle = first + std::min<std::ptrdiff_t>(3, last - first);
      double mean = 0, largest = 0;
      for (auto x = first; x != middle; ++x) mean += *x / double(middle - first);
      std::fill(first, middle, mean);
      for (auto x = middle; x != last; ++x) largest = std::max(largest, *x);
      // a rotation that nothing moves here says nothing of its size
      for (auto x = middle; x != last; ++x) *x = *x > 1e-12 * largest ? *x : largest;
    }
    for (std::size_t r = 0; r < m; ++r)
      if (std::isfinite(diagonal[r]) && diagonal[r] > 0) sums[r] += std::log(diagonal[r]), ++times[r];
  }
  double all = 0, count = 0;
  for (std::size_t r = 0; r < m; ++r) all += sums[r], count += times[r];
  for (std::size_t k = 0; k < data.list.size(); ++k) {
    const auto& saved = data.list[k].damping;
    for (int r = 0; r < data.list[k].core.rows; ++r) {
      const std::size_t row = std::size_t(data.first_row[k] + r);
      const double usual = times[row] > 0 ? sums[row] / times[row] : all / std::max(count, 1.0);
      damping[row] = saved.empty() ? (r < 3 ? length_share : rotation_share) * std::exp(usual) : saved[std::size_t(r)];
    }
  }
  return damping;
}

core::DynamicsMethod method_of(DynamicsMethod method) {
  switch (method) {
    case DynamicsMethod::automatic:
      return core::DynamicsMethod::automatic;
    case DynamicsMethod::lcaba:
      return core::DynamicsMethod::lcaba;
    case DynamicsMethod::kkt:
      return core::DynamicsMethod::kkt;
  }
  throw ArgumentError("method: it is none of DynamicsMethod.");
}

}  // namespace

struct ConstrainedDynamics::Impl {
  Model model;
  DynamicsOptions options;
  std::unique_ptr<DynamicsSolver<double>> solver;
  std::vector<double> damping;  // a row: ε

  Impl(const Constraints& constraints, const DynamicsOptions& o)
      : model(constraints.model()),
        options(o),
        solver(make_dynamics_solver(method_of(o.method), model.data().core, constraints.data().set())) {
    if (!(o.tolerance >= 0) || std::isinf(o.tolerance))
      throw ArgumentError("tolerance: expected a finite number that is not negative.");
    if (o.max_iterations < 1) throw ArgumentError("max_iterations: expected a positive number.");
    if (!(o.compliance >= 0) || std::isinf(o.compliance))
      throw ArgumentError("compliance: expected a finite number that is not negative.");
    if (o.mu.empty()) {
      damping = own_damping(constraints);
    } else if (o.mu.size() != rows()) {
      throw ArgumentError("mu: expected " + std::to_string(rows()) + " numbers, one per row, got " +
                          std::to_string(o.mu.size()) + ".");
    }
    for (const double mu : o.mu) {
      if (!(mu > 0) || std::isinf(mu))
        throw ArgumentError("mu: expected positive numbers, got " + std::to_string(mu) + ".");
      damping.push_back(1 / mu);
    }
    const std::vector<double> compliance(rows(), o.compliance);
    solver->set_compliance(compliance.data());
    solver->reserve();
  }
  std::size_t rows() const { return std::size_t(solver->rows()); }
};

ConstrainedDynamics::ConstrainedDynamics(const Constraints& constraints, const DynamicsOptions& options)
    : impl_(std::make_unique<Impl>(constraints, options)) {}
ConstrainedDynamics::ConstrainedDynamics(ConstrainedDynamics&&) noexcept = default;
ConstrainedDynamics& ConstrainedDynamics::operator=(ConstrainedDynamics&&) noexcept = default;
ConstrainedDynamics::~ConstrainedDynamics() = default;

int ConstrainedDynamics::rows() const noexcept { return int(impl_->rows()); }
const Model& ConstrainedDynamics::model() const noexcept { return impl_->model; }

DynamicsReport ConstrainedDynamics::solve(const DynamicsInput& input, Out acceleration, Out forces,
                                          bool warm_start) noexcept {
  auto& s = *impl_;
  const auto& m = s.model.data().core;
  const auto &q = input.q, &v = input.v, &tau = input.tau, &external = input.external, &bias = input.bias;
  DynamicsReport report;
  Check check;
  check.size(q, std::size_t(m.nq))
      .size(v, std::size_t(m.nv))
      .size_or_none(tau, std::size_t(m.nv))
      .size_or_none(external, 6 * m.bodies.size())
      .size_or_none(bias, s.rows())
      .size(acceleration, std::size_t(m.nv))
      .size(forces, s.rows())
      .apart(acceleration, q, v, tau, external, bias, forces)
      .apart(forces, q, v, tau, external, bias);
  check.configuration(m, q).finite(v).finite(tau).finite(external).finite(bias);
  if (warm_start) check.finite(forces);
  report.status = check.status;
  if (!check) return report;

  if (!warm_start) std::fill(forces.begin(), forces.end(), 0.0);
  Report<double> found{};
  report.status = contained([&] {
    s.solver->solve(q.data(), v.data(), or_null(tau), or_null(external), or_null(bias), s.damping.data(),
                    s.options.max_iterations, s.options.tolerance, forces.data(), acceleration.data(), &found, nullptr);
    const Status status = finished(acceleration);
    return status == Status::ok ? finished(forces) : status;
  });
  report.outcome = DynamicsOutcome(int(found.outcome));
  report.iterations = found.iterations;
  report.constraints = found.constraints, report.dynamics = found.dynamics;
  report.primal = found.primal, report.dual = found.change, report.least_squares = found.least_squares;
  report.repaired = found.repaired;
  return report;
}

}  // namespace delassus::inline v0
