// The operator compiled for one state in double and in single precision.
#include "operators/delassus.h"

namespace delassus {

template class Delassus<double>;
template class Delassus<float>;

}  // namespace delassus
