// The peer: Pinocchio's model from the same numbers, its algorithms from its headers, compiled with our flags.
#include "pinocchio_side.h"

#include <pinocchio/multibody.hpp>
#include <pinocchio/multibody/joint.hpp>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <stdexcept>

namespace bench {
namespace {

namespace pin = pinocchio;
using Vec = Eigen::VectorXd;
using Mat = Eigen::MatrixXd;
using RowMat = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Vector3d vec(const std::array<double, 3>& a) { return {a[0], a[1], a[2]}; }

// The joint with the fewest operations for the axis: a coordinate axis has its own type.
pin::JointModel hinge(const Eigen::Vector3d& axis) {
  if (axis == Eigen::Vector3d::UnitX()) return pin::JointModelRX();
  if (axis == Eigen::Vector3d::UnitY()) return pin::JointModelRY();
  if (axis == Eigen::Vector3d::UnitZ()) return pin::JointModelRZ();
  return pin::JointModelRevoluteUnaligned(axis);
}
pin::JointModel slide(const Eigen::Vector3d& axis) {
  if (axis == Eigen::Vector3d::UnitX()) return pin::JointModelPX();
  if (axis == Eigen::Vector3d::UnitY()) return pin::JointModelPY();
  if (axis == Eigen::Vector3d::UnitZ()) return pin::JointModelPZ();
  return pin::JointModelPrismaticUnaligned(axis);
}

struct Coordinates {  // of one joint, in our order, which is also Pinocchio's order of indices
  std::string type;
  int iq, iv;
  double reference;
};

}  // namespace

struct PinocchioSide::Impl {
  pin::Model model;
  std::unique_ptr<pin::Data> data;
  std::vector<Coordinates> joints;
  std::vector<Vec> q, v, acceleration, torque;
  std::vector<Mat> T;  // ν_pinocchio = T ν; orthogonal
  Mat Y, X;

  // Ours to Pinocchio's: linear parts of a free joint turn into the body's axes, quaternions end with w.
  void add(const State& s) {
    Vec cq(model.nq), cv(model.nv), ca(model.nv), ct(model.nv);
    Mat turn = Mat::Identity(model.nv, model.nv);
    for (const auto& j : joints) {
      if (j.type == "hinge" || j.type == "slide") {
        cq[j.iq] = s.q[j.iq] - j.reference;
        continue;
      }
      const int shift = j.type == "free" ? 3 : 0;
      for (int k = 0; k < shift; ++k) cq[j.iq + k] = s.q[j.iq + k];
      const double* c = &s.q[j.iq + shift];
      const Eigen::Quaterniond turned = Eigen::Quaterniond(c[0], c[1], c[2], c[3]).normalized();
      cq.segment<4>(j.iq + shift) = turned.coeffs();
      if (shift) turn.block<3, 3>(j.iv, j.iv) = turned.toRotationMatrix().transpose();
    }
    cv = turn * Eigen::Map<const Vec>(s.v.data(), model.nv);
    ca = turn * Eigen::Map<const Vec>(s.acceleration.data(), model.nv);
    ct = turn * Eigen::Map<const Vec>(s.torque.data(), model.nv);
    for (const auto& j : joints)
      if (j.type == "free") ca.segment<3>(j.iv) -= cv.segment<3>(j.iv + 3).cross(cv.segment<3>(j.iv));
    q.push_back(cq), v.push_back(cv), acceleration.push_back(ca), torque.push_back(ct), T.push_back(turn);
  }
};

PinocchioSide::PinocchioSide(const Robot& robot) : impl(new Impl) {
  pin::Model& model = impl->model;
  model.gravity.linear() = vec(robot.gravity);
  std::vector<pin::JointIndex> carrier(robot.bodies.size(), 0);
  std::vector<pin::SE3> placement(robot.bodies.size(), pin::SE3::Identity());
  std::size_t next = 0;

  for (std::size_t b = 0; b < robot.bodies.size(); ++b) {
    const auto& body = robot.bodies[b];
    const Eigen::Quaterniond turned(body.quaternion[0], body.quaternion[1], body.quaternion[2], body.quaternion[3]);
    pin::JointIndex joint = b == 0 ? 0 : carrier[body.parent];
    pin::SE3 X = b == 0 ? pin::SE3::Identity()
                        : placement[body.parent] * pin::SE3(turned.normalized().toRotationMatrix(), vec(body.position));

    for (; next < robot.joints.size() && robot.joints[next].body == int(b); ++next) {
      const auto& j = robot.joints[next];
      const std::string name = "joint" + std::to_string(next);
      const Eigen::Vector3d axis = vec(j.axis);
      pin::SE3 frame = pin::SE3::Identity();
      if (j.type != "free") frame.translation() = vec(j.anchor);
      const pin::SE3 at = j.type == "free" ? pin::SE3::Identity() : X * frame;
      const pin::JointModel type = j.type == "hinge"   ? hinge(axis)
                                   : j.type == "slide" ? slide(axis)
                                   : j.type == "ball"  ? pin::JointModel(pin::JointModelSpherical())
                                                       : pin::JointModel(pin::JointModelFreeFlyer());
      joint = model.addJoint(joint, type, at, name);
      impl->joints.push_back({j.type, model.joints[joint].idx_q(), model.joints[joint].idx_v(), j.reference});
      X = frame.inverse();
    }

    carrier[b] = joint;
    placement[b] = X;
    const auto& I = body.inertia;
    Eigen::Matrix3d central;
    central << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
    if (joint > 0 && body.mass > 0) model.appendBodyToJoint(joint, pin::Inertia(body.mass, vec(body.center), central), X);
  }
  if (std::size_t(model.nv) != robot.armature.size()) throw std::runtime_error("Pinocchio counts other velocities in " + robot.name);
  model.armature = Eigen::Map<const Vec>(robot.armature.data(), model.nv);
  impl->data = std::make_unique<pin::Data>(model);
  impl->data->M.setZero();
  impl->data->Minv.setZero();
}
PinocchioSide::~PinocchioSide() = default;

std::string PinocchioSide::version() { return PINOCCHIO_VERSION; }
std::string PinocchioSide::eigen_version() {
  return std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION);
}
int PinocchioSide::nq() const { return impl->model.nq; }
int PinocchioSide::nv() const { return impl->model.nv; }
void PinocchioSide::add_state(const State& state) { impl->add(state); }
void PinocchioSide::set_right_hand_sides(int s, const std::vector<double>& Y, int columns) {
  impl->Y = impl->T[s] * Eigen::Map<const RowMat>(Y.data(), impl->model.nv, columns);
  impl->X = impl->Y;
}

