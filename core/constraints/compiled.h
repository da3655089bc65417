// Declares the rows of one state as compiled elsewhere (constraints.cpp), so that files that include this header do not
// compile their sweeps again.
#pragma once

#include "constraints/bias.h"
#include "dynamics/compiled.h"

#define DELASSUS_ROWS(how, T)                                                                                       \
  how template void evaluate<T>(const Model<T>&, const ConstraintSet<T>&, const Placement<T>&, const T*, Vec6<T>*); \
  how template void errors<T>(const Model<T>&, const ConstraintSet<T>&, const Placement<T>&, const T*, T*);         \
  how template void rates<T>(const Model<T>&, const ConstraintSet<T>&, const Placement<T>&, const Motions<T>&,      \
                             const T*, const T*, T*, T*);                                                           \
  how template void add_baumgarte<T>(const ConstraintSet<T>&, const T*, const T*, T*);

namespace delassus {

DELASSUS_ROWS(extern, double)
DELASSUS_ROWS(extern, float)

}  // namespace delassus
