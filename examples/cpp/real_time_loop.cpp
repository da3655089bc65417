// A control loop at 1 kHz that takes no memory once it runs: constrained dynamics of a mechanism with a loop, and the
// operator of its constraints. Says how long the slowest step took and how often memory was asked for.
//
//   real_time_loop                       a four-bar mechanism made of numbers
//   real_time_loop robot.delassus [key]  a model that delassus.save_model of the Python package wrote
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <delassus/delassus.hpp>

namespace dl = delassus;

// every request for memory of this program and of the libraries it uses
static std::atomic<long> requests{0};
void* operator new(std::size_t size) {
  ++requests;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

dl::Model four_bar() {
  // a crank, a coupler and a rocker in one plane; the rocker's tip is held at a point of the ground
  dl::ModelDescription d{.name = "four bar", .bodies = {}, .joints = {}};
  const double length[] = {0.3, 0.8, 0.6};
  const char* names[] = {"crank", "coupler", "rocker"};
  for (int k = 0; k < 3; ++k) {
    const double mass = 2 * length[k], moment = mass * length[k] * length[k] / 12;
    d.bodies.push_back({.name = names[k],
                        .parent = k == 0 ? "world" : names[k - 1],
                        .position = {k == 0 ? 0 : length[k - 1], 0, 0},
                        .mass = mass,
                        .com = {length[k] / 2, 0, 0},
                        .inertia = {1e-3, moment, moment}});
    // at zero angles the links are in line
    d.joints.push_back({.name = names[k], .body = names[k], .axis = {0, -1, 0}});
  }
  return dl::Model(d);
}

int main(int count, char** arguments) try {
  const bool loaded = count > 1;
  const dl::Model model = loaded ? dl::Model::load(arguments[1]) : four_bar();
  std::vector<double> q = model.neutral();
  if (!loaded) q = {1.2, -0.9, -1.4};
  if (count > 2) q = model.keyframe(arguments[2]).q;

  // loops pull back to where they are closed, at 20 rad/s and critically damped
  dl::Constraints loops = model.saved_constraints();
  if (!loaded) {
    dl::TreeDynamics tree(model);
    std::vector<double> X(16 * std::size_t(model.nbody()));
    if (tree.body_placements(q, X) != dl::Status::ok) return 1;
    const double* R = &X[16 * std::size_t(model.body_index("rocker"))];
    const dl::Vec3 tip{0.6 * R[0] + R[3], 0.6 * R[4] + R[7], 0.6 * R[8] + R[11]};
    loops.add(dl::Connect{.body = "rocker", .point = {0.6, 0, 0}, .other_point = tip, .baumgarte = {400, 40}});
  }

  dl::ConstrainedDynamics dynamics(loops);
  dl::DelassusOperator G(loops, {.damping = 1e-8});
  const std::size_t n = std::size_t(model.nv()), m = std::size_t(loops.rows());
  std::vector<double> v(n), tau(n), a(n), forces(m), x(m), y(m, 1.0);

  constexpr double dt = 1e-3;
  constexpr int steps = 2000;
  double worst = 0, total = 0;
  const long before = requests;
  for (int k = 0; k < steps; ++k) {
    const auto start = std::chrono::steady_clock::now();
    // a controller would set tau here
    const dl::DynamicsReport report = dynamics.solve({.q = q, .v = v, .tau = tau}, a, forces, k > 0);
    if (report.status != dl::Status::ok) {
      std::printf("step %d: %s\n", k, describe(report.status));
      return 1;
    }
    if (const dl::Status status = G.update(q); status != dl::Status::ok) {
      std::printf("step %d: %s\n", k, describe(status));
      return 1;
    }
    if (const dl::SolveReport solution = G.solve(y, x); !solution) {
      std::printf("step %d: %s\n", k, describe(solution.status));
      return 1;
    }
    for (std::size_t i = 0; i < n; ++i) v[i] += dt * a[i];
    if (model.integrate(q, v, dt, q) != dl::Status::ok) return 1;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    worst = std::max(worst, seconds);
    total += seconds;
  }
  const long taken = requests - before;
  std::printf("%s, %d velocities, %d rows: %d steps, mean %.1f us, worst %.1f us, %ld requests for memory\n",
              model.name().c_str(), model.nv(), loops.rows(), steps, 1e6 * total / steps, 1e6 * worst, taken);
  return taken == 0 ? 0 : 1;
} catch (const dl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
