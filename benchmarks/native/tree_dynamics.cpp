// Tree dynamics of this library's core and of Pinocchio, in one process, each from q: agreement first, then time.
//
//   tree_dynamics ROBOTS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
//
// One sample is the mean time of a call over `batch` calls that walk through `states` random states. Samples of all
// contenders alternate, so that a slow moment of the machine hits all of them; the table shows the best and the median.
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>

#include "core_model.h"
#include "dynamics/aba.h"
#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/rnea.h"
#include "dynamics/solve.h"
#include "pinocchio_side.h"
#include "report.h"

namespace bench {
namespace {

constexpr int states = 64, batch = 256;
constexpr double tolerance = 1e-10;

// This library: everything allocated here, each algorithm behind a call, as on the other side.
class OurSide {
 public:
  explicit OurSide(const Robot& robot)
      : model(dl::build_model(description(robot))),
        w(model),
        torque(model.nv),
        acceleration(model.nv),
        M(std::size_t(model.nv) * model.nv),
        Minv(M.size()) {}

  const dl::Model<double> model;
  dl::Workspace<double> w;
  std::vector<State> state;
  std::vector<double> torque, acceleration, M, Minv, Y, X;
  int columns = 0;

  [[gnu::noinline]] void rnea(int s) {
    dl::kinematics(model, w, state[s].q.data());
    dl::rnea(model, w, state[s].v.data(), state[s].acceleration.data(), none, torque.data());
  }
  [[gnu::noinline]] void crba(int s) {
    dl::kinematics(model, w, state[s].q.data());
    dl::crba(model, w, M.data(), false);
  }
  [[gnu::noinline]] void aba(int s) {
    dl::kinematics(model, w, state[s].q.data());
    dl::aba(model, w, state[s].v.data(), state[s].torque.data(), none, acceleration.data());
  }
  [[gnu::noinline]] void minverse(int s) {
    dl::kinematics(model, w, state[s].q.data());
    dl::mass_matrix_inverse(model, w, Minv.data());
  }
  [[gnu::noinline]] void solve(int s) {
    dl::kinematics(model, w, state[s].q.data());
    dl::factorize(model, w);
    dl::solve_mass_matrix(model, w, Y.data(), columns, X.data());
  }

