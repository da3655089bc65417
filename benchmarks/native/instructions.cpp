// Every verb of this library's core, each a fixed number of times, for callgrind to count instructions: no clock, no
// noise.
//
//   instructions SCENES
//
// Run by instructions.py. Between entering and leaving `counted` callgrind collects, and on leaving it writes what it
// has; a line on standard output says what that was: scene, task, calls. What is counted is right: each result is
// compared first with that of another way, or its residual taken.
#include <gnu/libc-version.h>

#include <numeric>

#include "methods.h"
#include "operators/verbs.h"
#include "our_tree.h"
#include "timing.h"

// A name that callgrind can be given: neither inlined nor cloned.
extern "C" [[gnu::noinline, gnu::noipa]] void counted(const std::function<void(int)>& call, int calls) {
  for (int n = 0; n < calls; ++n) call(n);
}

namespace bench {
namespace {

constexpr int states = 4, columns = 8;
constexpr int pack = dl::register_bytes / int(sizeof(double));  // states in a register
constexpr int most_rows = 128;                                  // of a matrix formed as such
static_assert(states <= pack);
constexpr double damping = 1e-4;
// how wrong a product may be, and the backward error of a solution
constexpr double tolerance = 1e-8, backward_tolerance = 1e-9;

class Counter {
 public:
  explicit Counter(std::string scene) : scene_(std::move(scene)) {}

  // `wrong` is by how much the result of a call is, `bound` by how much it may be
  void count(const std::string& task, const std::function<void(int)>& call, const std::function<double(int)>& wrong,
             double bound) const {
    for (int n = 0; n < states; ++n) {
      call(n);
      if (const double e = wrong(n); !(e <= bound))
        throw std::runtime_error(scene_ + ": " + task + " is wrong by " + std::to_string(e));
    }
    counted(call, states);
    std::printf("count\t%s\t%s\t%d\n", scene_.c_str(), task.c_str(), states);
  }

 private:
  const std::string scene_;
};

// A X of matrices n × n and n × columns, row-major
Vector product(const Vector& A, const Vector& X, int n) {
  const std::size_t columns = X.size() / std::size_t(n);
  Vector Y(X.size());
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (std::size_t j = 0; j < columns; ++j) Y[i * columns + j] += A[std::size_t(i) * n + k] * X[k * columns + j];
  return Y;
}

// RNEA of ABA's accelerations gives its torques; M M⁻¹ = 1; M X = Y.
void count_tree(const Counter& counter, const Robot& robot) {
  OurTree tree(robot), other(robot);
  const int nv = tree.model.nv;
  std::mt19937 rng(7);
  tree.state = random_states(tree.model, states, rng);
  tree.set_right_hand_sides(1, rng);
  Vector one(tree.M.size());
  for (int k = 0; k < nv; ++k) one[std::size_t(k) * (nv + 1)] = 1;

  other.state = tree.state;
  const auto by_torques = [&](int s) {
    tree.aba(s);
    other.state[s].acceleration = tree.acceleration;
    other.rnea(s);
    return difference(other.torque, tree.state[s].torque);
  };
  const auto by_inverse = [&](int s) {
    tree.crba(s), tree.minverse(s);
    return difference(product(tree.M, tree.Minv, nv), one);
  };
  const auto by_product = [&](int s) {
    other.crba(s);
    return difference(product(other.M, tree.X, nv), tree.Y);
  };
  counter.count("rnea", [&](int s) { tree.rnea(s); }, by_torques, tolerance);
  counter.count("aba", [&](int s) { tree.aba(s); }, by_torques, tolerance);
  counter.count("crba", [&](int s) { tree.crba(s); }, by_inverse, tolerance);
  counter.count("minv", [&](int s) { tree.minverse(s); }, by_inverse, tolerance);
  counter.count("factor and solve M", [&](int s) { tree.solve(s); }, by_product, tolerance);
}

// What operators, matrices and dynamics are given.
struct Scene {
  Scene(const Robot& robot)
      : model(dl::build_model(description(robot))),
        set(dl::make_constraints(model, constraint_descriptions(robot))),
        rows(set.rows),
        pose(robot.q),
        shift(std::size_t(rows), damping) {
    std::mt19937 rng(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto random = [&](std::size_t n) {
      Vector x(n);
      for (double& e : x) e = uniform(rng);
      return x;
    };
    q = states_near(model, robot.q, std::max(states, pack), rng);
    x = random(std::size_t(rows)), X = random(std::size_t(rows) * columns);
    for (std::size_t s = 0; s < q.size(); ++s) tau.push_back(random(std::size_t(model.nv)));
  }
  const dl::Model<double> model;
  const dl::ConstraintSet<double> set;
  const int rows;
  const Vector pose;  // at which loops are closed; q are near it
  const Vector shift;
  std::vector<Vector> q, tau;
  Vector x, X;  // a right-hand side and several
};

// Products of one state and of a pack agree, as do one column and several; solutions have a small backward error.
class OperatorCounts {
 public:
  explicit OperatorCounts(const Scene& scene)
      : scene_(scene),
        G_(dl::make_operator(dl::Form::matrix_free, scene.model, scene.set)),
        judge_(dl::make_operator(dl::Form::matrix_free, scene.model, scene.set)),
        many_(dl::make_batch_operator(scene.model, scene.set, pack, 1)),
        y_(scene.x.size()),
        Y_(scene.X.size()) {
    for (int s = 0; s < pack; ++s)
      for (const auto& [from, to] : {std::pair{&scene.q[s], &Q_}, {&scene.x, &Xs_}, {&scene.shift, &shifts_}})
        to->insert(to->end(), from->begin(), from->end());
    Ys_.resize(Xs_.size());
  }

