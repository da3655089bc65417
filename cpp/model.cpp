#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "check.h"

namespace delassus::inline v0 {

namespace {

constexpr double triangle_slack = 1e-3;  // published inertias are rounded to a few digits
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string in_quotes(const std::string& name) { return "'" + name + "'"; }
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

template <class Numbers>
void expect_finite(const std::string& what, const Numbers& numbers) {
  for (const double x : numbers)
    if (!std::isfinite(x)) throw ModelError(what + ": expected finite numbers, got " + number(x) + ".");
}
void expect_not_negative(const std::string& what, double x) {
  if (!(x >= 0 && std::isfinite(x)))
    throw ModelError(what + ": expected a finite number that is not negative, got " + number(x) + ".");
}

// Scaled to length one, the largest number first, so that no square overflows.
template <class Numbers>
Numbers to_unit_length(const std::string& what, Numbers x) {
  double largest = 0, squares = 0;
  for (const double c : x) largest = std::max(largest, std::abs(c));
  if (!(largest > 0)) throw ModelError(what + ": expected a length other than zero.");
  for (double& c : x) c /= largest, squares += c * c;
  for (double& c : x) c /= std::sqrt(squares);
  return x;
}

Quat unit_quaternion(const std::string& what, const Quat& q, bool exact) {
  expect_finite(what, q);
  const double length = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  if (!(std::abs(length - 1) <= quaternion_slack))
    throw ModelError(what + ": (w, x, y, z) must have length 1, got " + number(length) + ". Divide it by its length.");
  return exact ? q : to_unit_length(what, q);
}

// Eigenvalues of a symmetric matrix given as xx, yy, zz, xy, xz, yz, ascending: by Jacobi rotations.
Vec3 principal_moments(const std::array<double, 6>& I) {
  double A[3][3] = {{I[0], I[3], I[4]}, {I[3], I[1], I[5]}, {I[4], I[5], I[2]}};
  for (int sweep = 0; sweep < 30; ++sweep)
    for (const auto& [p, q, r] : {std::array{0, 1, 2}, {0, 2, 1}, {1, 2, 0}}) {
      if (A[p][q] == 0) continue;
      const double theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
      const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1));
      const double c = 1 / std::hypot(t, 1), s = t * c, rp = A[r][p], rq = A[r][q];
      A[p][p] -= t * A[p][q], A[q][q] += t * A[p][q];
      A[p][q] = A[q][p] = 0;
      A[r][p] = A[p][r] = c * rp - s * rq;
      A[r][q] = A[q][r] = s * rp + c * rq;
    }
  Vec3 moments{A[0][0], A[1][1], A[2][2]};
  std::sort(moments.begin(), moments.end());
  return moments;
}

void check_body(const Body& body) {
  const std::string what = "body " + in_quotes(body.name);
  expect_finite(what + ": position", body.position);
  expect_finite(what + ": com", body.com);
  expect_finite(what + ": inertia", body.inertia);
  expect_not_negative(what + ": mass", body.mass);
  const auto [a, b, c] = principal_moments(body.inertia);
  const double rounding = 1e-15 * body.mass;
  const bool massless = body.mass == 0;
  if (massless && (a != 0 || c != 0))
    throw ModelError(what + ": inertia without mass is not physical. Give it a mass, or joints an armature.");
  if (!massless && !(a >= -1e-9 * c - rounding && a + b >= c * (1 - triangle_slack) - rounding))
    throw ModelError(what + ": inertia is not physical: its principal moments (" + number(a) + ", " + number(b) + ", " +
                     number(c) +
                     ") kg m² must be non-negative and none larger than the sum of the others. Check that it is about "
                     "the centre of mass, in body axes.");
}

void check_joint(const JointDescription& joint) {
  const std::string what = "joint " + in_quotes(joint.name);
  if (int(joint.type) < 0 || int(joint.type) > int(JointType::free))
    throw ModelError(what + ": type is none of JointType.");
  expect_finite(what + ": axis", joint.axis);
  expect_finite(what + ": position", joint.position);
  expect_finite(what + ": reference", std::array{joint.reference});
  expect_not_negative(what + ": armature", joint.armature);
  expect_not_negative(what + ": friction_loss", joint.friction_loss);
  expect_not_negative(what + ": damping", joint.damping);
  expect_not_negative(what + ": stiffness", joint.stiffness);
  expect_finite(what + ": spring_reference", std::array{joint.spring_reference.value_or(0)});
  if (joint.stiffness > 0 && (joint.type == JointType::ball || joint.type == JointType::free))
    throw ModelError(what + ": stiffness is that of a hinge or slide, not of a ball or free joint.");
  const auto [low, high] = joint.range;
  if (!(low <= high && low < infinity && high > -infinity))
    throw ModelError(what + ": range must be (low, high) with low ≤ high, got (" + number(low) + ", " + number(high) +
                     ").");
}

