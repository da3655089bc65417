// Memory of all derivative sweeps: sized once from the model, never resized.
#pragma once

#include "derivatives/subspace_rates.h"
#include "derivatives/turn_force.h"

namespace delassus {

// One value per velocity, component after component, so that values of consecutive velocities, such as those of a
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
        turn_q(model.nv),
        scaled_U(model.nv) {
    B.resize(this->ranks.slots);
    E.resize(this->ranks.slots);
    momentum.resize(this->ranks.slots);
  }

  void prepare_solutions(const Model<Real>& model);
  // Where strips begin: nothing depends on the place of a free root, nor on its linear velocity.
  static int first_column(const Model<Real>& model) {
    return !model.links.empty() && model.links[0].type == Joint::free ? 3 : 0;
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

  // M = Lᵀ D L by the tree, and its solutions for the columns of ∂τ/∂q and ∂τ/∂ν. Sized by prepare_solutions, since
  // only derivatives of forward dynamics need matrices.
  static constexpr int packs = link_lanes<T> > 4 ? 2 : 4;  // side by side in a strip of columns
  static constexpr int strip = packs * link_lanes<T>;      // columns
  VelocityStrips<Vec6, T> scaled_U;                        // a velocity: U D⁻¹
  std::vector<T> tau_q, tau_v;                             // nv × nv, and room to read the last strip of the last row
  std::vector<T> L;                                        // nv × nv: row j has L_kj of all k that j carries
  std::vector<LinkPack<T>> columns;                        // nv × 2 packs
  std::vector<int> strip_start, strip_rows;                // a strip: rows of ∂τ that are not zero in it
};

template <class T>
void DerivativeWorkspace<T>::prepare_solutions(const Model<Real>& model) {
  if (!strip_start.empty()) return;
  this->prepare_inverse(model);
  const int nv = model.nv;
  tau_q.resize(std::size_t(nv) * nv + strip);
  tau_v.resize(tau_q.size());
  L.resize(std::size_t(nv) * nv);
  columns.resize(std::size_t(nv) * 2 * packs);
  strip_start.push_back(0);
  for (int first = first_column(model); first < nv; first += strip) {
    for (int k = 0; k < nv; ++k) {
      // k carries a column, is of its joint, or is carried by it
      const auto& link = model.links[model.dof_link[k]];
      bool related = false;
      for (int c = first; c < first + strip && c < nv; ++c) {
        const auto& other = model.links[model.dof_link[c]];
        related = related || (c >= link.iv && c < link.end_v) || (k >= other.iv && k < other.end_v);
      }
      if (related) strip_rows.push_back(k);
    }
    strip_start.push_back(int(strip_rows.size()));
  }
}

}  // namespace delassus
