// Three components of a vector and one further number that is processed with them: for one state, a register of four.
#pragma once

#include <cstdint>
#include <type_traits>

#include "spatial/spatial.h"

namespace delassus {

template <class T>
class Quad {
  static constexpr bool packed = lanes_of<T> == 1;
  struct Numbers {
    T c[4];
    Numbers operator+(const Numbers& o) const { return {{c[0] + o.c[0], c[1] + o.c[1], c[2] + o.c[2], c[3] + o.c[3]}}; }
    Numbers operator-(const Numbers& o) const { return {{c[0] - o.c[0], c[1] - o.c[1], c[2] - o.c[2], c[3] - o.c[3]}}; }
  };
  // Pack<T, 4> where T is a number; four packs of states otherwise
  template <class S, bool = packed>
  struct storage : std::type_identity<Numbers> {};
  template <class S>
  struct storage<S, true> : std::type_identity<Pack<S, 4>> {};

 public:
  Quad() : x_{} {}
  Quad(const Vec3<T>& v, const T& w) {
    if constexpr (packed)
      x_ = typename storage<T>::type{v.x, v.y, v.z, w};
    else
      x_ = {{v.x, v.y, v.z, w}};
  }

  T operator[](int k) const {
    if constexpr (packed)
      return x_[k];
    else
      return x_.c[k];
  }
  Vec3<T> vector() const { return {(*this)[0], (*this)[1], (*this)[2]}; }
  T number() const { return (*this)[3]; }

  void operator+=(const Quad& o) { x_ = x_ + o.x_; }
  void operator-=(const Quad& o) { x_ = x_ - o.x_; }

  // (a × b, a.number() b.number())
  friend Quad cross(const Quad& a, const Quad& b) {
    if constexpr (packed) {
      using Four = typename storage<T>::type;
      Quad out;
      out.x_ = shuffle<1, 2, 0, 3>(a.x_, a.x_) * shuffle<2, 0, 1, 3>(b.x_, b.x_) -
               shuffle<2, 0, 1, 4>(a.x_, Four{}) * shuffle<1, 2, 0, 3>(b.x_, b.x_);
      return out;
    } else {
      return {cross(a.vector(), b.vector()), T(a.number() * b.number())};
    }
  }

 private:
  typename storage<T>::type x_;
};

}  // namespace delassus
