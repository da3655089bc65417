// Rows of every kind of constraint, given as C++ has it, and of the model that numbers make: kinds MODEL INPUT OUTPUT.
#include "numbers.h"

// The same model from a description.
dl::Model remade(const dl::Model& model) {
  dl::ModelDescription d{.name = model.name(), .bodies = {}, .joints = {}};
  // in another order: children before their parents
  for (int b = model.nbody() - 1; b > 0; --b) d.bodies.push_back(model.body(b));
  for (int j = 0; j < model.njoint(); ++j) d.joints.push_back(model.joint(j));
  return dl::Model(d);
}

int main(int, char** arguments) {
  const dl::Model model = dl::Model::load(arguments[1]);
  Numbers in(read_numbers(arguments[2]));
  const auto q = in.take(model.nq()), v = in.take(model.nv());
  Results out;

  const dl::Baumgarte gains{100, 20};
  dl::LinkConstraint links{.rows = 2, .terms = {{"left-shin", {}}, {"right-shin", {}}}, .kd = 3};
  for (std::size_t t = 0; t < 2; ++t)
    for (int k = 0; k < 12; ++k) links.terms[t].K.push_back(0.1 * k - 0.5 * double(t));
  const dl::Constraints constraints(
      model,
      {dl::PointContact{.body = "left-foot", .point = {0.01, 0.02, 0.03}, .normal = {0.1, 0.2, 0.9}},
       dl::PointContact{.body = "left-foot",
                        .other = "right-foot",
                        .other_point = dl::Vec3{0, 0.1, 0},
                        .normal = {0, -2, 0},
                        .friction = 0.5,
                        .torsional_friction = 0.02,
                        .baumgarte = gains},
       dl::PointContact{.body = "right-foot",
                        .point = {0.1, 0, 0},
                        .friction = 0.5,
                        .torsional_friction = 0.02,
                        .rolling_friction = 0.001},
       dl::Connect{.body = "left-shin", .other = "right-shin", .point = {0.1, 0, 0.2}, .baumgarte = gains},
       dl::Connect{
           .body = "left-shin", .point = {0.1, 0, 0.2}, .other_point = dl::Vec3{0.3, 0.2, 0.1}, .baumgarte = gains},
       dl::Weld{.body = "left-shin",
                .other = "right-shin",
                .point = {0.1, 0, 0.2},
                .quaternion = {0.8, 0, 0.6, 0},
                .other_quaternion = dl::Quat{0, 0.6, 0, 0.8},
                .baumgarte = gains},
       dl::Weld{.body = "right-tarsus", .point = {0.1, 0, 0.2}},
       dl::Distance{
           .body = "left-shin", .other = "right-shin", .point = {0, 0, 0.1}, .length = 0.4, .baumgarte = gains},
       dl::Hinge{
           .body = "left-shin", .other = "right-shin", .axis = {1, 2, 3}, .point = {0.1, 0, 0}, .baumgarte = gains},
       dl::Hinge{.body = "left-shin", .axis = {0, 0, 2}, .other_axis = dl::Vec3{0, 1, 0}},
       dl::JointCoupling{
           .joint = "left-knee", .other = "right-knee", .polynomial = {0.1, 0.9, 0.2, 0, 0.3}, .baumgarte = gains},
       dl::JointCoupling{.joint = "left-knee", .polynomial = {-1, 0, 0, 0, 0}, .baumgarte = gains},
       dl::JointFriction{.joint = "left-foot", .friction = 2.0},
       dl::JointLimit{.joint = "left-knee", .baumgarte = gains},
       dl::JointLimit{.joint = "left-knee", .side = dl::JointLimit::upper, .bound = 0.3, .baumgarte = gains},
       dl::CenterOfMass{.target = dl::Vec3{0, 0.1, 0.9}, .baumgarte = gains}, links});
  std::vector<double> rows(std::size_t(constraints.rows()));
  dl::ConstraintRows reader(constraints);
  OK(reader.error(q, rows)), out.add(rows);
  OK(reader.velocity(q, v, rows)), out.add(rows);
  OK(reader.bias(q, v, rows)), out.add(rows);
  dl::DelassusOperator G(constraints, {.damping = 1e-6});
  OK(G.update(q));
  std::vector<double> x(rows.size(), 1.0);
  OK(G.apply(x, rows)), out.add(rows);

  const dl::Model again = remade(model);
  dl::TreeDynamics one(model), two(again);
  // siblings come in the opposite order: the same joints by name, elsewhere in q
  std::vector<double> q2 = again.neutral();
  for (int j = 0; j < model.njoint(); ++j) {
    const int k = again.joint_index(model.joint(j).name);
    const int size = model.joint(j).type == dl::JointType::free   ? 7
                     : model.joint(j).type == dl::JointType::ball ? 4
                                                                  : 1;
    for (int i = 0; i < size; ++i)
      CHECK(q2[std::size_t(again.joint_q(k) + i)] == model.neutral()[std::size_t(model.joint_q(j) + i)]);
    for (int i = 0; i < size; ++i) q2[std::size_t(again.joint_q(k) + i)] = q[std::size_t(model.joint_q(j) + i)];
  }
  std::vector<double> h(std::size_t(model.nv())), h2(h), still(h.size(), 0.0);
  OK(one.bias_forces(q, still, h)), OK(two.bias_forces(q2, still, h2));
  std::vector<double> sorted(h.size());
  for (int j = 0; j < model.njoint(); ++j) {
    const int k = again.joint_index(model.joint(j).name);
    const int size = model.joint(j).type == dl::JointType::free   ? 6
                     : model.joint(j).type == dl::JointType::ball ? 3
                                                                  : 1;
    for (int i = 0; i < size; ++i) sorted[std::size_t(model.joint_v(j) + i)] = h2[std::size_t(again.joint_v(k) + i)];
  }
  out.add(h), out.add(sorted);
  out.write(arguments[3]);
}
