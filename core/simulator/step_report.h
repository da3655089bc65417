// Report of a step: how its contact solver ended, errors at the end of the step, and times.
#pragma once

#include <algorithm>
#include <chrono>

#include "solvers/contacts/problem.h"

namespace delassus {

// Seconds of the stages of a step, those of islands added up, also where threads step several at once; whole: from its
// beginning to its end.
struct StageTimes {
  double collide = 0, constrain = 0, operate = 0, solve = 0, correct = 0, whole = 0;
};

// What is wrong after a step, although its velocities were solved for; the later ones are worse.
enum class StepFlaw : int { none, penetrating, limit_violated, open_loops, tunnelling };

struct StepReport {
  ContactReport contacts;  // of the velocities: the worst of each number over all islands, all factorizations
  StepFlaw flaw = StepFlaw::none;
  int corrections = 0;           // iterations for positions
  int islands = 0;               // that were stepped
  int sleeping = 0;              // trees that sleep after the step
  int tunnelled = 0;             // pairs of shapes that went through each other
  bool collided = true;          // MuJoCo found the contacts; if not, the collider says why
  bool regular = true;           // the mass matrix can be factored
  double penetration = 0;        // before the step, where contacts were looked for [m]
  double penetration_after = 0;  // of the same contacts, by their velocities [m]
  double loop_error = 0;         // before the step [m or rad]
  double loop_error_after = 0;   // [m or rad]
  double limit_error_after = 0;  // [m or rad]
  // whose it is, by the numbers of the world: one of its limits, or one of its spans; −1: none is beyond
  int worst_limit = -1, worst_span = -1;
  StageTimes times;

  void blame(StepFlaw what) { flaw = std::max(flaw, what); }
  bool solved() const { return contacts.outcome == ContactOutcome::solved && flaw == StepFlaw::none; }
};

// Adds to a stage the seconds since the one before.
class StageClock {
 public:
  void end(double& stage) {
    const auto now = Clock::now();
    stage += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace delassus
