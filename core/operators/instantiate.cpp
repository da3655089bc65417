// The operator compiled for one state and for batches, in double and in single precision.
#include "operators/batch.h"

namespace delassus {

template class Delassus<double>;
template class Delassus<float>;
template class BatchDelassus<double>;
template class BatchDelassus<float>;

}  // namespace delassus
