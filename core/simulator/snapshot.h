// Everything that the next step of a world depends on, as an array of numbers, and how to restore it.
#pragma once

#include <vector>

#include "simulator/world.h"

namespace delassus {

std::vector<double> write_snapshot(const World& world);

struct SavedState {
  std::vector<double> q, v, hidden, mocap, mocap_goal;
  double time = 0;
  StepMemory memory;
};

// Of n finite numbers, each checked: sizes and indices are those of this world, directions have length 1, friction and
// penalties are not negative. Quaternions of q are the caller's to check. Otherwise an ArgumentError says what cannot
// be.
SavedState read_snapshot(const World& world, const CollisionSource& collisions, const double* numbers, std::size_t n);

}  // namespace delassus
