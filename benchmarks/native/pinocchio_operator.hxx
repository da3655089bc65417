// The implementation, for a vector of one type of constraint or of Pinocchio's variant. Compiled once for each, in its
// own file.
#pragma once

#include "pinocchio_operator.h"

#include "pinocchio_point.h"

#include <pinocchio/algorithm/constraint-cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/delassus-operator.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>

namespace bench {

template <class Constraint>
class PinocchioOperatorOf final : public PinocchioOperator {
 public:
  using Operator = pin::DelassusOperatorRigidBodySystemsTpl<double, 0, pin::JointCollectionDefaultTpl, Constraint>;
  using ConstraintData = typename Constraint::ConstraintData;

  PinocchioOperatorOf(const Robot& robot, bool with_ltl) : built(robot), model(built.model), data(model) {
    add_state(robot.q);
    pin::forwardKinematics(model, data, states[0]);
    for (std::size_t k = 0; k < robot.constraints.size();) {
      const auto& c = robot.constraints[k];
      if (c.kind == "points") {
        constraints.push_back(Constraint(point_constraint(built, data, c)));
        ++k;
      } else if (c.kind == "friction") {
        k = add_friction(robot, k);
      } else {
        throw std::runtime_error("Pinocchio's operator has points and friction here, got `" + c.kind + "` in " +
                                 robot.name);
      }
    }
    for (const auto& c : constraints) constraint_data.push_back(c.createData());
    G = std::make_unique<Operator>(std::cref(model), std::ref(data), std::cref(constraints),
                                   std::cref(constraint_data));
    if (!with_ltl) return;
    ltl_data = std::make_unique<pin::Data>(model);
    ltl_data->M.setZero();
    pin::crba(model, *ltl_data, states[0], pin::Convention::WORLD);
    pin::calc(model, *ltl_data, constraints, constraint_data);
    ltl = std::make_unique<pin::ConstraintCholeskyDecomposition>(model, *ltl_data, constraints, constraint_data);
  }

  int rows() const override { return int(G->size()); }
  void add_state(const std::vector<double>& q) override { states.push_back(built.configuration(q)); }
  void set_inputs(const std::vector<std::vector<double>>& vectors,
                  const std::vector<std::vector<double>>& dampings) override {
    const auto converted = [](const auto& list) {
      std::vector<Vec> out;
      for (const auto& v : list) out.push_back(Eigen::Map<const Vec>(v.data(), Eigen::Index(v.size())));
      return out;
    };
    in = converted(vectors);
    damping = converted(dampings);
    out.resize(rows());
  }
  std::vector<double> result() const override { return std::vector<double>(out.data(), out.data() + out.size()); }

  void kinematics(int s) override {
    pin::computeJointJacobians(model, data, states[s]);
    pin::calc(model, data, constraints, constraint_data);
    G->updateDamping(damping[0]);
  }
  void first_apply(int k) override {
    G->compute(true, false);
    apply(k);
  }
  void apply(int k) override { G->applyOnTheRight(in[k], out, false); }
  void first_solve(int k) override {
    G->compute(false, true);
    solve(k);
  }
  void solve(int k) override {
    out = in[k];
    G->solveInPlace(out);
  }
  void damp_solve(int k) override {
    G->updateDamping(damping[k]);
    G->updateDecomposition();
    solve(k);
  }
  void state_apply_placements(int s, int k) override {
    pin::forwardKinematics(model, data, states[s]);
    pin::calc(model, data, constraints, constraint_data);
    first_apply(k);
  }
  void state_apply_jacobians(int s, int k) override {
    pin::computeJointJacobians(model, data, states[s]);
    pin::calc(model, data, constraints, constraint_data);
    first_apply(k);
  }

  void ltl_kinematics(int s) override {
    pin::crba(model, *ltl_data, states[s], pin::Convention::WORLD);
    pin::calc(model, *ltl_data, constraints, constraint_data);
    ltl->updateDamping(damping[0]);
  }
  void ltl_first_apply(int k) override {
    ltl->compute(model, *ltl_data, constraints, constraint_data, true, false);
    ltl_apply(k);
  }
  void ltl_apply(int k) override { ltl->getDelassusOperatorCholeskyExpression().applyOnTheRight(in[k], out, false); }
  // the factor needs the matrix, hence both
  void ltl_first_solve(int k) override {
    ltl->compute(model, *ltl_data, constraints, constraint_data, true, true);
    ltl_solve(k);
  }
  void ltl_solve(int k) override {
    out = in[k];
    ltl->getDelassusOperatorCholeskyExpression().solveInPlace(out);
  }
  void ltl_damp_solve(int k) override {
    ltl->updateDamping(damping[k]);
    ltl->computeDelassusCholeskyDecomposition();
    ltl_solve(k);
  }
  void ltl_state_apply(int s, int k) override {
    pin::crba(model, *ltl_data, states[s], pin::Convention::WORLD);
    pin::calc(model, *ltl_data, constraints, constraint_data);
    ltl_first_apply(k);
  }

 private:
  // Neighbouring friction constraints become one of Pinocchio's, with many joints. Returns the index of the constraint
  // after them.
  std::size_t add_friction(const Robot& robot, std::size_t k) {
    if constexpr (std::is_same_v<Constraint, pin::PointContactConstraintModel>) {
      throw std::logic_error("a vector of point contacts holds no friction");
    } else {
      std::vector<pin::JointIndex> joints;
      for (; k < robot.constraints.size() && robot.constraints[k].kind == "friction"; ++k)
        for (std::size_t j = 0; j < built.joints.size(); ++j)
          if (built.joints[j].iv == robot.constraints[k].velocity) joints.push_back(j + 1);
      constraints.push_back(Constraint(pin::JointFrictionConstraintModel(model, joints, Vec::Constant(model.nv, -1.0),
                                                                         Vec::Constant(model.nv, 1.0))));
    }
    return k;
  }

  PinocchioModel built;
  pin::Model& model;
  pin::Data data;
  std::vector<Constraint> constraints;
  std::vector<ConstraintData> constraint_data;
  std::unique_ptr<Operator> G;
  std::unique_ptr<pin::Data> ltl_data;
  std::unique_ptr<pin::ConstraintCholeskyDecomposition> ltl;
  std::vector<Vec> states, in, damping;
  Vec out;
};

}  // namespace bench
