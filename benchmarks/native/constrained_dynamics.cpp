// Constrained forward dynamics by the methods of this library's core and of Pinocchio, three proximal iterations each,
// in one process: agreement first, then time.
//
//   constrained_dynamics SETS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
//
// A sample is the mean time of a call over some calls that walk through states. Samples of all contenders alternate, so
// that a slow moment of the machine hits all of them; the tables show the best.
#include <tuple>

#include "pinocchio_dynamics.h"
#include "solvers/batch_constrained.h"
#include "timing.h"

namespace bench {
namespace {

constexpr int states = 16, iterations = 3;
constexpr double damping = 1e-6;  // ε, 1 / µ of the paper
// Largest ‖a − b‖ / ‖b‖ of accelerations from the dense solve, of robots by our methods and by Pinocchio's, whose
// constrainedABA wastes an iteration, and of chains and trees, whose ends are far from the point about which moments
// are taken. Without the dense solve ours is judged by itself after many iterations.
constexpr double bound = 1e-9, peer_bound = 1e-4, far_bound = 1e-5;
constexpr int many_iterations = 10;
// Pinocchio's Data keeps arrays of nv³ numbers.
constexpr int most_peer_velocities = 100;

// Ours: a solver with the call of dl::ConstrainedDynamics, and what it is called. Another one is one more entry.
template <class S>
struct Method {
  using Solver = S;
  const char* name;
};
constexpr auto methods = std::tuple{Method<dl::ConstrainedDynamics<double>>{"lcaba"}};
// And a batch of states on one thread, time a state: numbers come and go state by state, as a user has them.
constexpr int batch = 128;
constexpr const char* batch_name = "lcaba, batch of 128";

auto layout_of(const dl::Model<double>& model, const Robot& robot) {
  return std::make_shared<const dl::Layout<double>>(model, dl::make_constraints(model, constraint_descriptions(robot)),
                                                    dl::strip_lanes<double>);
}

// One solver of ours: everything allocated here.
template <class Solver>
class OurDynamics {
 public:
  OurDynamics(const dl::Model<double>& model, const Robot& robot, const std::vector<State>& list)
      : list_(list),
        layout_(layout_of(model, robot)),
        solver_(model, layout_),
        epsilon_(std::size_t(solver_.rows()), damping),
        lambda_(epsilon_.size()),
        vdot_(std::size_t(model.nv)) {}

  [[gnu::noinline]] void run(int call, int max_iterations = iterations) {
    const State& s = list_[call % list_.size()];
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    solver_.solve(s.q.data(), s.v.data(), s.torque.data(), nullptr, nullptr, epsilon_.data(), max_iterations, 0.0,
                  lambda_.data(), vdot_.data(), &report_, nullptr);
  }
  const Vector& acceleration(int s, int max_iterations = iterations) {
    run(s, max_iterations);
    return vdot_;
  }
  int taken() const { return report_.iterations; }

 private:
  const std::vector<State> list_;
  const std::shared_ptr<const dl::Layout<double>> layout_;
  Solver solver_;
  Vector epsilon_, lambda_, vdot_;
  dl::Report<double> report_;
};

// The states again and again until they are a batch.
class OurBatch {
 public:
  OurBatch(const dl::Model<double>& model, const Robot& robot, const std::vector<State>& list)
      : solver_(model, dl::make_constraints(model, constraint_descriptions(robot)), batch, 1, false),
        nv_(std::size_t(model.nv)),
        epsilon_(std::size_t(batch * solver_.rows()), damping),
        compliance_(epsilon_.size()),
        lambda_(epsilon_.size()),
        vdot_(batch * nv_),
        reports_(std::size_t(batch)) {
    for (int k = 0; k < batch; ++k) {
      const State& s = list[k % list.size()];
      for (const auto& [from, to] : {std::pair{&s.q, &q_}, {&s.v, &v_}, {&s.torque, &tau_}})
        to->insert(to->end(), from->begin(), from->end());
    }
  }

  [[gnu::noinline]] void run(int max_iterations = iterations) {
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    solver_.solve(q_.data(), v_.data(), tau_.data(), nullptr, nullptr, epsilon_.data(), compliance_.data(),
                  max_iterations, 0.0, lambda_.data(), vdot_.data(), reports_.data());
  }
  Vector acceleration(int k) const {
    return {vdot_.begin() + std::ptrdiff_t(k * nv_), vdot_.begin() + std::ptrdiff_t((k + 1) * nv_)};
  }
  int taken(int k) const { return reports_[std::size_t(k)].iterations; }