void PinocchioSide::rnea(int s) { pin::rnea(impl->model, *impl->data, impl->q[s], impl->v[s], impl->acceleration[s]); }
void PinocchioSide::crba_local(int s) { pin::crba(impl->model, *impl->data, impl->q[s], pin::Convention::LOCAL); }
void PinocchioSide::crba_world(int s) { pin::crba(impl->model, *impl->data, impl->q[s], pin::Convention::WORLD); }
void PinocchioSide::aba_local(int s) {
  pin::aba(impl->model, *impl->data, impl->q[s], impl->v[s], impl->torque[s], pin::Convention::LOCAL);
}
void PinocchioSide::aba_world(int s) {
  pin::aba(impl->model, *impl->data, impl->q[s], impl->v[s], impl->torque[s], pin::Convention::WORLD);
}
void PinocchioSide::minverse(int s) { pin::computeMinverse(impl->model, *impl->data, impl->q[s]); }
void PinocchioSide::solve_cholesky(int s) {
  crba_world(s);
  pin::cholesky::decompose(impl->model, *impl->data);
  impl->X = impl->Y;
  pin::cholesky::solve(impl->model, *impl->data, impl->X);
}
void PinocchioSide::solve_minverse(int s) {
  minverse(s);
  impl->X.noalias() = impl->data->Minv.selfadjointView<Eigen::Upper>() * impl->Y;
}

// Pinocchio's to ours: transposed T; matrices from their upper triangles.
namespace {
std::vector<double> row_major(const RowMat& A) { return std::vector<double>(A.data(), A.data() + A.size()); }
}  // namespace

std::vector<double> PinocchioSide::torque(int s) const { return row_major(impl->T[s].transpose() * impl->data->tau); }
std::vector<double> PinocchioSide::mass_matrix(int s) const {
  const Mat M = impl->data->M.selfadjointView<Eigen::Upper>();
  return row_major(impl->T[s].transpose() * M * impl->T[s]);
}
std::vector<double> PinocchioSide::mass_matrix_inverse(int s) const {
  const Mat M = impl->data->Minv.selfadjointView<Eigen::Upper>();
  return row_major(impl->T[s].transpose() * M * impl->T[s]);
}
std::vector<double> PinocchioSide::acceleration(int s) const {
  Vec a = impl->data->ddq;
  for (const auto& j : impl->joints)
    if (j.type == "free") a.segment<3>(j.iv) += impl->v[s].segment<3>(j.iv + 3).cross(impl->v[s].segment<3>(j.iv));
  return row_major(impl->T[s].transpose() * a);
}
std::vector<double> PinocchioSide::columns(int s) const { return row_major(impl->T[s].transpose() * impl->X); }

}  // namespace bench
