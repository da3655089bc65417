// Derivatives of constrained dynamics of this library's core and of Pinocchio, in one process, from q, v and τ:
// agreement first, then time. And what a product with the Jacobian or its transpose costs over constrained dynamics
// itself, on robots and on chains up to a thousand links.
//
//   constrained_derivatives SETS [--json FILE] [--markdown FILE] [--repeats N] [--only NAME]
#include "derivatives/dynamics_matrices.h"
#include "derivatives/linearization.h"
#include "pinocchio_constrained_derivatives.h"
#include "solvers/verbs.h"
#include "ways.h"

namespace bench {
namespace {

constexpr int states = 16, max_iterations = 20;
constexpr double tolerance = 1e-8;            // of every one of the six matrices
constexpr double damping = 1e-6, more = 100;  // of the solver, and over it of the derivatives, as the library has it
constexpr double solver_tolerance = 1e-12;
constexpr int most_peer_velocities = 100;  // Pinocchio's Data keeps arrays of nv³ numbers

// Of a thousand links not all rows are met to the tolerance: a dense factor would follow, whose time is not looked for.
bool is_chain(const Robot& robot) { return robot.name.rfind("chain-", 0) == 0; }

// Ours, everything allocated beforehand.
class OurDerivatives {
 public:
  OurDerivatives(const Robot& robot, const dl::Model<double>& model, bool matrices)
      : model_(model),
        set_(dl::make_constraints(model, constraint_descriptions(robot))),
        solver_(dl::make_dynamics_solver(is_chain(robot) ? dl::DynamicsMethod::lcaba : dl::DynamicsMethod::automatic,
                                         model, set_)),
        G_(dl::make_operator(dl::Form::matrix_free, model, set_)),
        linear_(model, set_),
        n_(std::size_t(model.nv)),
        m_(std::size_t(set_.rows)),
        epsilon_(m_, damping),
        more_(m_, damping * more),
        none_(m_),
        lambda_(m_),
        vdot_(n_),
        ones_(std::max(n_, m_), 1.0),
        a_(n_),
        b_(n_),
        c_(n_),
        f_(m_) {
    solver_->set_compliance(none_.data());
    if (!matrices) return;
    dense_ = std::make_unique<dl::DynamicsMatrices>(model, set_);
    for (int k = 0; k < 6; ++k) blocks_.emplace_back((k < 3 ? n_ : m_) * n_);
  }

  // v becomes the nearest one, in the metric of M, that keeps the constraints
  void make_consistent(State& s) {
    G_->set_compliance(none_.data());
    G_->update(s.q.data());
    G_->set_damping(more_.data());
    Vector rows(m_), forces(m_), push(n_);
    for (int k = 0; k < 4; ++k) {
      G_->jacobian(s.v.data(), 1, rows.data());
      G_->solve(rows.data(), 1, forces.data());
      G_->jacobian_transpose(forces.data(), 1, push.data());
      G_->mass_inverse(push.data(), 1, push.data());
      for (std::size_t i = 0; i < n_; ++i) s.v[i] -= push[i];
    }
  }

  [[gnu::noinline]] void dynamics(const State& s) {
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    solver_->solve(s.q.data(), s.v.data(), s.torque.data(), nullptr, nullptr, epsilon_.data(), max_iterations,
                   solver_tolerance, lambda_.data(), vdot_.data(), &report_, nullptr);
  }
  // ν̇, λ and their derivatives
  [[gnu::noinline]] void matrices(const State& s) {
    const auto rows = dense_->solve(dense_state(s), vdot_.data(), lambda_.data());
    if (rows != dl::DynamicsMatrices::Rows::independent) throw std::runtime_error("rows depend on each other");
    differentiate();
  }
  // derivatives at ν̇ and λ of `dynamics`
  [[gnu::noinline]] void matrices_after(const State& s) {
    dense_->prepare(dense_state(s), vdot_.data(), lambda_.data());
    differentiate();
  }
  [[gnu::noinline]] void linearize(const State& s) {
    linear_.update(s.q.data(), s.v.data(), vdot_.data(), lambda_.data(), nullptr, none_.data(), more_.data());
  }
  [[gnu::noinline]] void vjp() { linear_.adjoints(ones_.data(), ones_.data(), 1, a_.data(), b_.data(), c_.data()); }
  [[gnu::noinline]] void jvp() { linear_.tangents(ones_.data(), ones_.data(), ones_.data(), 1, a_.data(), f_.data()); }
  const std::vector<Vector>& result() const { return blocks_; }
  // |ā·(J d) − (Jᵀ ā)·d| of products with ones, relative
  double adjoint_error() {
    jvp();
    double forward = 0, size = 0;
    for (const Vector* x : {&a_, &f_})
      for (const double e : *x) forward += e, size += std::abs(e);
    vjp();
    double backward = 0;
    for (const Vector* x : {&a_, &b_, &c_})
      for (const double e : *x) backward += e, size += std::abs(e);
    return std::abs(forward - backward) / size;
  }

 private:
  dl::DynamicsState dense_state(const State& s) const {
    return {s.q.data(), s.v.data(), s.torque.data(), nullptr, none_.data(), more_.data()};
  }
  void differentiate() {
    dense_->differentiate({blocks_[0].data(), blocks_[1].data(), blocks_[2].data(), blocks_[3].data(),
                           blocks_[4].data(), blocks_[5].data()});
  }

