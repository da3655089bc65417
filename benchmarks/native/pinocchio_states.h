// Pinocchio's model of a robot with random states, in its coordinates.
#pragma once

#include "pinocchio_model.h"

namespace bench {

using RowMat = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline std::vector<double> row_major(const RowMat& A) { return std::vector<double>(A.data(), A.data() + A.size()); }

struct PinocchioStates {
  explicit PinocchioStates(const Robot& robot) : built(robot), model(built.model), data(model) {}

  PinocchioModel built;
  pin::Model& model;
  pin::Data data;
  std::vector<Vec> q, v, acceleration, torque;
  std::vector<Mat> T;  // ν_pinocchio = T ν; orthogonal

  void add(const State& s) {
    const Vec cq = built.configuration(s.q);
    const Mat turn = built.turn(cq);
    const Vec cv = turn * Eigen::Map<const Vec>(s.v.data(), model.nv);
    const Vec ca = turn * Eigen::Map<const Vec>(s.acceleration.data(), model.nv) - built.drift(cv);
    const Vec ct = turn * Eigen::Map<const Vec>(s.torque.data(), model.nv);
    q.push_back(cq), v.push_back(cv), acceleration.push_back(ca), torque.push_back(ct), T.push_back(turn);
  }
};

}  // namespace bench
