#include "solvers/batch_constrained.h"

namespace delassus {

template class ConstrainedDynamics<double>;
template class ConstrainedDynamics<float>;
template class BatchConstrainedDynamics<double>;
template class BatchConstrainedDynamics<float>;

}  // namespace delassus
