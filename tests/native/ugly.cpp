// What goes wrong is reported, or thrown by constructors, and leaves objects usable: ugly MODEL FOLDER, of cassie.
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "numbers.h"

using S = dl::Status;
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Whether the work throws this exception with this text in its message.
template <class Exception, class F>
bool throws(const char* text, F&& work) {
  try {
    work();
  } catch (const Exception& error) {
    if (std::strstr(error.what(), text)) return true;
    std::printf("another message: %s\n", error.what());
    return false;
  }
  std::printf("nothing thrown where '%s' was expected\n", text);
  return false;
}

void operators(const dl::Model& model) {
  const dl::Constraints loops = model.saved_constraints();
  const std::size_t m = std::size_t(loops.rows()), nv = std::size_t(model.nv());
  const auto q = model.keyframe("home").q;
  dl::DelassusOperator G(loops);
  std::vector<double> x(m, 1.0), y(m), bad(m, 1.0);
  bad[3] = no_number;

  CHECK(G.apply(x, y) == S::stale);
  CHECK(G.solve(x, y).status == S::stale);
  std::vector<double> matrix(m * m);
  CHECK(G.to_matrix(matrix) == S::stale);
  CHECK(G.update(std::vector<double>(3)) == S::wrong_size);
  auto turned = q;
  turned[3] = 2;
  CHECK(G.update(turned) == S::not_normalized);
  auto wrong = q;
  wrong[0] = no_number;
  CHECK(G.update(wrong) == S::not_finite);
  OK(G.update(q));
  CHECK(G.solve(x, y).status == S::no_inverse);
  CHECK(G.set_damping(-1.0) == S::out_of_range);
  CHECK(G.set_damping(no_number) == S::not_finite);
  CHECK(G.set_damping(bad) == S::not_finite);
  CHECK(G.set_damping(std::vector<double>(m - 1, 1.0)) == S::wrong_size);
  CHECK(G.solve(x, y).status == S::no_inverse);
  OK(G.set_damping(1e-6));
  OK(G.solve(x, y).status);
  CHECK(G.solve(bad, y).status == S::not_finite);
  CHECK(G.solve(x, x).status == S::overlapping);
  CHECK(G.solve(x, y, {.tolerance = -1}).status == S::out_of_range);
  CHECK(G.solve(x, y, {}, 0).status == S::out_of_range);
  CHECK(G.solve(x, y, {}, 2).status == S::wrong_size);
  CHECK(G.solve(x, y, {.tolerance = 1e-30}).status == S::inaccurate);
  CHECK(G.apply(x, std::span(x)) == S::overlapping);
  CHECK(G.apply(x, std::span(y).first(m - 1)) == S::wrong_size);
  CHECK(G.jacobian(x, y) == S::wrong_size);
  OK(G.jacobian(std::vector<double>(nv), y));
  std::vector<double> huge(m, 1e308);
  CHECK(G.apply(huge, y) == S::overflow);
  // what is refused changes nothing, but a refused update leaves nothing to work with
  OK(G.apply(x, y));
  CHECK(G.update(wrong) == S::not_finite);
  CHECK(G.apply(x, y) == S::stale);
  OK(G.update(q));
  double error = 0;
  OK(G.solve(x, y).status), OK(G.backward_error(y, x, error));
  CHECK(error < 1e-12);
  dl::DelassusOperator moved = std::move(G);
  OK(moved.apply(x, y));
}

void nothing(const dl::Model& model) {
  const auto q = model.keyframe("home").q;
  const dl::Constraints none(model);
  CHECK(none.rows() == 0 && none.size() == 0 && none.first_row(0) == 0);
  dl::DelassusOperator G(none, {.damping = 1});
  OK(G.update(q));
  OK(G.apply({}, {})), OK(G.to_matrix({})), OK(G.solve({}, {}).status);
  dl::ConstrainedDynamics dynamics(none);
  dl::TreeDynamics tree(model);
  std::vector<double> v(std::size_t(model.nv()), 0.1), a(v), b(v), tau(v.size(), 0.0);
  CHECK(dynamics.solve({.q = q, .v = v}, a, {}));
  OK(tree.forward_dynamics(q, v, tau, b));
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(std::fabs(a[k] - b[k]) <= 1e-9 * (1 + std::fabs(b[k])));
  dl::ContactSolver contacts(G);
  CHECK(contacts.solve({}, {}, {}));
  dl::World world(model);
  OK(world.step().status);  // neutral is beyond the range of some joints

  const dl::Model empty{dl::ModelDescription{}};
  CHECK(empty.nq() == 0 && empty.nbody() == 1);
  dl::TreeDynamics still(empty);
  OK(still.mass_matrix({}, {}));
}

