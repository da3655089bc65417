// Requests for memory while objects that are made work: quiet MODEL [redundant]. Prints one line for each kind of call.
#include <cmath>
#include <cstring>
#include <random>

#include "numbers.h"

// every request that reaches the C library, of this program and of all libraries
static long requests = 0;
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) { return ++requests, __libc_malloc(n); }
void* calloc(std::size_t k, std::size_t n) { return ++requests, __libc_calloc(k, n); }
void* realloc(void* p, std::size_t n) { return ++requests, __libc_realloc(p, n); }
void* memalign(std::size_t a, std::size_t n) { return ++requests, __libc_memalign(a, n); }
void* aligned_alloc(std::size_t a, std::size_t n) { return ++requests, __libc_memalign(a, n); }
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  ++requests;
  *p = __libc_memalign(a, n);
  return *p ? 0 : 12;
}
}

template <class F>
void count(const char* name, int times, F&& call) {
  const long before = requests;
  for (int k = 0; k < times; ++k) call();
  const long taken = requests - before;
  std::printf("%s,%ld\n", name, taken);
}

int main(int, char** arguments) {
  const long at_start = requests;
  std::vector<double> seen(1000);
  CHECK(requests > at_start);

  const dl::Model model = dl::Model::load(arguments[1]);
  dl::Constraints constraints = model.saved_constraints();
  const std::size_t nq = std::size_t(model.nq()), nv = std::size_t(model.nv()), m = std::size_t(constraints.rows());
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const std::vector<double> start = model.keyframes().empty() ? model.neutral() : model.keyframes()[0].q;
  std::vector<double> q(nq), v(nv), tau(nv), a(nv), x(m), y(m), g(m), forces(m), sigma(m), G_dense(m * m), M(nv * nv);
  const auto draw = [&](std::vector<double>& numbers, double size) {
    for (double& number : numbers) number = size * normal(random);
  };
  const auto move = [&](double size) {
    draw(v, size);
    OK(model.integrate(start, v, 1.0, q));
    draw(v, 1), draw(tau, 10), draw(x, 1);
  };

  dl::DelassusOperator G(constraints, {.damping = 1e-6});
  dl::TreeDynamics tree(model);
  dl::ConstrainedDynamics dynamics(constraints);
  // tolerances that nothing meets send all methods to work
  dl::ConstrainedDynamics endless(constraints, {.tolerance = 0, .max_iterations = 3});
  dl::ConstraintRows rows(constraints);
  dl::ContactSolver contacts(G), impatient(G, {.tolerance = 1e-14, .max_iterations = 400});
  move(0.1);

  count("update", 100, [&] { move(0.1), OK(G.update(q)); });
  count("damping", 100, [&] { OK(G.set_damping(std::fabs(normal(random)) + 1e-9)); });
  count("compliance", 10, [&] { OK(G.set_compliance(1e-9)); });
  count("apply", 100, [&] { draw(x, 1), OK(G.apply(x, y)); });
  count("matrix", 10, [&] { OK(G.to_matrix(G_dense)); });
  count("diagonal", 10, [&] { OK(G.diagonal(y)); });
  count("jacobian", 10, [&] { OK(G.jacobian(v, y)), OK(G.jacobian_transpose(y, a)), OK(G.mass_inverse(v, a)); });
  int inaccurate = 0;
  double worst = 0;
  OK(G.set_compliance(0.0));
  count("solve", 200, [&] {
    // down to dampings where the factor alone has no digits
    move(0.1);
    OK(G.update(q)), OK(G.set_damping(std::pow(10, -16 * std::fabs(std::sin(normal(random))))));
    const dl::SolveReport report = G.solve(x, y);
    CHECK(report.status == dl::Status::ok || report.status == dl::Status::inaccurate);
    inaccurate += report.status != dl::Status::ok;
    if (report) worst = std::max(worst, report.backward_error);
    double error = 0;
    OK(G.backward_error(y, x, error));
    const dl::SolveReport plain = G.solve(x, y, {.refinement = dl::Refinement::products, .tolerance = 1});
    OK(plain.status);
  });
  CHECK(worst <= 1e-11);
  count("solve to no end", 20, [&] { (void)G.solve(x, y, {.tolerance = 1e-30}); });
  OK(G.set_damping(1e-6));
  count("tree", 100, [&] {
    move(0.1);
    OK(tree.mass_matrix(q, M)), OK(tree.mass_matrix_inverse(q, M)), OK(tree.inverse_dynamics(q, v, v, a));
    OK(tree.forward_dynamics(q, v, tau, a)), OK(tree.bias_forces(q, v, a)), OK(tree.solve_mass_matrix(q, v, a));
  });
  count("rows", 100, [&] { OK(rows.error(q, y)), OK(rows.velocity(q, v, y)), OK(rows.bias(q, v, y)); });
  int unsolved = 0;
  count("dynamics", 100, [&] {
    move(0.01);
    const dl::DynamicsReport report = dynamics.solve({.q = q, .v = v, .tau = tau}, a, forces);
    OK(report.status);
    unsolved += !report;
  });
  count("dynamics to no end", 20, [&] { move(0.01), OK(endless.solve({.q = q, .v = v}, a, forces).status); });
  int without_solution = 0;
  count("contacts", 200, [&] {
    move(0.02);
    OK(G.update(q)), draw(g, 1);
    const dl::ContactReport report = contacts.solve(g, forces, sigma);
    OK(report.status);
    without_solution += !report;
    OK(contacts.solve(g, forces, sigma, true).status);
  });
  count("contacts to no end", 10, [&] { draw(g, 1), OK(impatient.solve(g, forces, sigma).status); });
  std::printf("inaccurate,%d\nunsolved,%d\ncontacts without solution,%d\n", inaccurate, unsolved, without_solution);
}
