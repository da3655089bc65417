// Operators and solvers of one state. All that share sweeps are compiled together, a precision a file: each sweep once,
// and the files beside each other. Nothing but the functions that make them is instantiated by name: what is so the
// compiler takes for replaceable, and does not inline.
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
