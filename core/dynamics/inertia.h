// Rigid inertia of every link in world axes about its tree's origin.
#pragma once

#include "dynamics/workspace.h"

namespace delassus {

template <class T>
inline Inertia<T> world_inertia(const Link<real_of<T>>& link, const Pose<T>& X) {
  return inertia_about_reference(link.mass, X * link.center, congruence(X.R, link.inertia));
}

}  // namespace delassus
