// The peer: constraintDynamics and its derivatives from Pinocchio's headers, compiled with our flags.
#include "pinocchio_constrained_derivatives.h"

#include "pinocchio_contacts.h"
#include "pinocchio_coordinates.h"

#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>

namespace bench {

struct PinocchioConstrainedDerivatives::Impl : PinocchioStates {
  explicit Impl(const Robot& robot) : PinocchioStates(robot) {
    // rows along the world's axes, which cost it less than those of the body
    for (const auto& c : contacts(robot, built)) {
      constraints.emplace_back(c.type, model, c.joint, c.place, pin::LOCAL_WORLD_ALIGNED);
      constraint_data.push_back(constraints.back().createData());
      rows += c.rows();
    }
    pin::initConstraintDynamics(model, data, constraints, constraint_data);
    settings = pin::ProximalSettings(1e-12, 0.0, 1);
  }

  std::vector<pin::RigidConstraintModel> constraints;
  std::vector<pin::RigidConstraintData> constraint_data;
  pin::ProximalSettings settings;
  int rows = 0;
};

PinocchioConstrainedDerivatives::PinocchioConstrainedDerivatives(const Robot& robot) : impl(new Impl(robot)) {}
PinocchioConstrainedDerivatives::~PinocchioConstrainedDerivatives() = default;

std::string PinocchioConstrainedDerivatives::version() { return PINOCCHIO_VERSION; }
std::string PinocchioConstrainedDerivatives::eigen_version() { return bench::eigen_version(); }
int PinocchioConstrainedDerivatives::nq() const { return impl->model.nq; }
int PinocchioConstrainedDerivatives::nv() const { return impl->model.nv; }
int PinocchioConstrainedDerivatives::rows() const { return impl->rows; }
void PinocchioConstrainedDerivatives::add_state(const State& state) { impl->add(state); }

void PinocchioConstrainedDerivatives::dynamics(int s) {
  pin::constraintDynamics(impl->model, impl->data, impl->q[s], impl->v[s], impl->torque[s], impl->constraints,
                          impl->constraint_data, impl->settings);
}
void PinocchioConstrainedDerivatives::derivatives(int) {
  pin::computeConstraintDynamicsDerivatives(impl->model, impl->data, impl->constraints, impl->constraint_data,
                                            impl->settings);
}

// ν̇ = Tᵀ (ν̇'(q', T ν, T τ) + drift(T ν)), λ = λ'(q', T ν, T τ)
std::vector<std::vector<double>> PinocchioConstrainedDerivatives::result(int s) const {
  const Mat& T = impl->T[s];
  const Vec& v = impl->v[s];
  const auto& d = impl->data;
  const Mat D = drift_rate(impl->built, v), V = turned(impl->built, v), W = turned(impl->built, impl->torque[s]);
  const Mat a_q = T.transpose() * (d.ddq_dq * T + (d.ddq_dv + D) * V + d.ddq_dtau * W) -
                  T.transpose() * turned(impl->built, d.ddq + impl->built.drift(v));
  const Mat a_v = T.transpose() * (d.ddq_dv + D) * T, a_tau = T.transpose() * d.ddq_dtau * T;
  const Mat f_q = d.dlambda_dq * T + d.dlambda_dv * V + d.dlambda_dtau * W, f_v = d.dlambda_dv * T,
            f_tau = d.dlambda_dtau * T;
  std::vector<std::vector<double>> out;
  for (const Mat* block : {&a_q, &a_v, &a_tau, &f_q, &f_v, &f_tau}) out.push_back(row_major(*block));
  return out;
}

}  // namespace bench