 private:
  static constexpr const double* none = nullptr;
};

std::vector<State> random_states(const dl::Model<double>& model, std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::normal_distribution<double> normal;
  std::vector<State> out(states);
  for (State& s : out) {
    s.q.resize(model.nq), s.v.resize(model.nv), s.acceleration.resize(model.nv), s.torque.resize(model.nv);
    for (double& x : s.q) x = 1.5 * uniform(rng);
    for (double& x : s.v) x = uniform(rng);
    for (double& x : s.acceleration) x = 5 * uniform(rng);
    for (double& x : s.torque) x = 20 * uniform(rng);
    for (const auto& link : model.links) {
      if (link.type != dl::Joint::free && link.type != dl::Joint::ball) continue;
      double* c = &s.q[link.iq + (link.type == dl::Joint::free ? 3 : 0)];
      double n = 0;
      for (int k = 0; k < 4; ++k) c[k] = normal(rng), n += c[k] * c[k];
      for (int k = 0; k < 4; ++k) c[k] /= std::sqrt(n);
    }
  }
  return out;
}

struct Contender {
  std::string name;
  std::function<void(int)> call;
  std::function<std::vector<double>(int)> result;
};
struct Row {
  std::string robot, task;
  double error = 0;
  Times ours;
  std::string peer;  // the fastest of Pinocchio's ways
  Times theirs;
  std::vector<std::pair<std::string, Times>> all;
};

double sample(const Contender& c) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  for (int n = 0; n < batch; ++n) c.call(n % states);
  return std::chrono::duration<double, std::micro>(clock::now() - start).count() / batch;
}

// contenders[0] is ours, the others are Pinocchio's ways to the same result
Row measure(const std::string& robot, const std::string& task, const std::vector<Contender>& contenders, int repeats,
            const std::function<void(int)>& prepare = {}) {
  Row row{robot, task, 0, {}, {}, {}, {}};
  for (int s = 0; s < states; ++s) {
    if (prepare) prepare(s);
    contenders[0].call(s);
    const auto ours = contenders[0].result(s);
    for (std::size_t k = 1; k < contenders.size(); ++k) {
      contenders[k].call(s);
      row.error = std::max(row.error, difference(ours, contenders[k].result(s)));
    }
  }

  std::vector<std::vector<double>> samples(contenders.size());
  for (const auto& c : contenders) sample(c);
  for (int r = 0; r < repeats; ++r)
    for (std::size_t k = 0; k < contenders.size(); ++k) samples[k].push_back(sample(contenders[k]));

  for (std::size_t k = 0; k < contenders.size(); ++k) row.all.emplace_back(contenders[k].name, summary(samples[k]));
  row.ours = row.all[0].second;
  const auto fastest = std::min_element(row.all.begin() + 1, row.all.end(), [](const auto& a, const auto& b) { return a.second.best < b.second.best; });
  row.peer = fastest->first;
  row.theirs = fastest->second;
  return row;
}

void print(const Row& r) {
  std::printf("%-6s %-9s %9.1e | %8.3f %8.3f %8.3f | %8.3f %8.3f %8.3f  %-24s | %5.2f %5.2f\n", r.robot.c_str(), r.task.c_str(), r.error,
              r.ours.best, r.ours.median, r.ours.upper, r.theirs.best, r.theirs.median, r.theirs.upper, r.peer.c_str(),
              r.theirs.best / r.ours.best, r.theirs.median / r.ours.median);
  std::fflush(stdout);
}

std::vector<Row> run(const Robot& robot, int repeats) {
  OurSide ours(robot);
  PinocchioSide peer(robot);
  if (ours.model.nv != peer.nv() || ours.model.nq != peer.nq()) throw std::runtime_error("the two models differ in size: " + robot.name);
  std::mt19937 rng(7);
  ours.state = random_states(ours.model, rng);
  for (const auto& s : ours.state) peer.add_state(s);

  const auto torque = [&](int s) { return peer.torque(s); };
  const auto mass_matrix = [&](int s) { return peer.mass_matrix(s); };
  const auto acceleration = [&](int s) { return peer.acceleration(s); };
  const auto inverse = [&](int s) { return peer.mass_matrix_inverse(s); };
  const auto columns = [&](int s) { return peer.columns(s); };

  std::vector<Row> rows;
  const auto add = [&](Row row) { print(rows.emplace_back(std::move(row))); };
  add(measure(robot.name, "RNEA",
              {{"ours", [&](int s) { ours.rnea(s); }, [&](int) { return ours.torque; }},
               {"rnea", [&](int s) { peer.rnea(s); }, torque}},
              repeats));
  add(measure(robot.name, "CRBA",
              {{"ours", [&](int s) { ours.crba(s); }, [&](int) { return ours.M; }},
               {"crba LOCAL", [&](int s) { peer.crba_local(s); }, mass_matrix},
               {"crba WORLD", [&](int s) { peer.crba_world(s); }, mass_matrix}},
              repeats));
  add(measure(robot.name, "ABA",
              {{"ours", [&](int s) { ours.aba(s); }, [&](int) { return ours.acceleration; }},
               {"aba LOCAL", [&](int s) { peer.aba_local(s); }, acceleration},
               {"aba WORLD", [&](int s) { peer.aba_world(s); }, acceleration}},
              repeats));
  add(measure(robot.name, "Minv",
              {{"ours", [&](int s) { ours.minverse(s); }, [&](int) { return ours.Minv; }},
               {"computeMinverse", [&](int s) { peer.minverse(s); }, inverse}},
              repeats));
  for (const int n : {1, 64}) {
    ours.columns = n;
    ours.Y.resize(std::size_t(ours.model.nv) * n);
    ours.X.resize(ours.Y.size());
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& y : ours.Y) y = uniform(rng);
    add(measure(robot.name, "solve " + std::to_string(n),
                {{"ours", [&](int s) { ours.solve(s); }, [&](int) { return ours.X; }},
                 {"crba, cholesky::solve", [&](int s) { peer.solve_cholesky(s); }, columns},
                 {"computeMinverse, product", [&](int s) { peer.solve_minverse(s); }, columns}},
                repeats, [&](int s) { peer.set_right_hand_sides(s, ours.Y, n); }));
  }
  return rows;
}

