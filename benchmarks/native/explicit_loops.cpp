// The Delassus matrix G and its damped inverse (G + ε)⁻¹ through loops: every method of this library's core that takes
// any rows, beside Pinocchio's only way, in one process, each from q: agreement first, then time.
//
//   explicit_loops SCENES [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
#include "methods.h"
#include "operators/explicit.h"
#include "pinocchio_loops.h"
#include "timing.h"

namespace bench {
namespace {

constexpr double damping = 1e-2;
// Largest ‖A − B‖ / ‖B‖ from Pinocchio's.
constexpr double matrix_bound = 1e-7, inverse_bound = 1e-7;

struct Result {
  std::string name;
  bool ours;
  double difference;
  Times times{};
};
struct Row {
  std::string scene;
  int nv, rows;
  std::string auto_matrix, auto_inverse;
  std::vector<Result> matrix, inverse;
};

template <class List, class Method>
const char* name_of(const List& list, Method method) {
  for (const auto& m : list)
    if (m.method == method) return m.name;
  throw std::logic_error("a method without a name");
}

Row run(const Robot& robot, int repeats) {
  std::fprintf(stderr, "%s\n", robot.name.c_str());
  const auto model = dl::build_model(description(robot));
  dl::ExplicitDelassus<double> ours(model, dl::make_constraints(model, constraint_descriptions(robot)));
  PinocchioLoops peer(robot, damping);
  const int m = ours.rows();
  if (peer.rows() != m) throw std::runtime_error("the two sides differ in size: " + robot.name);
  const Vector shift(std::size_t(m), damping);
  Vector out(std::size_t(m) * std::size_t(m));
  const Vector G = peer.matrix(), X = peer.inverse();

  Row row{robot.name,
          model.nv,
          m,
          name_of(matrix_methods, ours.best_matrix()),
          name_of(inverse_methods, ours.best_inverse()),
          {},
          {}};
  std::vector<Contender> matrix, inverse;
  for (const auto& [name, method] : matrix_methods) {
    if (!ours.supports(method)) continue;
    const auto call = [&, method = method](int) { ours.matrix(method, robot.q.data(), out.data()); };
    call(0);
    row.matrix.push_back({name, true, difference(out, G)});
    matrix.push_back({name, call});
  }
  for (const auto& [name, method] : inverse_methods) {
    if (!ours.supports(method)) continue;
    const auto call = [&, method = method](int) { ours.inverse(method, robot.q.data(), shift.data(), out.data()); };
    call(0);
    row.inverse.push_back({name, true, difference(out, X)});
    inverse.push_back({name, call});
  }
  row.matrix.push_back({"constraint Cholesky", false, 0});
  row.inverse.push_back({"constraint Cholesky", false, 0});
  matrix.push_back({"Pinocchio", [&](int) { peer.form(); }});
  inverse.push_back({"Pinocchio", [&](int) { peer.invert(); }});
  time_all(row.matrix, matrix, repeats);
  time_all(row.inverse, inverse, repeats);
  return row;
}

std::string table(const std::vector<Row>& rows, const char* title, std::vector<Result> Row::*results,
                  std::string Row::*chosen) {
  std::ostringstream out;
  out << "| " << title << " | nv | m |";
  std::vector<std::string> names;
  for (const auto& row : rows)
    for (const auto& r : row.*results)
      if (r.ours && std::find(names.begin(), names.end(), r.name) == names.end()) names.push_back(r.name);
  for (const auto& name : names) out << " " << name << " |";
  out << " Pinocchio | ratio | auto | to auto | difference |\n|---|---|---|";
  for (std::size_t k = 0; k < names.size() + 5; ++k) out << "---|";
  out << "\n";
  for (const auto& row : rows) {
    const auto& all = row.*results;
    const Result *best = best_of(all, true), *peer = best_of(all, false), *automatic = named(all, true, row.*chosen);
    out << "| " << row.scene << " | " << row.nv << " | " << row.rows << " |";
    double worst = 0;
    for (const auto& name : names) {
      const Result* r = named(all, true, name);
      out << (!r ? " |" : text(r == best ? " **%.2f** |" : " %.2f |", r->times.best));
      if (r) worst = std::max(worst, r->difference);
    }
    out << text(" %.2f | %.2f | %s | %.2f | %.0e |\n", peer->times.best, peer->times.best / best->times.best,
                (row.*chosen).c_str(), peer->times.best / automatic->times.best, worst);
  }
  return out.str() + "\n";
}

std::string run_all(const std::vector<Robot>& scenes, int repeats, Records& records) {
  std::vector<Row> rows;
  for (const auto& scene : scenes) {
    const Row& row = rows.emplace_back(run(scene, repeats));
    for (const auto& r : row.matrix)
      records.add({row.scene, row.nv, row.rows, "G", r.ours, r.name, r.times, r.difference, matrix_bound, ""});
    for (const auto& r : row.inverse)
      records.add({row.scene, row.nv, row.rows, "(G + ε)⁻¹", r.ours, r.name, r.times, r.difference, inverse_bound, ""});
  }
  return table(rows, "G", &Row::matrix, &Row::auto_matrix) +
         table(rows, "(G + ε)⁻¹", &Row::inverse, &Row::auto_inverse);
}

int main(int argc, char** argv) {
  return program<PinocchioLoops>(argc, argv, text("samples of %g µs; damping %g", sample_time, damping), run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