  const dl::Model<double>& model_;
  const dl::ConstraintSet<double> set_;
  std::unique_ptr<dl::DynamicsSolver<double>> solver_;
  std::unique_ptr<dl::Operator<double>> G_;
  dl::Linearization linear_;
  std::unique_ptr<dl::DynamicsMatrices> dense_;
  const std::size_t n_, m_;
  Vector epsilon_, more_, none_, lambda_, vdot_, ones_, a_, b_, c_, f_;
  std::vector<Vector> blocks_;
  dl::Report<double> report_;
};

// What products cost beside the dynamics themselves.
struct Products {
  std::string name;
  int nv, rows;
  Times dynamics, vjp, jvp;
};

struct Tables {
  std::vector<Row> beside;
  std::vector<Products> products;
};

void run(const Robot& robot, int repeats, Records& records, Tables& tables) {
  std::fprintf(stderr, "%s\n", robot.name.c_str());
  const auto model = dl::build_model(description(robot));
  const bool peer_too = model.nv <= most_peer_velocities && !is_chain(robot);
  OurDerivatives ours(robot, model, peer_too);
  int rows = 0;
  for (const auto& c : robot.constraints) rows += c.rows;

  std::mt19937 rng(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<State> list;
  for (const Vector& q : states_near(model, robot.q, states, rng)) {
    State s{q, Vector(std::size_t(model.nv)), Vector(std::size_t(model.nv)), Vector(std::size_t(model.nv))};
    for (double& x : s.v) x = uniform(rng);
    for (double& x : s.torque) x = 10 * uniform(rng);
    ours.make_consistent(s);
    list.push_back(std::move(s));
  }

  if (peer_too) {
    PinocchioConstrainedDerivatives peer(robot);
    if (peer.nv() != model.nv || peer.rows() != rows)
      throw std::runtime_error("the two models differ in size: " + robot.name);
    for (const auto& s : list) peer.add_state(s);
    // each of the six matrices in units of its norm
    const auto scaled = [&](const std::vector<Vector>& blocks, const std::vector<Vector>& by) {
      Vector all;
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        double norm = 0;
        for (const double x : by[k]) norm += x * x;
        for (const double x : blocks[k]) all.push_back(x / std::sqrt(norm));
      }
      return all;
    };
    Tasks tasks{robot.name, model.nv, states, repeats, tolerance, records};
    tasks.add("dynamics, derivatives",
              {{"DynamicsMatrices", [&](int s) { ours.matrices(list[s]); },
                [&](int s) { return scaled(ours.result(), peer.result(s)); }},
               {"constraintDynamics, …Derivatives", [&](int s) { peer.dynamics(s), peer.derivatives(s); },
                [&](int s) { return scaled(peer.result(s), peer.result(s)); }}},
              [&](int s) { peer.dynamics(s), peer.derivatives(s); });
    for (auto& row : tasks.rows) tables.beside.push_back(std::move(row));
  }

  const auto timed = measure({{"dynamics", [&](int n) { ours.dynamics(list[n % states]); }},
                              {"update, vjp",
                               [&](int n) {
                                 ours.linearize(list[n % states]);
                                 ours.vjp();
                               }},
                              {"update, jvp",
                               [&](int n) {
                                 ours.linearize(list[n % states]);
                                 ours.jvp();
                               }}},
                             repeats);
  double error = 0;
  for (const auto& s : list) ours.dynamics(s), ours.linearize(s), error = std::max(error, ours.adjoint_error());
  for (const auto& t : timed)
    records.add({robot.name, model.nv, rows, "products", true, t.name, t.times, error, 1e-9, ""});
  tables.products.push_back({robot.name, model.nv, rows, timed[0].times, timed[1].times, timed[2].times});
}

// Least-squares slope of log time over log velocities.
double exponent(const std::vector<const Products*>& rows, Times Products::*what) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto* r : rows) {
    const double u = std::log(double(r->nv)), t = std::log((r->*what).best);
    x += u, y += t, xx += u * u, xy += u * t;
  }
  const double n = double(rows.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

std::string products_table(const std::vector<Products>& rows) {
  std::string out =
      "| set | nv | m | dynamics, µs | update and vjp, µs | over dynamics | update and jvp, µs | over dynamics |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::vector<const Products*> chains;
  for (const auto& r : rows) {
    out += text("| %s | %d | %d | %.2f (%.2f) | %.2f (%.2f) | %.2f | %.2f (%.2f) | %.2f |\n", r.name.c_str(), r.nv,
                r.rows, r.dynamics.best, r.dynamics.median, r.vjp.best, r.vjp.median, r.vjp.best / r.dynamics.best,
                r.jvp.best, r.jvp.median, r.jvp.best / r.dynamics.best);
    if (r.name.rfind("chain-", 0) == 0) chains.push_back(&r);
  }
  if (chains.size() > 2)
    out += text(
        "\nTime grows with the power of the velocities: dynamics %.2f, update and vjp %.2f, update and jvp %.2f.\n",
        exponent(chains, &Products::dynamics), exponent(chains, &Products::vjp), exponent(chains, &Products::jvp));
  return out;
}

std::string run_all(const std::vector<Robot>& robots, int repeats, Records& records) {
  Tables tables;
  for (const auto& robot : robots) run(robot, repeats, records, tables);
  std::string out;
  if (!tables.beside.empty()) out += markdown(tables.beside) + "\n";
  return out + products_table(tables.products);
}

int main(int argc, char** argv) {
  return program<PinocchioConstrainedDerivatives>(
      argc, argv, text("samples of %g µs over %d states", sample_time, states), run_all);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
