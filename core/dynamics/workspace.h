// Everything the tree sweeps write: sized once from the model, never resized.
#pragma once

#include <vector>

#include "model/model.h"

namespace delassus {

// Columns a solve with many right-hand sides carries at once.
inline constexpr int solve_columns = 8;

template <class T>
struct Workspace {
  using Real = real_of<T>;
  using Columns = Pack<Real, solve_columns>;

  explicit Workspace(const Model<Real>& model);

  // kinematics: positions are relative to the tree's origin, the place of its root link
  std::vector<Vec3<T>> origin;  // a tree, in the world
  std::vector<Pose<T>> pose;    // a link
  std::vector<Vec6<T>> S;       // a velocity: motion subspace
  std::vector<T> angle, sine, cosine;

  // Newton–Euler
  std::vector<Vec6<T>> v, a, f;  // a link

  // composite and articulated inertia, elimination factor
  std::vector<Inertia<T>> composite;  // a link
  std::vector<Sym6<T>> H;             // a link
  std::vector<Vec6<T>> U;             // a velocity: H S, then the factor's column
  std::vector<T> Dinv, u;             // a velocity

  // explicit inverse: force columns, acceleration columns a branch
  int stride;                // length of a row of columns
  std::vector<int> slot;     // a velocity: which block of P its link's accelerations live in
  std::vector<char> last;    // a velocity: nothing below it, so nobody reads its accelerations
  std::vector<T> F, P;

  // many right-hand sides
  std::vector<Vec6<Columns>> column_force;  // a link
  std::vector<Columns> column;              // a velocity
};

template <class T>
Workspace<T>::Workspace(const Model<Real>& model) {
  const int nl = int(model.links.size()), nv = model.nv;
  origin.resize(model.roots.size());
  pose.resize(nl);
  S.resize(nv);
  angle.resize(trig_room(nl));
  sine.resize(trig_room(nl));
  cosine.resize(trig_room(nl));
  v.resize(nl);
  a.resize(nl);
  f.resize(nl);
  composite.resize(nl);
  H.resize(nl);
  U.resize(nv);
  Dinv.resize(nv);
  u.resize(nv);
  column_force.resize(nl);
  column.resize(nv);

  // The last child of a velocity may overwrite its parent's accelerations; every other child needs a block of its own.
  stride = (nv + 7) / 8 * 8;
  std::vector<int> last_child(nv, -1);
  for (int k = 0; k < nv; ++k)
    if (model.dof_parent[k] >= 0) last_child[model.dof_parent[k]] = k;
  slot.resize(nv);
  last.resize(nv);
  int slots = nv > 0 ? 1 : 0;
  for (int k = 0; k < nv; ++k) {
    const int p = model.dof_parent[k];
    slot[k] = p < 0 ? 0 : slot[p] + (last_child[p] == k ? 0 : 1);
    last[k] = last_child[k] < 0;
    if (slot[k] + 1 > slots) slots = slot[k] + 1;
  }
  F.resize(6 * std::size_t(stride));
  P.resize(6 * std::size_t(stride) * slots);
}

}  // namespace delassus
