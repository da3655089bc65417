// Limbs: runs of velocities without a branch that end in a leaf, such as legs and arms. All other links are the trunk.
// A limb acts on the rest of the tree through six numbers per velocity, so its rows of M⁻¹ are a product (minv.h).
#pragma once

#include <algorithm>
#include <vector>

#include "model/model.h"

namespace delassus {

struct TrunkAndLimbs {
  // Maximum number of velocities of a limb: products of pairs of them, n³ / 3, pay for short limbs only. The part of a
  // longer run that is nearer to the root is trunk. And the maximum of limbs that share blocks of `own`.
  static constexpr int longest_limb = 12, most_together = 16;

  // Limbs that hang on one link, their velocities one after the other. Their inverses with the link held fixed are in
  // `blocks` blocks of columns of `own`, of one pack for each velocity.
  struct Limbs {
    int begin, end;  // velocities
    int blocks, at;
    int size() const { return end - begin; }
  };
  // A free root, or links of the trunk of which each is all that hangs on the one before.
  struct Run {
    int link;                 // the last one
    int begin, end, subtree;  // its velocities; one past the last that hangs on it
    int slot, above;          // where in P its accelerations are, and those of its parent
    int limbs, limbs_end;     // what hangs on it
    bool free;
  };
  // Limbs of any links side by side, one in each lane, from their bases on; the longest has `length` velocities. Past
  // the end of a shorter limb its lane has spare places.
  struct Group {
    int lanes, length;
  };
  std::vector<Limbs> limbs;  // those on the world first, then by the link that they hang on
  std::vector<Run> trunk;    // parents before their children
  std::vector<Group> groups;
  std::vector<int> velocity, column;  // a step of a group: velocities and columns of F
  std::vector<int> pair;              // a step of a group and each step up to it: numbers of `own`
  int on_world = 0;                   // limbs on the world
  int slots = 1, size = 0;            // of P; packs of `own`
  int longest = 0;                    // velocities of a limb

  TrunkAndLimbs() = default;
  // For blocks of `width` columns, the last of which ends with the matrix.
  template <class Real>
  TrunkAndLimbs(const Model<Real>& model, int width);
};

template <class Real>
TrunkAndLimbs::TrunkAndLimbs(const Model<Real>& model, int width) {
  const auto& links = model.links;
  const int nl = int(links.size()), shift = (width - model.nv % width) % width;
  const auto block = [&](int k) { return (k + shift) / width; };
  std::vector<int> children(nl), last_child(nl, -1);
  for (const auto& link : links)
    if (link.parent >= 0) ++children[link.parent];

  // limbs, from each leaf towards the root
  struct Limb {
    int begin, end, base, together;
    int size() const { return end - begin; }
  };
  std::vector<Limb> all;
  std::vector<char> in_limb(nl);
  for (int i = 0; i < nl; ++i) {
    if (children[i] > 0 || links[i].type == Joint::free) continue;
    Limb limb{0, links[i].iv + links[i].nv, i, 0};
    do {
      in_limb[limb.base] = true;
      limb.begin = links[limb.base].iv;
      limb.base = links[limb.base].parent;
    } while (limb.base >= 0 && children[limb.base] == 1 && links[limb.base].type != Joint::free &&
             limb.end - links[limb.base].iv <= longest_limb);
    all.push_back(limb);
    longest = std::max(longest, limb.size());
  }

  // those that hang on one link
  std::stable_sort(all.begin(), all.end(), [](const Limb& a, const Limb& b) { return a.base < b.base; });
  for (std::size_t l = 0; l < all.size(); ++l) {
    const bool joins = l > 0 && all[l].base == all[l - 1].base && all[l].begin == limbs.back().end &&
                       all[l].end - limbs.back().begin <= most_together;
    if (!joins) limbs.push_back({all[l].begin, 0, 0, 0});
    limbs.back().end = all[l].end;
    all[l].together = int(limbs.size()) - 1;
    if (all[l].base < 0) on_world = int(limbs.size());
  }
  for (Limbs& some : limbs) {
    some.blocks = block(some.end - 1) - block(some.begin) + 1;
    some.at = size;
    size += some.size() * (some.blocks + 1);  // blocks are read by pairs
  }

  // runs of the trunk; the last child of one may overwrite its accelerations, which limbs have read by then, and every
  // other child needs a place of its own
  std::vector<int> first_limbs(nl + 1), run_of(nl, -1);
  for (int i = 0; i < nl; ++i)
    if (links[i].parent >= 0 && !in_limb[i]) last_child[links[i].parent] = i;
  for (int i = 0; i < nl; ++i) {
    if (in_limb[i]) continue;
    const int p = links[i].parent;
    const bool free = links[i].type == Joint::free;
    if (p >= 0 && children[p] == 1 && !trunk[run_of[p]].free) {
      trunk[run_of[p]].link = i;
      trunk[run_of[p]].end = links[i].iv + links[i].nv;
      run_of[i] = run_of[p];
    } else {
      const int above = p < 0 ? -1 : trunk[run_of[p]].slot, own = p < 0 ? 0 : above + (last_child[p] == i ? 0 : 1);
      slots = std::max(slots, own + 1);
      run_of[i] = int(trunk.size());
      trunk.push_back({i, links[i].iv, links[i].iv + links[i].nv, links[i].end_v, own, above, 0, 0, free});
    }
  }
  for (const Limb& limb : all)
    if (limb.base >= 0) {
      Run& run = trunk[run_of[limb.base]];
      if (run.limbs_end == 0) run.limbs = limb.together;
      run.limbs_end = limb.together + 1;
    }

  // groups, the longest first
  std::vector<const Limb*> order;
  for (const Limb& limb : all) order.push_back(&limb);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->size() > b->size(); });
  const int count = int(order.size());
  for (int first = 0, lanes; first < count; first += lanes) {
    lanes = count - first > 1 ? width : 1;
    groups.push_back({lanes, order[first]->size()});
    for (int k = 0; k < groups.back().length; ++k) {
      const auto at = [&](int l) {
        return first + l < count && k < order[first + l]->size() ? order[first + l] : nullptr;
      };
      for (int l = 0; l < lanes; ++l) {
        velocity.push_back(at(l) ? at(l)->begin + k : model.nv);
        column.push_back(velocity.back() + shift);
      }
      for (int j = 0; j <= k; ++j)
        for (int l = 0; l < lanes; ++l) {
          const Limb* const limb = at(l);
          int place = size;
          if (limb) {
            const Limbs& some = limbs[limb->together];
            const int skipped = block(limb->begin + k) - block(some.begin);
            place = some.at + skipped * some.size() + limb->begin + j - some.begin;
          }
          pair.push_back(place * width + (limb ? (limb->begin + k + shift) % width : 0));
        }
    }
  }
}

}  // namespace delassus
