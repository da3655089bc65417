// The sweeps compiled for one state in double and in single precision.
#include "dynamics/crba.h"
#include "dynamics/minv.h"
#include "dynamics/solve.h"

namespace delassus {

#define DELASSUS_SWEEPS(T)                                                                      \
  template struct Placement<T>;                                                                 \
  template struct Workspace<T>;                                                                 \
  template void kinematics<T>(const Model<T>&, Placement<T>&, const T*);                        \
  template void rnea<T>(const Model<T>&, Workspace<T>&, const T*, const T*, const T*, T*);      \
  template void crba<T>(const Model<T>&, Workspace<T>&, T*, bool);                              \
  template void aba<T>(const Model<T>&, Workspace<T>&, const T*, const T*, const T*, T*);       \
  template void factorize<T>(const Model<T>&, Workspace<T>&);                                   \
  template void solve_mass_matrix<T>(const Model<T>&, Workspace<T>&, const T*, int, T*);        \
  template void mass_matrix_inverse<T>(const Model<T>&, Workspace<T>&, T*);

DELASSUS_SWEEPS(double)
DELASSUS_SWEEPS(float)

}  // namespace delassus
