// Operators as Python holds them.
#pragma once

#include "damped.h"
#include "held.h"
#include "operators/verbs.h"
#include "stopwatch.h"

namespace delassus {

// An operator by its verbs and the model it looks at; one user at a time, without the interpreter's lock.
template <class Verbs>
struct Held {
  std::shared_ptr<const HeldModel> held;
  std::unique_ptr<Verbs> G;
  std::atomic<bool> busy{false};
  std::size_t m = std::size_t(G->rows());
  Stopwatch watch{};

  std::size_t rows() const { return m; }
  std::size_t nv() const { return std::size_t(held->wide.nv); }

  template <class F>
  void work(F&& f) {
    door::Occupied occupied(busy, "this operator");
    door::Unlocked unlocked;
    watch.run(f);
  }
};

// Of one state, in whatever form.
template <class T>
using HeldOperator = Damped<T, Held<Operator<T>>>;

}  // namespace delassus
