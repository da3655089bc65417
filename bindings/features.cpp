// Which extensions of the instruction set a build of the core was allowed to use. Compiled with the flags of that
// build: numbers only, so that nothing of it runs where they are read.
#include "spatial/target.h"

static constexpr delassus::CompiledFeatures compiled() {
  delassus::CompiledFeatures features{};
  for (std::size_t k = 0; k < delassus::cpu_feature_count; ++k) features.has[k] = delassus::cpu_features[k].compiled;
  return features;
}

extern "C" {
extern const delassus::CompiledFeatures DELASSUS_FEATURES;
constexpr delassus::CompiledFeatures DELASSUS_FEATURES = compiled();
}
