#include "solvers/instantiate/many.h"

namespace delassus {

DELASSUS_MANY_STATES(double)

}  // namespace delassus
