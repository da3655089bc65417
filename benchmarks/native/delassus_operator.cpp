// The Delassus operator of this library's core and those of Pinocchio, in one process, on the scenes of Table I:
// agreement first, then time.
//
//   delassus_operator SCENES [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
//
// A sample is the mean time of a call over some calls that walk through vectors, dampings and states. Samples of all
// contenders alternate, so that a slow moment of the machine hits all of them; the table shows the best. Pinocchio's
// fastest variant stands in the table.
#include "operators/batch.h"
#include "pinocchio_operator.h"
#include "timing.h"

namespace bench {
namespace {

constexpr int inputs = 16, states = 32;
constexpr int batch = 128, large_batch = 1024;  // states: within the second cache, and beyond it
constexpr double damping = 1e-4;
// Largest ‖a − b‖ / ‖b‖ of products, and largest backward error ‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖) of inverses
// without and with refinement.
constexpr double product_bound = 1e-9, inverse_bound = 1e-9, refined_bound = 1e-12, single_bound = 1e-3;
// A swimmer is up to 2 km long, about one reference point.
constexpr double long_inverse_bound = 1e-6, long_refined_bound = 1e-11;
// Pinocchio's Data keeps arrays of nv³ numbers: 32 GB for 1,000 links.
constexpr int most_peer_velocities = 400;
constexpr int refinements = 8;
constexpr double refinement_tolerance = 2e-13, refinement_limit = 1e-12;  // those of the Python front

enum Column { first_apply, apply, first_solve, solve, damp_solve, state_apply, columns };
constexpr std::array<const char*, columns> column_names = {"first application", "re-application", "first inverse",
                                                           "re-inverse",        "new damping",    "from q"};

// Table I of the paper: memory of its operator and of its inverse, kB.
struct Published {
  const char* scene;
  int apply_kb, solve_kb;
};
constexpr Published published[] = {
    {"go2-standing", 26, 29},         {"go2-standing-friction", 28, 32}, {"go2-fallen", 38, 42},
    {"go2-fallen-friction", 45, 49},  {"cassie-standing", 53, 69},       {"cassie-standing-friction", 57, 72},
    {"g1-standing", 91, 110},         {"g1-standing-friction", 94, 117}, {"g1-fallen", 47, 62},
    {"g1-fallen-friction", 50, 65},   {"box-stack", 241, 269},           {"box-pyramid", 755, 826},
    {"pyramid-with-robots", 473, 730}};

// What both sides are given: vectors, one damping a vector, configurations of which the first is the scene's.
struct Inputs {
  std::vector<Vector> vectors, dampings, q;
};

Inputs make_inputs(const dl::Model<double>& model, const Vector& q, int rows) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Inputs in;
  for (int k = 0; k < inputs; ++k) {
    Vector x(std::size_t(rows), 0);
    for (double& e : x) e = uniform(rng);
    in.vectors.push_back(x);
    in.dampings.emplace_back(std::size_t(rows), damping * (1 + 0.1 * (k % 7)));
  }
  in.q = states_near(model, q, states, rng);
  return in;
}

// This library: everything allocated here, each column behind a call, as on the other side.
class OurOperator {
 public:
  explicit OurOperator(const Robot& robot)
      : model(dl::build_model(description(robot))),
        G(model, dl::make_constraints(model, constraint_descriptions(robot))),
        out(std::size_t(G.rows())) {}

  const dl::Model<double> model;
  dl::Delassus<double> G;
  Inputs in;
  Vector out;