  void count(const Counter& counter) {
    const auto update = [&](int s) { G_->update(scene_.q[s].data()); };
    const auto damp = [&](int) { G_->set_damping(scene_.shift.data()); };
    const auto apply = [&](int) { G_->apply(scene_.x.data(), 1, y_.data()); };
    const auto solve = [&](int) { G_->solve(scene_.x.data(), 1, y_.data()); };
    const auto update_many = [&] { many_->update(Q_.data()); };
    const auto apply_many = [&](int) { many_->apply(Xs_.data(), 1, Ys_.data()); };

    counter.count(
        "update and apply", [&](int s) { update(s), apply(s); }, [&](int s) { return as_in_a_pack(s); }, tolerance);
    update(0);
    const auto here = [&](int) { return as_in_a_pack(0); };
    counter.count("apply", apply, here, tolerance);
    counter.count(
        "apply to 8 columns", [&](int) { G_->apply(scene_.X.data(), columns, Y_.data()); },
        [&](int) { return as_one_column(); }, tolerance);
    counter.count(
        "update and solve", [&](int s) { update(s), damp(s), solve(s); }, [&](int s) { return backward_error(y_, s); },
        backward_tolerance);
    update(0), damp(0);
    const auto residual = [&](int) { return backward_error(y_, 0); };
    counter.count("solve", solve, residual, backward_tolerance);
    counter.count("new damping and solve", [&](int s) { damp(s), solve(s); }, residual, backward_tolerance);
    counter.count(
        "solve, refined",
        [&](int) { G_->solve(scene_.x.data(), 1, y_.data(), {.refinements = 8, .goal = 2e-13, .limit = 1e-12}); },
        residual, backward_tolerance);
    counter.count(
        "pack: update and apply", [&](int s) { update_many(), apply_many(s); },
        [&](int s) { return update(s), apply(s), as_in_a_pack(s); }, tolerance);
    counter.count("pack: apply", apply_many, [&](int s) { return update(s), apply(s), as_in_a_pack(s); }, tolerance);
    counter.count(
        "pack: update and solve",
        [&](int) { update_many(), many_->set_damping(shifts_.data()), many_->solve(Xs_.data(), 1, Ys_.data()); },
        [&](int s) { return backward_error(of_pack(s), s); }, backward_tolerance);
  }

  // ‖(G + ε) x − y‖ / (‖G x‖ + ε ‖x‖ + ‖y‖), by another operator at state s
  double backward_error(const Vector& x, int s) {
    Vector Gx(x.size());
    judge_->update(scene_.q[s].data());
    judge_->apply(x.data(), 1, Gx.data());
    double left = 0, size = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double r = Gx[k] + damping * x[k] - scene_.x[k];
      left += r * r, size += Gx[k] * Gx[k] + damping * damping * x[k] * x[k] + scene_.x[k] * scene_.x[k];
    }
    return std::isfinite(left) ? std::sqrt(left / size) : HUGE_VAL;
  }
  // of a matrix times x from G x
  double difference_of_product(const Vector& A, int s) {
    Vector Gx(scene_.x.size());
    judge_->update(scene_.q[s].data());
    judge_->apply(scene_.x.data(), 1, Gx.data());
    return difference(product(A, scene_.x, scene_.rows), Gx);
  }

 private:
  Vector of_pack(int s) const {
    return {Ys_.begin() + std::ptrdiff_t(s) * scene_.rows, Ys_.begin() + std::ptrdiff_t(s + 1) * scene_.rows};
  }
  double as_in_a_pack(int s) {
    many_->update(Q_.data());
    many_->apply(Xs_.data(), 1, Ys_.data());
    return difference(y_, of_pack(s));
  }
  double as_one_column() {
    double worst = 0;
    for (int c = 0; c < columns; ++c) {
      Vector x, several;
      for (int r = 0; r < scene_.rows; ++r)
        x.push_back(scene_.X[std::size_t(r) * columns + c]), several.push_back(Y_[std::size_t(r) * columns + c]);
      G_->apply(x.data(), 1, y_.data());
      worst = std::max(worst, difference(several, y_));
    }
    return worst;
  }

