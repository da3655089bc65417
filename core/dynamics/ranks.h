// Ranks: hinges of equal height (longest path to a leaf) in the lanes of one register; such hinges are independent.
// Limbs of equal length share registers, so that a sweep takes the time of one leg for four.
//
// A sweep visits runs of ranks, and runs of single links for all others; parents come before their children. A rank is
// a block of the per-link arrays, lane for lane, and other code need not know: it asks for links by their numbers. With
// T a pack of states, all links are single, in their order.
#pragma once

#include <algorithm>

#include "dynamics/per_link.h"
#include "model/model.h"

namespace delassus {

template <class T>
struct Ranks {
  static constexpr int width = link_lanes<T>;
  using Real = real_of<T>;
  using P = LinkPack<T>;

  // Empty lanes read from the link of a full one and write to the spare place, or to their own in the block.
  struct Rank {
    Pose<P> placement;
    P reference;
    P full;     // one in lanes that are not empty
    int block;  // of values a link
    int link[width], parent[width], iq[width], iv[width];
    int armature[width];  // iv; of empty lanes that of a full one
    bool joined;          // parents are the rank before, lane for lane: all of its lanes join
    bool waits, shows;    // some of its links do
    int root;             // of all of its links, if it is one and free; −1 else

    // lanes a bit each: not empty; where the parent has the same lane of the rank before
    unsigned lanes, joins;
    static constexpr unsigned all = (1u << width) - 1;

    bool has(int l) const { return lanes >> l & 1; }
    bool leaves(int l) const { return (lanes & ~joins) >> l & 1; }
    // What stays in registers from one rank to the one before.
    template <class V>
    [[gnu::always_inline]] V kept(const V& values) const {
      V out{};
      if (joins)
        for (std::size_t k = 0; k < sizeof(V) / sizeof(P); ++k)
          reinterpret_cast<P*>(&out)[k] = stays > 0 ? reinterpret_cast<const P*>(&values)[k] : P{};
      return out;
    }
    P stays;  // one in lanes that join
  };
  struct Part {
    bool abreast;    // ranks, or single links
    int begin, end;  // of `ranks`, or of `single`
    bool turns;      // some single link is a hinge
  };
  std::vector<Rank> ranks;
  std::vector<int> single;
  std::vector<Part> parts;
  // a link: what some child hands down waits for it in memory; its motion is in memory for some child
  std::vector<char> waits, shows;
  std::vector<int> waiting;  // links of which `waits` holds
  LinkSlots slots;

  explicit Ranks(const Model<Real>& model);
  std::size_t bytes() const {
    return ranks.size() * sizeof(Rank) + (single.size() + slots.slot.size() + slots.link.size()) * sizeof(int);
  }

