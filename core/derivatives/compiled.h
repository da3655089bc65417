// Declares the sweeps for one state as compiled elsewhere (instantiate.cpp), so that files that include this header do
// not compile them again.
#pragma once

#include "derivatives/aba_derivatives.h"
#include "derivatives/frame_derivatives.h"
#include "derivatives/mass_derivatives.h"
#include "derivatives/regressor.h"
#include "dynamics/compiled.h"

#define DELASSUS_DERIVATIVES(how, T)                                                                                   \
  how template void subspace_rates<T>(const Model<T>&, const Placement<T>&, Motions<T>&, SubspaceRates<T>&, const T*,  \
                                      const T*, const Vec3<T>&);                                                       \
  how template void rnea_derivatives<T>(const Model<T>&, DerivativeWorkspace<T>&, const T*, const T*, const T*, T*,    \
                                        T*, T*, T*, bool);                                                             \
  how template void aba_derivatives<T>(const Model<T>&, DerivativeWorkspace<T>&, const T*, const T*, const T*, T*, T*, \
                                       T*, T*);                                                                        \
  how template void frame_derivatives<T>(const Model<T>&, const DerivativeWorkspace<T>&, int, const Vec3<T>&, T*, T*,  \
                                         T*, T*, T*, T*);                                                              \
  how template void frame_force_derivatives<T>(const Model<T>&, const Placement<T>&, int, const Vec3<T>&,              \
                                               const Vec6<T>&, T*, T*);                                                \
  how template void center_of_mass_derivatives<T>(const Model<T>&, DerivativeWorkspace<T>&, const T*, const T*, T*,    \
                                                  T*, T*, T*, T*, T*);                                                 \
  how template void energy_derivatives<T>(const Model<T>&, DerivativeWorkspace<T>&, const T*, T*, T*, T*);             \
  how template void torque_regressor<T>(const Model<T>&, const Placement<T>&, const Motions<T>&, T*);

namespace delassus {

DELASSUS_DERIVATIVES(extern, double)
DELASSUS_DERIVATIVES(extern, float)

}  // namespace delassus
