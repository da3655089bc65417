#include "solvers/instantiate/one.h"

namespace delassus {

DELASSUS_ONE_STATE(double)

}  // namespace delassus
