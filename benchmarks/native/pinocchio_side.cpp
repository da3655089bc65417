// The peer: Pinocchio's model from the same numbers, its algorithms from its headers, compiled with our flags.
#include "pinocchio_side.h"

#include "pinocchio_model.h"

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace bench {
namespace {

using RowMat = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

struct PinocchioSide::Impl {
  explicit Impl(const Robot& robot) : built(robot), model(built.model), data(model) {
    data.M.setZero();
    data.Minv.setZero();
  }

  PinocchioModel built;
  pin::Model& model;
  pin::Data data;
  std::vector<Vec> q, v, acceleration, torque;
  std::vector<Mat> T;  // ν_pinocchio = T ν; orthogonal
  Mat Y, X;

  void add(const State& s) {
    const Vec cq = built.configuration(s.q);
    const Mat turn = built.turn(cq);
    const Vec cv = turn * Eigen::Map<const Vec>(s.v.data(), model.nv);
    const Vec ca = turn * Eigen::Map<const Vec>(s.acceleration.data(), model.nv) - built.drift(cv);
    const Vec ct = turn * Eigen::Map<const Vec>(s.torque.data(), model.nv);
    q.push_back(cq), v.push_back(cv), acceleration.push_back(ca), torque.push_back(ct), T.push_back(turn);
  }
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
namespace {
std::vector<double> row_major(const RowMat& A) { return std::vector<double>(A.data(), A.data() + A.size()); }
}  // namespace

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
