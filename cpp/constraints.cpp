#include <algorithm>
#include <cmath>

#include "check.h"
#include "spatial/quaternion.h"

namespace delassus::inline v0 {

namespace {

using core::Kind, core::Turn;
using P = core::Point;
constexpr std::array<double, 9> world_axes{1, 0, 0, 0, 1, 0, 0, 0, 1};

[[noreturn]] void refuse(const std::string& message) { throw ArgumentError(message); }

template <class Numbers>
void expect_finite(const char* name, const Numbers& numbers) {
  for (const double x : numbers)
    if (!std::isfinite(x)) refuse(std::string(name) + ": expected finite numbers, got " + std::to_string(x) + ".");
}
double not_negative(const char* name, double x) {
  if (!(x >= 0 && std::isfinite(x)))
    refuse(std::string(name) + ": expected a finite number that is not negative, got " + std::to_string(x) + ".");
  return x;
}

// Rows: the unit direction, then two unit tangents: e × n, scaled, and n × that, with e the axis most perpendicular to
// n.
std::array<double, 9> axes_along(const char* name, const Vec3& direction) {
  expect_finite(name, direction);
  P n{direction[0] + 0.0, direction[1] + 0.0, direction[2] + 0.0};  // −0 is 0
  const double length = std::sqrt(dot(n, n));
  if (!(length > 0)) refuse(std::string(name) + ": expected a direction other than zero.");
  n = {n.x / length, n.y / length, n.z / length};
  const double a[3] = {std::abs(n.x), std::abs(n.y), std::abs(n.z)};
  const auto least = std::min_element(a, a + 3) - a;
  P t = cross(P{double(least == 0), double(least == 1), double(least == 2)}, n);
  const double across = std::sqrt(dot(t, t));
  t = {t.x / across, t.y / across, t.z / across};
  const P b = cross(n, t);
  return {n.x, n.y, n.z, t.x, t.y, t.z, b.x, b.y, b.z};
}

Turn turn_of(const char* name, const Quat& q) {
  expect_finite(name, q);
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (!(std::abs(length - 1) <= quaternion_slack))
    refuse(std::string(name) + ": (w, x, y, z) must have length 1, got " + std::to_string(length) +
           ". Divide it by its length.");
  double largest = 0;
  for (const double c : q) largest = std::max(largest, std::abs(c));
  return rotation(q[0] / largest, q[1] / largest, q[2] / largest, q[3] / largest);
}

// Makes constraints of one model as the core takes them; what each argument means is said in constraints.hpp.
class Maker {
 public:
  explicit Maker(const Model& model) : model_(model) {}