  void kinematics(int s) { G.place(in.q[s].data()); }
  [[gnu::noinline]] void first_apply(int k) {
    G.prepare();
    G.factorize();
    apply(k);
  }
  [[gnu::noinline]] void apply(int k) { G.apply(in.vectors[k].data(), 1, out.data()); }
  [[gnu::noinline]] void first_solve(int k) {
    G.prepare();
    damp_solve(k, 0);
  }
  [[gnu::noinline]] void solve(int k) { G.solve(in.vectors[k].data(), 1, out.data()); }
  [[gnu::noinline]] void damp_solve(int k, int damping) {
    G.set_damping(in.dampings[damping].data());
    solve(k);
  }
  [[gnu::noinline]] void state_apply(int s, int k) {
    G.update(in.q[s].data());
    apply(k);
  }
  [[gnu::noinline]] void refined_solve(int k) {
    G.solve(in.vectors[k].data(), 1, out.data(), {refinements, refinement_tolerance, refinement_limit});
  }
};

double norm(const Vector& x) {
  double sum = 0;
  for (const double e : x) sum += e * e;
  return std::sqrt(sum);
}

// Backward errors of anyone's solutions, with our G, which agrees with the peers'.
class Judge {
 public:
  explicit Judge(OurOperator& ours) : ours(ours) {
    // ‖G‖ at the scene's q, by power iteration
    ours.state_apply(0, 0);
    Vector x = ours.in.vectors[0], y(x.size());
    for (int n = 0; n < 50; ++n) {
      const double size = norm(x);
      for (double& e : x) e /= size;
      ours.G.apply(x.data(), 1, y.data());
      largest = norm(y);
      std::swap(x, y);
    }
  }
  double backward_error(const Vector& x, int vector, int damping) {
    Vector r(x.size());
    ours.G.apply(x.data(), 1, r.data());
    const auto& y = ours.in.vectors[vector];
    const auto& shift = ours.in.dampings[damping];
    for (std::size_t i = 0; i < r.size(); ++i) r[i] += shift[i] * x[i] - y[i];
    const double e = norm(r) / ((largest + shift[0]) * norm(x) + norm(y));
    return std::isfinite(e) ? e : HUGE_VAL;
  }

