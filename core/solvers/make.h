// Makes solvers of constrained dynamics, returned by their abstract interface (verbs.h).
#pragma once

#include "solvers/automatic.h"
#include "solvers/batch_constrained.h"
#include "solvers/kkt.h"
#include "solvers/prox_ltl.h"
#include "solvers/prox_ltls.h"
#include "solvers/prox_pv.h"
#include "solvers/pv_early.h"

namespace delassus {

template <class Real>
std::unique_ptr<DynamicsSolver<Real>> make_dynamics_solver(DynamicsMethod method, const Model<Real>& model,
                                                           ConstraintSet<Real> constraints) {
  auto layout = std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<Real>);
  switch (method) {
    case DynamicsMethod::prox_ltl:
      return std::make_unique<ProxLtl<Real>>(model, std::move(layout));
    case DynamicsMethod::prox_ltls:
      return std::make_unique<ProxLtls<Real>>(model, std::move(layout));
    case DynamicsMethod::pv:
      return std::make_unique<Pv<Real>>(model, std::move(layout));
    case DynamicsMethod::prox_pv:
      return std::make_unique<ProxPv<Real>>(model, std::move(layout));
    case DynamicsMethod::pv_early:
      return std::make_unique<PvEarly<Real>>(model, std::move(layout));
    case DynamicsMethod::kkt:
      return std::make_unique<Kkt<Real>>(model, std::move(layout));
    case DynamicsMethod::lcaba:
      return std::make_unique<ConstrainedDynamics<Real>>(model, std::move(layout));
    case DynamicsMethod::automatic:
      break;
  }
  return std::make_unique<Automatic<Real>>(model, std::move(layout));
}

template <class Real>
std::unique_ptr<BatchDynamicsSolver<Real>> make_batch_dynamics_solver(const Model<Real>& model,
                                                                      const ConstraintSet<Real>& constraints, int batch,
                                                                      int threads, bool repairs) {
  return std::make_unique<BatchConstrainedDynamics<Real>>(model, constraints, batch, threads, repairs);
}

template <class Real>
void find_diagonal(const Model<Real>& model, const ConstraintSet<Real>& constraints, const Real* q, Real* diagonal) {
  Delassus<Real> G(model, constraints);
  G.update(q);
  G.diagonal(diagonal);
}

}  // namespace delassus
