// Declares the sweeps for one state as compiled elsewhere (instantiate.cpp), so that files that include this header do
// not compile them again.
#pragma once

#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"

#define DELASSUS_SWEEPS(how, T)                                                                \
  how template struct Placement<T>;                                                            \
  how template struct Workspace<T>;                                                            \
  how template void kinematics<T>(const Model<T>&, Placement<T>&, const T*);                   \
  how template void rnea<T>(const Model<T>&, Workspace<T>&, const T*, const T*, const T*, T*); \
  how template void crba<T>(const Model<T>&, Workspace<T>&, T*, bool);                         \
  how template void aba<T>(const Model<T>&, Workspace<T>&, const T*, const T*, const T*, T*);  \
  how template void factorize<T>(const Model<T>&, Workspace<T>&);                              \
  how template bool is_regular<T>(const Model<T>&, Workspace<T>&);                             \
  how template void solve_mass_matrix<T>(const Model<T>&, Workspace<T>&, const T*, int, T*);   \
  how template void mass_matrix_inverse<T>(const Model<T>&, Workspace<T>&, T*);

namespace delassus {

DELASSUS_SWEEPS(extern, double)
DELASSUS_SWEEPS(extern, float)

}  // namespace delassus
