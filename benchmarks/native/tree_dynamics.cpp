// Tree dynamics of this library's core and of Pinocchio, in one process, each from q: agreement first, then time.
//
//   tree_dynamics ROBOTS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
#include "pinocchio_side.h"
#include "ways.h"

namespace bench {
namespace {

constexpr int states = 64;
constexpr double tolerance = 1e-10;

std::vector<Row> run(const Robot& robot, int repeats, Records& records) {
  OurTree ours(robot);
  PinocchioSide peer(robot);
  std::mt19937 rng(7);
  share_states(ours, peer, robot.name, states, rng);

  Tasks tasks{robot.name, ours.model.nv, states, repeats, tolerance, records};
  const auto torque = [&](int s) { return peer.torque(s); };
  const auto mass_matrix = [&](int s) { return peer.mass_matrix(s); };
  const auto acceleration = [&](int s) { return peer.acceleration(s); };
  const auto inverse = [&](int s) { return peer.mass_matrix_inverse(s); };
  const auto columns = [&](int s) { return peer.columns(s); };

  tasks.add("RNEA", {{"rnea", [&](int s) { ours.rnea(s); }, [&](int) { return ours.torque; }},
                     {"rnea", [&](int s) { peer.rnea(s); }, torque}});
  tasks.add("CRBA", {{"crba", [&](int s) { ours.crba(s); }, [&](int) { return ours.M; }},
                     {"crba LOCAL", [&](int s) { peer.crba_local(s); }, mass_matrix},
                     {"crba WORLD", [&](int s) { peer.crba_world(s); }, mass_matrix}});
  tasks.add("ABA", {{"aba", [&](int s) { ours.aba(s); }, [&](int) { return ours.acceleration; }},
                    {"aba LOCAL", [&](int s) { peer.aba_local(s); }, acceleration},
                    {"aba WORLD", [&](int s) { peer.aba_world(s); }, acceleration}});
  tasks.add("Minv", {{"mass_matrix_inverse", [&](int s) { ours.minverse(s); }, [&](int) { return ours.Minv; }},
                     {"computeMinverse", [&](int s) { peer.minverse(s); }, inverse}});
  for (const int n : {1, 64}) {
    ours.set_right_hand_sides(n, rng);
    tasks.add("solve " + std::to_string(n),
              {{"factorize, solve", [&](int s) { ours.solve(s); }, [&](int) { return ours.X; }},
               {"crba, cholesky::solve", [&](int s) { peer.solve_cholesky(s); }, columns},
               {"computeMinverse, product", [&](int s) { peer.solve_minverse(s); }, columns}},
              [&](int s) { peer.set_right_hand_sides(s, ours.Y, n); });
  }
  return tasks.rows;
}

std::string run_all(const std::vector<Robot>& robots, int repeats, Records& records) {
  return table_of(robots, repeats, records, run);
}

int main(int argc, char** argv) {
  return program<PinocchioSide>(argc, argv, text("samples of %g µs over %d states", sample_time, states), run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
