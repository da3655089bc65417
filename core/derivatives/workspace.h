// Everything that sweeps of derivatives write: sized once from the model, never resized.
#pragma once

#include "derivatives/subspace_rates.h"
#include "derivatives/turn_force.h"

namespace delassus {

// One value a velocity, component after component, so that values of consecutive velocities, such as those of a
// subtree, are read side by side from any of them on. With T a pack of states the width is one.
template <template <class> class V, class T>
class VelocityStrips {
 public:
  static constexpr int width = link_lanes<T>, size = int(sizeof(V<T>) / sizeof(T));
  using Strip = V<LinkPack<T>>;

  explicit VelocityStrips(int nv) : stride_(std::size_t(nv + width)), numbers_(std::size_t(size) * stride_) {}
  [[gnu::always_inline]] void set(int k, const V<T>& value) { put(k, value, std::make_index_sequence<size>()); }
  // of velocities k … k + width − 1; beyond the last they mean nothing
  [[gnu::always_inline]] Strip operator[](int k) const { return get(k, std::make_index_sequence<size>()); }
  std::size_t bytes() const { return numbers_.size() * sizeof(T); }

 private:
  struct Flat {
    T c[size];
  };
  struct FlatStrip {
    LinkPack<T> c[size];
  };
  template <std::size_t... c>
  [[gnu::always_inline]] void put(int k, const V<T>& value, std::index_sequence<c...>) {
    const Flat flat = std::bit_cast<Flat>(value);
    T* p = numbers_.data() + k;
    ((p[c * stride_] = flat.c[c]), ...);
  }
  [[gnu::always_inline]] static LinkPack<T> load(const T* p) {
    LinkPack<T> x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
  }
  template <std::size_t... c>
  [[gnu::always_inline]] Strip get(int k, std::index_sequence<c...>) const {
    const T* p = numbers_.data() + k;
    return std::bit_cast<Strip>(FlatStrip{{load(p + c * stride_)...}});
  }

  std::size_t stride_;
  std::vector<T> numbers_;
};

template <class T>
struct DerivativeWorkspace : Workspace<T> {
  using Real = real_of<T>;

  explicit DerivativeWorkspace(const Model<Real>& model)
      : Workspace<T>(model),
        rates(model.nv),
        root_force(model.roots.size()),
        U_strips(model.nv),
        force_q(model.nv),
        force_v(model.nv),
        turn_v(model.nv),
        turn_q(model.nv) {
    B.resize(model.links.size());
    E.resize(model.links.size());
    momentum.resize(model.links.size());
  }

  SubspaceRates<T> rates;
  PerLink<TurnForce, T> B, E;       // a link: how its force, and external forces on it, change as it turns
  PerLink<Vec6, T> momentum;        // a link; a sweep adds its children's
  std::vector<Vec3<T>> root_force;  // a tree: total force on it

  // a velocity k, with Σ over the subtree of its link
  VelocityStrips<Vec6, T> U_strips;        // I S
  VelocityStrips<Vec6, T> force_q;         // ∂f/∂q_k
  VelocityStrips<Vec6, T> force_v;         // ∂f/∂ν_k
  VelocityStrips<Vec3, T> turn_v, turn_q;  // Bᵀ S and Eᵀ S
};

}  // namespace delassus
