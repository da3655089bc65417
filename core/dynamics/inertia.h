// Rigid inertia of every link in world axes about its tree's origin.
#pragma once

#include "dynamics/workspace.h"

namespace delassus {

template <class T>
inline void world_inertias(Placement<T>& w) {
  for (int b = 0; b < w.inertia.blocks(); ++b) {
    const auto& link = w.inertial[b];
    const auto& X = w.pose.block(b);
    w.inertia.block(b) = inertia_about_reference(link.mass, X * link.center, congruence(X.R, link.inertia));
  }
}

}  // namespace delassus
