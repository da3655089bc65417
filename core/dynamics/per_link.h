// One value a link, stored in blocks of `width` links, component beside component, so that work that treats all links
// alike takes a whole block at once while recursions still read and write single links. With T a pack of states the
// width is one.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "spatial/scalar.h"

namespace delassus {

// Links side by side for one state: a vector register with AVX-512 or AVX, two or more elsewhere.
#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#else
inline constexpr int register_bytes = 32;
#endif

template <class T>
inline constexpr int link_lanes = lanes_of<T> == 1 ? register_bytes / int(sizeof(T)) : 1;

// Scalar of block work: link_lanes links of T.
template <class T>
using LinkPack = typename std::conditional_t<link_lanes<T> == 1, std::type_identity<T>,
                                             pack_of<T, link_lanes<T> == 1 ? 2 : link_lanes<T>>>::type;

// V is an aggregate of scalars, such as Vec6 or Pose.
template <template <class> class V, class T>
class PerLink {
 public:
  static constexpr int width = link_lanes<T>;
  using Block = V<LinkPack<T>>;
  static constexpr std::size_t size = sizeof(V<T>) / sizeof(T);

  void resize(std::size_t links) { blocks_.assign((links + width - 1) / width, Block{}); }
  int blocks() const { return int(blocks_.size()); }
  std::size_t bytes() const { return blocks_.size() * sizeof(Block); }
  Block& block(int b) { return blocks_[b]; }
  const Block& block(int b) const { return blocks_[b]; }

  // inlined always: a call would send the value through memory
  [[gnu::always_inline]] V<T> operator[](int i) const { return get(i, std::make_index_sequence<size>()); }
  [[gnu::always_inline]] void set(int i, const V<T>& value) { put(i, value, std::make_index_sequence<size>()); }
  void add(int i, const V<T>& value) { set(i, (*this)[i] + value); }

  // components of a link, `width` apart
  const T* lane(int i) const { return reinterpret_cast<const T*>(blocks_.data()) + offset(unsigned(i)); }

 private:
  struct Flat {
    T c[size];
  };
  T* lane(int i) { return reinterpret_cast<T*>(blocks_.data()) + offset(unsigned(i)); }
  static constexpr std::size_t offset(unsigned i) { return std::size_t(i / width) * (size * width) + i % width; }

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

  std::vector<Block> blocks_;
};

}  // namespace delassus