  const Scene& scene_;
  const std::unique_ptr<dl::Operator<double>> G_, judge_;
  const std::unique_ptr<dl::BatchOperator<double>> many_;
  Vector y_, Y_, Q_, Xs_, Ys_, shifts_;
};

// Matrices act as the operator does.
void count_matrices(const Counter& counter, const Scene& scene, OperatorCounts& judge) {
  const auto maker = dl::make_matrix_maker(scene.model, scene.set);
  Vector A(std::size_t(scene.rows) * scene.rows);
  for (const auto& [name, method] : matrix_methods)
    if (maker->supports(method))
      counter.count(
          std::string("matrix: ") + name,
          [&, method = method](int s) { maker->matrix(method, scene.q[s].data(), A.data()); },
          [&](int s) { return judge.difference_of_product(A, s); }, tolerance);
  for (const auto& [name, method] : inverse_methods)
    if (maker->supports(method))
      counter.count(
          std::string("inverse: ") + name,
          [&, method = method](int s) { maker->inverse(method, scene.q[s].data(), scene.shift.data(), A.data()); },
          [&](int s) { return judge.backward_error(product(A, scene.x, scene.rows), s); }, backward_tolerance);
}

// ε of constrained dynamics where the user gives none: a part of G's own diagonal, of rows of lengths and of rotations.
Vector own_damping(const Scene& scene) {
  Vector diagonal(std::size_t(scene.rows));
  dl::find_diagonal(scene.model, scene.set, scene.pose.data(), diagonal.data());
  for (const auto& c : scene.set.constraints)
    for (int first = 0; first < c.rows; first += 3) {
      const auto from = diagonal.begin() + c.row + first, to = diagonal.begin() + c.row + std::min(first + 3, c.rows);
      const double sum = std::accumulate(from, to, 0.0);
      std::fill(from, to, (first == 0 ? 5e-8 : 3e-9) * sum / double(to - from));
    }
  return diagonal;
}

// The residual of the dynamics where both equations hold, or rows depend on each other but for how the robot is drawn.
double certified(const dl::Report<double>& report) {
  const bool holds = report.outcome == dl::Outcome::solved || report.outcome == dl::Outcome::redundant;
  return holds ? report.dynamics : HUGE_VAL;
}

// The usual case: default penalties, tolerance and number of iterations, at rest, where redundant rows cannot
// contradict each other. What holds a robot at all its points leaves accelerations of rounding, so that methods are not
// compared with each other: residuals are taken.
void count_dynamics(const Counter& counter, const Scene& scene) {
  constexpr int max_iterations = 20;
  constexpr double default_tolerance = 1e-12;
  const Vector epsilon = own_damping(scene);
  const Vector v(std::size_t(scene.model.nv), 0.0);
  Vector lambda(epsilon.size()), vdot(v.size());
  dl::Report<double> report;
  for (const auto& [name, method] : dynamics_methods) {
    const auto solver = dl::make_dynamics_solver(method, scene.model, scene.set);
    solver->give_way(method == DynamicsMethod::pv);
    const auto solve = [&](int s) {
      std::fill(lambda.begin(), lambda.end(), 0.0);
      solver->solve(scene.pose.data(), v.data(), scene.tau[s].data(), nullptr, nullptr, epsilon.data(), max_iterations,
                    default_tolerance, lambda.data(), vdot.data(), &report, nullptr);
    };
    if (method != DynamicsMethod::lcaba && method != DynamicsMethod::prox_ltl && !solver->suits_rows()) continue;
    counter.count(std::string("dynamics: ") + name, solve, [&](int) { return certified(report); }, backward_tolerance);
  }

  const auto many = dl::make_batch_dynamics_solver(scene.model, scene.set, pack, 1, false);
  Vector Q, V(pack * v.size()), Tau, epsilons, compliances(pack * epsilon.size()), lambdas(compliances.size()),
      vdots(V.size());
  for (int s = 0; s < pack; ++s)
    for (const auto& [from, to] : {std::pair{&scene.pose, &Q}, {&scene.tau[s], &Tau}, {&epsilon, &epsilons}})
      to->insert(to->end(), from->begin(), from->end());
  std::vector<dl::Report<double>> reports(std::size_t{pack});
  const auto solve_many = [&](int) {
    std::fill(lambdas.begin(), lambdas.end(), 0.0);
    many->solve(Q.data(), V.data(), Tau.data(), nullptr, nullptr, epsilons.data(), compliances.data(), max_iterations,
                default_tolerance, lambdas.data(), vdots.data(), reports.data());
  };
  counter.count(
      "pack: dynamics, lcaba", solve_many, [&](int s) { return certified(reports[std::size_t(s)]); },
      backward_tolerance);
}

int run(int argc, char** argv) {
  const Options o = read_options(argc, argv);
  std::printf("fact\tcompiler\t%s\nfact\tflags\t%s\nfact\tlibc\t%s\nfact\tcalls\t%d\n", BENCH_COMPILER,
              BENCH_CORE_FLAGS, gnu_get_libc_version(), states);
  for (const auto& robot : chosen_robots(o)) {
    std::fprintf(stderr, "%s\n", robot.name.c_str());
    const Counter counter(robot.name);
    const Scene scene(robot);
    OperatorCounts operators(scene);
    count_tree(counter, robot);
    operators.count(counter);
    if (scene.rows <= most_rows) count_matrices(counter, scene, operators), count_dynamics(counter, scene);
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::guarded([&] { return bench::run(argc, argv); });
}