  ConstraintData operator()(const PointContact& c) const {
    const auto axes = axes_along("normal", c.normal);
    not_negative("friction", c.friction);
    not_negative("torsional_friction", c.torsional_friction);
    not_negative("rolling_friction", c.rolling_friction);
    const int turns = c.rolling_friction > 0 ? 3 : c.torsional_friction > 0 ? 1 : 0;
    if (turns && !(c.friction > 0))
      refuse(
          "friction: a contact with torsional or rolling friction slides with friction too: expected a positive "
          "number.");
    ConstraintData out = between(c.body, c.other, c.point, c.other_point, 1);
    out.core.kind = turns ? Kind::contact : Kind::frame;
    out.core.rows = 3 + turns;
    out.core.matrix.assign(axes.begin(), axes.end());
    if (turns) {
      const double rolling = c.rolling_friction / c.friction;
      out.core.numbers = {1, c.torsional_friction / c.friction, rolling, rolling};
    }
    out.set = ForceSet::cone;
    out.friction = c.friction;
    return finish(std::move(out), c.baumgarte, "other_point");
  }
  ConstraintData operator()(const Connect& c) const {
    ConstraintData out = between(c.body, c.other, c.point, c.other_point, 3);
    out.core.kind = Kind::frame;
    out.core.rows = 3;
    out.core.matrix.assign(world_axes.begin(), world_axes.end());
    return finish(std::move(out), c.baumgarte, "other_point");
  }
  ConstraintData operator()(const Weld& c) const {
    ConstraintData out = between(c.body, c.other, c.point, c.other_point, 3);
    out.core.kind = Kind::frame;
    out.core.rows = 6;
    out.core.matrix.assign(world_axes.begin(), world_axes.end());
    const Turn F = turn_of("quaternion", c.quaternion);
    Turn C = F;
    if (c.other_quaternion) C = F * transpose(turn_of("other_quaternion", *c.other_quaternion));
    if (c.other_quaternion || out.core.bodies[1] != 0)
      out.core.target = {C.x.x, C.y.x, C.z.x, C.x.y, C.y.y, C.z.y, C.x.z, C.y.z, C.z.z};
    return finish(std::move(out), c.baumgarte, "other_point or other_quaternion");
  }
  ConstraintData operator()(const Distance& c) const {
    ConstraintData out = between(c.body, c.other, c.point, c.other_point, 3);
    if (out.core.measured == 0)
      refuse("other_point: expected a point of the world to keep a distance from. Give its coordinates.");
    out.core.measured = 0;
    out.core.kind = Kind::distance;
    out.core.rows = 1;
    if (c.length) out.core.target = {not_negative("length", *c.length)};
    return finish(std::move(out), c.baumgarte, "length");
  }
  ConstraintData operator()(const Hinge& c) const {
    const auto axes = axes_along("axis", c.axis);
    ConstraintData out = between(c.body, c.other, c.point, c.other_point, 3);
    out.core.kind = Kind::frame;
    out.core.rows = 5;
    out.core.axes_on = 0;
    out.core.matrix.assign(axes.begin(), axes.end());
    if (c.other_axis || out.core.bodies[1] != 0) {
      const auto there = axes_along("other_axis", c.other_axis.value_or(c.axis));
      out.core.target.assign(there.begin(), there.begin() + 3);
    }
    return finish(std::move(out), c.baumgarte, "other_point or other_axis");
  }
  ConstraintData operator()(const JointCoupling& c) const {
    expect_finite("polynomial", c.polynomial);
    const int joint = single("joint", c.joint);
    ConstraintData out;
    out.core.rows = 1;
    if (c.other.empty()) {
      out.core.kind = Kind::joint;
      out.core.joints = {model_.joint_v(joint)};
      out.core.numbers = {1};
      out.core.target = {model_.joint(joint).reference + c.polynomial[0]};
    } else {
      out.core.kind = Kind::coupling;
      out.core.joints = {joint, single("other", c.other)};  // links are numbered like joints
      out.core.numbers.assign(c.polynomial.begin(), c.polynomial.end());
    }
    return finish(std::move(out), c.baumgarte, "");
  }
  ConstraintData operator()(const JointFriction& c) const {
    const int joint = model_.joint_index(c.joint);
    ConstraintData out;
    out.core.kind = Kind::joint;
    out.core.rows = velocity_size(core::Joint(int(model_.joint(joint).type)));
    for (int k = 0; k < out.core.rows; ++k) out.core.joints.push_back(model_.joint_v(joint) + k);
    out.core.numbers.assign(std::size_t(out.core.rows), 1.0);
    out.set = ForceSet::box;
    out.friction = not_negative("friction", c.friction.value_or(model_.joint(joint).friction_loss));
    return finish(std::move(out), {0, c.kd}, "");
  }
  ConstraintData operator()(const JointLimit& c) const {
    const int joint = single("joint", c.joint);
    const bool upper = c.side == JointLimit::upper;
    if (c.bound) expect_finite("bound", std::array{*c.bound});
    const double bound = c.bound.value_or(model_.joint(joint).range[upper]);
    ConstraintData out;
    out.core.kind = Kind::joint;
    out.core.rows = 1;
    out.core.joints = {model_.joint_v(joint)};
    out.core.numbers = {upper ? -1.0 : 1.0};
    if (std::isfinite(bound))
      out.core.target = {bound};
    else
      out.open = true;
    out.set = ForceSet::half_line;
    return finish(std::move(out), c.baumgarte, "bound");
  }
  ConstraintData operator()(const CenterOfMass& c) const {
    double mass = 0;
    for (const auto& body : model_.data().core.bodies) mass += body.link >= 0 ? body.mass : 0;
    if (!(mass > 0)) refuse("model: nothing that moves has mass, so there is no centre of mass.");
    ConstraintData out;
    out.core.kind = Kind::center;
    out.core.rows = 3;
    out.core.numbers = {1 / mass};
    if (c.target) {
      expect_finite("target", *c.target);
      out.core.target.assign(c.target->begin(), c.target->end());
    }
    return finish(std::move(out), c.baumgarte, "target");
  }
  ConstraintData operator()(const LinkConstraint& c) const {
    if (c.rows < 1) refuse("rows: expected a positive number, got " + std::to_string(c.rows) + ".");
    if (c.terms.empty()) refuse("terms: expected at least one body with its K, got none.");
    ConstraintData out;
    out.core.kind = Kind::links;
    out.core.rows = c.rows;
    for (const auto& term : c.terms) {
      if (term.K.size() != 6 * std::size_t(c.rows))
        refuse("K: expected (rows, 6), " + std::to_string(6 * c.rows) + " numbers, got " +
               std::to_string(term.K.size()) + ".");
      expect_finite("K", term.K);
      out.core.bodies.push_back(model_.body_index(term.body));
      out.core.points.insert(out.core.points.end(), 3, 0.0);
      out.core.matrix.insert(out.core.matrix.end(), term.K.begin(), term.K.end());
    }
    return finish(std::move(out), {0, c.kd}, "");
  }

