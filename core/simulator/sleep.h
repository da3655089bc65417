// Islands at rest sleep: they are not stepped until something acts on them.
//
// A tree is at rest in a step if its island was solved and no point of it is faster than options.sleep_speed, both by
// its velocity at the end and by its displacement over dt; the latter excludes bodies that are pushed out of a
// penetration. An island falls asleep once all its trees have been at rest for options.sleep_steps steps:
//
//   v ← 0             q stays as it is
//   contacts          stay as they were when they were last solved, with their forces; as does whatever the next solve
//                     starts from
//   forces on joints, as they are at rest, and wrenches on bodies are noted
//
// It wakes as a whole, before a step is solved, where
//
//   a tree that is awake touches it         islands.h finds which trees are tied
//   forces on its joints or wrenches on its bodies are not those noted
//   the state is set                        StepMemory is emptied or replaced
//
// Which islands sleep depends only on the state and StepMemory, so a snapshot includes it.
#pragma once

#include <vector>

#include "simulator/island.h"
#include "simulator/link_speeds.h"

namespace delassus {

class Sleep {
 public:
  explicit Sleep(const WorldDescription& world);

  // Takes anew where links have their farthest points: centres of mass may change.
  void read_numbers();

  // Whether anything may sleep; otherwise nothing below is called, but for `asleep`.
  bool allowed() const { return world_.options.sleep_steps > 0; }

  // Per tree: whether it sleeps in this step. Empty where nothing may.
  std::vector<char>& asleep() { return asleep_; }
  bool any() const;
  bool all() const;
  // Per body: whether it stands still in this step, because it sleeps or is fixed.
  const std::vector<char>& find_still();

  // At the start of a step: trees that fell asleep and on which nothing else acts now. forces: per velocity, at q and
  // v.
  void recall(const RestMemory& rest, const std::vector<double>& forces, const double* external);

  // Whether both sides of a contact stand still.
  bool holds(const Contact& c) const { return still_[body(c, 0)] && still_[body(c, 1)]; }

  // After a step: of trees that sleep, rows, limits and penalties from the step before.
  void keep_rows(const StepMemory& before, StepMemory& after) const;

  // After a step: counts, and sets v to zero of islands that fall asleep. Whether any did.
  bool count_rest(const std::vector<Island*>& islands, const std::vector<StepReport>& reports, const RestMemory& before,
                  const double* last_q, const double* q, double* v, RestMemory& after);
  // What acts on trees that just fell asleep, at their q and at rest.
  void note_forces(const std::vector<double>& forces, const double* external, RestMemory& after) const;
  // Trees that sleep after the step.
  int count(const RestMemory& rest) const;

 private:
  bool sleeps(const RestMemory& rest, std::size_t tree) const;
  bool is_slow(const Island& island, const double* q, const double* v);
  static std::size_t body(const Contact& c, int side) { return std::size_t(c.touch.body[side]); }

  const WorldDescription& world_;
  LinkSpeeds speeds_;
  std::vector<double> arms_;  // per link: from its origin to its farthest point [m]
  std::vector<int> row_tree_, limit_tree_,
      span_tree_;                     // per row of loops and friction, limit, span: a tree it is about
  std::vector<int> body_tree_;        // per body; −1: it is fixed
  std::vector<char> asleep_, still_;  // per tree, per body
  std::vector<char> fell_;            // per tree: asleep since the last step
  std::vector<double> way_;           // per velocity: over dt
};

}  // namespace delassus
