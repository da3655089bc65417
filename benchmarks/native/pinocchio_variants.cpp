#include "pinocchio_operator.hxx"

namespace bench {

std::unique_ptr<PinocchioOperator> pinocchio_variants(const Robot& robot, bool with_ltl) {
  return std::make_unique<PinocchioOperatorOf<pin::ConstraintModel>>(robot, with_ltl);
}

}  // namespace bench
