// Instantiates operators and solvers for many states, see one.h.
#pragma once

#include "constraints/compiled.h"
#include "operators/make.h"
#include "solvers/make.h"

#define DELASSUS_MANY_STATES(T)                                                                                       \
  template std::unique_ptr<BatchOperator<T>> make_batch_operator(const Model<T>&, const ConstraintSet<T>&, int, int); \
  template std::unique_ptr<BatchDynamicsSolver<T>> make_batch_dynamics_solver(                                        \
      const Model<T>&, const ConstraintSet<T>&, int, int, bool);