 private:
  OurOperator& ours;
  double largest = 0;
};

struct Cell {
  Times ours;
  std::vector<Timed> matrix_free, ltl;  // Pinocchio's ways
};

struct Row {
  std::string scene;
  int nv, rows;
  double product = 0, inverse = 0;  // largest differences from Pinocchio's operator: of products, of an inverse
  double ours = 0, refined = 0, matrix_free = 0, ltl = 0;  // largest backward errors
  Times refined_solve{};
  std::size_t bytes;
  std::array<Cell, columns> cells;
};

// One of Pinocchio's ways to hold constraints.
struct Peer {
  std::string name;
  std::unique_ptr<PinocchioOperator> G;
};

// Results of every column, against ours.
void compare(Row& row, OurOperator& ours, Judge& judge, std::vector<Peer>& peers, bool with_ltl, bool ground_only) {
  const auto product_of = [&](int s, int k) {
    ours.state_apply(s, k);
    return ours.out;
  };
  std::vector<Vector> products;
  for (int s = 0; s < (ground_only ? states : 1); ++s) products.push_back(product_of(s, s % inputs));
  const auto differs = [&](const Vector& theirs, const Vector& mine) {
    row.product = std::max(row.product, difference(mine, theirs));
  };
  const auto product = [&](PinocchioOperator& G, const std::function<void(int)>& call, int k, const Vector& mine) {
    call(k);
    differs(G.result(), mine);
  };

  ours.kinematics(0);
  Vector again;
  ours.first_apply(0), differs(products[0], ours.out);
  ours.apply(1), again = ours.out;
  ours.first_solve(0), row.ours = std::max(row.ours, judge.backward_error(ours.out, 0, 0));
  ours.solve(1), row.ours = std::max(row.ours, judge.backward_error(ours.out, 1, 0));
  ours.refined_solve(2), row.refined = judge.backward_error(ours.out, 2, 0);
  const Vector refined = ours.out;
  ours.damp_solve(3, 3), row.ours = std::max(row.ours, judge.backward_error(ours.out, 3, 3));

  for (auto& peer : peers) {
    auto& G = *peer.G;
    G.kinematics(0);
    product(G, [&](int k) { G.first_apply(k); }, 0, products[0]);
    product(G, [&](int k) { G.apply(k); }, 1, again);
    const auto error = [&](double& worst, int k, int damping) {
      worst = std::max(worst, judge.backward_error(G.result(), k, damping));
    };
    G.first_solve(0), error(row.matrix_free, 0, 0);
    G.solve(1), error(row.matrix_free, 1, 0);
    G.solve(2), row.inverse = std::max(row.inverse, difference(refined, G.result()));
    G.damp_solve(3), error(row.matrix_free, 3, 3);
    for (int s = 0; s < int(products.size()); ++s) {
      product(G, [&](int k) { G.state_apply_placements(s, k); }, s % inputs, products[s]);
      product(G, [&](int k) { G.state_apply_jacobians(s, k); }, s % inputs, products[s]);
    }
    if (!with_ltl) continue;
    G.ltl_kinematics(0);
    product(G, [&](int k) { G.ltl_first_apply(k); }, 0, products[0]);
    product(G, [&](int k) { G.ltl_apply(k); }, 1, again);
    G.ltl_first_solve(0), error(row.ltl, 0, 0);
    G.ltl_solve(1), error(row.ltl, 1, 0);
    G.ltl_damp_solve(3), error(row.ltl, 3, 3);
    product(G, [&](int k) { G.ltl_state_apply(0, k); }, 0, products[0]);
  }
}

// One column: ours first, then the ways of Pinocchio's operator, then those of LTL.
Cell measure_cell(const Contender& ours, const std::vector<Contender>& matrix_free, const std::vector<Contender>& ltl,
                  int repeats) {
  std::vector<Contender> all{ours};
  all.insert(all.end(), matrix_free.begin(), matrix_free.end());
  all.insert(all.end(), ltl.begin(), ltl.end());
  const auto timed = measure(all, repeats);
  const auto split = timed.begin() + 1 + std::ptrdiff_t(matrix_free.size());
  return {timed[0].times, {timed.begin() + 1, split}, {split, timed.end()}};
}

std::vector<Peer> make_peers(const Robot& robot, bool with_ltl) {
  std::vector<Peer> peers;
  if (auto points = pinocchio_points(robot, with_ltl)) peers.push_back({"points", std::move(points)});
  peers.push_back({"variants", pinocchio_variants(robot, with_ltl)});
  return peers;
}

bool swims(const std::string& scene) { return scene.rfind("swimmer", 0) == 0; }

Row run(const Robot& robot, int repeats) {
  const bool with_peer = robot.armature.size() <= most_peer_velocities, with_ltl = with_peer && !swims(robot.name);
  bool ground_only = true;
  for (const auto& c : robot.constraints) ground_only &= c.kind != "points" || c.other == 0;

  OurOperator ours(robot);
  ours.in = make_inputs(ours.model, robot.q, ours.G.rows());
  std::vector<Peer> peers;
  if (with_peer) peers = make_peers(robot, with_ltl);
  for (auto& peer : peers) {
    if (peer.G->rows() != ours.G.rows()) throw std::runtime_error("the two operators differ in size: " + robot.name);
    for (int s = 1; s < states; ++s) peer.G->add_state(ours.in.q[s]);
    peer.G->set_inputs(ours.in.vectors, ours.in.dampings);
  }
  Judge judge(ours);
  Row row{.scene = robot.name, .nv = ours.model.nv, .rows = ours.G.rows(), .bytes = ours.G.bytes(), .cells = {}};
  compare(row, ours, judge, peers, with_ltl, ground_only);

  const auto time = [&](Column column, const std::function<void(int)>& mine,
                        const std::vector<std::pair<std::string, void (PinocchioOperator::*)(int)>>& ways,
                        void (PinocchioOperator::*ltl_way)(int)) {
    std::fprintf(stderr, "%s: %s\n", robot.name.c_str(), column_names[column]);
    std::vector<Contender> matrix_free, ltl;
    for (auto& peer : peers) {
      for (const auto& [name, way] : ways)
        matrix_free.push_back({peer.name + name, [&G = *peer.G, way](int n) { (G.*way)(n % inputs); }});
      if (with_ltl) ltl.push_back({peer.name, [&G = *peer.G, ltl_way](int n) { (G.*ltl_way)(n % inputs); }});
    }
    row.cells[column] = measure_cell({"ours", [&](int n) { mine(n % inputs); }}, matrix_free, ltl, repeats);
  };
  ours.kinematics(0);
  for (auto& peer : peers) {
    peer.G->kinematics(0), peer.G->first_apply(0), peer.G->first_solve(0);
    if (with_ltl) peer.G->ltl_kinematics(0), peer.G->ltl_first_solve(0);
  }
  using P = PinocchioOperator;
  time(first_apply, [&](int k) { ours.first_apply(k); }, {{"", &P::first_apply}}, &P::ltl_first_apply);
  time(apply, [&](int k) { ours.apply(k); }, {{"", &P::apply}}, &P::ltl_apply);
  time(first_solve, [&](int k) { ours.first_solve(k); }, {{"", &P::first_solve}}, &P::ltl_first_solve);
  time(solve, [&](int k) { ours.solve(k); }, {{"", &P::solve}}, &P::ltl_solve);
  time(damp_solve, [&](int k) { ours.damp_solve(k, k); }, {{"", &P::damp_solve}}, &P::ltl_damp_solve);
  ours.first_solve(0);
  row.refined_solve = measure({{"refined", [&](int n) { ours.refined_solve(n % inputs); }}}, repeats)[0].times;

  std::fprintf(stderr, "%s: %s\n", robot.name.c_str(), column_names[state_apply]);
  std::vector<Contender> matrix_free, ltl;
  for (auto& peer : peers) {
    auto& G = *peer.G;
    matrix_free.push_back(
        {peer.name + ", placements", [&G](int n) { G.state_apply_placements(n % states, n % inputs); }});
    matrix_free.push_back(
        {peer.name + ", Jacobians", [&G](int n) { G.state_apply_jacobians(n % states, n % inputs); }});
    if (with_ltl) ltl.push_back({peer.name, [&G](int n) { G.ltl_state_apply(n % states, n % inputs); }});
  }
  row.cells[state_apply] =
      measure_cell({"ours", [&](int n) { ours.state_apply(n % states, n % inputs); }}, matrix_free, ltl, repeats);
  return row;
}

// ---- batches: many states of one scene, time a state ----------------------------------------------------------------

template <class Real>
struct OurBatch {
  OurBatch(const Robot& robot, const std::vector<Vector>& q, const std::vector<Vector>& vectors, int size, int threads)
      : size(size),
        model(dl::converted<Real>(dl::build_model(description(robot)))),
        G(model, dl::make_constraints(model, constraint_descriptions(robot)), size, threads),
        Y(std::size_t(size) * G.rows()) {
    for (int s = 0; s < size; ++s) {
      Q.insert(Q.end(), q[s].begin(), q[s].end());
      X.insert(X.end(), vectors[s % inputs].begin(), vectors[s % inputs].end());
    }
  }
  void apply() { G.apply(X.data(), 1, Y.data()); }
  void first_apply() {
    G.factorize();
    apply();
  }
  void state_apply() {
    G.update(Q.data());
    apply();
  }

