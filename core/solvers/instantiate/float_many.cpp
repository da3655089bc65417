#include "solvers/instantiate/many.h"

namespace delassus {

DELASSUS_MANY_STATES(float)

}  // namespace delassus
