// Tree dynamics of this library's core, each algorithm from q behind a call, everything allocated beforehand; and
// random states for it.
#pragma once

#include <random>

#include "core_model.h"
#include "dynamics/aba.h"
#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/rnea.h"
#include "dynamics/solve.h"

namespace bench {

class OurTree {
 public:
  explicit OurTree(const Robot& robot)
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

  // n columns to solve for
  void set_right_hand_sides(int n, std::mt19937& rng) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    columns = n;
    Y.resize(std::size_t(model.nv) * n);
    X.resize(Y.size());
    for (double& y : Y) y = uniform(rng);
  }

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

inline std::vector<State> random_states(const dl::Model<double>& model, int count, std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::normal_distribution<double> normal;
  std::vector<State> out(std::size_t(count), State{});
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

}  // namespace bench
