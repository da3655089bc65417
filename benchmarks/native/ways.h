// Several ways to each result of a robot, ours and Pinocchio's, in one process: agreement first, then time.
//
// A sample is the mean time of a call over some calls that walk through random states. Samples of all contenders
// alternate, so that a slow moment of the machine hits all of them; the table shows the best and the median.
#pragma once

#include "our_tree.h"
#include "timing.h"

namespace bench {

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

// All tasks of one robot.
struct Tasks {
  const std::string robot;
  const int nv, states, repeats;
  const double tolerance;
  Records& records;
  std::vector<Row> rows{};

  void add(const std::string& task, const std::vector<Way>& ways, const std::function<void(int)>& prepare = {}) {
    Vector errors(ways.size());
    std::vector<Contender> contenders;
    for (const auto& way : ways) contenders.push_back({way.name, [this, &way](int n) { way.call(n % states); }});
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
      records.add({robot, nv, 0, task, k == 0, timed[k].name, timed[k].times, errors[k], tolerance, ""});
    rows.push_back({robot, task, errors[0], timed[0].times, fastest({timed.begin() + 1, timed.end()})});
  }
};

// The table of benchmarks/README.md: best (median) of both sides.
inline std::string markdown(const std::vector<Row>& rows) {
  std::string out =
      "| robot | task | difference | delassus, µs | Pinocchio, µs | its fastest variant | ratio of bests | of medians "
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

// Both sides at the same random states, which must be of the same size.
template <class Peer>
void share_states(OurTree& ours, Peer& peer, const std::string& name, int states, std::mt19937& rng) {
  if (ours.model.nv != peer.nv() || ours.model.nq != peer.nq())
    throw std::runtime_error("the two models differ in size: " + name);
  ours.state = random_states(ours.model, states, rng);
  for (const auto& s : ours.state) peer.add_state(s);
}

// run(robot, repeats, records) for every robot, as one table
template <class Run>
std::string table_of(const std::vector<Robot>& robots, int repeats, Records& records, Run&& run) {
  std::vector<Row> rows;
  for (const auto& robot : robots)
    for (auto& row : run(robot, repeats, records)) rows.push_back(std::move(row));
  return markdown(rows);
}

}  // namespace bench