 private:
  // Both bodies and points, and how many rows of the point have an error: none if that of the world is not given.
  ConstraintData between(const std::string& body, const std::string& other, const Vec3& point,
                         const std::optional<Vec3>& other_point, int measured) const {
    expect_finite("point", point);
    const Vec3 there = other_point.value_or(Vec3{});
    expect_finite("other_point", there);
    ConstraintData out;
    out.core.bodies = {model_.body_index(body), model_.body_index(other)};
    out.core.points = {point[0], point[1], point[2], there[0], there[1], there[2]};
    out.core.measured = other_point || out.core.bodies[1] != 0 ? measured : 0;
    return out;
  }
  int single(const char* what, const std::string& name) const {
    const int joint = model_.joint_index(name);
    const JointType type = model_.joint(joint).type;
    if (type != JointType::hinge && type != JointType::slide)
      refuse(std::string(what) + ": expected a hinge or slide, got joint '" + name + "', which is a ball or free.");
    return joint;
  }
  ConstraintData finish(ConstraintData c, const Baumgarte& gains, const std::string& aim) const {
    auto& d = c.core;
    d.kp = not_negative("baumgarte.kp", gains.kp), d.kd = not_negative("baumgarte.kd", gains.kd);
    const bool aimed = d.measured > 0 || !d.target.empty() || d.kind == Kind::coupling;
    if (d.kp > 0 && !aimed)
      refuse("baumgarte: kp pulls back to a position, but this constraint has none. " +
             (aim.empty() ? "Use kp = 0." : "Give " + aim + ", or use kp = 0."));
    d.point_rows = std::min(d.rows, 3);
    return c;
  }

  const Model& model_;
};

}  // namespace

Constraints::Constraints(const Model& model) : data_(std::make_unique<ConstraintsData>(ConstraintsData{model})) {}
Constraints::Constraints(const Model& model, const std::vector<Constraint>& list) : Constraints(model) {
  for (std::size_t k = 0; k < list.size(); ++k) try {
      add(list[k]);
    } catch (const ArgumentError& error) {
      refuse("constraints[" + std::to_string(k) + "]: " + error.what());
    }
}
Constraints::Constraints(const Constraints& other) : data_(std::make_unique<ConstraintsData>(*other.data_)) {}
Constraints::Constraints(Constraints&&) noexcept = default;
Constraints& Constraints::operator=(const Constraints& other) {
  *data_ = *other.data_;
  return *this;
}
Constraints& Constraints::operator=(Constraints&&) noexcept = default;
Constraints::~Constraints() = default;

Constraints& Constraints::add(const Constraint& constraint) {
  data_->append(std::visit(Maker(data_->model), constraint));
  return *this;
}
Constraints& Constraints::add(const Constraints& others) {
  if (others.data_->model.shared() != data_->model.shared())
    refuse("constraints: expected those of the same model, got those of another. Make new ones with this model.");
  const std::vector<ConstraintData> list = others.data_->list;  // which may be this one's
  for (const auto& c : list) data_->append(c);
  return *this;
}
void Constraints::take_saved() {
  for (const auto& c : data_->model.data().saved) data_->append(c);
}

int Constraints::size() const noexcept { return int(data_->list.size()); }
int Constraints::rows() const noexcept { return data_->rows(); }
int Constraints::first_row(int constraint) const {
  if (constraint < 0 || constraint > size())
    refuse("constraint: expected a number from 0 to " + std::to_string(size()) + ", got " + std::to_string(constraint) +
           ".");
  return data_->first_row[std::size_t(constraint)];
}
const Model& Constraints::model() const noexcept { return data_->model; }

struct ConstraintRows::Impl {
  Model model;
  core::ConstraintRows<double> rows_of;
  bool open = false;  // a limit has no bound

  explicit Impl(const Constraints& c) : model(c.model()), rows_of(model.data().core, c.data().set()) {
    for (const auto& one : c.data().list) open = open || one.open;
  }
  std::size_t rows() const { return std::size_t(rows_of.rows()); }
  Check check(In q, In v, Out out) const {
    Check check;
    check.size(q, std::size_t(model.nq())).size_or_none(v, std::size_t(model.nv())).size(out, rows()).apart(out, q, v);
    check.configuration(model.data().core, q).finite(v);
    return check;
  }
};

ConstraintRows::ConstraintRows(const Constraints& constraints) : impl_(std::make_unique<Impl>(constraints)) {}
ConstraintRows::ConstraintRows(ConstraintRows&&) noexcept = default;
ConstraintRows& ConstraintRows::operator=(ConstraintRows&&) noexcept = default;
ConstraintRows::~ConstraintRows() = default;

int ConstraintRows::rows() const noexcept { return int(impl_->rows()); }
Status ConstraintRows::error(In q, Out e) noexcept {
  const Check check = impl_->check(q, {}, e);
  if (!check) return check.status;
  if (impl_->open) return Status::out_of_range;
  return contained([&] {
    impl_->rows_of.error(q.data(), e.data());
    return finished(e);
  });
}
Status ConstraintRows::velocity(In q, In v, Out out) noexcept {
  const Check check = impl_->check(q, v, out).size(v, std::size_t(impl_->model.nv()));
  if (!check) return check.status;
  return contained([&] {
    impl_->rows_of.velocity(q.data(), v.data(), out.data());
    return finished(out);
  });
}
Status ConstraintRows::bias(In q, In v, Out gamma) noexcept {
  const Check check = impl_->check(q, v, gamma).size(v, std::size_t(impl_->model.nv()));
  if (!check) return check.status;
  return contained([&] {
    impl_->rows_of.bias(q.data(), v.data(), gamma.data());
    return finished(gamma);
  });
}

}  // namespace delassus::inline v0
