// Warm start of a step: the impulses and corrections of the same rows in the previous step, and the penalties of its
// solvers.
//
// Between steps they are stored for the whole world, contact impulses in world axes. A contact starts from the impulse
// of the nearest contact of the same pair of shapes in the previous step, if that is within two centimetres.
#pragma once

#include <array>
#include <vector>

#include "simulator/contact_pairs.h"
#include "simulator/row_system.h"

namespace delassus {

// Of a solve for velocities and of one for positions.
struct Penalties {
  double velocities = 0, positions = 0;  // 0: there is none
};

// Trees that sleep or are about to; nothing known: all empty.
struct RestMemory {
  std::vector<int> steps;        // per tree: at rest one after the other; the options' sleep_steps: it sleeps
  std::vector<double> forces;    // per velocity: on joints of trees that sleep, else 0
  std::vector<double> external;  // (nbody, 6) wrenches on bodies of trees that sleep, else 0
};

// What the next step starts from besides q and v; nothing known: all empty.
struct StepMemory {
  std::vector<Contact> contacts;
  std::vector<double> row_impulses, row_corrections;  // of loops and friction
  std::vector<std::array<double, 2>> limits;          // per end of a limit: impulse, correction
  std::vector<std::array<double, 2>> spans;           // as rows of spans are numbered
  std::vector<Penalties> penalties;                   // per tree
  RestMemory rest;

  // Room for a step's results but contacts, all zero.
  void clear_rows(std::size_t rows, std::size_t limits, std::size_t spans, std::size_t trees);
};

// Contacts of this step, with the impulses that they start from. pairs: of the contacts before.
void match_contacts(const std::vector<Touch>& touches, const std::vector<Contact>& before, ContactPairs& pairs,
                    std::vector<Contact>& contacts);

// The same by rows of an island.
class WarmStart {
 public:
  std::vector<double> impulses, corrections;  // per row
  Penalties penalties;
  bool warm = false;  // there is something to start from

  void recall(const WorldPart& part, const RowSystem& s, const ActiveRows& rows, const StepMemory& before,
              const std::vector<int>& trees);
  // The solution without the limits that were added afterwards; these start from zero.
  void resume(const RowSystem& s, const ActiveRows& rows, const std::vector<double>& found_impulses,
              const std::vector<double>& found_corrections, Penalties found_penalties);
};

// Stores the solution of an island for the next step; contacts get their impulses and corrections.
void remember(const WorldPart& part, const ActiveRows& rows, const std::vector<double>& impulses,
              const std::vector<double>& corrections, Penalties penalties, const std::vector<int>& trees,
              StepMemory& after);

}  // namespace delassus
