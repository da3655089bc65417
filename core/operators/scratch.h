// Memory of the sweeps, which nothing is kept in between two calls.
#pragma once

#include <algorithm>
#include <memory>

#include "operators/accuracy.h"
#include "operators/elimination.h"
#include "operators/krylov.h"
#include "operators/layout.h"
#include "operators/substitution.h"

namespace delassus {

// Memory of one column, or of a pack of columns, on its way through the sweeps.
template <class C>
struct Passage {
  std::vector<Vec6<C>> m;  // a link, and nothing on the ground
  std::vector<C> u;        // a velocity
  std::vector<C> rest;     // a row: residual

  void resize(std::size_t links, std::size_t velocities, std::size_t rows) {
    m.resize(links + 1);
    u.resize(velocities);
    rest.resize(rows);
  }
  std::size_t bytes() const { return m.size() * sizeof(Vec6<C>) + (u.size() + rest.size()) * sizeof(C); }
};

// Operators that never work at the same time may share it.
template <class T>
struct Scratch {
  using Columns = StripPack<T>;
  std::vector<Sym6<T>> H;             // a link: what it holds during an elimination, and nothing on the ground
  std::vector<Mat6<T>> coupling;      // two links
  std::vector<Inertia<T>> composite;  // a link: with all it carries
  std::vector<T> pivot;               // a velocity: stiffness of joint rows
  std::vector<StripPack<T>> x;        // a strip: on its way through the sweeps
  Passage<T> one;
  std::vector<T> part, best, unit;  // a row: correction, best solution so far, right-hand side of size one
  Passage<Columns> many;
  std::vector<Columns> in, out;              // a row or a velocity, whichever are more
  std::vector<T> column, target;             // a row: one of several columns
  std::unique_ptr<FlexibleGmres<T>> krylov;  // where refinement was not enough

  Scratch(const Model<real_of<T>>& model, const Layout<real_of<T>>& layout) {
    const std::size_t links = model.links.size(), nv = std::size_t(model.nv), rows = std::size_t(layout.set.rows);
    H.resize(links + 1);
    coupling.resize(std::size_t(layout.coupled.slot_count));
    composite.resize(links);
    if (!layout.set.joint_rows.empty()) pivot.resize(nv);
    x.resize(std::max(layout.loose.strips.size(), layout.coupled.strips.size()));
    one.resize(links, nv, rows);
    part.resize(rows);
    best.resize(rows);
    unit.resize(rows);
    if constexpr (strip_lanes<T> > 1) {
      many.resize(links, nv, rows);
      in.resize(std::max(rows, nv));
      out.resize(std::max(rows, nv));
      column.resize(rows);
      target.resize(rows);
    }
  }
  std::size_t bytes() const {
    return H.size() * sizeof(Sym6<T>) + coupling.size() * sizeof(Mat6<T>) + composite.size() * sizeof(Inertia<T>) +
           x.size() * sizeof(StripPack<T>) +
           (pivot.size() + part.size() + best.size() + unit.size() + column.size() + target.size()) * sizeof(T) +
           one.bytes() + many.bytes() + (in.size() + out.size()) * sizeof(Columns) + (krylov ? krylov->bytes() : 0);
  }
};

}  // namespace delassus
