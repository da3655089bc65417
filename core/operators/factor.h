// Input and output of an elimination, and the factor that solves for right-hand sides.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "operators/blocks.h"
#include "operators/plan.h"
#include "operators/strips.h"

namespace delassus {

// Memory for numbers that are written before they are read: it is not set to zero first.
template <class N>
struct Unset : std::allocator<N> {
  template <class Other>
  struct rebind {
    using other = Unset<Other>;
  };
  template <class Other>
  void construct(Other* at) noexcept {
    ::new (static_cast<void*>(at)) Other;
  }
};

// M or M + Jᵀ R J after the elimination of all joints. Links that went in strips have their numbers twice: in lanes for
// one right-hand side, link by link for packs of right-hand sides and for explicit matrices.
template <class T>
struct Factor {
  std::vector<Vec6<T>> V;                      // a velocity: U D⁻¹
  std::vector<T> Dinv;                         // a velocity, of a free link along the world's axes
  std::vector<Ldl6<T>> free;                   // a free link: L D Lᵀ
  std::vector<Column<T>, Unset<Column<T>>> W;  // a velocity and neighbour: W D⁻¹; of a free link without D⁻¹
  std::vector<Vec6<StripPack<T>>> strip_V;     // a strip
  std::vector<StripPack<T>> strip_Dinv;
  std::vector<Ldl6<StripPack<T>>> strip_free;  // a free strip

  void resize(std::size_t velocities, const EliminationPlan& plan) {
    strip_V.resize(plan.strips.size());
    strip_Dinv.resize(plan.strips.size());
    strip_free.resize(plan.free_strips.size());
    V.resize(velocities);
    Dinv.resize(velocities);
    free.resize(plan.frees);
    W.resize(plan.W_size);
  }
  std::size_t bytes() const {
    return V.size() * sizeof(Vec6<T>) + Dinv.size() * sizeof(T) + free.size() * sizeof(Ldl6<T>) +
           W.size() * sizeof(Column<T>) + strip_V.size() * (sizeof(Vec6<StripPack<T>>) + sizeof(StripPack<T>)) +
           strip_free.size() * sizeof(Ldl6<StripPack<T>>);
  }
};

// One elimination: the order, the configuration, what is eliminated, and where the factor goes.
template <class T>
struct Elimination {
  const Model<real_of<T>>& model;
  const EliminationPlan& plan;
  const Placement<T>& placement;    // S, own inertias and poses of links
  const StripPlacement<T>& strips;  // S and own inertias of strips
  const T* joint_stiffness;         // a velocity: what joint rows add to its pivot; null for nothing
  Sym6<T>* H;                       // a link: H_ii beyond its own inertia, if its step says it holds some
  Mat6<T>* coupling;                // two links: H_ji; null if the plan has none
  Factor<T>& factor;
};

}  // namespace delassus
