// The peer: derivatives of tree dynamics from Pinocchio's headers, compiled with our flags.
#include "pinocchio_derivatives.h"

#include "pinocchio_coordinates.h"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

namespace bench {

struct PinocchioDerivatives::Impl : PinocchioStates {
  explicit Impl(const Robot& robot) : PinocchioStates(robot) {
    data.dtau_dq.setZero(), data.dtau_dv.setZero(), data.M.setZero();
    data.ddq_dq.setZero(), data.ddq_dv.setZero(), data.Minv.setZero();
  }

  static std::vector<double> stacked(const Mat& by_q, const Mat& by_v, const Mat& M) {
    RowMat all(3 * M.rows(), M.cols());
    all << by_q, by_v, M;
    return row_major(all);
  }
};

PinocchioDerivatives::PinocchioDerivatives(const Robot& robot) : impl(new Impl(robot)) {}
PinocchioDerivatives::~PinocchioDerivatives() = default;

std::string PinocchioDerivatives::version() { return PINOCCHIO_VERSION; }
std::string PinocchioDerivatives::eigen_version() { return bench::eigen_version(); }
int PinocchioDerivatives::nq() const { return impl->model.nq; }
int PinocchioDerivatives::nv() const { return impl->model.nv; }
void PinocchioDerivatives::add_state(const State& state) { impl->add(state); }

void PinocchioDerivatives::rnea(int s) {
  pin::computeRNEADerivatives(impl->model, impl->data, impl->q[s], impl->v[s], impl->acceleration[s]);
}
void PinocchioDerivatives::aba(int s) {
  pin::computeABADerivatives(impl->model, impl->data, impl->q[s], impl->v[s], impl->torque[s]);
}

// τ = Tᵀ τ'(q', T ν, T ν̇ − drift(T ν)), the results of Pinocchio being τ' and its derivatives
std::vector<double> PinocchioDerivatives::inverse(int s) const {
  const Mat& T = impl->T[s];
  const Vec &v = impl->v[s], &a = impl->acceleration[s];
  const Mat M = impl->data.M.selfadjointView<Eigen::Upper>();
  const Mat D = drift_rate(impl->built, v), V = turned(impl->built, v),
            A = turned(impl->built, a + impl->built.drift(v));
  const Mat by_q = T.transpose() * (impl->data.dtau_dq * T + impl->data.dtau_dv * V + M * (A - D * V)) -
                   T.transpose() * turned(impl->built, impl->data.tau);
  const Mat by_v = T.transpose() * (impl->data.dtau_dv - M * D) * T;
  return Impl::stacked(by_q, by_v, T.transpose() * M * T);
}
// ν̇ = Tᵀ (ν̇'(q', T ν, T τ) + drift(T ν))
std::vector<double> PinocchioDerivatives::forward(int s) const {
  const Mat& T = impl->T[s];
  const Vec& v = impl->v[s];
  const Mat Minv = impl->data.Minv.selfadjointView<Eigen::Upper>();
  const Mat D = drift_rate(impl->built, v), V = turned(impl->built, v), W = turned(impl->built, impl->torque[s]);
  const Mat by_q = T.transpose() * (impl->data.ddq_dq * T + (impl->data.ddq_dv + D) * V + Minv * W) -
                   T.transpose() * turned(impl->built, impl->data.ddq + impl->built.drift(v));
  const Mat by_v = T.transpose() * (impl->data.ddq_dv + D) * T;
  return Impl::stacked(by_q, by_v, T.transpose() * Minv * T);
}

}  // namespace bench
