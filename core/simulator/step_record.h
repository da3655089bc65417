// Record of a step: copies of the data that the next step overwrites, and of its impulses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/world.h"

namespace delassus {

// A contact as users see it.
struct ContactRow {
  double position[3], normal[3], force[3], friction;  // force: on the first body, in world axes [N]
  double torque[3];                                   // of torsional and rolling friction, likewise [N m]
  double distance;                                    // where contacts were looked for; negative: penetration [m]
  std::int64_t bodies[2], geoms[2], rows;             // geoms: by MuJoCo's numbers
};

struct StepRecord {
  StepReport report;
  std::shared_ptr<const WorldDescription> description;  // of the world: its loops are those that held
  double time = 0;
  std::vector<double> q, v, hidden, mocap, row_forces;
  std::vector<double> loop_forces;  // per row of loops, over the step [N or N m]
  // forces of limits over the step, of both ends: of a joint at its first coordinate, (nq,); per tendon, up to the last
  // that has any; empty where there are none [N or N m]
  std::vector<double> joint_limit_forces, tendon_limit_forces;
  int worst_coordinate = -1, worst_tendon = -1;  // of what is farthest beyond a limit; −1: none
  std::vector<ContactRow> contacts;

  // The present state, and what the last step found.
  void read(const StepReport& r, const World& w);
};

// Of all loops of a world.
std::size_t loop_rows(const WorldDescription& d);

// Appends the contacts of the last step, and forces of so many rows of loops.
void add_contacts(const World& w, std::vector<ContactRow>& to);
void add_loop_forces(const World& w, std::size_t rows, std::vector<double>& to);

}  // namespace delassus
