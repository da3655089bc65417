// The peer: constraintDynamics (proxLTL), pv (proxPV), constrainedABA and lcaba, each from q, v, τ. And a dense solve
// as judge.
#include "pinocchio_dynamics.h"

#include "pinocchio_contacts.h"

#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#include <pinocchio/algorithm/pv.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace bench {
namespace {

// What pv and constrainedABA ask of a constraint. Their own types are points or welds, a list has one type, and the
// older RigidConstraintModel does not compile with them; so sets with both need this. Size 3 adds ω × v to the first
// three rows: the acceleration of a point, of a weld too.
struct Held {
  using SE3 = pin::SE3;
  using BaumgarteCorrectorParameters = pin::BaumgarteCorrectorParametersTpl<double>;
  static constexpr int Size = 3;

  pin::JointIndex joint1_id;
  SE3 joint1_placement;
  int rows;
  BaumgarteCorrectorParameters baumgarte = {0, 0};

  int residualSize() const { return rows; }
  const BaumgarteCorrectorParameters& baumgarte_corrector_parameters() const { return baumgarte; }
};
struct HeldData {
  Eigen::Vector3d constraint_acceleration_error;
};

}  // namespace

struct PinocchioDynamics::Impl {
  Impl(const Robot& robot, double damping, int iterations)
      : built(robot),
        model(built.model),
        list(contacts(robot, built)),
        ltl_data(model),
        pv_data(model),
        caba_data(model),
        lcaba_data(model) {
    for (const auto& c : list) {
      // lcaba has the axes of the body only; LTL has the world's, which cost it less
      local.emplace_back(c.type, model, c.joint, c.place, pin::LOCAL);
      aligned.emplace_back(c.type, model, c.joint, c.place, pin::LOCAL_WORLD_ALIGNED);
      held.push_back({c.joint, c.place, c.rows()});
      local_data.push_back(local.back().createData());
      aligned_data.push_back(aligned.back().createData());
      rows += c.rows();
    }
    held_data.resize(held.size());
    pin::initConstraintDynamics(model, ltl_data, aligned, aligned_data);
    pin::initPvSolver(model, pv_data, held);
    pin::initPvSolver(model, caba_data, held);
    pin::computeJointMinimalOrdering(model, lcaba_data, local);
    // no residual is below −1: all iterations are taken
    for (auto& s : settings) {
      s = pin::ProximalSettings(0, 0, damping, iterations);
      s.absolute_accuracy = s.relative_accuracy = -1;
    }
  }

  void solve(Way way, int s) {
    auto& set = settings[way];
    if (way == ltl) {
      pin::constraintDynamics(model, ltl_data, q[s], v[s], tau[s], aligned, aligned_data, set);
    } else if (way == pv) {
      pin::pv(model, pv_data, q[s], v[s], tau[s], held, held_data, set);
    } else if (way == caba) {
      pin::constrainedABA(model, caba_data, q[s], v[s], tau[s], held, held_data, set);
    } else {
      // lcaba takes the accelerations of the call before for a part of J̇v of welds
      for (const auto& c : list) lcaba_data.oa[c.joint].setZero();
      pin::lcaba(model, lcaba_data, q[s], v[s], tau[s], local, local_data, set);
    }
  }
  const pin::Data& data(Way way) const {
    return way == ltl ? ltl_data : way == pv ? pv_data : way == caba ? caba_data : lcaba_data;
  }

  std::vector<double> ours(int s, const Vec& a) const {
    const Vec x = T[s].transpose() * (a + built.drift(v[s]));
    return std::vector<double>(x.data(), x.data() + x.size());
  }

