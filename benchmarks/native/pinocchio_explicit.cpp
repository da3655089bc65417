// The peer: EFPA (computeDelassusMatrix), PV-OSIMr (what computeDampedDelassusMatrixInverse uses) and LTL
// (ConstraintCholeskyDecomposition), each from q.
#include "pinocchio_explicit.h"

#include "pinocchio_contacts.h"

#include <pinocchio/algorithm/constraint-cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/delassus-operator.hpp>
#include <pinocchio/algorithm/delassus.hpp>

namespace bench {

struct PinocchioExplicit::Impl {
  using Models = std::vector<pin::RigidConstraintModel>;
  using Datas = std::vector<pin::RigidConstraintData>;

  Impl(const Robot& robot, double mu)
      : built(robot), model(built.model), data(model), pv_data(model), ltl_data(model), damping(mu) {
    for (const auto& c : contacts(robot, built)) {
      // EFPA and PV-OSIMr have rows in the axes of the body only; LTL has the world's, which cost it less
      local.emplace_back(c.type, model, c.joint, c.place, pin::LOCAL);
      aligned.emplace_back(c.type, model, c.joint, c.place, pin::LOCAL_WORLD_ALIGNED);
      rows += c.rows();
    }
    for (const auto& c : local) efpa_data.push_back(c.createData()), pv_constraint_data.push_back(c.createData());
    for (const auto& c : aligned) ltl_constraint_data.push_back(c.createData());
    pin::initPvDelassus(model, pv_data, local);
    ltl_data.M.setZero();
    pin::crba(model, ltl_data, pin::neutral(model), pin::Convention::WORLD);
    pin::calc(model, ltl_data, aligned, ltl_constraint_data);
    decomposition =
        std::make_unique<pin::ConstraintCholeskyDecomposition>(model, ltl_data, aligned, ltl_constraint_data);
    decomposition->updateDamping(damping);
    out = Mat::Zero(rows, rows);
  }

  void form(Way way, int s) {
    if (way == efpa)
      pin::computeDelassusMatrix(model, data, q[s], local, efpa_data, out);
    else if (way == pv_osimr)
      pin::computePvDelassusMatrix(model, pv_data, q[s], local, pv_constraint_data, out, 0.0);
    else
      decompose(s, false);
  }
  void invert(Way way, int s) {
    if (way == efpa)
      pin::computeDampedDelassusMatrixInverse(model, data, q[s], local, efpa_data, out, damping, false, false);
    else if (way == pv_osimr)
      pin::computeDampedDelassusMatrixInverse(model, pv_data, q[s], local, pv_constraint_data, out, damping, false,
                                              true);
    else
      decompose(s, true), decomposition->getOperationalSpaceInertiaMatrix(out);
  }
  void decompose(int s, bool factor) {
    pin::crba(model, ltl_data, q[s], pin::Convention::WORLD);
    pin::calc(model, ltl_data, aligned, ltl_constraint_data);
    decomposition->compute(model, ltl_data, aligned, ltl_constraint_data, true, factor);
  }

  // Theirs to ours: the other triangle, and a body's axes to the world's.
  std::vector<double> converted(Way way) const {
    Mat A = out;
    if (way != ltl) {
      const auto& constraint_data = way == efpa ? efpa_data : pv_constraint_data;
      Mat turn = Mat::Zero(rows, rows);
      int row = 0;
      for (std::size_t k = 0; k < local.size(); ++k)
        for (int r = 0; r < local[k].residualSize(); r += 3, row += 3)
          turn.block<3, 3>(row, row) = constraint_data[k].oMc1.rotation();
      const Mat whole = out.selfadjointView<Eigen::Upper>();
      A = turn * whole * turn.transpose();
    }
    return std::vector<double>(A.data(), A.data() + A.size());
  }
  std::vector<double> matrix(Way way, int s) {
    form(way, s);
    if (way == ltl)
      decomposition->getDelassusOperatorCholeskyExpression().applyOnTheRight(Mat::Identity(rows, rows), out, false);
    return converted(way);
  }
  std::vector<double> inverse(Way way, int s) {
    invert(way, s);
    return converted(way);
  }

  PinocchioModel built;
  pin::Model& model;
  pin::Data data, pv_data, ltl_data;
  double damping;
  int rows = 0;
  Models local, aligned;
  Datas efpa_data, pv_constraint_data, ltl_constraint_data;
  std::unique_ptr<pin::ConstraintCholeskyDecomposition> decomposition;
  std::vector<Vec> q;
  Mat out;
};

PinocchioExplicit::PinocchioExplicit(const Robot& robot, double damping) : impl(new Impl(robot, damping)) {}
PinocchioExplicit::~PinocchioExplicit() = default;

std::string PinocchioExplicit::version() { return PINOCCHIO_VERSION; }
std::string PinocchioExplicit::eigen_version() { return bench::eigen_version(); }
int PinocchioExplicit::rows() const { return impl->rows; }
void PinocchioExplicit::add_state(const std::vector<double>& q) { impl->q.push_back(impl->built.configuration(q)); }

const char* PinocchioExplicit::matrix_name(Way way) {
  return way == efpa       ? "computeDelassusMatrix"
         : way == pv_osimr ? "computePvDelassusMatrix"
                           : "crba, constraint Cholesky";
}
const char* PinocchioExplicit::inverse_name(Way way) {
  return way == efpa       ? "computeDampedDelassusMatrixInverse, EFPA"
         : way == pv_osimr ? "computeDampedDelassusMatrixInverse"
                           : "crba, constraint Cholesky, inverse";
}
void PinocchioExplicit::form(Way way, int state) { impl->form(way, state); }
void PinocchioExplicit::invert(Way way, int state) { impl->invert(way, state); }
std::vector<double> PinocchioExplicit::matrix(Way way, int state) { return impl->matrix(way, state); }
std::vector<double> PinocchioExplicit::inverse(Way way, int state) { return impl->inverse(way, state); }

}  // namespace bench
