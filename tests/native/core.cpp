// The core against dense algebra, without Python: for processors and compilers on which Python's tests cannot run.
//
//   body poses and Jacobians by the definition, one body after the other      J_b, 6 × nv at the body's centre
//   M = Σ J_bᵀ I_b J_b + armature,   bias = Σ J_bᵀ (I_b J̇_b ν + gyroscopic − m g),   J̇ν by a central difference
//   G = J M⁻¹ Jᵀ,   (G + ε)⁻¹,   M ν̇ + bias = τ + Jᵀ λ,  J ν̇ + J̇ν = 0
//
// Nothing here is shared with the core but the description of a mechanism.
// Prints a line for each check, and fails if one does.
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "dense/cholesky.h"
#include "dense/lu.h"
#include "dense/orthogonal.h"
#include "derivatives/verbs.h"
#include "dynamics/compiled.h"
#include "operators/verbs.h"
#include "solvers/contacts/solver.h"
#include "solvers/verbs.h"
#include "spatial/target.h"

using namespace delassus;

namespace {

using Vector = std::vector<double>;
using Three = Vec3<double>;

int checks = 0, failures = 0;

void check(const std::string& what, double error, double bound) {
  const bool passed = error <= bound;  // false for NaN
  ++checks;
  failures += !passed;
  std::printf("%-52s %8.1e  %s %.0e\n", what.c_str(), error, passed ? "<=" : "IS MORE THAN", bound);
}

// ---- dense matrices
// ---------------------------------------------------------------------------------------------------

struct Matrix {
  int rows, columns;
  Vector at;
  Matrix(int m, int n) : rows(m), columns(n), at(std::size_t(m) * std::size_t(n)) {}
  double& operator()(int i, int j) { return at[std::size_t(i) * columns + j]; }
  double operator()(int i, int j) const { return at[std::size_t(i) * columns + j]; }
};

Matrix transposed(const Matrix& A) {
  Matrix B(A.columns, A.rows);
  for (int i = 0; i < A.rows; ++i)
    for (int j = 0; j < A.columns; ++j) B(j, i) = A(i, j);
  return B;
}

Matrix operator*(const Matrix& A, const Matrix& B) {
  Matrix C(A.rows, B.columns);
  for (int i = 0; i < A.rows; ++i)
    for (int k = 0; k < A.columns; ++k)
      for (int j = 0; j < B.columns; ++j) C(i, j) += A(i, k) * B(k, j);
  return C;
}

Vector operator*(const Matrix& A, const Vector& x) {
  Vector y(std::size_t(A.rows));
  for (int i = 0; i < A.rows; ++i)
    for (int j = 0; j < A.columns; ++j) y[i] += A(i, j) * x[j];
  return y;
}

// A⁻¹ B by elimination of the largest entry of each column
Matrix solved(Matrix A, Matrix B) {
  const int n = A.rows;
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A(i, k)) > std::abs(A(best, k))) best = i;
    for (int j = 0; j < n; ++j) std::swap(A(k, j), A(best, j));
    for (int j = 0; j < B.columns; ++j) std::swap(B(k, j), B(best, j));
    for (int i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = A(i, k) / A(k, k);
      for (int j = k; j < n; ++j) A(i, j) -= factor * A(k, j);
      for (int j = 0; j < B.columns; ++j) B(i, j) -= factor * B(k, j);
    }
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < B.columns; ++j) B(i, j) /= A(i, i);
  return B;
}

template <class A, class B>
double difference(const A& a, const B& b) {
  double worst = 0, size = 0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    const double d = std::abs(double(a[k]) - double(b[k]));
    if (!(d <= worst)) worst = d;  // also NaN
    size = std::max(size, std::abs(double(b[k])));
  }
  return a.size() == b.size() ? worst / (size + 1e-300) : HUGE_VAL;
}

// ---- the mechanism, by its definition
// -----------------------------------------------------------------------------------

Three axis(const Mat3<double>& R, int k) { return k == 0 ? R.x : k == 1 ? R.y : R.z; }

Mat3<double> turn(const double* q) {
  const double s = 2 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  return {{1 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)},
          {s * (x * y - w * z), 1 - s * (x * x + z * z), s * (y * z + w * x)},
          {s * (x * z + w * y), s * (y * z - w * x), 1 - s * (x * x + y * y)}};
}

