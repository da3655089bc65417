#include "pinocchio_loops.h"

#include "pinocchio_point.h"

#include <pinocchio/algorithm/constraint-cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/kinematics.hpp>

namespace bench {

struct PinocchioLoops::Impl {
  using Constraint = pin::PointContactConstraintModel;

  Impl(const Robot& robot, double mu) : built(robot), model(built.model), data(model), q(built.configuration(robot.q)) {
    pin::forwardKinematics(model, data, q);
    for (const auto& c : robot.constraints) {
      if (c.kind != "points") throw std::runtime_error("only points, got `" + c.kind + "` in " + robot.name);
      constraints.push_back(point_constraint(built, data, c));
    }
    for (const auto& c : constraints) constraint_data.push_back(c.createData());
    data.M.setZero();
    pin::crba(model, data, q, pin::Convention::WORLD);
    pin::calc(model, data, constraints, constraint_data);
    decomposition = std::make_unique<pin::ConstraintCholeskyDecomposition>(model, data, constraints, constraint_data);
    decomposition->updateDamping(mu);
    rows = 3 * int(constraints.size());
    out = Mat::Zero(rows, rows);
  }

  void decompose(bool factor) {
    pin::crba(model, data, q, pin::Convention::WORLD);
    pin::calc(model, data, constraints, constraint_data);
    decomposition->compute(model, data, constraints, constraint_data, true, factor);
  }
  std::vector<double> copied() const { return std::vector<double>(out.data(), out.data() + out.size()); }

  PinocchioModel built;
  pin::Model& model;
  pin::Data data;
  Vec q;
  int rows = 0;
  std::vector<Constraint> constraints;
  std::vector<Constraint::ConstraintData> constraint_data;
  std::unique_ptr<pin::ConstraintCholeskyDecomposition> decomposition;
  Mat out;
};

PinocchioLoops::PinocchioLoops(const Robot& robot, double damping) : impl(new Impl(robot, damping)) {}
PinocchioLoops::~PinocchioLoops() = default;

std::string PinocchioLoops::version() { return PINOCCHIO_VERSION; }
std::string PinocchioLoops::eigen_version() { return bench::eigen_version(); }
int PinocchioLoops::rows() const { return impl->rows; }
void PinocchioLoops::form() { impl->decompose(false); }
void PinocchioLoops::invert() {
  impl->decompose(true);
  impl->decomposition->getOperationalSpaceInertiaMatrix(impl->out);
}
std::vector<double> PinocchioLoops::matrix() {
  form();
  impl->decomposition->getDelassusOperatorCholeskyExpression().applyOnTheRight(Mat::Identity(impl->rows, impl->rows),
                                                                               impl->out, false);
  return impl->copied();
}
std::vector<double> PinocchioLoops::inverse() {
  invert();
  return impl->copied();
}

}  // namespace bench