 private:
  dl::BatchConstrainedDynamics<double> solver_;
  const std::size_t nv_;
  Vector q_, v_, tau_, epsilon_, compliance_, lambda_, vdot_;
  std::vector<dl::Report<double>> reports_;
};

// ---- results --------------------------------------------------------------------------------------------------------

struct Result {
  std::string name;
  bool ours;
  double difference;  // the worst of all states
  Times times{};      // a state
};
struct Row {
  std::string set;
  int nv, rows;
  bool judged;  // by the dense solve; else ours by itself
  std::vector<Result> single, batch;
};

std::vector<State> make_states(const dl::Model<double>& model, const Robot& robot) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<State> out;
  for (const Vector& q : states_near(model, robot.q, states, rng)) {
    State s{q, Vector(std::size_t(model.nv)), {}, Vector(std::size_t(model.nv))};
    for (double& x : s.v) x = uniform(rng);
    for (double& x : s.torque) x = 10 * uniform(rng);
    out.push_back(std::move(s));
  }
  return out;
}

// Solvers live as long as what calls them.
struct Field {
  std::vector<std::shared_ptr<void>> alive;
  std::vector<Contender> contenders;
};

void check_taken(int taken, const Robot& robot, const char* name) {
  if (taken != iterations)
    throw std::runtime_error(robot.name + ": " + name + " took " + std::to_string(taken) + " iterations");
}

// A method of ours enters the field once its results were judged.
template <class Solver>
void enter(const Method<Solver>& method, const dl::Model<double>& model, const Robot& robot,
           const std::vector<State>& list, const std::vector<Vector>& truth, std::vector<Result>& results,
           Field& field) {
  auto ours = std::make_shared<OurDynamics<Solver>>(model, robot, list);
  double worst = 0;
  for (int s = 0; s < states; ++s) {
    const Vector want = truth.empty() ? ours->acceleration(s, many_iterations) : truth[s];
    worst = std::max(worst, difference(ours->acceleration(s), want));
    check_taken(ours->taken(), robot, method.name);
  }
  field.contenders.push_back({method.name, [solver = ours.get()](int n) { solver->run(n); }});
  field.alive.push_back(std::move(ours));
  results.push_back({method.name, true, worst});
}

// So does the batch: every state of it is compared with the dense solve, and with the same state by itself.
void enter_batch(const dl::Model<double>& model, const Robot& robot, const std::vector<State>& list,
                 const std::vector<Vector>& truth, std::vector<Result>& results, Field& field) {
  auto ours = std::make_shared<OurBatch>(model, robot, list);
  OurDynamics<dl::ConstrainedDynamics<double>> alone(model, robot, list);
  double worst = 0;
  ours->run();
  for (int k = 0; k < batch; ++k) {
    const int s = k % states;
    const Vector got = ours->acceleration(k);
    worst = std::max(worst, difference(got, alone.acceleration(s)));
    if (!truth.empty()) worst = std::max(worst, difference(got, truth[s]));
    check_taken(ours->taken(k), robot, batch_name);
  }
  field.contenders.push_back({batch_name, [solver = ours.get()](int) { solver->run(); }});
  field.alive.push_back(std::move(ours));
  results.push_back({batch_name, true, worst});
}

Row run(const Robot& robot, int repeats) {
  std::fprintf(stderr, "%s\n", robot.name.c_str());
  const auto model = dl::build_model(description(robot));
  auto list = make_states(model, robot);
  std::unique_ptr<PinocchioDynamics> peer;
  std::vector<Vector> truth;
  if (model.nv <= most_peer_velocities) {
    peer = std::make_unique<PinocchioDynamics>(robot, damping, iterations);
    for (auto& s : list) peer->make_consistent(s), peer->add_state(s);
    for (int s = 0; s < states; ++s) truth.push_back(peer->dense(s));
  }

  Row row{robot.name, model.nv, 0, !truth.empty(), {}, {}};
  for (const auto& c : robot.constraints) row.rows += c.rows;
  Field single, together;
  std::apply([&](const auto&... m) { (enter(m, model, robot, list, truth, row.single, single), ...); }, methods);
  enter_batch(model, robot, list, truth, row.batch, together);
  if (peer)
    for (int k = 0; k < PinocchioDynamics::ways; ++k) {
      const auto way = PinocchioDynamics::Way(k);
      double worst = 0;
      for (int s = 0; s < states; ++s) worst = std::max(worst, difference(peer->acceleration(way, s), truth[s]));
      if (const int taken = peer->iterations(way); taken != 0 && taken != iterations)
        throw std::runtime_error(robot.name + ": Pinocchio's " + PinocchioDynamics::name(way) + " took " +
                                 std::to_string(taken) + " iterations");
      row.single.push_back({PinocchioDynamics::name(way), false, worst});
      single.contenders.push_back(
          {PinocchioDynamics::name(way), [&p = *peer, way](int n) { p.solve(way, n % states); }});
    }

  // all in one field, so that a batch and single states meet the same moments
  std::vector<Result> all = row.single;
  all.insert(all.end(), row.batch.begin(), row.batch.end());
  std::vector<Contender> contenders = single.contenders;
  contenders.insert(contenders.end(), together.contenders.begin(), together.contenders.end());
  time_all(all, contenders, repeats);
  const auto middle = all.begin() + std::ptrdiff_t(row.single.size());
  row.single.assign(all.begin(), middle);
  row.batch.assign(middle, all.end());
  for (auto& r : row.batch) r.times = r.times.share(batch);
  return row;
}

// ---- reports --------------------------------------------------------------------------------------------------------

bool is_scaling(const Row& row) { return row.set.rfind("chain-", 0) == 0 || row.set.rfind("tree-", 0) == 0; }

// Pinocchio's fastest over our fastest, one at a time and in batches; 0 without Pinocchio
double ratio(const Row& row, const std::vector<Result>& mine) {
  const Result* theirs = best_of(row.single, false);
  return theirs ? theirs->times.best / best_of(mine, true)->times.best : 0;
}
double worst(const std::vector<Result>& all, bool ours) {
  double out = 0;
  for (const auto& r : all)
    if (r.ours == ours) out = std::max(out, r.difference);
  return out;
}

void record(const Row& row, Records& records) {
  const std::string judge = quoted(row.judged ? "dense solve" : text("itself after %d iterations", many_iterations));
  for (const auto* all : {&row.single, &row.batch})
    for (const auto& r : *all)
      records.add({row.set, row.nv, row.rows, all == &row.batch ? "accelerations, batch" : "accelerations", r.ours,
                   r.name, r.times, r.difference,
                   !r.ours           ? peer_bound
                   : is_scaling(row) ? far_bound
                                     : bound,
                   ", \"judge\": " + judge});
}

// The tables of benchmarks/README.md: robots, then growth.
std::string markdown(const std::vector<Row>& rows) {
  std::ostringstream out;
  for (const bool scaling : {false, true}) {
    std::vector<const Row*> chosen;
    for (const auto& row : rows)
      if (is_scaling(row) == scaling) chosen.push_back(&row);
    if (chosen.empty()) continue;
    int cells = 0;
    const auto head = [&](const std::string& name) { out << " " << name << " |", ++cells; };
    out << "|";
    for (const char* name : {"set", "nv", "m"}) head(name);
    std::apply([&](auto... m) { (head(m.name), ...); }, methods);
    head(batch_name);
    if (scaling) head("ns a velocity");
    for (int k = 0; k < PinocchioDynamics::ways; ++k)
      head(std::string("Pinocchio ") + PinocchioDynamics::name(PinocchioDynamics::Way(k)));
    for (const char* name : {"ratio", "batch ratio", "difference"}) head(name);
    for (int k = 0; k < PinocchioDynamics::ways; ++k)
      head(std::string("of ") + PinocchioDynamics::name(PinocchioDynamics::Way(k)));
    out << "\n|";
    for (int k = 0; k < cells; ++k) out << "---|";
    out << "\n";
    Spread single, together;
    for (const Row* row : chosen) {
      const Result *mine = best_of(row->single, true), *theirs = best_of(row->single, false);
      out << text("| %s | %d | %d |", row->set.c_str(), row->nv, row->rows);
      const auto cell = [&](const char* name) {
        const Result* r = named(row->single, true, name);
        out << (r ? text(r == mine ? " **%.2f** |" : " %.2f |", r->times.best) : " |");
      };
      std::apply([&](const auto&... m) { (cell(m.name), ...); }, methods);
      for (const auto& r : row->batch) out << text(" %.3f |", r.times.best);
      if (scaling) out << text(" %.0f |", 1e3 * mine->times.best / row->nv);
      for (int k = 0; k < PinocchioDynamics::ways; ++k) {
        const Result* r = named(row->single, false, PinocchioDynamics::name(PinocchioDynamics::Way(k)));
        out << (r ? text(r == theirs ? " **%.2f** |" : " %.2f |", r->times.best) : " |");
      }
      if (theirs) {
        out << text(" %.2f | %.1f |", ratio(*row, row->single), ratio(*row, row->batch));
        single.add(ratio(*row, row->single)), together.add(ratio(*row, row->batch));
      } else {
        out << " | |";
      }
      out << text(" %.0e |", std::max(worst(row->single, true), worst(row->batch, true)));
      for (int k = 0; k < PinocchioDynamics::ways; ++k) {
        const Result* r = named(row->single, false, PinocchioDynamics::name(PinocchioDynamics::Way(k)));
        out << (r ? text(" %.0e |", r->difference) : " |");
      }
      out << "\n";
    }
    if (single.count && !scaling)
      out << text(
          "\nPinocchio's fastest over our fastest: %.2f in geometric mean, %.2f at least; over a state of a batch %.1f "
          "and %.1f.\n",
          single.mean(), single.least, together.mean(), together.least);
    out << "\n";
  }
  return out.str();
}

std::string run_all(const std::vector<Robot>& sets, int repeats, Records& records) {
  std::vector<Row> rows;
  for (const auto& set : sets) record(rows.emplace_back(run(set, repeats)), records);
  return markdown(rows);
}

int main(int argc, char** argv) {
  return program<PinocchioDynamics>(
      argc, argv,
      text("samples of %g µs over %d states; %d iterations, damping %g", sample_time, states, iterations, damping),
      run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
