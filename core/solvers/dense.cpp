// The methods that treat rows explicitly, in double and in single precision.
#include "solvers/prox_ltl.h"
#include "solvers/prox_ltls.h"
#include "solvers/prox_pv.h"
#include "solvers/pv_early.h"

namespace delassus {

#define DELASSUS_DENSE(T)      \
  template class ProxLtl<T>;   \
  template class ProxLtls<T>;  \
  template class PvSweeps<T>;  \
  template class Pv<T>;        \
  template class ProxPv<T>;    \
  template class PvEarly<T>;

DELASSUS_DENSE(double)
DELASSUS_DENSE(float)

}  // namespace delassus
