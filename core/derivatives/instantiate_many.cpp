#include "derivatives/batch.h"

namespace delassus {

template std::unique_ptr<BatchTreeDerivatives<double>> make_batch_tree_derivatives(const Model<double>&, int);
template std::unique_ptr<BatchTreeDerivatives<float>> make_batch_tree_derivatives(const Model<float>&, int);

}  // namespace delassus
