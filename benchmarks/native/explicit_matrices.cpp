// The Delassus matrix G and its damped inverse (G + ε)⁻¹ by every method of this library's core and of Pinocchio, in
// one process, each from q: agreement first, then time. Then the forms of line 14 of the direct M⁻¹.
//
//   explicit_matrices CONTACT_SETS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
//
// A sample is the mean time of a call over some calls that walk through states. Samples of all contenders alternate, so
// that a slow moment of the machine hits all of them; the tables show the best.
#include <set>

#include "dynamics/crba.h"
#include "inverse_forms.h"
#include "methods.h"
#include "operators/explicit.h"
#include "pinocchio_explicit.h"
#include "timing.h"

namespace bench {
namespace {

constexpr int states = 16;
constexpr double damping = 1e-4;
// Largest ‖A − B‖ / ‖B‖ of G, and of the inverse, whose condition is up to 1e9; largest backward error ‖(G + ε) X − 1‖
// / (‖G + ε‖ ‖X‖) of the inverse, ours and Pinocchio's, whose EFPA loses digits.
constexpr double matrix_bound = 1e-9, inverse_bound = 1e-7, backward_bound = 1e-9, peer_backward_bound = 1e-5;
constexpr double sweep_bound = 1e-9;

template <class List, class Method>
const char* name_of(const List& list, Method method) {
  for (const auto& m : list)
    if (m.method == method) return m.name;
  throw std::logic_error("a method without a name");
}
// Pinocchio's
constexpr Named<PinocchioExplicit::Way> peer_ways[] = {
    {"EFPA", PinocchioExplicit::efpa}, {"PV-OSIMr", PinocchioExplicit::pv_osimr}, {"LTL", PinocchioExplicit::ltl}};

// This library: everything allocated here.
class OurExplicit {
 public:
  explicit OurExplicit(const Robot& robot)
      : model(dl::build_model(description(robot))),
        layout(std::make_shared<const dl::Layout<double>>(
            model, dl::make_constraints(model, constraint_descriptions(robot)), dl::strip_lanes<double>)),
        core(model, layout),
        rows(layout->set.rows),
        shift(std::size_t(rows), damping),
        out(std::size_t(rows) * rows) {}

  const dl::Model<double> model;
  const std::shared_ptr<const dl::Layout<double>> layout;
  dl::ExplicitDelassus<double> core;
  const int rows;
  std::vector<Vector> q;
  Vector shift, out;

  void run(MatrixMethod method, int s) { core.matrix(method, q[s].data(), out.data()); }
  void run(InverseMethod method, int s) { core.inverse(method, q[s].data(), shift.data(), out.data()); }
};

// ---- results --------------------------------------------------------------------------------------------------------

double norm(const Vector& x) {
  double sum = 0;
  for (const double e : x) sum += e * e;
  return std::sqrt(sum);
}

// ‖(G + ε) X − 1‖
double residual(const Vector& G, const Vector& X, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double r = damping * X[i * n + j] - (i == j);
      for (int k = 0; k < n; ++k) r += G[i * n + k] * X[k * n + j];
      sum += r * r;
    }
  return std::isfinite(sum) ? std::sqrt(sum) : HUGE_VAL;
}

// What is wrong with a contender's results, the worst over all states.
struct Errors {
  double difference = 0;              // from Pinocchio's LTL, the most accurate
  double residual = 0, backward = 0;  // of an inverse: ‖(G + ε) X − 1‖, and over ‖G + ε‖ ‖X‖

