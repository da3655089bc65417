// The backward sweep of the direct M⁻¹ with the three forms of its line 14 (Carpentier 2018, algorithm 1), in world
// axes, after `factorize`:
//
//   printed    F_p += U row              forgets what i's own subtrees transmitted:
//              wrong from three joints in a row on
//   replaced   F_p += F_i + U row        a link's F apart from its parent's
//   shared     F   += U row              one F: the columns of disjoint subtrees are disjoint,
//              so that F_i becomes F_p where it stands; minv.h
//
// for row = D⁻¹ (e − Sᵀ F_i) on the columns of i's subtree. Hinges, slides and free roots.
#pragma once

#include "dynamics/minv.h"

namespace bench {

namespace dl = delassus;

enum class Line14 { printed, replaced, shared };

template <Line14 form>
class InverseSweep {
 public:
  using C = dl::LinkPack<double>;
  static constexpr int width = dl::link_lanes<double>;

  InverseSweep(const dl::Model<double>& model, const dl::Workspace<double>& w)
      : model(model),
        w(w),
        blocks(w.column_blocks),
        F(std::size_t(blocks) * (form == Line14::shared ? 1 : model.links.size())),
        tail(std::size_t(model.nv)) {}

  // Minv: nv × nv; row k is there on the columns of k's subtree that fill a block, the others wait in `tail`
  void sweep(double* Minv) {
    dl::RowBlocks<double> rows(Minv, tail.data(), model.nv);
    clear();
    for (int k = model.nv - 1; k >= 0; --k) {
      const int i = model.dof_link[k];
      const auto& link = model.links[i];
      dl::Vec6<C>* own = F.data() + (form == Line14::shared ? 0 : std::size_t(i) * blocks);
      if (link.type == dl::Joint::free) {
        own[k / width] -= w.S[k] * dl::within<double>(C{} + 1.0, k / width * width, k, k + 1);
        continue;
      }
      dl::Vec6<C>* parent = form == Line14::shared ? own
                            : link.parent < 0      ? nullptr
                                                   : F.data() + std::size_t(link.parent) * blocks;
      const dl::Vec6<double> S = w.S[k] * w.Dinv[k], U = w.U[k];
      for (int b = k / width; b * width < link.end_v; ++b) {
        const C unit = dl::within<double>(C{} + w.Dinv[k], b * width, k, k + 1);
        const C row = dl::within<double>(unit - dl::dot(S, own[b]), b * width, k, link.end_v);
        rows.set(k, b, row);
        if (!parent) continue;
        if constexpr (form == Line14::replaced)
          parent[b] += own[b] + U * row;
        else
          parent[b] += U * row;
      }
    }
  }

  void add_tail(double* Minv) const {
    for (int k = 0; k < model.nv; ++k)
      for (int j = model.nv / width * width; j < model.nv; ++j)
        Minv[std::size_t(k) * model.nv + j] = dl::lane(tail[k], j % width);
  }

 private:
  // on the columns of each link's subtree
  void clear() {
    const std::size_t links = form == Line14::shared ? 1 : model.links.size();
    for (std::size_t i = 0; i < links; ++i) {
      const auto& link = model.links[i];
      const int first = form == Line14::shared ? 0 : link.iv, end = form == Line14::shared ? model.nv : link.end_v;
      for (int b = first / width; b * width < end; ++b) F[i * blocks + b] = dl::Vec6<C>{};
    }
  }

  const dl::Model<double>& model;
  const dl::Workspace<double>& w;
  int blocks;
  std::vector<dl::Vec6<C>> F;
  std::vector<C> tail;
};

}  // namespace bench
