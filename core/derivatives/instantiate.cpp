#include "derivatives/compiled.h"

namespace delassus {

DELASSUS_DERIVATIVES(, double)
DELASSUS_DERIVATIVES(, float)

}  // namespace delassus
