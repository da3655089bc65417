// How free bodies of one link turn: by the midpoint rule on the rotation group, about their centre of mass,
//
//   I ω⁺ = exp(−dt (ω + ω⁺) / 2) I ω          instead of I (ω⁺ − ω) = −dt ω × I ω
//
// which keeps their angular momentum and, but for errors of order dt³, their energy.
#pragma once

#include <vector>

#include "simulator/description.h"

namespace delassus {

class FreeBodies {
 public:
  // remaining: per velocity; bodies in loops, where it is not 1, step otherwise.
  FreeBodies(const WorldDescription& world, const std::vector<double>& remaining);

  // Whether a velocity belongs to such a body.
  bool owns(std::size_t velocity) const { return owned_[velocity] != 0; }
  // Whether there is nothing else.
  bool all() const { return roots_.size() == world_.model.roots.size(); }

  // v_f by this rule, from that of first order; q and v at the start of the step.
  void turn(const double* q, const double* v, std::vector<double>& free) const;
  // A body moves on by the mean of ω and its ω_f: then its angular momentum stays. w: what v⁺ moves, changed.
  void average(const std::vector<double>& v, const std::vector<double>& free, std::vector<double>& w) const;

 private:
  const WorldDescription& world_;
  std::vector<int> roots_;   // links of such bodies
  std::vector<char> owned_;  // per velocity
};

}  // namespace delassus
