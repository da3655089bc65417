// The peer: Pinocchio's model from the same numbers, its algorithms from its headers, compiled with our flags.
#include "pinocchio_side.h"

#include "pinocchio_states.h"

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace bench {

struct PinocchioSide::Impl : PinocchioStates {
  explicit Impl(const Robot& robot) : PinocchioStates(robot) {
    data.M.setZero();
    data.Minv.setZero();
  }

  Mat Y, X;
};

PinocchioSide::PinocchioSide(const Robot& robot) : impl(new Impl(robot)) {}
PinocchioSide::~PinocchioSide() = default;

std::string PinocchioSide::version() { return PINOCCHIO_VERSION; }
std::string PinocchioSide::eigen_version() { return bench::eigen_version(); }
int PinocchioSide::nq() const { return impl->model.nq; }
int PinocchioSide::nv() const { return impl->model.nv; }
void PinocchioSide::add_state(const State& state) { impl->add(state); }
void PinocchioSide::set_right_hand_sides(int s, const std::vector<double>& Y, int columns) {
  impl->Y = impl->T[s] * Eigen::Map<const RowMat>(Y.data(), impl->model.nv, columns);
  impl->X = impl->Y;
}

void PinocchioSide::rnea(int s) { pin::rnea(impl->model, impl->data, impl->q[s], impl->v[s], impl->acceleration[s]); }
void PinocchioSide::crba_local(int s) { pin::crba(impl->model, impl->data, impl->q[s], pin::Convention::LOCAL); }
void PinocchioSide::crba_world(int s) { pin::crba(impl->model, impl->data, impl->q[s], pin::Convention::WORLD); }
void PinocchioSide::aba_local(int s) {
  pin::aba(impl->model, impl->data, impl->q[s], impl->v[s], impl->torque[s], pin::Convention::LOCAL);
}
void PinocchioSide::aba_world(int s) {
  pin::aba(impl->model, impl->data, impl->q[s], impl->v[s], impl->torque[s], pin::Convention::WORLD);
}
void PinocchioSide::minverse(int s) { pin::computeMinverse(impl->model, impl->data, impl->q[s]); }
void PinocchioSide::solve_cholesky(int s) {
  crba_world(s);
  pin::cholesky::decompose(impl->model, impl->data);
  impl->X = impl->Y;
  pin::cholesky::solve(impl->model, impl->data, impl->X);
}
void PinocchioSide::solve_minverse(int s) {
  minverse(s);
  impl->X.noalias() = impl->data.Minv.selfadjointView<Eigen::Upper>() * impl->Y;
}

// Pinocchio's to ours: transposed T; matrices from their upper triangles.
std::vector<double> PinocchioSide::torque(int s) const { return row_major(impl->T[s].transpose() * impl->data.tau); }
std::vector<double> PinocchioSide::mass_matrix(int s) const {
  const Mat M = impl->data.M.selfadjointView<Eigen::Upper>();
  return row_major(impl->T[s].transpose() * M * impl->T[s]);
}
std::vector<double> PinocchioSide::mass_matrix_inverse(int s) const {
  const Mat M = impl->data.Minv.selfadjointView<Eigen::Upper>();
  return row_major(impl->T[s].transpose() * M * impl->T[s]);
}
std::vector<double> PinocchioSide::acceleration(int s) const {
  return row_major(impl->T[s].transpose() * (impl->data.ddq + impl->built.drift(impl->v[s])));
}
std::vector<double> PinocchioSide::columns(int s) const { return row_major(impl->T[s].transpose() * impl->X); }

}  // namespace bench
