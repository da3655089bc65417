// Operators as Python holds them.
#pragma once

#include <cstdio>

#include "damped.h"
#include "held.h"
#include "operators/verbs.h"
#include "stopwatch.h"

namespace delassus {

namespace door {

// Refuses a solution that no method brought within the limit.
inline void check_accuracy(double error, double limit, const std::string& where = "") {
  if (error <= limit) return;
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "a backward error of %.2g was reached%s, not %.2g", error, where.c_str(),
                limit);
  raise("InaccurateError",
        std::string("solve: ") + numbers +
            ": G + damping is too close to singular, or G itself too inexact. Increase damping; or accept more "
            "with a larger tolerance, or with refine=False and a look at G.backward_error(x, y).");
}

}  // namespace door

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
