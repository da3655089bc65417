// Everything that C++ and Python both compute of a model and its saved constraints: probe MODEL INPUT OUTPUT.
#include "numbers.h"

int main(int, char** arguments) {
  const dl::Model model = dl::Model::load(arguments[1]);
  const dl::Constraints constraints = model.saved_constraints();
  const int nq = model.nq(), nv = model.nv(), nb = model.nbody(), m = constraints.rows();
  Numbers in(read_numbers(arguments[2]));
  const auto q = in.take(nq), v = in.take(nv), tau = in.take(nv), a = in.take(nv), external = in.take(6 * nb),
             x = in.take(m), g = in.take(m), damping = in.take(m);
  CHECK(in.all_taken());
  Results out;

  dl::TreeDynamics tree(model);
  std::vector<double> matrix(std::size_t(nv) * nv), velocity(nv), next(nq), poses(16 * std::size_t(nb));
  OK(tree.mass_matrix(q, matrix)), out.add(matrix);
  OK(tree.mass_matrix_inverse(q, matrix)), out.add(matrix);
  OK(tree.inverse_dynamics(q, v, a, velocity, external)), out.add(velocity);
  OK(tree.forward_dynamics(q, v, tau, velocity, external)), out.add(velocity);
  OK(tree.bias_forces(q, v, velocity)), out.add(velocity);
  OK(tree.solve_mass_matrix(q, tau, velocity)), out.add(velocity);
  OK(tree.body_placements(q, poses)), out.add(poses);
  std::vector<double> J(6 * std::size_t(nv));
  OK(tree.point_jacobian(q, nb - 1, {0.1, 0.2, 0.3}, J)), out.add(J);
  OK(model.integrate(q, v, 0.01, next)), out.add(next);
  OK(model.difference(q, next, velocity)), out.add(velocity);

  std::vector<double> rows(m);
  dl::ConstraintRows reader(constraints);
  OK(reader.error(q, rows)), out.add(rows);
  OK(reader.velocity(q, v, rows)), out.add(rows);
  OK(reader.bias(q, v, rows)), out.add(rows);

  dl::DelassusOperator G(constraints);
  OK(G.set_damping(damping));
  OK(G.update(q));
  std::vector<double> full(std::size_t(m) * m);
  OK(G.apply(x, rows)), out.add(rows);
  OK(G.to_matrix(full)), out.add(full);
  const dl::SolveReport solution = G.solve(x, rows);
  OK(solution.status), out.add(rows);
  OK(G.solve(x, rows, {.refinement = dl::Refinement::none}).status), out.add(rows);
  OK(G.jacobian(v, rows)), out.add(rows);
  OK(G.jacobian_transpose(x, velocity)), out.add(velocity);
  OK(G.mass_inverse(tau, velocity)), out.add(velocity);

  dl::ConstrainedDynamics dynamics(constraints);
  const dl::DynamicsReport report = dynamics.solve({.q = q, .v = v, .tau = tau, .external = external}, velocity, rows);
  OK(report.status), out.add(velocity), out.add(rows);
  for (const double number : {double(report.outcome), double(report.iterations), report.constraints, report.dynamics})
    out.add(number);

  // no damping is left behind
  dl::ContactSolver contacts(G);
  OK(G.update(q));
  std::vector<double> forces(m);
  const dl::ContactReport contact = contacts.solve(g, forces, rows);
  OK(contact.status), out.add(forces), out.add(rows);
  for (const double number : {double(contact.outcome), double(contact.iterations), contact.natural}) out.add(number);
  std::vector<double> again(m);
  OK(G.solve(x, rows).status), OK(G.update(q)), OK(G.solve(x, again).status);
  CHECK(rows == again);
  out.write(arguments[3]);
}
