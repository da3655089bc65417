// Batches on several threads, to be watched by a thread sanitizer: several users share a model, each has a batch with a
// team of its own, and all give to the bit what one thread gives. Then one large elimination that threads share by
// columns. Prints how many numbers differ; that many, or a race, is a failure.
#include <cstdio>
#include <random>

#include "operators/batch.h"
#include "operators/delassus.h"

using namespace delassus;

// Two floating bodies with an arm of hinge and ball, and a cart with a pole.
Description robots() {
  Description d{};
  auto body = [&](int parent, Vec3<double> at, Joint type, Vec3<double> axis) {
    d.bodies.push_back(
        {parent, at, {0.8, 0.1, -0.5, 0.3}, 1, {0.02, -0.01, 0.1}, {0.02, 0.001, 0.002, 0.03, -0.001, 0.025}});
    d.joints.push_back({type, int(d.bodies.size()) - 1, {0.01, 0.02, -0.03}, axis, 0.1});
    return int(d.bodies.size()) - 1;
  };
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  for (int k = 0; k < 2; ++k)
    body(body(body(0, {0, 0, 1}, Joint::free, {0, 0, 1}), {0.1, 0.2, 0}, Joint::hinge, {0, 1, 0}), {0, 0, -0.3},
         Joint::ball, {0, 0, 1});
  body(body(0, {2, 0, 0}, Joint::slide, {1, 0, 0}), {0, 0.1, 0.4}, Joint::hinge, {0, 1, 0});
  d.armature.assign(22, 0.1);
  return d;
}

// Contacts with the ground and between bodies, a weld, a distance, a joint row, a coupling, the centre of mass.
std::vector<ConstraintDescription> list() {
  const std::vector<double> unit{1, 0, 0, 0, 1, 0, 0, 0, 1}, points{0.1, 0.2, 0.3, -0.2, 0.1, 0.4};
  return {{Kind::frame, 3, {3, 0}, points, unit, -1, {}, {}},
          {Kind::frame, 3, {3, 6}, points, unit, -1, {}, {}},
          {Kind::frame, 6, {2, 8}, points, unit, -1, {}, {}},
          {Kind::distance, 1, {1, 5}, points, {}, -1, {}, {}},
          {Kind::joint, 1, {}, {}, {}, -1, {6}, {-1}},
          {Kind::coupling, 1, {}, {}, {}, -1, {1, 4}, {0.1, 0.2, 0.3, 0.4, 0.5}},
          {Kind::center, 3, {}, {}, {}, -1, {}, {0.125}}};
}

// Every verb twice, the second time at other states; all that came out.
std::vector<double> everything(const Model<double>& model, int batch, int threads) {
  constexpr int columns = 3;
  const auto set = make_constraints(model, list());
  BatchDelassus<double> G(model, set, batch, threads);
  const std::size_t m = std::size_t(G.rows()), size = std::size_t(batch) * m;
  std::mt19937 rng(5);
  auto fill = [&](std::size_t n, double low) {
    std::uniform_real_distribution<double> number(low, 1);
    std::vector<double> x(n);
    for (double& e : x) e = number(rng);
    return x;
  };
  std::vector<double> results;
  for (int time = 0; time < 2; ++time) {
    const auto q = fill(std::size_t(batch) * model.nq, 0.1), compliance = fill(size, 0), damping = fill(size, 1e-3),
               x = fill(size * columns, -1);
    std::vector<double> y(x.size());
    results.push_back(G.update(q.data()));
    G.set_compliance(compliance.data());
    G.set_damping(damping.data());
    G.apply(x.data(), columns, y.data());
    results.insert(results.end(), y.begin(), y.end());
    G.solve(x.data(), columns, y.data(), {8, 1e-12});
    results.insert(results.end(), y.begin(), y.end());
  }
  return results;
}

// Free bodies, every fourth with an arm, tied at random, so that fronts are wide: responses with random blocks, at two
// states.
std::vector<double> large_elimination(int threads) {
  constexpr int bodies = 160;
  Description d{};
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  const auto add = [&](int parent, Joint type) {
    d.bodies.push_back({parent, {0, 0, 1}, {1, 0, 0, 0}, 1, {0, 0, 0}, {0.02, 0, 0, 0.03, 0, 0.025}});
    d.joints.push_back({type, int(d.bodies.size()) - 1, {0, 0, 0}, {0, 1, 0}, 0});
  };
  for (int b = 0; b < bodies; ++b) {
    add(0, Joint::free);
    if (b % 4 == 0) add(int(d.bodies.size()) - 1, Joint::hinge);
  }
  d.armature.assign(6 * bodies + bodies / 4, 0.0);
  const Model<double> model = build_model(d);
  std::mt19937 rng(7);
  std::vector<ConstraintDescription> ties;
  const int last = int(d.bodies.size()) - 1;
  for (int k = 0; k < 3 * bodies; ++k) {
    const int a = 1 + int(rng() % unsigned(last)), b = 1 + int(rng() % unsigned(last));
    if (a != b)
      ties.push_back({Kind::frame, 3, {a, b}, {0.1, 0, 0.1, 0, 0.1, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, -1, {}, {}});
  }
  Team team(threads);
  Delassus<double> G(model, make_constraints(model, ties));
  G.share(&team);
  std::uniform_real_distribution<double> number(0.1, 1);
  std::vector<double> results{double(G.layout().coupled.shared < int(G.layout().coupled.steps.size()))};
  for (int time = 0; time < 2; ++time) {
    std::vector<double> q(std::size_t(model.nq)), B(G.block_index().size), x(std::size_t(G.rows())), y(x.size());
    for (auto* numbers : {&q, &B, &x})
      for (double& e : *numbers) e = number(rng);
    G.update(q.data());
    G.set_blocks(B.data());
    G.respond_to_blocks(x.data(), y.data(), false);
    results.insert(results.end(), y.begin(), y.end());
  }
  return results;
}

int main() {
  const Model<double> model = build_model(robots());
  int count = 0;
  for (const int batch : {1, 37}) {
    const auto alone = everything(model, batch, 1);
    count += alone[0] != 1;  // M is regular
    for (const double x : alone) count += !std::isfinite(x);
    std::vector<std::vector<double>> results(3);
    std::vector<std::thread> users;
    for (std::size_t u = 0; u < results.size(); ++u)
      users.emplace_back([&, u] { results[u] = everything(model, batch, 2 + int(u)); });
    for (auto& user : users) user.join();
    for (const auto& result : results)
      for (std::size_t k = 0; k < alone.size(); ++k) count += result[k] != alone[k];
  }
  const auto alone = large_elimination(1);
  count += alone[0] != 1;  // else threads share nothing
  for (const double x : alone) count += !std::isfinite(x);
  for (const int threads : {2, 3}) {
    const auto several = large_elimination(threads);
    for (std::size_t k = 0; k < alone.size(); ++k) count += several[k] != alone[k];
  }
  std::printf("%d\n", count);
  return count != 0;
}