// Bodies depth first, parents before children, siblings in the order given; joints with their bodies.
ModelDescription ordered(const ModelDescription& d) {
  std::map<std::string, std::size_t> number_of;  // of a body; the world is one past the last
  const std::size_t world = d.bodies.size();
  number_of["world"] = world;
  for (std::size_t b = 0; b < world; ++b)
    if (!number_of.emplace(d.bodies[b].name, b).second)
      throw ModelError("body " + in_quotes(d.bodies[b].name) +
                       ": another body, or the world, has this name; names must differ.");
  std::vector<std::vector<std::size_t>> children(world + 1), joints(world);
  std::vector<std::string> names;
  for (const auto& body : d.bodies) names.push_back(body.name);
  for (std::size_t b = 0; b < world; ++b) {
    const auto parent = number_of.find(d.bodies[b].parent);
    if (parent == number_of.end())
      throw ModelError("body " + in_quotes(d.bodies[b].name) + ": its parent " + in_quotes(d.bodies[b].parent) +
                       " does not exist. Available: 'world', " + listed(names) + ".");
    children[parent->second].push_back(b);
  }
  std::map<std::string, int> seen;
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    const auto& joint = d.joints[j];
    if (seen[joint.name]++)
      throw ModelError("joint " + in_quotes(joint.name) + ": two joints have this name; names must differ.");
    const auto body = number_of.find(joint.body);
    if (body == number_of.end() || body->second == world)
      throw ModelError("joint " + in_quotes(joint.name) + ": its body " + in_quotes(joint.body) +
                       " does not exist. Available: " + listed(names) + ".");
    joints[body->second].push_back(j);
  }

  ModelDescription out{d.name, {}, {}, d.gravity};
  std::vector<std::size_t> stack(children[world].rbegin(), children[world].rend());
  while (!stack.empty()) {
    const std::size_t b = stack.back();
    stack.pop_back();
    out.bodies.push_back(d.bodies[b]);
    for (const std::size_t j : joints[b]) {
      if (d.joints[j].type == JointType::free && d.bodies[b].parent != "world")
        throw ModelError(
            "body " + in_quotes(d.bodies[b].name) +
            ": a free joint needs the world as parent. Move the body to the top, or use slides and a ball.");
      if (d.joints[j].type == JointType::free && joints[b].size() > 1)
        throw ModelError("body " + in_quotes(d.bodies[b].name) + ": a free joint must be the body's only joint.");
      out.joints.push_back(d.joints[j]);
    }
    stack.insert(stack.end(), children[b].rbegin(), children[b].rend());
  }
  if (out.bodies.size() < world)
    throw ModelError("bodies: the parents of some form a cycle that never reaches the world.");
  return out;
}

core::Point point(const Vec3& x) { return {x[0], x[1], x[2]}; }

// Bodies by name, world first.
std::map<std::string, int> body_numbers(const ModelDescription& d) {
  std::map<std::string, int> numbers{{"world", 0}};
  for (const auto& body : d.bodies) numbers.emplace(body.name, int(numbers.size()));
  return numbers;
}

core::Description for_core(const ModelDescription& d) {
  core::Description out;
  const auto number_of = body_numbers(d);
  out.bodies.push_back({0, {}, {1, 0, 0, 0}, 0, {}, {}});
  for (const auto& b : d.bodies) {
    const auto& I = b.inertia;
    out.bodies.push_back({number_of.at(b.parent),
                          point(b.position),
                          {b.quaternion[0], b.quaternion[1], b.quaternion[2], b.quaternion[3]},
                          b.mass,
                          point(b.com),
                          {I[0], I[3], I[4], I[1], I[5], I[2]}});
  }
  for (const auto& j : d.joints) {
    const auto type = core::Joint(int(j.type));
    out.joints.push_back({type, number_of.at(j.body), point(j.position), point(j.axis), j.reference});
    out.armature.insert(out.armature.end(), std::size_t(velocity_size(type)), j.armature);
  }
  out.gravity = point(d.gravity);
  return out;
}

// Where something has this name.
template <class List, class Name>
int find_name(const List& list, std::string_view name, const char* kind, Name&& name_of) {
  for (std::size_t k = 0; k < list.size(); ++k)
    if (name_of(list[k]) == name) return int(k);
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(name_of(item));
  throw ArgumentError(std::string(kind) + ": there is none called '" + std::string(name) +
                      "'. Available: " + listed(names) + ".");
}

template <class List>
const typename List::value_type& item(const List& list, int number, const char* kind) {
  if (number < 0 || std::size_t(number) >= list.size())
    throw ArgumentError(std::string(kind) + ": expected a number from 0 to " + std::to_string(int(list.size()) - 1) +
                        ", got " + std::to_string(number) + ".");
  return list[std::size_t(number)];
}

}  // namespace