void dynamics(const dl::Model& model) {
  const dl::Constraints loops = model.saved_constraints();
  const auto q = model.keyframe("home").q;
  const std::size_t nv = std::size_t(model.nv()), m = std::size_t(loops.rows());
  dl::ConstrainedDynamics solver(loops);
  std::vector<double> v(nv), a(nv), forces(m), bad(nv, no_number), shorter(nv - 1);
  CHECK(solver.solve({.q = q, .v = v}, a, forces));
  CHECK(solver.solve({.q = q, .v = bad}, a, forces).status == S::not_finite);
  CHECK(solver.solve({.q = q, .v = v, .tau = shorter}, a, forces).status == S::wrong_size);
  CHECK(solver.solve({.q = q, .v = v}, v, forces).status == S::overlapping);
  CHECK(solver.solve({.q = {}, .v = v}, a, forces).status == S::wrong_size);
  std::fill(forces.begin(), forces.end(), no_number);
  CHECK(solver.solve({.q = q, .v = v}, a, forces, true).status == S::not_finite);
  CHECK(solver.solve({.q = q, .v = v}, a, forces));
  CHECK(throws<dl::ArgumentError>("max_iterations", [&] { dl::ConstrainedDynamics(loops, {.max_iterations = 0}); }));
  CHECK(throws<dl::ArgumentError>("mu", [&] { dl::ConstrainedDynamics(loops, {.mu = {1.0}}); }));

  dl::TreeDynamics tree(model);
  std::vector<double> M(nv * nv), J(6 * nv);
  CHECK(tree.mass_matrix(q, std::span(M).first(3)) == S::wrong_size);
  CHECK(tree.inverse_dynamics(q, v, a, std::span(v)) == S::overlapping);
  CHECK(tree.point_jacobian(q, model.nbody(), {}, J) == S::out_of_range);
  CHECK(tree.forward_dynamics(q, v, bad, a) == S::not_finite);

  dl::DelassusOperator G(loops);
  dl::ContactSolver contacts(G);
  std::vector<double> g(m), sigma(m);
  CHECK(contacts.solve(g, forces, sigma).status == S::stale);
  OK(G.update(q));
  CHECK(contacts.solve(g, forces, sigma));
  CHECK(contacts.solve(g, forces, forces).status == S::overlapping);
  g[0] = no_number;
  CHECK(contacts.solve(g, forces, sigma).status == S::not_finite);
}

