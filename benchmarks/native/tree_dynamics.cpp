// Tree dynamics of this library's core and of Pinocchio, in one process, each from q: agreement first, then time.
//
//   tree_dynamics ROBOTS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
//
// A sample is the mean time of a call over some calls that walk through random states. Samples of all contenders
// alternate, so that a slow moment of the machine hits all of them; the table shows the best and the median.
#include "our_tree.h"
#include "pinocchio_side.h"
#include "timing.h"

namespace bench {
namespace {

constexpr int states = 64;
constexpr double tolerance = 1e-10;

// One of the ways to a result: ours is the first, the others are Pinocchio's.
struct Way {
  std::string name;
  std::function<void(int)> call;
  std::function<Vector(int)> result;
};
struct Row {
  std::string robot, task;
  double error;  // the largest of all ways
  Times ours;
  Timed theirs;  // the fastest of Pinocchio's
};

std::vector<Row> run(const Robot& robot, int repeats, Records& records) {
  OurTree ours(robot);
  PinocchioSide peer(robot);
  if (ours.model.nv != peer.nv() || ours.model.nq != peer.nq())
    throw std::runtime_error("the two models differ in size: " + robot.name);
  std::mt19937 rng(7);
  ours.state = random_states(ours.model, states, rng);
  for (const auto& s : ours.state) peer.add_state(s);

  std::vector<Row> rows;
  const auto add = [&](const std::string& task, const std::vector<Way>& ways,
                       const std::function<void(int)>& prepare = {}) {
    Vector errors(ways.size());
    std::vector<Contender> contenders;
    for (const auto& way : ways) contenders.push_back({way.name, [&way](int n) { way.call(n % states); }});
    for (int s = 0; s < states; ++s) {
      if (prepare) prepare(s);
      ways[0].call(s);
      const Vector mine = ways[0].result(s);
      for (std::size_t k = 1; k < ways.size(); ++k) {
        ways[k].call(s);
        errors[k] = std::max(errors[k], difference(mine, ways[k].result(s)));
      }
    }
    errors[0] = *std::max_element(errors.begin(), errors.end());
    const auto timed = measure(contenders, repeats);
    for (std::size_t k = 0; k < ways.size(); ++k)
      records.add(
          {robot.name, ours.model.nv, 0, task, k == 0, timed[k].name, timed[k].times, errors[k], tolerance, ""});
    rows.push_back({robot.name, task, errors[0], timed[0].times, fastest({timed.begin() + 1, timed.end()})});
  };
  const auto torque = [&](int s) { return peer.torque(s); };
  const auto mass_matrix = [&](int s) { return peer.mass_matrix(s); };
  const auto acceleration = [&](int s) { return peer.acceleration(s); };
  const auto inverse = [&](int s) { return peer.mass_matrix_inverse(s); };
  const auto columns = [&](int s) { return peer.columns(s); };

  add("RNEA", {{"rnea", [&](int s) { ours.rnea(s); }, [&](int) { return ours.torque; }},
               {"rnea", [&](int s) { peer.rnea(s); }, torque}});
  add("CRBA", {{"crba", [&](int s) { ours.crba(s); }, [&](int) { return ours.M; }},
               {"crba LOCAL", [&](int s) { peer.crba_local(s); }, mass_matrix},
               {"crba WORLD", [&](int s) { peer.crba_world(s); }, mass_matrix}});
  add("ABA", {{"aba", [&](int s) { ours.aba(s); }, [&](int) { return ours.acceleration; }},
              {"aba LOCAL", [&](int s) { peer.aba_local(s); }, acceleration},
              {"aba WORLD", [&](int s) { peer.aba_world(s); }, acceleration}});
  add("Minv", {{"mass_matrix_inverse", [&](int s) { ours.minverse(s); }, [&](int) { return ours.Minv; }},
               {"computeMinverse", [&](int s) { peer.minverse(s); }, inverse}});
  for (const int n : {1, 64}) {
    ours.set_right_hand_sides(n, rng);
    add("solve " + std::to_string(n),
        {{"factorize, solve", [&](int s) { ours.solve(s); }, [&](int) { return ours.X; }},
         {"crba, cholesky::solve", [&](int s) { peer.solve_cholesky(s); }, columns},
         {"computeMinverse, product", [&](int s) { peer.solve_minverse(s); }, columns}},
        [&](int s) { peer.set_right_hand_sides(s, ours.Y, n); });
  }
  return rows;
}

// The table of benchmarks/README.md: best (median) of both sides.
std::string markdown(const std::vector<Row>& rows) {
  std::string out =
      "| robot | task | difference | delassus, µs | Pinocchio, µs | its fastest way | ratio of bests | of medians "
      "|\n|---|---|---|---|---|---|---|---|\n";
  Spread bests, medians;
  for (const Row& r : rows) {
    const Times &mine = r.ours, &theirs = r.theirs.times;
    out += text("| %s | %s | %.0e | %.2f (%.2f) | %.2f (%.2f) | %s | %.1f | %.1f |\n", r.robot.c_str(), r.task.c_str(),
                r.error, mine.best, mine.median, theirs.best, theirs.median, r.theirs.name.c_str(),
                theirs.best / mine.best, theirs.median / mine.median);
    bests.add(theirs.best / mine.best), medians.add(theirs.median / mine.median);
  }
  return out + text("\nPinocchio's fastest over ours: %.2f in geometric mean, %.2f at least; medians %.2f and %.2f.\n",
                    bests.mean(), bests.least, medians.mean(), medians.least);
}

std::string run_all(const std::vector<Robot>& robots, int repeats, Records& records) {
  std::vector<Row> rows;
  for (const auto& robot : robots)
    for (auto& row : run(robot, repeats, records)) rows.push_back(std::move(row));
  return markdown(rows);
}

int main(int argc, char** argv) {
  return program<PinocchioSide>(argc, argv, text("samples of %g µs over %d states", sample_time, states), run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
