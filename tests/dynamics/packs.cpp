// Every sweep on a pack of states, lane by lane against the same sweep on single states. Prints the largest relative
// difference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"
#include "state/energy.h"
#include "state/frames.h"

using namespace delassus;

// A floating body with a leg of hinge, ball and slide, a second limb of two joints on one body, a fixed tree of a slide
// and a hinge, and one of hinges alone with limbs of several lengths, four of which fork: in a single state these go
// side by side, with empty lanes, lanes that go on while others end, and parents in other lanes.
Description robot() {
  Description d{};
  auto body = [&](int parent, Vec3<double> at, double mass) {
    d.bodies.push_back(
        {parent, at, {0.8, 0.1, -0.5, 0.3}, mass, {0.02, -0.01, 0.1}, {0.02, 0.001, 0.002, 0.03, -0.001, 0.025}});
    return int(d.bodies.size()) - 1;
  };
  auto joint = [&](int of, Joint type, Vec3<double> axis) {
    d.joints.push_back({type, of, {0.01, 0.02, -0.03}, axis, 0.1});
  };
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  const int base = body(0, {0, 0, 1}, 5);
  joint(base, Joint::free, {0, 0, 1});
  const int thigh = body(base, {0.1, 0.2, 0}, 1);
  joint(thigh, Joint::hinge, {0, 1, 0});
  const int shin = body(thigh, {0, 0, -0.3}, 0.7);
  joint(shin, Joint::ball, {0, 0, 1});
  const int foot = body(shin, {0, 0, -0.3}, 0.2);
  joint(foot, Joint::slide, {0, 0.6, 0.8});
  const int arm = body(base, {-0.1, -0.2, 0}, 0.9);
  joint(arm, Joint::hinge, {1, 0, 0});
  joint(arm, Joint::hinge, {0, 0, 1});
  const int pole = body(0, {2, 0, 0}, 0.5);
  joint(pole, Joint::slide, {1, 0, 0});
  joint(pole, Joint::hinge, {0, 1, 0});
  const int trunk = body(0, {-2, 0, 0}, 0.8);
  joint(trunk, Joint::hinge, {0, 1, 0});
  for (const int length : {3, 1, 2, 3, 2, 1}) {
    int tip = trunk;
    for (int k = 0; k < length; ++k) {
      tip = body(tip, {0.05, 0.1 * length, -0.1}, 0.3);
      joint(tip, Joint::hinge, {0.6, 0, 0.8});
    }
    if (length == 3) continue;
    for (const double side : {-0.1, 0.1}) joint(body(tip, {side, 0, 0}, 0.1), Joint::hinge, {0, 0.6, 0.8});
  }
  d.armature = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.1, 0.1};
  d.armature.resize(15 + 1 + 12 + 8, 0.05);
  d.gravity = {0, 0, -9.81};
  return d;
}

template <class T>
struct Results {
  std::vector<T> tau, M, vdot, Minv, x, J, rest;
};

template <class T>
Results<T> everything(const Model<real_of<T>>& model, const std::vector<T>& q, const std::vector<T>& v,
                      const std::vector<T>& a, const std::vector<T>& push) {
  const std::size_t nv = model.nv;
  constexpr int columns = 11;  // of a single state: two registers and a part of one
  Workspace<T> w(model);
  Results<T> r{std::vector<T>(nv),
               std::vector<T>(nv * nv),
               std::vector<T>(nv),
               std::vector<T>(nv * nv),
               std::vector<T>(columns * nv),
               std::vector<T>(6 * nv),
               {}};
  kinematics(model, w, q.data());
  rnea(model, w, v.data(), a.data(), push.data(), r.tau.data());
  crba(model, w, r.M.data());
  aba(model, w, v.data(), a.data(), push.data(), r.vdot.data());
  mass_matrix_inverse(model, w, r.Minv.data());
  std::vector<T> y(columns * nv);
  for (std::size_t k = 0; k < columns * nv; ++k) y[k] = a[k % nv] + real_of<T>(k % 7);
  factorize(model, w);
  solve_mass_matrix(model, w, y.data(), columns, r.x.data());
  const Vec3<T> point{constant<T>(0.1), constant<T>(-0.2), constant<T>(0.3)};
  frame_jacobian(model, w, 4, point, r.J.data());
  r.rest.push_back(kinetic_energy(model, w, v.data()));
  r.rest.push_back(gravitational_energy(model, w));
  return r;
}

template <class T>
double largest_difference() {
  using Real = real_of<T>;
  const Model<Real> model = converted<Real>(build_model(robot()));
  std::mt19937 rng(3);
  std::normal_distribution<Real> normal;
  const int n = lanes_of<T>;
  auto fill = [&](std::size_t size) {
    std::vector<T> x(size);
    for (T& e : x)
      for (int k = 0; k < n; ++k) lane(e, k) = normal(rng);
    return x;
  };
  const auto q = fill(model.nq), v = fill(model.nv), a = fill(model.nv), push = fill(6 * model.bodies.size());
  const auto many = everything<T>(model, q, v, a, push);

  double worst = 0;
  for (int k = 0; k < n; ++k) {
    auto pick = [&](const std::vector<T>& x) {
      std::vector<Real> y;
      for (const T& e : x) y.push_back(lane(e, k));
      return y;
    };
    const auto one = everything<Real>(model, pick(q), pick(v), pick(a), pick(push));
    auto compare = [&](const std::vector<T>& x, const std::vector<Real>& y) {
      double size = 0, off = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        size = std::max(size, std::abs(double(y[i])));
        const double difference = std::abs(double(lane(x[i], k)) - double(y[i]));
        off = std::isfinite(difference) ? std::max(off, difference) : HUGE_VAL;
      }
      worst = std::max(worst, off / size);
    };
    compare(many.tau, one.tau);
    compare(many.M, one.M);
    compare(many.vdot, one.vdot);
    compare(many.Minv, one.Minv);
    compare(many.x, one.x);
    compare(many.J, one.J);
    compare(many.rest, one.rest);
  }
  return worst;
}

int main() {
  std::printf("%.3e %.3e %.3e\n", largest_difference<Pack<double, 4>>(), largest_difference<Pack<double, 8>>(),
              largest_difference<Pack<float, 8>>());
}
