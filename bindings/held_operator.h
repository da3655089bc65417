// Operators as Python holds them.
#pragma once

#include "constraints/constraints.h"
#include "held.h"

namespace delassus {

// An operator and the model it looks at; one user at a time, without the interpreter's lock.
template <class Operator>
struct Held {
  std::shared_ptr<const HeldModel> held;
  Operator G;
  std::atomic<bool> busy{false};

  template <class T, class... More>
  Held(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list, T, More... more)
      : held(std::move(m)), G(held->in<T>(), make_constraints(held->in<T>(), list), more...) {}

  std::size_t rows() const { return std::size_t(G.rows()); }
  std::size_t nv() const { return std::size_t(held->wide.nv); }

  template <class F>
  void work(F&& f) {
    door::Occupied occupied(busy, "this operator");
    nanobind::gil_scoped_release unlocked;
    f();
  }
};

// Of one state: Delassus, or one with its verbs.
template <class Operator, class T>
struct HeldDelassus : Held<Operator> {
  HeldDelassus(std::shared_ptr<const HeldModel> m, const std::vector<ConstraintDescription>& list) : Held<Operator>(std::move(m), list, T{}) {}
};

}  // namespace delassus
