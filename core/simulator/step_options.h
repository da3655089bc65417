// Options of a step, the same for every step of a simulation.
#pragma once

namespace delassus {

// The contact solver: whatever it takes (solvers/contacts/automatic.h), ADMM, Newton on the fixed point of ADMM.
enum StepSolver : int { automatic, admm, newton };

struct StepOptions {
  double timestep = 1e-3;      // dt [s]
  double restitution = 0;      // e, from 0 to 1, the largest of any contact
  double bounce_speed = 0.05;  // contacts that approach more slowly do not bounce [m/s]
  double tolerance = 1e-6;     // of the contact solver, for each of its residuals [m/s]
  int max_iterations = 1000;   // of the contact solver
  int solver = automatic;      // one of StepSolver
  double time_limit = 0;       // that the contact solver may take on an island [s]; 0: as long as it takes
  double slop = 1e-5;          // gap, and penetration, that is taken for touching [m]: gaps of a patch that differ by
                               // a smaller value would leave only three of its points to carry the load
  bool midpoint = true;        // h at half of the step's velocity, else at its start
  int sleep_steps = 0;         // at rest, after which an island sleeps; 0: none does
  double sleep_speed = 1e-4;   // below which a body is at rest [m/s]
};

}  // namespace delassus
