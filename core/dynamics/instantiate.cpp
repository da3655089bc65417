#include "dynamics/compiled.h"

namespace delassus {

DELASSUS_SWEEPS(, double)
DELASSUS_SWEEPS(, float)

}  // namespace delassus
