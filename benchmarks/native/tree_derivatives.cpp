// Derivatives of tree dynamics of this library's core and of Pinocchio, in one process, each from q: agreement first,
// then time.
//
//   tree_derivatives ROBOTS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
#include "derivatives/aba_derivatives.h"
#include "pinocchio_derivatives.h"
#include "ways.h"

namespace bench {
namespace {

constexpr int states = 64;
constexpr double tolerance = 1e-9;

// Ours, everything allocated beforehand. Results as Pinocchio's are converted: by q, by v, M or M⁻¹ below each other.
class OurDerivatives {
 public:
  OurDerivatives(const dl::Model<double>& model, const std::vector<State>& state)
      : model_(model), state_(state), w_(model), vector_(model.nv), matrices_(3 * square()) {}

  [[gnu::noinline]] void rnea(int s) {
    dl::kinematics(model_, w_, state_[s].q.data());
    dl::rnea_derivatives(model_, w_, state_[s].v.data(), state_[s].acceleration.data(), none, vector_.data(), part(0),
                         part(1), part(2), false);
  }
  [[gnu::noinline]] void aba(int s) {
    dl::kinematics(model_, w_, state_[s].q.data());
    dl::aba_derivatives(model_, w_, state_[s].v.data(), state_[s].torque.data(), none, vector_.data(), part(0), part(1),
                        part(2));
  }
  const Vector& result() const { return matrices_; }

 private:
  static constexpr const double* none = nullptr;
  std::size_t square() const { return std::size_t(model_.nv) * model_.nv; }
  double* part(int k) { return matrices_.data() + std::size_t(k) * square(); }

  const dl::Model<double>& model_;
  const std::vector<State>& state_;
  dl::DerivativeWorkspace<double> w_;
  Vector vector_, matrices_;
};

std::vector<Row> run(const Robot& robot, int repeats, Records& records) {
  OurTree tree(robot);
  PinocchioDerivatives peer(robot);
  std::mt19937 rng(7);
  share_states(tree, peer, robot.name, states, rng);
  OurDerivatives ours(tree.model, tree.state);
  const auto result = [&](int) { return ours.result(); };

  Tasks tasks{robot.name, tree.model.nv, states, repeats, tolerance, records};
  tasks.add("RNEA derivatives",
            {{"rnea_derivatives", [&](int s) { ours.rnea(s); }, result},
             {"computeRNEADerivatives", [&](int s) { peer.rnea(s); }, [&](int s) { return peer.inverse(s); }}});
  tasks.add("ABA derivatives",
            {{"aba_derivatives", [&](int s) { ours.aba(s); }, result},
             {"computeABADerivatives", [&](int s) { peer.aba(s); }, [&](int s) { return peer.forward(s); }}});
  return tasks.rows;
}

std::string run_all(const std::vector<Robot>& robots, int repeats, Records& records) {
  return table_of(robots, repeats, records, run);
}

int main(int argc, char** argv) {
  return program<PinocchioDerivatives>(argc, argv, text("samples of %g µs over %d states", sample_time, states),
                                       run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