  // M = L Lᵀ; A = J L⁻ᵀ; J̇v and J v, in world axes at the points
  struct Dense {
    Eigen::LLT<Mat> L;
    Mat J;
    Eigen::CompleteOrthogonalDecomposition<Mat> A;
    Vec bias, velocity, drift;  // h, J v, J̇v
  };
  Dense dense(const Vec& q, const Vec& v) const {
    Dense d;
    pin::Data data(model);
    data.M.setZero();
    pin::crba(model, data, q, pin::Convention::WORLD);
    const Mat M = data.M.selfadjointView<Eigen::Upper>();
    d.L.compute(M);
    d.bias = pin::nonLinearEffects(model, data, q, v);
    pin::computeJointJacobians(model, data, q);
    pin::forwardKinematics(model, data, q, v, Vec::Zero(model.nv));
    d.J = Mat::Zero(rows, model.nv), d.velocity = d.drift = Vec::Zero(rows);
    int row = 0;
    for (const auto& c : list) {
      const Eigen::Vector3d p = data.oMi[c.joint].act(c.place.translation());
      Mat K = Mat::Zero(6, model.nv);
      pin::getJointJacobian(model, data, c.joint, pin::WORLD, K);
      K.topRows<3>() -= pin::skew(p) * K.bottomRows<3>();
      const pin::Motion twist = data.oMi[c.joint].act(data.v[c.joint]), rate = data.oMi[c.joint].act(data.a[c.joint]);
      const Eigen::Vector3d speed = twist.linear() + twist.angular().cross(p);
      Eigen::Matrix<double, 6, 1> gamma;
      gamma << rate.linear() + rate.angular().cross(p) + twist.angular().cross(speed), rate.angular();
      d.J.middleRows(row, c.rows()) = K.topRows(c.rows());
      d.drift.segment(row, c.rows()) = gamma.head(c.rows());
      row += c.rows();
    }
    d.velocity = d.J * v;
    d.A.compute(d.L.matrixL().solve(d.J.transpose()).transpose());
    return d;
  }

  PinocchioModel built;
  pin::Model& model;
  std::vector<Contact> list;
  int rows = 0;
  std::vector<pin::RigidConstraintModel> local, aligned;
  std::vector<pin::RigidConstraintData> local_data, aligned_data;
  std::vector<Held> held;
  std::vector<HeldData> held_data;
  pin::Data ltl_data, pv_data, caba_data, lcaba_data;
  std::array<pin::ProximalSettings, ways> settings;
  std::vector<Vec> q, v, tau;
  std::vector<Mat> T;
};

PinocchioDynamics::PinocchioDynamics(const Robot& robot, double damping, int iterations)
    : impl(new Impl(robot, damping, iterations)) {}
PinocchioDynamics::~PinocchioDynamics() = default;

std::string PinocchioDynamics::version() { return PINOCCHIO_VERSION; }
std::string PinocchioDynamics::eigen_version() { return bench::eigen_version(); }
int PinocchioDynamics::rows() const { return impl->rows; }

// v − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J v
void PinocchioDynamics::make_consistent(State& state) const {
  const Vec q = impl->built.configuration(state.q);
  const Mat T = impl->built.turn(q);
  Eigen::Map<Vec> v(state.v.data(), impl->model.nv);
  const auto d = impl->dense(q, T * v);
  v -= T.transpose() * d.L.matrixU().solve(d.A.solve(d.velocity));
}
void PinocchioDynamics::add_state(const State& state) {
  const int nv = impl->model.nv;
  impl->q.push_back(impl->built.configuration(state.q));
  impl->T.push_back(impl->built.turn(impl->q.back()));
  impl->v.push_back(impl->T.back() * Eigen::Map<const Vec>(state.v.data(), nv));
  impl->tau.push_back(impl->T.back() * Eigen::Map<const Vec>(state.torque.data(), nv));
}

const char* PinocchioDynamics::name(Way way) {
  return way == ltl ? "constraintDynamics" : way == pv ? "pv" : way == caba ? "constrainedABA" : "lcaba";
}
void PinocchioDynamics::solve(Way way, int state) { impl->solve(way, state); }
int PinocchioDynamics::iterations(Way way) const { return impl->settings[way].iter; }
std::vector<double> PinocchioDynamics::acceleration(Way way, int state) {
  solve(way, state);
  return impl->ours(state, impl->data(way).ddq);
}
std::vector<double> PinocchioDynamics::dense(int state) const {
  const auto d = impl->dense(impl->q[state], impl->v[state]);
  const Vec z = d.L.matrixL().solve(impl->tau[state] - d.bias);
  const Vec toward = d.A.solve(-d.drift - d.J * d.L.matrixU().solve(z));
  return impl->ours(state, d.L.matrixU().solve(z + toward));
}

}  // namespace bench