std::string json(const Facts& facts, const std::vector<Row>& rows) {
  std::ostringstream out;
  out << "{\n";
  for (const auto& [key, value] : facts) out << "  " << quoted(key) << ": " << quoted(value) << ",\n";
  out << "  \"unit\": \"microseconds a call\",\n  \"rows\": [";
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Row& r = rows[k];
    out << (k ? ",\n    " : "\n    ") << "{\"robot\": " << quoted(r.robot) << ", \"task\": " << quoted(r.task) << ", \"error\": " << r.error
        << ", \"ours\": " << json(r.ours) << ", \"pinocchio\": {";
    for (std::size_t i = 1; i < r.all.size(); ++i) out << (i > 1 ? ", " : "") << quoted(r.all[i].first) << ": " << json(r.all[i].second);
    out << "}}";
  }
  out << "\n  ]\n}\n";
  return out.str();
}

// The table of benchmarks/README.md: best (median) of both sides.
std::string markdown(const std::vector<Row>& rows) {
  std::ostringstream out;
  out << "| robot | task | difference | delassus, µs | Pinocchio, µs | its fastest way | ratio of bests |\n|---|---|---|---|---|---|---|\n";
  for (const Row& r : rows) {
    char line[256];
    std::snprintf(line, sizeof line, "| %s | %s | %.0e | %.2f (%.2f) | %.2f (%.2f) | %s | %.1f |\n", r.robot.c_str(), r.task.c_str(), r.error,
                  r.ours.best, r.ours.median, r.theirs.best, r.theirs.median, r.peer.c_str(), r.theirs.best / r.ours.best);
    out << line;
  }
  return out.str();
}

int main(int argc, char** argv) {
  const auto [file, json_file, markdown_file, only, repeats] = read_options(argc, argv);
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read the robots from `" + file + "`");
  const auto robots = chosen(read_robots(in), only);

  const Facts facts = {
      {"cpu", cpu_model()},          {"compiler", BENCH_COMPILER},
      {"flags", BENCH_FLAGS},        {"commit", BENCH_COMMIT},
      {"pinocchio", PinocchioSide::version()}, {"eigen", PinocchioSide::eigen_version()},
      {"sampling", std::to_string(repeats) + " samples of " + std::to_string(batch) + " calls over " + std::to_string(states) + " states"}};
  for (const auto& [key, value] : facts) std::printf("%-10s %s\n", key.c_str(), value.c_str());
  std::printf("\nµs a call %16s | %26s | %51s | %s\n", "", "delassus", "Pinocchio, its fastest way", "Pinocchio / delassus");
  std::printf("%-6s %-9s %9s | %8s %8s %8s | %8s %8s %8s  %-24s | %5s %5s\n", "robot", "task", "error", "best", "median", "p90", "best", "median",
              "p90", "way", "best", "median");

  std::vector<Row> rows;
  for (const auto& robot : robots)
    for (auto& row : run(robot, repeats)) rows.push_back(std::move(row));

  write(json_file, json(facts, rows));
  write(markdown_file, markdown(rows));
  int wrong = 0;
  for (const Row& r : rows) wrong += !(r.error <= tolerance);
  if (wrong) std::fprintf(stderr, "%d rows disagree by more than %g: their times mean nothing\n", wrong, tolerance);
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