Mat3<double> turn_about(const Three& a, double angle) {
  const double half = angle / 2, s = std::sin(half) / std::sqrt(dot(a, a));
  const double q[4]{std::cos(half), a.x * s, a.y * s, a.z * s};
  return turn(q);
}

// A velocity: what it moves (a body and all it carries), and how.
struct Motion {
  int body;
  Three linear, angular, through;  // velocity at x: linear + angular × (x − through)
  Three at(const Three& x) const { return linear + cross(angular, x - through); }
};

struct Mechanism {
  const Description& d;
  std::vector<Mat3<double>> R;
  std::vector<Three> p;
  std::vector<Motion> motions;

  Mechanism(const Description& description, const Vector& q) : d(description) {
    std::size_t c = 0;
    for (std::size_t b = 0; b < d.bodies.size(); ++b) {
      const auto& body = d.bodies[b];
      Mat3<double> A = turn(body.quaternion);
      Three x = body.position;
      if (b > 0) x = R[body.parent] * x + p[body.parent], A = R[body.parent] * A;
      for (const auto& joint : d.joints) {
        if (joint.body != int(b)) continue;
        const int k = int(b);
        const Three anchor = x + A * joint.anchor, a = A * joint.axis;
        const Three along = a * (1 / std::sqrt(dot(a, a)));
        if (joint.type == Joint::slide) {
          motions.push_back({k, along, {}, {}});
          x += along * (q[c++] - joint.reference);
        } else if (joint.type == Joint::hinge) {
          motions.push_back({k, {}, along, anchor});
          A = A * turn_about(joint.axis, q[c++] - joint.reference);
          x = anchor - A * joint.anchor;
        } else {
          const bool free = joint.type == Joint::free;
          if (free) {
            x = {q[c], q[c + 1], q[c + 2]};
            A = turn(&q[c + 3]);
            motions.push_back({k, {1, 0, 0}, {}, {}});
            motions.push_back({k, {0, 1, 0}, {}, {}});
            motions.push_back({k, {0, 0, 1}, {}, {}});
          } else {
            A = A * turn(&q[c]);
            x = anchor - A * joint.anchor;
          }
          for (int e = 0; e < 3; ++e) motions.push_back({k, {}, axis(A, e), free ? x : anchor});
          c += free ? 7 : 4;
        }
      }
      R.push_back(A), p.push_back(x);
    }
  }

  bool carries(int body, int b) const {
    for (; b > 0; b = d.bodies[b].parent)
      if (b == body) return true;
    return false;
  }
  int nv() const { return int(motions.size()); }
  Three place(int b, const Three& point) const { return R[b] * point + p[b]; }

  // Velocities of a point of a body, and angular ones: 6 × nv.
  Matrix jacobian(int b, const Three& x) const {
    Matrix J(6, nv());
    for (int k = 0; k < nv(); ++k) {
      if (!carries(motions[k].body, b)) continue;
      const Three v = motions[k].at(x), w = motions[k].angular;
      const double numbers[6]{v.x, v.y, v.z, w.x, w.y, w.z};
      for (int r = 0; r < 6; ++r) J(r, k) = numbers[r];
    }
    return J;
  }
  // Mass and inertia about the centre, world axes: 6 × 6.
  Matrix inertia(int b) const {
    const auto& I = d.bodies[b].inertia;
    Matrix A(6, 6), turned(3, 3), own(3, 3);
    const double numbers[9]{I.xx, I.xy, I.xz, I.xy, I.yy, I.yz, I.xz, I.yz, I.zz};
    for (int i = 0; i < 3; ++i) {
      const Three a = axis(R[b], i);
      turned(0, i) = a.x, turned(1, i) = a.y, turned(2, i) = a.z;
      for (int j = 0; j < 3; ++j) own(i, j) = numbers[3 * i + j];
      A(i, i) = d.bodies[b].mass;
    }
    const Matrix world = turned * own * transposed(turned);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) A(3 + i, 3 + j) = world(i, j);
    return A;
  }
  Matrix mass_matrix() const {
    Matrix M(nv(), nv());
    for (int k = 0; k < nv(); ++k) M(k, k) = d.armature[k];
    for (int b = 1; b < int(d.bodies.size()); ++b) {
      const Matrix J = jacobian(b, place(b, d.bodies[b].center)), add = transposed(J) * inertia(b) * J;
      for (std::size_t k = 0; k < M.at.size(); ++k) M.at[k] += add.at[k];
    }
    return M;
  }
};

