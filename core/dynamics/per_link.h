// One value a link, stored in blocks of `width` links, component beside component, so that work that treats all links
// alike takes a whole block at once while recursions still read and write single links. With T a pack of states the
// width is one.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "spatial/scalar.h"
#include "spatial/target.h"

namespace delassus {

// Links side by side for one state: a vector register with AVX-512 or AVX, two elsewhere.
template <class T>
inline constexpr int link_lanes = lanes_of<T> == 1 ? register_bytes / int(sizeof(T)) : 1;

// Scalar of block work: link_lanes links of T.
template <class T>
using LinkPack = typename std::conditional_t<link_lanes<T> == 1, std::type_identity<T>,
                                             pack_of<T, link_lanes<T> == 1 ? 2 : link_lanes<T>>>::type;

// Where links are: block by block, `width` slots each. Links that a sweep takes side by side (ranks.h) are a block.
struct LinkSlots {
  std::vector<int> slot;  // of a link, and a spare one
  std::vector<int> link;  // in a slot; that past the last link where there is none
  int blocks;             // without that of the spare slot

  // One link after the other.
  static LinkSlots in_order(int links, int width) {
    LinkSlots s{{}, {}, (links + width - 1) / width};
    for (int i = 0; i < links; ++i) s.slot.push_back(i), s.link.push_back(i);
    s.link.resize(std::size_t(s.blocks) * width, links);
    s.slot.push_back(s.blocks * width);
    return s;
  }
};

// V is an aggregate of scalars, such as Vec6 or Pose.
template <template <class> class V, class T>
class PerLink {
 public:
  static constexpr int width = link_lanes<T>;
  using Block = V<LinkPack<T>>;
  static constexpr std::size_t size = sizeof(V<T>) / sizeof(T);

  // one block more than there are links for: a spare place, which is that of link number `links`
  void resize(const LinkSlots& slots) {
    blocks_.assign(std::size_t(slots.blocks) + 1, Block{});
    at_.clear();
    for (const int s : slots.slot) at_.push_back(s / width * int(size * width) + s % width);
  }
  int blocks() const { return int(blocks_.size()) - 1; }
  std::size_t bytes() const { return blocks_.size() * sizeof(Block) + at_.size() * sizeof(int); }
  Block& block(int b) { return blocks_[b]; }
  const Block& block(int b) const { return blocks_[b]; }

  // inlined always: a call would send the value through memory
  [[gnu::always_inline]] V<T> operator[](int i) const { return get(i, std::make_index_sequence<size>()); }
  [[gnu::always_inline]] void set(int i, const V<T>& value) { put(i, value, std::make_index_sequence<size>()); }
  void add(int i, const V<T>& value) { set(i, (*this)[i] + value); }

  // values of `width` links side by side, from and to where they are
  [[gnu::always_inline]] Block gather(const int* links) const {
    return gather(links, std::make_index_sequence<size>(), std::make_index_sequence<width>());
  }
  [[gnu::always_inline]] void scatter(const int* links, const Block& values) {
    scatter(links, values, std::make_index_sequence<size>(), std::make_index_sequence<width>());
  }

  // components of a link, `width` apart
  const T* lane(int i) const { return reinterpret_cast<const T*>(blocks_.data()) + at_[i]; }

 private:
  struct Flat {
    T c[size];
  };
  T* lane(int i) { return reinterpret_cast<T*>(blocks_.data()) + at_[i]; }

  template <std::size_t... k>
  [[gnu::always_inline]] V<T> get(int i, std::index_sequence<k...>) const {
    const T* p = lane(i);
    return std::bit_cast<V<T>>(Flat{{p[k * width]...}});
  }
  template <std::size_t... k>
  [[gnu::always_inline]] void put(int i, const V<T>& value, std::index_sequence<k...>) {
    const Flat flat = std::bit_cast<Flat>(value);
    T* p = lane(i);
    ((p[k * width] = flat.c[k]), ...);
  }

  struct FlatBlock {
    LinkPack<T> c[size];
  };
  template <std::size_t... l>
  [[gnu::always_inline]] static LinkPack<T> lanes_from(const T* const* p, std::size_t k, std::index_sequence<l...>) {
    return LinkPack<T>{p[l][k]...};
  }
  template <std::size_t... k, std::size_t... l>
  [[gnu::always_inline]] Block gather(const int* links, std::index_sequence<k...>,
                                      std::index_sequence<l...> all) const {
    const T* const p[] = {lane(links[l])...};
    return std::bit_cast<Block>(FlatBlock{{lanes_from(p, k * width, all)...}});
  }
  template <std::size_t... k, std::size_t... l>
  [[gnu::always_inline]] void scatter(const int* links, const Block& values, std::index_sequence<k...>,
                                      std::index_sequence<l...>) {
    T* const p[] = {lane(links[l])...};
    const FlatBlock flat = std::bit_cast<FlatBlock>(values);
    const auto put = [&](std::size_t c, const LinkPack<T>& x) { ((p[l][c * width] = x[l]), ...); };
    (put(k, flat.c[k]), ...);
  }

  std::vector<Block> blocks_;
  std::vector<int> at_;  // a link: its first number
};

// Numbers at some places, side by side.
template <class T>
[[gnu::always_inline]] inline LinkPack<T> gather_lanes(const T* from, const int* at) {
  return [&]<std::size_t... l>(std::index_sequence<l...>) __attribute__((always_inline)) {
    return LinkPack<T>{from[at[l]]...};
  }
  (std::make_index_sequence<link_lanes<T>>());
}

template <class T>
[[gnu::always_inline]] inline void scatter_lanes(T* to, const int* at, const LinkPack<T>& x) {
  [&]<std::size_t... l>(std::index_sequence<l...>) __attribute__((always_inline)) { ((to[at[l]] = x[l]), ...); }
  (std::make_index_sequence<link_lanes<T>>());
}

// The same of values that lie one behind the other, such as those of velocities.
template <template <class> class V, class T>
[[gnu::always_inline]] inline V<LinkPack<T>> gather(const V<T>* from, const int* at) {
  constexpr std::size_t size = sizeof(V<T>) / sizeof(T);
  using P = LinkPack<T>;
  struct Flat {
    P c[size];
  };
  return [&]<std::size_t... k, std::size_t... l>(std::index_sequence<k...>, std::index_sequence<l...>)
      __attribute__((always_inline)) {
    const T* const p[] = {reinterpret_cast<const T*>(from + at[l])...};
    const auto component = [&](std::size_t c) { return P{p[l][c]...}; };
    return std::bit_cast<V<P>>(Flat{{component(k)...}});
  }
  (std::make_index_sequence<size>(), std::make_index_sequence<link_lanes<T>>());
}
template <template <class> class V, class T>
[[gnu::always_inline]] inline void scatter(V<T>* to, const int* at, const V<LinkPack<T>>& values) {
  constexpr std::size_t size = sizeof(V<T>) / sizeof(T);
  using P = LinkPack<T>;
  struct Flat {
    P c[size];
  };
  const Flat flat = std::bit_cast<Flat>(values);
  [&]<std::size_t... k, std::size_t... l>(std::index_sequence<k...>, std::index_sequence<l...>)
      __attribute__((always_inline)) {
    T* const p[] = {reinterpret_cast<T*>(to + at[l])...};
    const auto put = [&](std::size_t c) { ((p[l][c] = flat.c[c][l]), ...); };
    (put(k), ...);
  }
  (std::make_index_sequence<size>(), std::make_index_sequence<link_lanes<T>>());
}

}  // namespace delassus
