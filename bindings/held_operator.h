// Operators as Python holds them.
#pragma once

#include <cstdio>

#include "damped.h"
#include "held.h"
#include "operators/verbs.h"

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

// An operator or a solver of the core, and the model it looks at.
template <class Verbs>
struct Held : SingleUser {
  std::shared_ptr<const HeldModel> held;
  std::unique_ptr<Verbs> core;
  std::size_t m;
  std::size_t block_use = 0;  // another one for whoever may set blocks of its factor

  Held(std::shared_ptr<const HeldModel> model, std::unique_ptr<Verbs> verbs, const char* called = "this operator")
      : SingleUser(called), held(std::move(model)), core(std::move(verbs)), m(std::size_t(core->rows())) {}

  std::size_t rows() const { return m; }
  std::size_t nv() const { return std::size_t(held->wide.nv); }
  std::size_t bodies() const { return held->wide.bodies.size(); }
};

// Compliance of the rows of something held.
template <class T, class Self>
void take_compliance(Self& s, nanobind::handle compliance) {
  const door::Input<T> in(compliance, "compliance", {s.rows()});
  s.work([&] { s.core->set_compliance(in.data); });
}

// Of one state, in whatever form.
template <class T>
using HeldOperator = Damped<T, Held<Operator<T>>>;

}  // namespace delassus