// q after ν dt, by the exponential of the rotation
Vector moved(const Description& d, Vector q, const Vector& v, double dt) {
  std::size_t c = 0, k = 0;
  for (const auto& joint : d.joints) {
    if (joint.type == Joint::hinge || joint.type == Joint::slide) {
      q[c++] += v[k++] * dt;
      continue;
    }
    if (joint.type == Joint::free)
      for (int e = 0; e < 3; ++e) q[c++] += v[k++] * dt;
    const Three w{v[k], v[k + 1], v[k + 2]};
    const double size = std::sqrt(dot(w, w)), s = std::sin(size * dt / 2) / size, r = std::cos(size * dt / 2);
    const double a[4]{q[c], q[c + 1], q[c + 2], q[c + 3]}, b[4]{r, w.x * s, w.y * s, w.z * s};
    q[c] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    q[c + 1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    q[c + 2] = a[0] * b[2] + a[2] * b[0] + a[3] * b[1] - a[1] * b[3];
    q[c + 3] = a[0] * b[3] + a[3] * b[0] + a[1] * b[2] - a[2] * b[1];
    c += 4, k += 3;
  }
  return q;
}

// J̇ν of rows that a function of the mechanism gives
template <class F>
Vector rate(const Description& d, const Vector& q, const Vector& v, F&& rows) {
  constexpr double h = 1e-5;
  const Vector after = rows(Mechanism(d, moved(d, q, v, h))) * v, before = rows(Mechanism(d, moved(d, q, v, -h))) * v;
  Vector a(after.size());
  for (std::size_t k = 0; k < a.size(); ++k) a[k] = (after[k] - before[k]) / (2 * h);
  return a;
}

Vector bias_forces(const Description& d, const Vector& q, const Vector& v) {
  const Mechanism now(d, q);
  Vector sum(v.size());
  for (int b = 1; b < int(d.bodies.size()); ++b) {
    const auto at_center = [&](const Mechanism& m) { return m.jacobian(b, m.place(b, d.bodies[b].center)); };
    const Matrix J = at_center(now), I = now.inertia(b);
    Vector a = rate(d, q, v, at_center);
    a[0] -= d.gravity.x, a[1] -= d.gravity.y, a[2] -= d.gravity.z;
    Vector f = I * a;
    const Vector u = J * v, momentum = I * u;
    const Three gyroscopic = cross(Three{u[3], u[4], u[5]}, Three{momentum[3], momentum[4], momentum[5]});
    f[3] += gyroscopic.x, f[4] += gyroscopic.y, f[5] += gyroscopic.z;
    const Vector tau = transposed(J) * f;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += tau[k];
  }
  return sum;
}

// ---- what is tried
// ------------------------------------------------------------------------------------------------------

// A floating trunk with four legs of three hinges, an arm of ball and hinge with a mass that slides, and a cart with a
// pole.
Description robot() {
  Description d{};
  d.gravity = {0.3, -0.2, -9.81};
  d.bodies.push_back({0, {0, 0, 0}, {1, 0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  const auto add = [&](int parent, Three at, Joint type, Three a) {
    const double k = double(d.bodies.size());
    d.bodies.push_back({parent,
                        at,
                        {0.8, 0.1, -0.5, 0.3},
                        1 + 0.1 * k,
                        {0.02, -0.01 * k, 0.05},
                        {0.02 + 0.001 * k, 0.001, 0.002, 0.03, -0.001, 0.025}});
    d.joints.push_back({type, int(d.bodies.size()) - 1, {0.01, 0.02, -0.03}, a, type == Joint::hinge ? 0.1 : 0});
    return int(d.bodies.size()) - 1;
  };
  const int trunk = add(0, {0, 0, 1}, Joint::free, {0, 0, 1});
  d.joints.back().anchor = {0, 0, 0};
  for (int leg = 0; leg < 4; ++leg) {
    const double x = leg % 2 ? 0.3 : -0.3, y = leg / 2 ? 0.2 : -0.2;
    const int hip = add(trunk, {x, y, 0}, Joint::hinge, {1, 0, 0});
    add(add(hip, {0, 0.05, -0.1}, Joint::hinge, {0, 1, 0}), {0, 0, -0.3}, Joint::hinge, {0, 0.6, 0.8});
  }
  const int hand = add(add(trunk, {0.2, 0, 0.2}, Joint::ball, {0, 0, 1}), {0.3, 0, 0}, Joint::hinge, {0, 0, 1});
  add(hand, {0.1, 0, 0}, Joint::slide, {0.8, 0.6, 0});
  add(add(0, {2, 0, 0}, Joint::slide, {1, 0, 0}), {0, 0.1, 0.4}, Joint::hinge, {0, 1, 0});
  for (int k = 0, n = 6 + 12 + 3 + 1 + 1 + 2; k < n; ++k) d.armature.push_back(0.01 * (1 + k % 3));
  return d;
}
const std::vector<int> feet{4, 7, 10, 13};
constexpr int hand = 16, pole = 18;
constexpr double damping = 1e-3;

struct Tie {
  int body, other;
  Three point, other_point;
};
// Feet on the ground, a rod's ends at two feet, and the hand held to the pole: a loop through both trees.
std::vector<Tie> ties() {
  std::vector<Tie> all;
  for (const int foot : feet) all.push_back({foot, 0, {0.01, 0, -0.3}, {0.1, 0.2, 0.3}});
  all.push_back({feet[0], feet[1], {0, 0.1, -0.2}, {0.1, 0, -0.2}});
  all.push_back({hand, pole, {0.1, 0, 0}, {0, 0, 0.3}});
  return all;
}
const double axes[9]{0.6, 0.8, 0, -0.8, 0.6, 0, 0, 0, 1};  // rows, world

std::vector<ConstraintDescription> constraints() {
  std::vector<ConstraintDescription> list;
  for (const Tie& t : ties()) {
    ConstraintDescription c{};
    c.kind = Kind::frame, c.rows = 3, c.bodies = {t.body, t.other};
    c.points = {t.point.x, t.point.y, t.point.z, t.other_point.x, t.other_point.y, t.other_point.z};
    c.matrix.assign(axes, axes + 9);
    list.push_back(c);
  }
  return list;
}

Matrix rows_of(const Mechanism& m) {
  Matrix J(0, m.nv());
  for (const Tie& t : ties()) {
    const Matrix a = m.jacobian(t.body, m.place(t.body, t.point)),
                 b = m.jacobian(t.other, m.place(t.other, t.other_point));
    for (int r = 0; r < 3; ++r, ++J.rows)
      for (int k = 0; k < m.nv(); ++k) {
        double sum = 0;
        for (int e = 0; e < 3; ++e) sum += axes[3 * r + e] * (a(e, k) - b(e, k));
        J.at.push_back(sum);
      }
  }
  return J;
}

struct State {
  Vector q, v, tau, x;
};

State random_state(const Description& d, int rows, std::mt19937& rng) {
  std::uniform_real_distribution<double> number(-1, 1);
  State s;
  for (const auto& joint : d.joints) {
    for (int k = 0; k < velocity_size(joint.type); ++k) s.v.push_back(number(rng)), s.tau.push_back(5 * number(rng));
    if (joint.type != Joint::ball)
      for (int k = 0; k < (joint.type == Joint::free ? 3 : 1); ++k) s.q.push_back(number(rng));
    if (joint.type == Joint::hinge || joint.type == Joint::slide) continue;
    double c[4], size = 0;
    for (double& e : c) e = number(rng), size += e * e;
    for (const double e : c) s.q.push_back(e / std::sqrt(size));
  }
  for (int r = 0; r < rows; ++r) s.x.push_back(number(rng));
  return s;
}

template <class Real>
std::vector<Real> as(const Vector& x) {
  return {x.begin(), x.end()};
}

template <class Real>
Model<Real> model_of(const Description& d) {
  if constexpr (sizeof(Real) == 8)
    return build_model(d);
  else
    return converted<Real>(build_model(d));
}

// Bounds are of double precision; `loose` is how much more single precision may.
template <class Real>
void check_tree(const std::string& precision, const Description& d, const State& s, double loose) {
  const Model<Real> model = model_of<Real>(d);
  const Mechanism dense(d, s.q);
  const int n = dense.nv();
  const Matrix M = dense.mass_matrix();
  const Vector bias = bias_forces(d, s.q, s.v);
  Workspace<Real> w(model);
  const auto q = as<Real>(s.q), v = as<Real>(s.v), tau = as<Real>(s.tau);
  const std::vector<Real> zero(std::size_t(n), Real(0));

  kinematics<Real>(model, w, q.data());
  std::vector<Real> numbers(M.at.size());
  crba<Real>(model, w, numbers.data(), true);
  check(precision + "mass matrix", difference(numbers, M.at), 1e-13 * loose);

  std::vector<Real> out(std::size_t(n), Real(0));
  rnea<Real>(model, w, v.data(), zero.data(), static_cast<const Real*>(nullptr), out.data());
  check(precision + "bias forces", difference(out, bias), std::max(1e-8, 1e-13 * loose));

  kinematics<Real>(model, w, q.data());
  aba<Real>(model, w, v.data(), tau.data(), static_cast<const Real*>(nullptr), out.data());
  Vector forces = M * Vector(out.begin(), out.end());
  for (int k = 0; k < n; ++k) forces[k] += bias[k];
  check(precision + "forward dynamics", difference(forces, s.tau), std::max(1e-8, 1e-12 * loose));

  kinematics<Real>(model, w, q.data());
  mass_matrix_inverse<Real>(model, w, numbers.data());
  Matrix one(n, n);
  for (int k = 0; k < n; ++k) one(k, k) = 1;
  check(precision + "inverse of the mass matrix", difference(numbers, solved(M, one).at), 1e-12 * loose);
}

template <class Real>
void check_operator(const std::string& precision, const Description& d, const std::vector<State>& states,
                    double loose) {
  const Model<Real> model = model_of<Real>(d);
  const auto set = make_constraints(model, constraints());
  const int m = set.rows, batch = int(states.size());
  const auto G = make_operator(Form::matrix_free, model, set);
  const auto many = make_batch_operator(model, set, batch, 2);
  const auto maker = make_matrix_maker(model, set);
  const std::vector<Real> shift(as<Real>(Vector(std::size_t(m), damping)));
  std::vector<Real> Q, X, shifts, single, Y(std::size_t(batch) * m), all(std::size_t(m) * m);
  double product = 0, solution = 0, matrices = 0, inverses = 0;
  int methods = 0;
  for (const State& s : states) {
    const Mechanism dense(d, s.q);
    const Matrix J = rows_of(dense), exact_G = J * solved(dense.mass_matrix(), transposed(J));
    const auto q = as<Real>(s.q), x = as<Real>(s.x);
    Q.insert(Q.end(), q.begin(), q.end());
    X.insert(X.end(), x.begin(), x.end());
    shifts.insert(shifts.end(), shift.begin(), shift.end());
    std::vector<Real> y(std::size_t(m), Real(0));
    G->update(q.data());
    G->apply(x.data(), 1, y.data());
    single.insert(single.end(), y.begin(), y.end());
    product = std::max(product, difference(y, exact_G * s.x));

    // (G + ε) x of the solution x, relative to ‖G‖ ‖x‖
    Matrix shifted = exact_G;
    for (int r = 0; r < m; ++r) shifted(r, r) += damping;
    G->set_damping(shift.data());
    G->solve(x.data(), 1, y.data());
    const Vector again = shifted * Vector(y.begin(), y.end());
    double residual = 0, size = 0, largest = 0;
    for (int r = 0; r < m; ++r) {
      residual = std::max(residual, std::abs(again[r] - s.x[r]));
      size = std::max(size, std::abs(double(y[r])));
      for (int c = 0; c < m; ++c) largest = std::max(largest, std::abs(shifted(r, c)));
    }
    solution = std::max(solution, residual / (largest * size * m));

    Matrix one(m, m);
    for (int r = 0; r < m; ++r) one(r, r) = 1;
    const Matrix exact_X = solved(shifted, one);
    for (const auto method : all_matrix_methods) {
      if (!maker->supports(method)) continue;
      maker->matrix(method, q.data(), all.data());
      matrices = std::max(matrices, difference(all, exact_G.at)), ++methods;
    }
    for (const auto method : all_inverse_methods) {
      if (!maker->supports(method)) continue;
      maker->inverse(method, q.data(), shift.data(), all.data());
      inverses = std::max(inverses, difference(all, exact_X.at)), ++methods;
    }
  }
  check(precision + "operator", product, 1e-12 * loose);
  check(precision + "solution with damping", solution, 1e-12 * loose);
  check(precision + "matrices, every method", matrices, 1e-11 * loose);
  check(precision + "damped inverses, every method", inverses, 1e-11 * loose);
  check(precision + "methods that were left out", double(methods < 9 * batch), 0);
  many->update(Q.data());
  many->apply(X.data(), 1, Y.data());
  check(precision + "batch of states", difference(Y, single), 1e-12 * loose);
}

void check_constrained_dynamics(const Description& d, const State& s) {
  const Model<double> model = build_model(d);
  const Mechanism dense(d, s.q);
  const Matrix M = dense.mass_matrix(), J = rows_of(dense);
  const Vector bias = bias_forces(d, s.q, s.v), drift = rate(d, s.q, s.v, rows_of);
  const int n = dense.nv(), m = J.rows;
  // M ν̇ − Jᵀ λ = τ − bias,  J ν̇ + ε λ = −J̇ν
  for (const auto& [name, method] : {std::pair{"lcaba", DynamicsMethod::lcaba}, {"kkt", DynamicsMethod::kkt}}) {
    const auto solver = make_dynamics_solver(method, model, make_constraints(model, constraints()));
    Vector lambda(std::size_t(m), 0.0), vdot(std::size_t(n), 0.0);
    const Vector shift(std::size_t(m), 1e-6);
    Report<double> report{};
    solver->solve(s.q.data(), s.v.data(), s.tau.data(), nullptr, nullptr, shift.data(), 100, 1e-9, lambda.data(),
                  vdot.data(), &report, nullptr);
    Vector forces = M * vdot, rows = J * vdot;
    const Vector pushed = transposed(J) * lambda;
    for (int k = 0; k < n; ++k) forces[k] += bias[k] - pushed[k];
    for (int r = 0; r < m; ++r) rows[r] += drift[r];
    double worst = 0;
    for (const double r : rows) worst = std::max(worst, std::abs(r));
    check(std::string("constrained dynamics, forces: ") + name, difference(forces, s.tau), 1e-6);
    check(std::string("constrained dynamics, rows: ") + name, worst, 1e-5);
  }
}

// Four contacts of a problem with friction: λ in its cone, σ in the dual cone, and across each other.
void check_contacts(const Description& d, const State& s) {
  const Mechanism dense(d, s.q);
  const Matrix J = rows_of(dense), all = J * solved(dense.mass_matrix(), transposed(J));
  constexpr int m = 12;
  Matrix A(m, m);
  for (int r = 0; r < m; ++r)
    for (int c = 0; c < m; ++c) A(r, c) = all(r, c);
  Vector g;
  ForceSets sets;
  sets.rows = m;
  for (int k = 0; k < m / 3; ++k) {
    sets.cones.push_back({3 * k, 0.5});
    for (const double e : {-1.0 - 0.1 * k, 0.4, -0.3 + 0.2 * k}) g.push_back(e);
  }
  for (const char* name : {"auto", "admm", "newton", "pgs", "interior"}) {
    const ContactMethod* method = find_contact_method(name);
    if (!method) {
      check(std::string("no contact solver ") + name, 1, 0);
      continue;
    }
    DenseMap map(A.at.data(), m);
    Vector lambda(m), sigma(m), history(20000);
    ContactSolver solver;
    ContactOptions options;
    options.tolerance = 1e-9, options.max_iterations = 20000;
    solver.solve(*method, {map, g.data(), sets}, A.at.data(), options, lambda.data(), sigma.data(), history.data());
    const Vector moved = A * lambda;
    double worst = 0, force = 0;
    for (int k = 0; k < m; k += 3) {
      const double tangent = std::hypot(lambda[k + 1], lambda[k + 2]);
      const Three u{moved[k] + g[k], moved[k + 1] + g[k + 1], moved[k + 2] + g[k + 2]};
      const double slip = std::hypot(u.y, u.z);
      worst = std::max({worst, tangent - 0.5 * lambda[k], -u.x,
                        std::abs(lambda[k] * (u.x + 0.5 * slip) + lambda[k + 1] * u.y + lambda[k + 2] * u.z)});
      force = std::max(force, lambda[k]);
    }
    check(std::string("Coulomb's law: ") + name, worst / force, 1e-6);
  }
}

template <class Real>
void check_dense(const std::string& precision, double bound) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> number(-1, 1);
  double cholesky = 0, lu = 0;
  for (int n = 1; n <= 70; n += 3) {
    const std::ptrdiff_t stride = n + 3;
    Matrix A(n, n), x(n, 1);
    for (double& e : A.at) e = number(rng);
    for (double& e : x.at) e = number(rng);
    Matrix S = transposed(A) * A;
    for (int k = 0; k < n; ++k) S(k, k) += n;
    for (int k = 0; k < n; ++k) A(k, k) += 2 * std::sqrt(double(n));
    const auto padded = [&](const Matrix& B) {
      std::vector<Real> numbers(std::size_t(n) * std::size_t(stride) + 64);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) numbers[std::size_t(i * stride + j)] = Real(B(i, j));
      return numbers;
    };
    auto y = as<Real>(x.at), U = padded(S);
    if (dense::factor_cholesky(n, U.data(), stride) != n) cholesky = HUGE_VAL;
    dense::solve_cholesky(n, U.data(), stride, y.data());
    cholesky = std::max(cholesky, difference(y, solved(S, x).at));
    auto z = as<Real>(x.at), L = padded(A);
    std::vector<int> pivots(std::size_t(n), 0);
    if (dense::factor_lu(n, L.data(), stride, pivots.data()) != n) lu = HUGE_VAL;
    dense::solve_lu(n, L.data(), stride, pivots.data(), z.data());
    lu = std::max(lu, difference(z, solved(A, x).at));
  }
  check(precision + "Cholesky factor", cholesky, bound);
  check(precision + "LU factors", lu, bound);
}

template <class Real>
void check_angles(const std::string& precision, double bound) {
  std::mt19937 rng(4);
  std::uniform_real_distribution<double> angle(-300, 300);
  constexpr int n = 4096;
  static_assert(n % trig_chunk == 0);
  std::vector<Real> a(n), s(n), c(n);
  for (Real& e : a) e = Real(angle(rng));
  sincos(a.data(), s.data(), c.data(), n);
  double worst = 0;
  for (int k = 0; k < n; ++k)
    worst = std::max(
        {worst, std::abs(double(s[k]) - std::sin(double(a[k]))), std::abs(double(c[k]) - std::cos(double(a[k])))});
  check(precision + "sine and cosine", worst, bound);
}

}  // namespace

int main() {
  std::printf("%s, registers of %d bytes, compiled for:", cpu_kind, vector_bytes);
  for (const CpuFeature& f : cpu_features)
    if (f.compiled) std::printf(" %s%s", f.name, cpu_has(f) ? "" : " (which this CPU lacks)");
  std::printf("\n");
  const Description d = robot();
  const int rows = 3 * int(ties().size());
  std::mt19937 rng(1);
  std::vector<State> states;
  for (int k = 0; k < 11; ++k) states.push_back(random_state(d, rows, rng));
  check_angles<double>("double: ", 4e-16);
  check_angles<float>("float: ", 2e-7);
  check_dense<double>("double: ", 1e-12);
  check_dense<float>("float: ", 1e-4);
  check_tree<double>("double: ", d, states[0], 1);
  check_tree<float>("float: ", d, states[1], 1e8);
  check_operator<double>("double: ", d, states, 1);
  check_operator<float>("float: ", d, states, 1e8);
  check_constrained_dynamics(d, states[2]);
  check_contacts(d, states[3]);
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
