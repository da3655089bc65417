// Errors, velocities and drifts of rows on a pack of states, lane by lane against single states. Prints the largest
// difference.
#include <cmath>
#include <cstdio>
#include <random>

#include "constraints/bias.h"

using namespace delassus;

// A floating body with an arm of two hinges, and a cart with a pole.
Description robot() {
  Description d{};
  auto body = [&](int parent, Vec3<double> at, Joint type, Vec3<double> axis) {
    d.bodies.push_back(
        {parent, at, {0.8, 0.1, -0.5, 0.3}, 1, {0.02, -0.01, 0.1}, {0.02, 0.001, 0.002, 0.03, -0.001, 0.025}});
    d.joints.push_back({type, int(d.bodies.size()) - 1, {0.01, 0.02, -0.03}, axis, 0.1});
  };
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  body(0, {0, 0, 1}, Joint::free, {0, 0, 1});
  body(1, {0.1, 0.2, 0}, Joint::hinge, {0, 1, 0});
  body(2, {0, 0, -0.3}, Joint::ball, {0, 0, 1});
  body(0, {2, 0, 0}, Joint::slide, {1, 0, 0});
  body(4, {0, 0.1, 0.4}, Joint::hinge, {0, 1, 0});
  d.armature.assign(12, 0.1);
  return d;
}

std::vector<ConstraintDescription> list() {
  const std::vector<double> unit{1, 0, 0, 0, 1, 0, 0, 0, 1}, points{0.1, 0.2, 0.3, -0.2, 0.1, 0.4};
  // links are numbered like the joints; velocity 6 is the arm's
  return {{Kind::frame, 3, {3, 5}, points, unit, -1, {}, {}, 1, {}, 3, 4},
          {Kind::frame, 6, {3, 5}, points, unit, -1, {}, {}, 3, {0, 1, 0, -1, 0, 0, 0, 0, 1}, 5, 6},
          {Kind::frame, 5, {3, 0}, points, unit, 0, {}, {}, 3, {0, 0.6, 0.8}, 7, 8},
          {Kind::frame, 4, {3, 5}, points, unit, -1, {}, {}, 3, {1, 0, 0, 0, 0.6, 0.8}, 1, 2},
          {Kind::frame, 5, {3, 5}, points, unit, 0, {}, {}, 2, {0, 1, 0, -1, 0, 0, 0, 0, 1}, 3, 4, 2},
          {Kind::frame, 4, {3, 5}, points, unit, 0, {}, {}, 2, {0, 0.6, 0.8}, 5, 6, 2},
          {Kind::frame, 3, {5, 0}, points, unit, 0, {}, {}, 1, {0, 0.6, 0.8}, 7, 8, 1},
          {Kind::distance, 1, {2, 5}, points, {}, -1, {}, {}, 0, {0.7}, 9, 1},
          {Kind::joint, 1, {}, {}, {}, -1, {6}, {-1}, 0, {0.3}, 2, 3},
          {Kind::coupling, 1, {}, {}, {}, -1, {1, 4}, {0.1, 0.2, 0.3, 0.4, 0.5}, 0, {}, 4, 5},
          {Kind::center, 3, {}, {}, {}, -1, {}, {0.2}, 0, {1, 2, 3}, 6, 7},
          {Kind::links, 1, {2, 5}, {0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}, -1, {}, {}, 0, {}, 0, 8}};
}

template <class T>
std::vector<T> everything(const Model<real_of<T>>& model, const std::vector<T>& q, const std::vector<T>& v) {
  ConstraintRows<T> rows(model, make_constraints(model, list()));
  const std::size_t m = rows.rows();
  std::vector<T> out(4 * m);
  rows.error(q.data(), out.data());
  rows.velocity(q.data(), v.data(), out.data() + m);
  rows.drift(q.data(), v.data(), out.data() + 2 * m);
  rows.bias(q.data(), v.data(), out.data() + 3 * m);
  return out;
}

template <class T>
double largest_difference() {
  using Real = real_of<T>;
  const Model<Real> model = converted<Real>(build_model(robot()));
  std::mt19937 rng(3);
  std::normal_distribution<Real> normal;
  auto fill = [&](int size) {
    std::vector<T> x(size);
    for (T& e : x)
      for (int k = 0; k < lanes_of<T>; ++k) lane(e, k) = normal(rng);
    return x;
  };
  const auto q = fill(model.nq), v = fill(model.nv);
  const auto packed = everything(model, q, v);
  double worst = 0;
  for (int k = 0; k < lanes_of<T>; ++k) {
    std::vector<Real> qk, vk;
    for (const T& e : q) qk.push_back(lane(e, k));
    for (const T& e : v) vk.push_back(lane(e, k));
    const auto single = everything(model, qk, vk);
    for (std::size_t r = 0; r < single.size(); ++r) {
      const double difference =
          std::abs(double(lane(packed[r], k)) - double(single[r])) / (1 + std::abs(double(single[r])));
      if (!(difference <= worst)) worst = difference;
    }
  }
  return worst;
}

int main() { std::printf("%g %g\n", largest_difference<Pack<double, 4>>(), largest_difference<Pack<float, 8>>()); }
