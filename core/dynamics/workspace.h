// Memory of all tree sweeps: sized once from the model, never resized.
#pragma once

#include <vector>

#include "dynamics/limbs.h"
#include "dynamics/pair.h"
#include "dynamics/per_link.h"
#include "dynamics/ranks.h"
#include "model/model.h"

namespace delassus {

// Where everything is: kinematics and inertias of a configuration. Positions are relative to the tree's origin, the
// place of its root link or last carriage.
template <class T>
struct Placement {
  using Real = real_of<T>;

  explicit Placement(const Model<Real>& model);
  // Takes the inertias of the links anew, which the owner of the model may change.
  void read_inertias(const Model<Real>& model);
  std::size_t bytes() const;

  Ranks<T> ranks;
  // constants of the links, in the blocks that the block work wants
  std::vector<Inertial<std::conditional_t<link_lanes<T> == 1, Real, LinkPack<T>>>> inertial;

  std::vector<Vec3<T>> origin;  // a tree, in the world
  PerLink<Pose, T> pose;
  std::vector<Vec6<T>> S;     // a velocity: motion subspace; zero in one more place, for empty lanes of ranks
  std::vector<Vec3<T>> ride;  // a link, if any is a carriage: how far it takes the origin
  std::vector<Vec6<LinkPack<T>>> rank_S;  // a rank: its links' S
  PerLink<Inertia, T> inertia;  // a link's own, in world axes, about the tree's origin; a sweep may add its children's
};

// How it moves: velocities, accelerations and forces of the links, about the tree's origin.
template <class T>
struct Motions {
  PerLink<Vec6, T> v, a, f;

  explicit Motions(const LinkSlots& slots) {
    v.resize(slots);
    a.resize(slots);
    f.resize(slots);
  }
  std::size_t bytes() const { return v.bytes() + a.bytes() + f.bytes(); }
};

// The factor L of M = Lᵀ D L (triangle.h): L_kj of every velocity k that hangs on j is L[at[j] + k], k from begin[j] to
// end[j]. A free root is one block.
template <class T>
struct UnitTriangle {
  std::vector<int> at, begin, end;  // a velocity
  std::vector<T> L;
  std::vector<Sym6<T>> root;         // a tree: inverse of D of its root, if that is free
  std::vector<LinkPack<T>> columns;  // eight registers of columns, one row per velocity

  // Nothing, where limbs are so deep that products with L cost more than sweeps.
  explicit UnitTriangle(const Model<real_of<T>>& model);
  bool pays() const { return !at.empty(); }
};

// U, D⁻¹ and u of the links of a rank.
template <class T>
struct RankFactor {
  Vec6<LinkPack<T>> U;
  LinkPack<T> Dinv, u;
};

template <class T>
struct Workspace : Placement<T>, Motions<T> {
  using Real = real_of<T>;

  explicit Workspace(const Model<Real>& model);
  void prepare_inverse(const Model<Real>& model);

  // composite and articulated inertia, elimination factor
  std::vector<Inertia<T>> composite;  // a link: with all it carries
  std::vector<Sym6<T>> H;             // a link: what its children hand down, articulated
  std::vector<Vec6<T>> U;             // a velocity: H S, then the factor's column
  std::vector<T> Dinv, u;             // a velocity; u of single links only
  std::vector<RankFactor<T>> rank_factor;
  std::vector<Sym6<T>> Hinv;  // a tree: inverse of the root's articulated inertia, if the root is free
  UnitTriangle<T> triangle;   // the same factor, for many columns

  // explicit inverse, in blocks of columns: a force a velocity, accelerations a branch of the trunk, the inverses of
  // limbs. Sized by prepare_inverse, since a deep comb needs much of it, and the sweeps that are O(n) none.
  TrunkAndLimbs parts;
  int column_blocks;
  PerLink<Vec6, T> F;
  std::vector<Vec6<LinkPack<T>>> P;
  std::vector<Vec6<T>> force;                // a velocity of a limb: what a torque there exerts on the limb's base
  std::vector<LinkPack<T>> own;              // inverses of limbs; zero below their diagonals
  std::vector<LinkPack<T>> own_rows, own_L;  // of one group of limbs
  std::vector<Vec6<LinkPack<T>>> own_S, own_force;  // a velocity of it