 private:
  // ranks first, then single links in their order
  void find_slots(int links) {
    slots.slot.assign(std::size_t(links) + 1, 0);
    for (int r = 0; r < int(ranks.size()); ++r) {
      ranks[r].block = r;
      for (int l = 0; l < width; ++l)
        if (ranks[r].has(l)) slots.slot[ranks[r].link[l]] = r * width + l;
    }
    int next = int(ranks.size()) * width;
    std::vector<int> others = single;
    std::sort(others.begin(), others.end());
    for (const int i : others) slots.slot[i] = next++;
    slots.blocks = (next + width - 1) / width;
    slots.slot[links] = slots.blocks * width;
    slots.link.assign(std::size_t(slots.blocks) * width, links);
    for (int i = 0; i < links; ++i) slots.link[slots.slot[i]] = i;
  }
  void list_waiting() {
    for (std::size_t i = 0; i < waits.size(); ++i)
      if (waits[i]) waiting.push_back(int(i));
  }
  void add(bool abreast) {
    const int now = abreast ? int(ranks.size()) : int(single.size());
    if (parts.empty() || parts.back().abreast != abreast) parts.push_back({abreast, now - 1, now, false});
    parts.back().end = now;
  }
};

template <class T>
Ranks<T>::Ranks(const Model<Real>& model) {
  const int nl = int(model.links.size());
  waits.resize(nl);
  shows.resize(nl);
  if constexpr (width == 1) {
    for (int i = 0; i < nl; ++i) single.push_back(i), waits[i] = shows[i] = model.links[i].branches;
    if (nl) parts.push_back({false, 0, nl, true});
    find_slots(nl);
    list_waiting();
    return;
  }
  // links by height
  std::vector<int> height(nl), rank(nl, -1), lane_of(nl, -1);
  std::vector<char> abreast(nl);
  for (int i = nl - 1; i >= 0; --i)
    if (const int p = model.links[i].parent; p >= 0) height[p] = std::max(height[p], height[i] + 1);
  std::vector<std::vector<int>> equal(nl ? 1 + *std::max_element(height.begin(), height.end()) : 0);
  for (int i = 0; i < nl; ++i) equal[height[i]].push_back(i);

  for (int h = int(equal.size()) - 1; h >= 0; --h) {
    std::vector<int> hinges;
    for (const int i : equal[h])
      if (model.links[i].type == Joint::hinge && model.links[i].parent >= 0) hinges.push_back(i);
    // those that hang on one rank stay together
    std::stable_sort(hinges.begin(), hinges.end(),
                     [&](int a, int b) { return rank[model.links[a].parent] > rank[model.links[b].parent]; });
    const std::size_t lone = hinges.size() % width == 1 ? hinges.size() - 1 : hinges.size();
    for (std::size_t k = 0; k < lone; ++k) abreast[hinges[k]] = true;
    for (const int i : equal[h])
      if (!abreast[i]) {
        single.push_back(i);
        add(false);
        parts.back().turns = parts.back().turns || model.links[i].type == Joint::hinge;
      }
    for (std::size_t first = 0; first < lone; first += width) {
      const std::size_t past = std::min(first + width, lone);
      const bool follows = !parts.empty() && parts.back().abreast;
      const int before = int(ranks.size()) - 1;
      // a lane that the parent has, if it can be
      int at[width];
      std::fill_n(at, width, -1);
      const auto parent_lane = [&](int i) { return lane_of[model.links[i].parent]; };
      const auto continues = [&](int i) { return follows && rank[model.links[i].parent] == before; };
      for (std::size_t k = first; k < past; ++k)
        if (const int i = hinges[k]; continues(i) && at[parent_lane(i)] < 0)
          lane_of[i] = parent_lane(i), at[lane_of[i]] = i;
      for (std::size_t k = first; k < past; ++k)
        if (const int i = hinges[k]; lane_of[i] < 0)
          lane_of[i] = int(std::find(at, at + width, -1) - at), at[lane_of[i]] = i;

      Rank r{};
      r.root = model.roots[model.links[hinges[first]].tree];
      if (model.links[r.root].type != Joint::free) r.root = -1;
      for (int l = 0; l < width; ++l) {
        const int i = at[l] < 0 ? hinges[first] : at[l];
        const auto& link = model.links[i];
        const Real* from = reinterpret_cast<const Real*>(&link.placement);
        for (std::size_t k = 0; k < sizeof(Pose<Real>) / sizeof(Real); ++k)
          lane(reinterpret_cast<P*>(&r.placement)[k], l) = from[k];
        lane(r.reference, l) = link.reference;
        lane(r.full, l) = at[l] < 0 ? 0 : 1;
        r.link[l] = at[l] < 0 ? nl : i;
        r.parent[l] = link.parent;
        r.iq[l] = link.iq;
        r.iv[l] = at[l] < 0 ? model.nv : link.iv;
        r.armature[l] = link.iv;
        if (at[l] >= 0) {
          r.lanes |= 1u << l;
          if (model.roots[link.tree] != r.root) r.root = -1;
          rank[i] = before + 1;
          if (continues(i) && parent_lane(i) == l) r.joins |= 1u << l, lane(r.stays, l) = 1;
        }
      }
      r.joined = r.joins == r.lanes;
      ranks.push_back(r);
      add(true);
    }
  }

  find_slots(nl);

  // who takes from memory, and who leaves something there
  for (const Part& part : parts)
    for (int k = part.begin; k < part.end; ++k)
      if (part.abreast) {
        const Rank& r = ranks[k];
        for (int l = 0; l < width; ++l) {
          if (r.leaves(l)) waits[r.parent[l]] = true;
          if (r.has(l) && !r.joined) shows[r.parent[l]] = true;
        }
      } else {
        const int p = model.links[single[k]].parent;
        if (p >= 0 && !(k > part.begin && single[k - 1] == p)) waits[p] = shows[p] = true;
      }
  list_waiting();
  for (Rank& r : ranks)
    for (int l = 0; l < width; ++l) {
      r.waits = r.waits || (r.has(l) && waits[r.link[l]]);
      r.shows = r.shows || (r.has(l) && shows[r.link[l]]);
    }
}

template <class T>
LinkSlots link_slots(const Model<real_of<T>>& model) {
  return Ranks<T>(model).slots;
}

}  // namespace delassus
