// Instantiates operators and solvers for one state. Those that share sweeps are compiled together, one file per
// precision, so each sweep is compiled once and the files in parallel. Only the functions that make them are
// instantiated explicitly: the compiler treats explicit instantiations as replaceable and does not inline them.
#pragma once

#include "constraints/compiled.h"
#include "operators/make.h"
#include "solvers/make.h"

#define DELASSUS_ONE_STATE(T)                                                                                          \
  template std::unique_ptr<Operator<T>> make_operator(Form, const Model<T>&, ConstraintSet<T>);                        \
  template std::unique_ptr<MovingOperator<T>> make_moving_operator(const Model<T>&, std::shared_ptr<const Layout<T>>); \
  template std::unique_ptr<MatrixMaker<T>> make_matrix_maker(const Model<T>&, ConstraintSet<T>);                       \
  template std::unique_ptr<DynamicsSolver<T>> make_dynamics_solver(DynamicsMethod, const Model<T>&, ConstraintSet<T>); \
  template void find_diagonal(const Model<T>&, const ConstraintSet<T>&, const T*, T*);
