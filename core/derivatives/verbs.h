// Abstract interface of the derivatives of tree dynamics for many states: callers do not compile the sweeps.
#pragma once

#include <memory>

#include "model/model.h"

namespace delassus {

template <class Real>
class BatchTreeDerivatives {
 public:
  virtual ~BatchTreeDerivatives() = default;
  // As rnea_derivatives and aba_derivatives of one state, from q; every array with the batch before.
  virtual void inverse_dynamics(int batch, const Real* Q, const Real* V, const Real* vdot, const Real* external,
                                Real* tau, Real* tau_q, Real* tau_v, Real* M) = 0;
  // Returns the first state whose M is singular, or −1.
  virtual int forward_dynamics(int batch, const Real* Q, const Real* V, const Real* tau, const Real* external,
                               Real* vdot, Real* vdot_q, Real* vdot_v, Real* Minv) = 0;
};

template <class Real>
std::unique_ptr<BatchTreeDerivatives<Real>> make_batch_tree_derivatives(const Model<Real>& model, int threads);

}  // namespace delassus