  void add(const Vector& mine, const Vector& theirs) {
    difference = std::max(difference, bench::difference(mine, theirs));
  }
  void add(const Vector& X, const Vector& theirs, const Vector& G, int n) {
    add(X, theirs);
    const double r = bench::residual(G, X, n);
    residual = std::max(residual, r);
    backward = std::max(backward, r / ((norm(G) + damping) * norm(X)));
  }
};

struct Result {
  std::string name;
  bool ours;
  Errors errors;
  Times times{};
};
struct Row {
  std::string set;
  int nv, rows;
  std::string auto_matrix, auto_inverse;  // what the core's cost model chooses
  std::vector<Result> matrix, inverse;
};

Row run(const Robot& robot, int repeats) {
  std::fprintf(stderr, "%s\n", robot.name.c_str());
  OurExplicit ours(robot);
  PinocchioExplicit peer(robot, damping);
  if (peer.rows() != ours.rows) throw std::runtime_error("the two sides differ in size: " + robot.name);
  std::mt19937 rng(7);
  ours.q = states_near(ours.model, robot.q, states, rng);
  for (const auto& q : ours.q) peer.add_state(q);

  std::vector<Vector> G, X;
  for (int s = 0; s < states; ++s)
    G.push_back(peer.matrix(PinocchioExplicit::ltl, s)), X.push_back(peer.inverse(PinocchioExplicit::ltl, s));

  Row row{robot.name,
          ours.model.nv,
          ours.rows,
          name_of(matrix_methods, ours.core.best_matrix()),
          name_of(inverse_methods, ours.core.best_inverse()),
          {},
          {}};
  std::vector<Contender> matrix, inverse;
  for (const auto& [name, method] : matrix_methods) {
    if (!ours.core.supports(method)) continue;
    Errors e;
    for (int s = 0; s < states; ++s) ours.run(method, s), e.add(ours.out, G[s]);
    row.matrix.push_back({name, true, e});
    matrix.push_back({name, [&ours, method = method](int n) { ours.run(method, n % states); }});
  }
  for (const auto& [name, method] : inverse_methods) {
    if (!ours.core.supports(method)) continue;
    Errors e;
    for (int s = 0; s < states; ++s) ours.run(method, s), e.add(ours.out, X[s], G[s], ours.rows);
    row.inverse.push_back({name, true, e});
    inverse.push_back({name, [&ours, method = method](int n) { ours.run(method, n % states); }});
  }
  for (const auto& [name, way] : peer_ways) {
    Errors e, f;
    for (int s = 0; s < states; ++s)
      e.add(peer.matrix(way, s), G[s]), f.add(peer.inverse(way, s), X[s], G[s], ours.rows);
    row.matrix.push_back({PinocchioExplicit::matrix_name(way), false, e});
    row.inverse.push_back({PinocchioExplicit::inverse_name(way), false, f});
    matrix.push_back({name, [&peer, way = way](int n) { peer.form(way, n % states); }});
    inverse.push_back({name, [&peer, way = way](int n) { peer.invert(way, n % states); }});
  }
  time_all(row.matrix, matrix, repeats);
  time_all(row.inverse, inverse, repeats);
  return row;
}

// ---- line 14 of the direct M⁻¹ --------------------------------------------------------------------------------------

constexpr std::array<const char*, 3> form_names = {"printed", "replaced, an F a link", "replaced, one F"};
struct FormRow {
  std::string robot;
  int nv;
  std::array<double, 3> difference{};
  std::array<Times, 3> times{};
  Times whole{};  // mass_matrix_inverse with the last form, kinematics included
};

// A hinge's row of M⁻¹ when all it hangs on is held still, by definition: the first row of the inverse of M on the
// velocities of its subtree.
Vector held_row(const Vector& M, int nv, int first, int end) {
  const int n = end - first;
  Vector L(std::size_t(n) * n), x(std::size_t(n), 0.0);
  for (int j = 0; j < n; ++j)
    for (int i = j; i < n; ++i) {
      double a = M[std::size_t(first + i) * nv + first + j];
      for (int k = 0; k < j; ++k) a -= L[i * n + k] * L[j * n + k];
      L[i * n + j] = i == j ? std::sqrt(a) : a / L[j * n + j];
    }
  for (int i = 0; i < n; ++i) {
    x[i] = i == 0;
    for (int k = 0; k < i; ++k) x[i] -= L[i * n + k] * x[k];
    x[i] /= L[i * n + i];
  }
  for (int i = n; i-- > 0;) {
    for (int k = i + 1; k < n; ++k) x[i] -= L[k * n + i] * x[k];
    x[i] /= L[i * n + i];
  }
  return x;
}

FormRow run_forms(const Robot& robot, int repeats) {
  const auto model = dl::build_model(description(robot));
  for (const auto& link : model.links)
    if (link.type == dl::Joint::ball)
      throw std::runtime_error("the forms of line 14 are written for hinges, slides and free roots: " + robot.name);
  const int nv = model.nv;
  dl::Workspace<double> w(model), other(model);
  Vector M(std::size_t(nv) * nv), Minv(M.size());
  dl::kinematics(model, w, robot.q.data());
  dl::crba(model, w, M.data(), false);
  dl::kinematics(model, w, robot.q.data());
  dl::factorize(model, w);

  FormRow row{.robot = robot.name.substr(0, robot.name.find('-')), .nv = nv};
  InverseSweep<Line14::printed> printed(model, w);
  InverseSweep<Line14::replaced> replaced(model, w);
  InverseSweep<Line14::shared> shared(model, w);
  const auto judge = [&](auto& form) {
    std::fill(Minv.begin(), Minv.end(), 0.0);
    form.sweep(Minv.data());
    form.add_tail(Minv.data());
    double worst = 0;
    for (int k = 0; k < nv; ++k) {
      const auto& link = model.links[model.dof_link[k]];
      if (link.type == dl::Joint::free) continue;
      const double* got = &Minv[std::size_t(k) * nv];
      worst = std::max(worst, difference(Vector(got + k, got + link.end_v), held_row(M, nv, k, link.end_v)));
    }
    return worst;
  };
  row.difference = {judge(printed), judge(replaced), judge(shared)};
  const auto timed = measure({{form_names[0], [&](int) { printed.sweep(Minv.data()); }},
                              {form_names[1], [&](int) { replaced.sweep(Minv.data()); }},
                              {form_names[2], [&](int) { shared.sweep(Minv.data()); }},
                              {"whole",
                               [&](int) {
                                 dl::kinematics(model, other, robot.q.data());
                                 dl::mass_matrix_inverse(model, other, Minv.data());
                               }}},
                             repeats);
  for (int k = 0; k < 3; ++k) row.times[k] = timed[k].times;
  row.whole = timed[3].times;
  return row;
}

// ---- reports --------------------------------------------------------------------------------------------------------

struct Task {
  const char* title;
  std::vector<Result> Row::*results;
  std::string Row::*chosen;
  const char* function;  // Pinocchio's name for it
  std::vector<const char*> ours;
};
std::vector<Task> tasks() {
  std::vector<Task> out = {
      {"G", &Row::matrix, &Row::auto_matrix, PinocchioExplicit::matrix_name(PinocchioExplicit::efpa), {}},
      {"(G + ε)⁻¹",
       &Row::inverse,
       &Row::auto_inverse,
       PinocchioExplicit::inverse_name(PinocchioExplicit::pv_osimr),
       {}}};
  for (const auto& m : matrix_methods) out[0].ours.push_back(m.name);
  for (const auto& m : inverse_methods) out[1].ours.push_back(m.name);
  return out;
}

// Best times: Pinocchio's function of that name over our best method, its fastest variant over ours and over the one we
// choose; that one over our best.
struct Ratios {
  double function, fastest, to_auto, loss;
};
Ratios ratios(const Row& row, const Task& task) {
  const auto& all = row.*task.results;
  const double ours = best_of(all, true)->times.best, theirs = best_of(all, false)->times.best,
               chosen = named(all, true, row.*task.chosen)->times.best;
  return {named(all, false, task.function)->times.best / ours, theirs / ours, theirs / chosen, chosen / ours};
}

void record(const Row& r, Records& records) {
  for (const auto& task : tasks()) {
    const bool inverse = task.results == &Row::inverse;
    for (const auto& result : r.*task.results) {
      const Errors& e = result.errors;
      const bool chosen = result.ours && result.name == r.*task.chosen;
      // an inverse of ours that is too far off is so whatever its backward error says
      const bool far = inverse && result.ours && !(e.difference <= inverse_bound);
      std::string more = std::string(", \"auto\": ") + (chosen ? "true" : "false");
      if (inverse) more += ", \"difference\": " + number(e.difference) + ", \"residual\": " + number(e.residual);
      records.add({r.set, r.nv, r.rows, task.title, result.ours, result.name, result.times,
                   inverse && !far ? e.backward : e.difference,
                   !inverse      ? matrix_bound
                   : result.ours ? backward_bound
                                 : peer_backward_bound,
                   more});
    }
  }
}

void record(const FormRow& f, Records& records) {
  // the printed form is wrong by nature
  for (std::size_t k = 0; k < form_names.size(); ++k)
    records.add({f.robot, f.nv, 0, "line 14", true, form_names[k], f.times[k], f.difference[k],
                 k == 0 ? HUGE_VAL : sweep_bound, ""});
  records.add({f.robot, f.nv, 0, "M⁻¹", true, form_names.back(), f.whole, f.difference.back(), sweep_bound, ""});
}

// The tables of benchmarks/README.md.
std::string markdown(const std::vector<Row>& rows, const std::vector<FormRow>& forms) {
  std::ostringstream out;
  for (const auto& task : tasks()) {
    const bool inverse = task.results == &Row::inverse;
    out << "| " << task.title << " | nv | m |";
    for (const char* name : task.ours) out << " " << name << " |";
    for (const auto& way : peer_ways) out << " Pinocchio " << way.name << " |";
    out << " ratio | to its fastest | auto | auto / best | difference |"
        << (inverse ? " backward error | Pinocchio's |" : "") << "\n|---|---|---|";
    for (std::size_t k = 0; k < task.ours.size() + std::size(peer_ways) + (inverse ? 7 : 5); ++k) out << "---|";
    out << "\n";
    Spread function, fastest, to_auto, loss;
    for (const Row& row : rows) {
      const auto& all = row.*task.results;
      const Result* mine = best_of(all, true);
      const Result* theirs = best_of(all, false);
      out << "| " << row.set << " | " << row.nv << " | " << row.rows << " |";
      for (const char* name : task.ours) {
        const Result* r = named(all, true, name);
        out << (!r ? " |" : text(r == mine ? " **%.2f** |" : " %.2f |", r->times.best));
      }
      Errors worst, peer;
      for (const auto& r : all) {
        if (!r.ours) out << text(&r == theirs ? " **%.2f** |" : " %.2f |", r.times.best);
        Errors& e = r.ours ? worst : peer;
        e.difference = std::max(e.difference, r.errors.difference),
        e.backward = std::max(e.backward, r.errors.backward);
      }
      const Ratios ratio = ratios(row, task);
      out << text(" %.2f | %.2f | %s | %.2f | %.0e |", ratio.function, ratio.fastest, (row.*task.chosen).c_str(),
                  ratio.loss, worst.difference);
      if (inverse) out << text(" %.0e | %.0e |", worst.backward, peer.backward);
      out << "\n";
      function.add(ratio.function), fastest.add(ratio.fastest), to_auto.add(ratio.to_auto), loss.add(ratio.loss);
    }
    if (!rows.empty())
      out << text(
          "\nPinocchio's `%s` over our best: %.2f in geometric mean, %.2f at least; its fastest variant over our best "
          "%.2f "
          "and %.2f, over `auto` %.2f and %.2f. "
          "`auto` over our best: %.2f, at most %.2f.\n\n",
          task.function, function.mean(), function.least, fastest.mean(), fastest.least, to_auto.mean(), to_auto.least,
          loss.mean(), loss.largest);
  }
  out << "| line 14 | nv |";
  for (const char* name : form_names) out << " " << name << " | difference |";
  out << " whole M⁻¹ |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& f : forms) {
    out << "| " << f.robot << " | " << f.nv << " |";
    for (std::size_t k = 0; k < form_names.size(); ++k) out << text(" %.3f | %.0e |", f.times[k].best, f.difference[k]);
    out << text(" %.2f |\n", f.whole.best);
  }
  return out.str();
}

std::string run_all(const std::vector<Robot>& sets, int repeats, Records& records) {
  std::vector<Row> rows;
  std::vector<FormRow> forms;
  std::set<std::string> robots;
  for (const auto& set : sets) {
    record(rows.emplace_back(run(set, repeats)), records);
    if (robots.insert(set.name.substr(0, set.name.find('-'))).second)
      record(forms.emplace_back(run_forms(set, repeats)), records);
  }
  return markdown(rows, forms);
}

int main(int argc, char** argv) {
  return program<PinocchioExplicit>(
      argc, argv, text("samples of %g µs over %d states; damping %g", sample_time, states, damping), run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
