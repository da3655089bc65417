#include "pinocchio_operator.hxx"

namespace bench {

std::unique_ptr<PinocchioOperator> pinocchio_points(const Robot& robot, bool with_ltl) {
  for (const auto& c : robot.constraints)
    if (c.kind != "points") return nullptr;
  return std::make_unique<PinocchioOperatorOf<pin::PointContactConstraintModel>>(robot, with_ltl);
}

std::string PinocchioOperator::version() { return PINOCCHIO_VERSION; }
std::string PinocchioOperator::eigen_version() { return bench::eigen_version(); }

}  // namespace bench
