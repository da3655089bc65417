// Blocks of G between rows that meet at the tip of a limb.
#pragma once

#include "operators/explicit/rows.h"

namespace delassus {

// G[i, j] += K_i · X_j for rows i before j that meet at the tip: one of them the tip's own, or of two limbs that hang
// on it; and for i = j where within(limb) says so of a limb that hangs on it. K and X have six components, `room`
// apart, their first row that of the limb.
template <class T, class F>
inline void add_meetings(const Limbs& tree, const Limb& limb, const T* K, const T* X, std::size_t room, F&& within,
                         T* G, std::size_t stride) {
  auto add = [&](int first, int past, bool itself) {
    add_products(K - limb.first, X - limb.first, room, 6, first, past, itself ? first : past, limb.past, itself, G,
                 stride);
  };
  if (limb.own < limb.own_past) add(limb.own, limb.own_past, true);
  for (int c = limb.child; c < limb.child + limb.children; ++c) {
    const Limb& child = tree.limbs[tree.children[c]];
    add(child.first, child.past, within(tree.children[c]));
  }
}

}  // namespace delassus
