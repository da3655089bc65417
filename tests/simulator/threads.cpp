// Islands on several threads, to be watched by a thread sanitizer: columns of balls, some tied by a loop, step on one,
// two and three threads, with and without sleep, and give the same bits. In place of MuJoCo stands a library of a few
// lines that knows balls and a floor. Then many worlds of them, with masses of their own, on as many threads. Prints
// how many numbers differ; that many, or a race, is a failure.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "simulator/snapshot.h"
#include "worlds/worlds.h"

using namespace delassus;

namespace {

constexpr int columns = 12, height = 3, balls = columns * height;
constexpr double radius = 0.1, reach = 2e-3;

struct FakeModel {
  std::int64_t arena = 0;
  int flags = 0;
  const double* friction = nullptr;  // written, not read
};
struct FakeContact {
  double distance, position[3], frame[9], friction[5];
  int geom[2], dim;
  double margin;
};
struct FakeData {
  double *q, *x, *R;
  FakeContact* contacts;
  int count = 0, dropped = 0;
};

void* make_data(const void*) {
  return new FakeData{new double[7 * balls], new double[3 * (balls + 1)], new double[9 * (balls + 1)],
                      new FakeContact[4 * balls]};
}
void delete_data(void* data) {
  auto* d = static_cast<FakeData*>(data);
  delete[] d->q, delete[] d->x, delete[] d->R, delete[] d->contacts;
  delete d;
}
// Bodies are balls after the ground; axes are not needed for contacts of balls but for their places on them.
void kinematics(const void*, void* data) {
  auto* d = static_cast<FakeData*>(data);
  for (int b = 0; b <= balls; ++b) {
    const double zero[7] = {0, 0, 0, 1, 0, 0, 0}, *q = b == 0 ? zero : d->q + 7 * (b - 1);
    const double w = q[3], x = q[4], y = q[5], z = q[6];
    const double R[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    std::copy_n(q, 3, d->x + 3 * b);
    std::copy_n(R, 9, d->R + 9 * b);
  }
}
void collision(const void*, void* data) {
  auto* d = static_cast<FakeData*>(data);
  d->count = 0;
  const auto add = [&](int a, int b, double distance, const Vec3<double>& n, const Vec3<double>& p) {
    if (distance < reach)
      d->contacts[d->count++] = {distance, {p.x, p.y, p.z}, {n.x, n.y, n.z}, {0.7, 0.7, 0, 0, 0}, {a, b}, 3, 0};
  };
  for (int b = 1; b <= balls; ++b) {
    const Vec3<double> x{d->x[3 * b], d->x[3 * b + 1], d->x[3 * b + 2]};
    add(0, b, x.z - radius, {0, 0, 1}, {x.x, x.y, (x.z - radius) / 2});
    if (b == balls || b % height == 0) continue;
    const Vec3<double> apart = Vec3<double>{d->x[3 * b + 3], d->x[3 * b + 4], d->x[3 * b + 5]} - x;
    const double length = std::sqrt(dot(apart, apart));
    add(b, b + 1, length - 2 * radius, apart * (1 / length), x + apart * 0.5);
  }
}
MujocoLibrary::LogHandler set_log(MujocoLibrary::LogHandler) { return nullptr; }

CollisionSource source(const FakeModel& model) {
  CollisionSource s;
  s.library.make_data = make_data, s.library.delete_data = delete_data;
  s.library.kinematics = kinematics, s.library.collision = collision, s.library.set_log = set_log;
  auto& data = s.library.data;
  data.qpos = offsetof(FakeData, q), data.xpos = offsetof(FakeData, x), data.xmat = offsetof(FakeData, R);
  data.contact = offsetof(FakeData, contacts), data.ncon = offsetof(FakeData, count);
  data.dropped = offsetof(FakeData, dropped);
  auto& contact = s.library.contact;
  contact.size = sizeof(FakeContact), contact.dist = offsetof(FakeContact, distance);
  contact.pos = offsetof(FakeContact, position), contact.frame = offsetof(FakeContact, frame);
  contact.friction = offsetof(FakeContact, friction), contact.geom = offsetof(FakeContact, geom);
  contact.dim = offsetof(FakeContact, dim), contact.margin = offsetof(FakeContact, margin);
  s.library.model.size = sizeof(FakeModel), s.library.model.narena = offsetof(FakeModel, arena);
  s.library.model.flags = offsetof(FakeModel, flags), s.library.model.geom_friction = offsetof(FakeModel, friction);
  s.model = &model;
  for (int b = 0; b <= balls; ++b) s.geom_bodies.push_back(b), s.geom_parts.push_back(b);
  s.restitution.assign(balls + 1, 0.0);
  return s;
}

// Balls with a free joint each; the upper two of the first column hang together.
std::shared_ptr<const WorldDescription> world(int sleep_steps) {
  Description d{};
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  for (int b = 1; b <= balls; ++b) {
    d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 1, {0, 0, 0}, {0.004, 0, 0, 0.004, 0, 0.004}});
    d.joints.push_back({Joint::free, b, {0, 0, 0}, {0, 0, 1}, 0});
  }
  d.armature.assign(6 * balls, 0.0);
  d.gravity = {0, 0, -9.81};
  auto w = std::make_shared<WorldDescription>();
  w->model = build_model(d);
  w->loops = {{Kind::frame, 3, {2, 3}, {0, 0, radius, 0, 0, -radius}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, -1, {}, {}, {}}};
  const std::size_t nv = std::size_t(w->model.nv);
  w->stiffness.assign(nv, 0.0), w->damping.assign(nv, 0.0), w->spring_coordinate.assign(nv, -1);
  w->spring_rest.assign(std::size_t(w->model.nq), 0.0);
  for (int b = 1; b <= balls; ++b) w->shapes.push_back({b, radius, radius, 0, {0, 0, 0}});
  w->contact_reach = reach / 2;
  w->options.sleep_steps = sleep_steps;
  return w;
}