std::shared_ptr<ModelData> make_model(const ModelDescription& description, bool exact) {
  auto data = std::make_shared<ModelData>();
  ModelDescription& d = data->description = ordered(description);
  expect_finite("gravity", d.gravity);
  for (auto& body : d.bodies) {
    check_body(body);
    body.quaternion = unit_quaternion("body " + in_quotes(body.name) + ": quaternion", body.quaternion, exact);
  }
  for (auto& joint : d.joints) {
    check_joint(joint);
    if (!exact) joint.axis = to_unit_length("joint " + in_quotes(joint.name) + ": axis", joint.axis);
  }
  data->core = build_model(for_core(d));

  const auto number_of = body_numbers(d);
  int iv = 0;
  for (const auto& joint : d.joints) {
    data->joint_q.push_back(int(data->neutral.size()));
    data->joint_v.push_back(iv);
    iv += velocity_size(core::Joint(int(joint.type)));
    auto& q = data->neutral;
    if (joint.type == JointType::free) {
      const Body& body = d.bodies[std::size_t(number_of.at(joint.body) - 1)];
      q.insert(q.end(), body.position.begin(), body.position.end());
      q.insert(q.end(), body.quaternion.begin(), body.quaternion.end());
    } else if (joint.type == JointType::ball) {
      q.insert(q.end(), {1, 0, 0, 0});
    } else {
      q.push_back(joint.reference);
    }
  }

  Workspace<double> w(data->core);
  kinematics(data->core, w, static_cast<const double*>(data->neutral.data()));
  factorize(data->core, w);
  if (!is_regular(data->core, w))
    throw ModelError("model " + in_quotes(d.name) +
                     ": a joint moves no inertia, so its acceleration is not defined. Give the bodies it carries mass "
                     "and inertia, or the joint an armature.");
  return data;
}

Model::Model(const ModelDescription& description) : data_(make_model(description, false)) {}
Model::Model(std::shared_ptr<const ModelData> data) : data_(std::move(data)) {}
Model Model::load(const std::string& path) { return Model(std::shared_ptr<const ModelData>(read_model(path))); }

int Model::nq() const noexcept { return data_->core.nq; }
int Model::nv() const noexcept { return data_->core.nv; }
int Model::nbody() const noexcept { return int(data_->core.bodies.size()); }
int Model::njoint() const noexcept { return int(data_->description.joints.size()); }
const std::string& Model::name() const noexcept { return data_->description.name; }

int Model::body_index(std::string_view name) const {
  if (name == "world") return 0;
  return 1 + find_name(data_->description.bodies, name, "body", [](const Body& b) { return b.name; });
}
int Model::joint_index(std::string_view name) const {
  return find_name(data_->description.joints, name, "joint", [](const JointDescription& j) { return j.name; });
}
const std::string& Model::body_name(int body) const {
  static const std::string world = "world";
  return body == 0 ? world : item(data_->description.bodies, body - 1, "body").name;
}
const Body& Model::body(int body) const {
  if (body == 0) throw ArgumentError("body: the world is not described: expected a number from 1.");
  return item(data_->description.bodies, body - 1, "body");
}
const JointDescription& Model::joint(int joint) const { return item(data_->description.joints, joint, "joint"); }
int Model::joint_q(int joint) const { return item(data_->joint_q, joint, "joint"); }
int Model::joint_v(int joint) const { return item(data_->joint_v, joint, "joint"); }

std::vector<double> Model::neutral() const { return data_->neutral; }
const std::vector<Keyframe>& Model::keyframes() const noexcept { return data_->keyframes; }
const Keyframe& Model::keyframe(std::string_view name) const {
  const int found = find_name(data_->keyframes, name, "keyframe", [](const Keyframe& k) { return k.name; });
  return data_->keyframes[std::size_t(found)];
}
Constraints Model::saved_constraints() const {
  Constraints saved(*this);
  saved.take_saved();
  return saved;
}

Status Model::integrate(In q, In v, double dt, Out out) const noexcept {
  Check check;
  check.size(q, std::size_t(nq())).size(v, std::size_t(nv())).size(out, q.size());
  // the same q is fine, a part of it is not
  check.require(out.data() == q.data() || !overlap(out, q), Status::overlapping).apart(out, v);
  check.configuration(data_->core, q).finite(v).finite({&dt, 1});
  if (!check) return check.status;
  delassus::integrate(data_->core, q.data(), v.data(), dt, out.data());
  return finished(out);
}
Status Model::difference(In from, In to, Out out) const noexcept {
  Check check;
  check.size(from, std::size_t(nq())).size(to, std::size_t(nq())).size(out, std::size_t(nv())).apart(out, from, to);
  check.configuration(data_->core, from).configuration(data_->core, to);
  if (!check) return check.status;
  delassus::difference(data_->core, from.data(), to.data(), out.data());
  return finished(out);
}

}  // namespace delassus::inline v0