  const int size;
  const dl::Model<Real> model;
  dl::BatchDelassus<Real> G;
  std::vector<Real> Q, X, Y;
};

struct BatchRow {
  std::string scene, way;  // one of our ways, beside Pinocchio's single call
  double error;            // largest difference of a product from that of one state in double precision
  double bound;
  Times first, from_q, again, peer_first, peer_from_q, peer_again;
};

std::vector<BatchRow> run_batches(const Robot& robot, int repeats) {
  std::fprintf(stderr, "%s: batches\n", robot.name.c_str());
  OurOperator one(robot);
  one.in = make_inputs(one.model, robot.q, one.G.rows());
  std::mt19937 rng(11);
  one.in.q = states_near(one.model, robot.q, large_batch, rng);
  Vector reference;
  for (int s = 0; s < large_batch; ++s) {
    one.state_apply(s, s % inputs);
    reference.insert(reference.end(), one.out.begin(), one.out.end());
  }
  auto peers = make_peers(robot, false);
  for (auto& peer : peers) {
    for (int s = 1; s < batch; ++s) peer.G->add_state(one.in.q[s]);
    peer.G->set_inputs(one.in.vectors, one.in.dampings);
  }
  OurBatch<double> double_small(robot, one.in.q, one.in.vectors, batch, 1),
      double_1(robot, one.in.q, one.in.vectors, large_batch, 1),
      double_2(robot, one.in.q, one.in.vectors, large_batch, 2);
  OurBatch<float> float_small(robot, one.in.q, one.in.vectors, batch, 1),
      float_1(robot, one.in.q, one.in.vectors, large_batch, 1),
      float_2(robot, one.in.q, one.in.vectors, large_batch, 2);

  std::vector<BatchRow> rows;
  std::vector<int> sizes;
  std::vector<Contender> first, from_q, again;
  const auto add = [&](const std::string& way, double bound, auto& G) {
    G.state_apply();
    const Vector wanted(reference.begin(), reference.begin() + std::ptrdiff_t(G.Y.size()));
    sizes.push_back(G.size);
    rows.push_back(
        {robot.name, way, difference(Vector(G.Y.begin(), G.Y.end()), wanted), bound, {}, {}, {}, {}, {}, {}});
    first.push_back({way, [&G](int) { G.first_apply(); }});
    from_q.push_back({way, [&G](int) { G.state_apply(); }});
    again.push_back({way, [&G](int) { G.apply(); }});
  };
  const std::string small = std::to_string(batch) + " states", large = std::to_string(large_batch) + " states";
  add("float64, " + small, product_bound, double_small);
  add("float64, " + large, product_bound, double_1);
  add("float64, " + large + ", 2 threads", product_bound, double_2);
  add("float32, " + small, single_bound, float_small);
  add("float32, " + large, single_bound, float_1);
  add("float32, " + large + ", 2 threads", single_bound, float_2);

  // as many calls of the peer as the batch has states, so that both are a batch
  const std::size_t ways = rows.size();
  for (auto& peer : peers) {
    auto& G = *peer.G;
    first.push_back({peer.name, [&G](int) {
                       for (int s = 0; s < batch; ++s) G.first_apply(s % inputs);
                     }});
    from_q.push_back({peer.name, [&G](int) {
                        for (int s = 0; s < batch; ++s) G.state_apply_placements(s, s % inputs);
                      }});
    again.push_back({peer.name, [&G](int) {
                       for (int s = 0; s < batch; ++s) G.apply(s % inputs);
                     }});
  }
  const auto timed_first = measure(first, repeats), timed_q = measure(from_q, repeats),
             timed_again = measure(again, repeats);
  const auto peer_first = fastest({timed_first.begin() + std::ptrdiff_t(ways), timed_first.end()}).times;
  const auto peer_q = fastest({timed_q.begin() + std::ptrdiff_t(ways), timed_q.end()}).times;
  const auto peer_again = fastest({timed_again.begin() + std::ptrdiff_t(ways), timed_again.end()}).times;
  for (std::size_t k = 0; k < ways; ++k) {
    BatchRow& row = rows[k];
    row.first = timed_first[k].times.share(sizes[k]), row.from_q = timed_q[k].times.share(sizes[k]),
    row.again = timed_again[k].times.share(sizes[k]);
    row.peer_first = peer_first.share(batch), row.peer_from_q = peer_q.share(batch),
    row.peer_again = peer_again.share(batch);
  }
  return rows;
}

// ---- reports --------------------------------------------------------------------------------------------------------

// Pinocchio's best over ours: matrix-free, LTL, the faster of both.
struct Ratios {
  double matrix_free, ltl, faster;
};
Ratios ratios(const Cell& c) {
  const double a = fastest(c.matrix_free).times.best / c.ours.best, b = fastest(c.ltl).times.best / c.ours.best;
  return {a, b, std::min(a, b)};
}

Spread spread(const std::vector<Row>& rows, const std::vector<int>& over, double Ratios::*which) {
  Spread out;
  for (const Row& row : rows)
    for (const int c : over) out.add(ratios(row.cells[c]).*which);
  return out;
}

std::vector<std::pair<std::string, std::vector<int>>> groups_of_columns() {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  std::vector<int> all;
  for (int c = 0; c < columns; ++c) groups.push_back({column_names[c], {c}}), all.push_back(c);
  groups.push_back({"overall", all});
  return groups;
}

const Published* find_published(const std::string& scene) {
  for (const auto& p : published)
    if (scene == p.scene) return &p;
  return nullptr;
}

// What the columns measured. Differences of products are shared by both sides, backward errors are each one's own.
void record(const Row& r, Records& records) {
  const double inverse = swims(r.scene) ? long_inverse_bound : inverse_bound;
  for (int c = 0; c < columns; ++c) {
    const bool solves = c == first_solve || c == solve || c == damp_solve;
    const auto add = [&](bool ours, const std::string& way, const Times& times, double backward) {
      records.add({r.scene, r.nv, r.rows, column_names[c], ours, way, times, solves ? backward : r.product,
                   solves ? inverse : product_bound, ours && c == apply ? text(", \"bytes\": %zu", r.bytes) : ""});
    };
    add(true, "matrix-free", r.cells[c].ours, r.ours);
    for (const auto& t : r.cells[c].matrix_free) add(false, t.name, t.times, r.matrix_free);
    for (const auto& t : r.cells[c].ltl) add(false, "LTL, " + t.name, t.times, r.ltl);
  }
  records.add({r.scene, r.nv, r.rows, "re-inverse, refined", true, "matrix-free", r.refined_solve, r.refined,
               swims(r.scene) ? long_refined_bound : refined_bound, ""});
}

void record(const BatchRow& b, int nv, int rows, Records& records) {
  const auto add = [&](const char* task, const Times& ours, const Times& theirs) {
    records.add({b.scene, nv, rows, std::string("batch, ") + task, true, b.way, ours, b.error, b.bound, ""});
    records.add({b.scene, nv, rows, std::string("batch, ") + task, false, "one after the other, beside " + b.way,
                 theirs, b.error, b.bound, ""});
  };
  add("first application", b.first, b.peer_first), add("re-application", b.again, b.peer_again),
      add("from q", b.from_q, b.peer_from_q);
}

// The tables of benchmarks/README.md.
std::string markdown(const std::vector<Row>& table, const std::vector<Row>& swimmers,
                     const std::vector<BatchRow>& batches) {
  std::ostringstream out;
  if (!table.empty()) {
    out << "| scene | m |";
    for (const char* name : column_names) out << " " << name << " |";
    out << "\n|---|---|";
    for (int c = 0; c < columns; ++c) out << "---|";
    out << "\n";
    for (const Row& r : table) {
      out << "| " << r.scene << " | " << r.rows << " |";
      for (const Cell& c : r.cells)
        out << text(" %.3g / %.3g / %.3g, **%.1f** |", c.ours.best, fastest(c.matrix_free).times.best,
                    fastest(c.ltl).times.best, ratios(c).matrix_free);
      out << "\n";
    }
    out << "\n| Pinocchio / delassus | operator: mean | least | LTL: mean | least | faster of both: mean | least "
           "|\n|---|---|---|---|---|---|---|\n";
    for (const auto& [name, over] : groups_of_columns()) {
      out << "| " << name << " |";
      for (const auto which : {&Ratios::matrix_free, &Ratios::ltl, &Ratios::faster}) {
        const Spread m = spread(table, over, which);
        out << text(" %.2f | %.2f |", m.mean(), m.least);
      }
      out << "\n";
    }
    out << "\n| scene | difference of G x | of the inverse | backward error | refined | Pinocchio | LTL | refined "
           "re-inverse, µs | kB | paper: operator, kB | inverse, kB |\n"
        << "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const Row& r : table) {
      out << text("| %s | %.0e | %.0e | %.0e | %.0e | %.0e | %.0e | %.3g | %.0f |", r.scene.c_str(), r.product,
                  r.inverse, r.ours, r.refined, r.matrix_free, r.ltl, r.refined_solve.best, double(r.bytes) / 1e3);
      if (const auto* p = find_published(r.scene))
        out << text(" %d | %d |\n", p->apply_kb, p->solve_kb);
      else
        out << " | |\n";
    }
  }
  if (!batches.empty()) {
    out << "\n| scene | batch | difference | first application, µs a state | Pinocchio | ratio | re-application, µs a "
           "state | Pinocchio | ratio | from q, µs a "
           "state | Pinocchio | ratio |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    const auto three = [](const Times& ours, const Times& peer) {
      return text(" %.3f | %.2f | %.1f |", ours.best, peer.best, peer.best / ours.best);
    };
    for (const BatchRow& b : batches)
      out << text("| %s | %s | %.0e |", b.scene.c_str(), b.way.c_str(), b.error) << three(b.first, b.peer_first)
          << three(b.again, b.peer_again) << three(b.from_q, b.peer_from_q) << "\n";
  }
  if (!swimmers.empty()) {
    out << "\n| scene | m |";
    for (const char* name : column_names) out << " " << name << " |";
    out << " MB |\n|---|---|---|---|---|---|---|---|---|\n";
    for (const Row& r : swimmers) {
      out << "| " << r.scene << " | " << r.rows << " |";
      for (const Cell& c : r.cells)
        out << text(" %.0f", c.ours.best)
            << (c.matrix_free.empty() ? " |" : text(" / %.0f |", fastest(c.matrix_free).times.best));
      out << text(" %.2f |\n", double(r.bytes) / 1e6);
    }
    for (std::size_t k = 1; k < swimmers.size(); ++k) {
      const Row &less = swimmers[k - 1], &more = swimmers[k];
      out << text("| %s / %s | %.1f |", more.scene.c_str(), less.scene.c_str(), double(more.rows) / less.rows);
      for (int c = 0; c < columns; ++c) out << text(" %.1f |", more.cells[c].ours.best / less.cells[c].ours.best);
      out << text(" %.1f |\n", double(more.bytes) / double(less.bytes));
    }
  }
  return out.str();
}

std::string run_all(const std::vector<Robot>& scenes, int repeats, Records& records) {
  std::vector<Row> table, swimmers;
  std::vector<BatchRow> batches;
  for (const auto& scene : scenes) {
    auto& rows = swims(scene.name) ? swimmers : table;
    rows.push_back(run(scene, repeats));
    const Row& row = rows.back();
    record(row, records);
    if (scene.name != "go2-standing" && scene.name != "g1-standing") continue;
    for (auto& b : run_batches(scene, repeats)) record(batches.emplace_back(std::move(b)), row.nv, row.rows, records);
  }
  return markdown(table, swimmers, batches);
}

int main(int argc, char** argv) {
  return program<PinocchioOperator>(argc, argv,
                                    text("samples of %g µs over %d vectors and dampings, %d states; damping from %g",
                                         sample_time, inputs, states, damping),
                                    run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