// The states of many steps, and the snapshot at the end; wrenches push a ball now and then.
std::vector<double> motion(const FakeModel& model, int threads, int sleep_steps) {
  World w(world(sleep_steps), source(model), MirrorSource{}, threads);
  for (int b = 0; b < balls; ++b) {
    const double q[7] = {double(b / height), 0, radius * (1.001 + 2 * (b % height)), 1, 0, 0, 0};
    std::copy_n(q, 7, w.q.begin() + 7 * b);
  }
  std::vector<double> seen, push(6 * (balls + 1), 0.0);
  for (int k = 0; k < 150; ++k) {
    push[6 * (1 + 3 * std::size_t(k / 40))] = k % 40 < 3 ? 5.0 : 0.0;
    const StepReport report = w.step({nullptr, nullptr, push.data()});
    seen.insert(seen.end(), w.q.begin(), w.q.end());
    seen.insert(seen.end(), {double(report.sleeping), double(report.islands), double(report.contacts.iterations),
                             report.contacts.residuals.natural, report.loop_error_after});
  }
  const auto end = write_snapshot(w);
  seen.insert(seen.end(), end.begin(), end.end());
  return seen;
}

// Nine worlds with masses of their own, pushed otherwise each: their states after many steps.
std::vector<double> many(const FakeModel& model, int threads) {
  const auto description = world(0);
  ParameterSource source;
  auto& values = source.values;
  for (int b = 0; b <= balls; ++b) {
    values[body_mass].push_back(b > 0);
    for (int k = 0; k < 3; ++k) values[body_com].push_back(0);
    for (int k = 0; k < 9; ++k) values[body_inertia].push_back(b > 0 && k % 4 == 0 ? 0.004 : 0);
    for (const double mu : {0.7, 0.0, 0.0}) values[geom_friction].push_back(mu);
    values[restitution].push_back(0);
    for (int k = 0; k < 3; ++k) values[geom_size].push_back(b > 0 && k == 0 ? radius : 0);
    source.shapes.push_back(ShapeKind::other), source.radii.push_back(radius);
    source.boxes.insert(source.boxes.end(), 6, radius);
  }
  values[gravity] = {0, 0, -9.81};
  for (const Parameter p : {joint_damping, joint_stiffness, joint_armature, joint_friction_loss})
    values[p].assign(balls, 0.0);
  for (int k = 0; k < 6 * balls; ++k) source.dof_joint.push_back(k / 6);
  constexpr int count = 9;
  Worlds w(description, ::source(model), MirrorSource{}, {}, source, 0, 0, count, threads);
  std::vector<int> all;
  for (int k = 0; k < count; ++k) {
    all.push_back(k);
    for (int b = 0; b < balls; ++b) {
      const double q[7] = {double(b / height), 0, radius * (1.001 + 2 * (b % height)), 1, 0, 0, 0};
      std::copy_n(q, 7, w.q[std::size_t(k)] + 7 * b);
    }
    w.external[std::size_t(k)][6 * (1 + k)] = 3.0;
    for (int b = 1; b <= balls; ++b) w.parameter(body_mass)[std::size_t(k)][b] = 1 + 0.05 * k;
  }
  w.accept_parameters();
  for (int turn = 0; turn < 12; ++turn) w.step(all, 5);
  return w.q.numbers;
}

}  // namespace

int main() {
  const FakeModel model;
  int count = 0;
  for (const int sleep_steps : {0, 8}) {
    const auto alone = motion(model, 1, sleep_steps);
    double slept = 0;
    for (const double x : alone) count += !std::isfinite(x);
    for (int k = 0; k < 150; ++k) slept = std::max(slept, alone[std::size_t(k) * (7 * balls + 5) + 7 * balls]);
    count += (slept > 0) != (sleep_steps > 0);
    for (const int threads : {2, 3}) {
      const auto several = motion(model, threads, sleep_steps);
      count += several.size() != alone.size();
      for (std::size_t k = 0; k < std::min(alone.size(), several.size()); ++k) count += several[k] != alone[k];
    }
  }
  const auto alone = many(model, 1);
  for (const int threads : {2, 3}) {
    const auto several = many(model, threads);
    for (std::size_t k = 0; k < alone.size(); ++k) count += several[k] != alone[k] || !std::isfinite(alone[k]);
  }
  std::printf("%d\n", count);
  return count != 0;
}