void constructors(const dl::Model& model, const std::string& folder) {
  using dl::ArgumentError, dl::ModelError, dl::LoadError;
  const auto make = [](dl::ModelDescription d) { return dl::Model(d); };
  const dl::Body body{.name = "a", .mass = 1, .inertia = {1, 1, 1}};
  const dl::JointDescription hinge{.name = "j", .body = "a"};
  CHECK(throws<ModelError>("parent", [&] { make({.bodies = {{.name = "a", .parent = "b"}}, .joints = {}}); }));
  CHECK(throws<ModelError>(
      "cycle", [&] { make({.bodies = {{.name = "a", .parent = "b"}, {.name = "b", .parent = "a"}}, .joints = {}}); }));
  CHECK(throws<ModelError>("names must differ", [&] { make({.bodies = {body, body}, .joints = {}}); }));
  CHECK(throws<ModelError>("names must differ", [&] { make({.bodies = {body}, .joints = {hinge, hinge}}); }));
  CHECK(throws<ModelError>("moves no inertia", [&] { make({.bodies = {{.name = "a"}}, .joints = {hinge}}); }));
  CHECK(throws<ModelError>("physical",
                           [&] { make({.bodies = {{.name = "a", .mass = 1, .inertia = {1, 1, 3}}}, .joints = {}}); }));
  CHECK(throws<ModelError>(
      "physical", [&] { make({.bodies = {{.name = "a", .mass = 1, .inertia = {1, 1, 1, 2, 0, 0}}}, .joints = {}}); }));
  CHECK(throws<ModelError>("without mass",
                           [&] { make({.bodies = {{.name = "a", .inertia = {1, 1, 1}}}, .joints = {}}); }));
  CHECK(throws<ModelError>("length 1",
                           [&] { make({.bodies = {{.name = "a", .quaternion = {1, 1, 0, 0}}}, .joints = {}}); }));
  CHECK(throws<ModelError>(
      "axis", [&] { make({.bodies = {body}, .joints = {{.name = "j", .body = "a", .axis = {0, 0, 0}}}}); }));
  CHECK(throws<ModelError>("finite", [&] { make({.bodies = {{.name = "a", .mass = no_number}}, .joints = {}}); }));
  CHECK(throws<ModelError>("free joint", [&] {
    make({.bodies = {body, {.name = "b", .parent = "a", .mass = 1, .inertia = {1, 1, 1}}},
          .joints = {{.name = "j", .type = dl::JointType::free, .body = "b"}}});
  }));

  CHECK(throws<ArgumentError>("'pelvis'", [&] { (void)model.body_index("pelvis"); }));
  CHECK(throws<ArgumentError>("'home'", [&] { (void)model.keyframe("away"); }));
  CHECK(throws<ArgumentError>("number from 0", [&] { (void)model.joint(-1); }));
  using List = std::vector<dl::Constraint>;
  const auto refused = [&](const char* text, const dl::Constraint& c) {
    return throws<ArgumentError>(text, [&] { dl::Constraints(model, List{c}); });
  };
  CHECK(refused("constraints[0]: body", dl::Connect{.body = "nobody"}));
  CHECK(refused("normal", dl::PointContact{.body = "left-foot", .normal = {0, 0, 0}}));
  CHECK(refused("friction", dl::PointContact{.body = "left-foot", .friction = -1}));
  CHECK(refused("friction", dl::PointContact{.body = "left-foot", .friction = 0, .torsional_friction = 1}));
  CHECK(refused("kp", dl::Connect{.body = "left-foot", .baumgarte = {1, 1}}));
  CHECK(refused("other_point", dl::Distance{.body = "left-foot"}));
  CHECK(refused("K", dl::LinkConstraint{.rows = 2, .terms = {{"left-foot", {1, 2}}}}));
  CHECK(refused("hinge or slide", dl::JointLimit{.joint = model.joint(0).name}));
  CHECK(refused("quaternion", dl::Weld{.body = "left-foot", .quaternion = {0, 0, 0, 0}}));
  const dl::Model other{dl::ModelDescription{}};
  CHECK(throws<ArgumentError>("same model", [&] { dl::Constraints(model).add(dl::Constraints(other)); }));
  dl::Constraints twice = model.saved_constraints();
  twice.add(twice);
  CHECK(twice.rows() == 2 * model.saved_constraints().rows());
  CHECK(throws<ArgumentError>("damping", [&] { dl::DelassusOperator(twice, {.damping = no_number}); }));
  CHECK(throws<ArgumentError>("limits",
                              [&] { dl::World(dl::Constraints(model, {dl::JointLimit{.joint = "left-knee"}})); }));

  // files: missing, of something else, cut short, with a number that is none, with indices that point nowhere
  CHECK(throws<LoadError>("opened", [&] { (void)dl::Model::load(folder + "/missing"); }));
  const auto written = [&](const std::string& text) {
    std::ofstream(folder + "/broken") << text;
    return folder + "/broken";
  };
  const std::string head =
      "delassus-model 1 \"m\" 0 0 -9.81 bodies 1 \"a\" \"world\" 0 0 0 1 0 0 0 1 0 0 0 1 1 1 0 0 0 joints 0 ";
  CHECK(dl::Model::load(written(head + "keyframes 0 constraints 0 end")).nbody() == 2);
  CHECK(throws<LoadError>("delassus-model", [&] { (void)dl::Model::load(written("<mujoco/>")); }));
  CHECK(throws<LoadError>("version", [&] { (void)dl::Model::load(written("delassus-model 2")); }));
  CHECK(throws<LoadError>("ends", [&] { (void)dl::Model::load(written(head + "keyframes 0 constraints")); }) ||
        throws<LoadError>("constraints", [&] { (void)dl::Model::load(written(head + "keyframes 0 constraints")); }));
  CHECK(throws<LoadError>("number", [&] { (void)dl::Model::load(written("delassus-model 1 \"m\" 0 0 down")); }));
  const std::string row = "keyframes 0 constraints 1 0 3 0 0 0 -1 0 0 0 3 ";
  CHECK(throws<LoadError>("bodies",
                          [&] { (void)dl::Model::load(written(head + row + "2 1 7 6 0 0 0 0 0 0 0 0 0 0 0 0 end")); }));
  CHECK(throws<LoadError>("fit",
                          [&] { (void)dl::Model::load(written(head + row + "2 1 0 6 0 0 0 0 0 0 0 0 0 0 0 end")); }));
}

int main(int, char** arguments) {
  const dl::Model model = dl::Model::load(arguments[1]);
  operators(model);
  nothing(model);
  dynamics(model);
  constructors(model, arguments[2]);
  for (int s = 0; s <= int(S::failed); ++s) CHECK(std::strlen(describe(S(s))) > 1);
  std::printf("all as it should be\n");
}
