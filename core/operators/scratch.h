// Scratch memory of the sweeps; nothing in it is kept between two calls.
#pragma once

#include <algorithm>

#include "operators/column_packs.h"
#include "operators/elimination.h"
#include "operators/layout.h"
#include "operators/refinement.h"
#include "operators/substitution.h"

namespace delassus {

// What one column, or a pack of columns, is on its way through the two sweeps of a substitution.
template <class C>
struct SweepBuffers {
  std::vector<Vec6<C>> m;  // a link, and nothing on the ground: forces, then accelerations
  std::vector<C> u;        // a velocity: forces, then accelerations

  void resize(std::size_t links, std::size_t velocities) {
    m.resize(links + 1);
    u.resize(velocities);
  }
  std::size_t bytes() const { return m.size() * sizeof(Vec6<C>) + u.size() * sizeof(C); }
};

// Operators that never work at the same time may share it.
template <class T>
struct Scratch {
  std::vector<Sym6<T>> H;             // a link: what it holds during an elimination, and nothing on the ground
  std::vector<Mat6<T>> coupling;      // two links
  std::vector<Inertia<T>> composite;  // a link: with all it carries
  std::vector<T> joint_stiffness;     // a velocity: what joint rows add to its pivot; empty if there are none
  std::vector<StripPack<T>> strip_u;  // a strip: on its way through the sweeps
  SweepBuffers<T> one;
  SweepBuffers<StripPack<T>> many;
  ColumnPacks<T> columns;  // rows or velocities, whichever are more
  RefinementMemory<T> refinement;

  Scratch(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout) { resize(model, layout); }
  void resize(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout) {
    const std::size_t links = model.links.size(), nv = std::size_t(model.nv), rows = std::size_t(layout.set.rows);
    H.resize(links + 1);
    coupling.resize(std::size_t(layout.coupled.slot_count));
    composite.resize(links);
    joint_stiffness.resize(layout.set.joint_rows.empty() ? 0 : nv);
    strip_u.resize(std::max(layout.loose.strips.size(), layout.coupled.strips.size()));
    one.resize(links, nv);
    refinement.resize(rows);
    if constexpr (strip_lanes<T> > 1) {
      many.resize(links, nv);
      columns.resize(std::max(rows, nv));
    }
  }
  std::size_t bytes() const {
    return H.size() * sizeof(Sym6<T>) + coupling.size() * sizeof(Mat6<T>) + composite.size() * sizeof(Inertia<T>) +
           joint_stiffness.size() * sizeof(T) + strip_u.size() * sizeof(StripPack<T>) + one.bytes() + many.bytes() +
           columns.bytes() + refinement.bytes();
  }
};

}  // namespace delassus