  // right-hand sides, one, a pack or two packs of them: one force or motion per link, one number per velocity
  std::vector<Vec6<T>> single_motion;
  std::vector<Vec6<LinkPack<T>>> column_motion;
  std::vector<Vec6<Pair<LinkPack<T>>>> column_motions;
  std::vector<Vec6<T>> UDinv;  // a velocity
  std::vector<LinkPack<T>> column;
};

template <class T>
Placement<T>::Placement(const Model<Real>& model) : ranks(model) {
  const int nl = int(model.links.size());
  origin.resize(model.roots.size());
  pose.resize(ranks.slots);
  S.resize(model.nv + 1);
  rank_S.resize(ranks.ranks.size());
  bool rides = false;
  for (const auto& link : model.links) rides = rides || link.carriage;
  if (rides) ride.resize(nl);
  inertia.resize(ranks.slots);
  inertial.resize(pose.blocks());
  read_inertias(model);
}

template <class T>
void Placement<T>::read_inertias(const Model<Real>& model) {
  for (int i = 0; i < int(model.links.size()); ++i) {
    constexpr int width = link_lanes<T>;
    const int slot = ranks.slots.slot[i];
    const Real* from = reinterpret_cast<const Real*>(&model.links[i].inertial);
    Real* to = reinterpret_cast<Real*>(&inertial[slot / width]) + slot % width;
    for (std::size_t k = 0; k < sizeof(Inertial<Real>) / sizeof(Real); ++k) to[k * width] = from[k];
  }
}

template <class T>
std::size_t Placement<T>::bytes() const {
  return ranks.bytes() + inertial.size() * sizeof(inertial[0]) + origin.size() * sizeof(Vec3<T>) + pose.bytes() +
         S.size() * sizeof(Vec6<T>) + ride.size() * sizeof(Vec3<T>) + inertia.bytes();
}

template <class T>
UnitTriangle<T>::UnitTriangle(const Model<real_of<T>>& model) {
  constexpr std::size_t deepest = 12;  // on average: 24 products a velocity instead of 25
  if (link_lanes<T> == 1) return;
  std::size_t size = 0;
  for (int k = 0; k < model.nv; ++k)
    for (int j = model.dof_parent[k]; j >= 0 && size <= deepest * std::size_t(model.nv); j = model.dof_parent[j])
      ++size;
  if (size > deepest * std::size_t(model.nv)) return;
  int used = 0;
  for (int j = 0; j < model.nv; ++j) {
    const auto& link = model.links[model.dof_link[j]];
    begin.push_back(link.type == Joint::free ? link.iv + 6 : j + 1);
    end.push_back(link.end_v);
    at.push_back(used - begin.back());
    used += end.back() - begin.back();
  }
  L.resize(std::size_t(used));
  root.resize(model.roots.size());
  columns.resize(8 * std::size_t(model.nv));
}

template <class T>
Workspace<T>::Workspace(const Model<Real>& model)
    : Placement<T>(model), Motions<T>(this->ranks.slots), triangle(model) {
  const int nl = int(model.links.size()), nv = model.nv;
  composite.resize(nl);
  H.resize(nl + 1);
  Hinv.resize(model.roots.size());
  U.resize(nv + 1);
  Dinv.resize(nv + 1);
  u.resize(nv);
  rank_factor.resize(this->ranks.ranks.size());
  single_motion.resize(nl);
  if (link_lanes<T> > 1) {
    column_motion.resize(nl);
    column_motions.resize(nl);
    UDinv.resize(nv);
    column.resize(nv);
  }
  column_blocks = (nv + link_lanes<T> - 1) / link_lanes<T>;
}

template <class T>
void Workspace<T>::prepare_inverse(const Model<Real>& model) {
  if (!P.empty() || model.nv == 0) return;
  parts = TrunkAndLimbs(model, link_lanes<T>);
  F.resize(LinkSlots::in_order(column_blocks * link_lanes<T>, link_lanes<T>));
  force.resize(std::size_t(model.nv) + 1);
  P.resize(std::size_t(parts.slots) * column_blocks);
  const std::size_t longest = std::size_t(parts.longest);
  own.resize(std::size_t(parts.size) + 1);
  own_rows.resize(longest * longest);
  own_L.resize(longest);
  own_S.resize(longest);
  own_force.resize(longest);
}

}  // namespace delassus
