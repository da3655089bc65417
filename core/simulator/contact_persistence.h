// Prepares detected contacts for a step: orders the two sides, and keeps points of the previous step where faces rest
// on each other. For such faces, rounding decides whether collision detection lists one point or four.
#pragma once

#include <vector>

#include "simulator/collider.h"
#include "simulator/contact_pairs.h"
#include "simulator/description.h"

namespace delassus {

// Contacts within what moves as one are no contacts; the ground comes second.
void order_sides(const Model<double>& model, std::vector<Touch>& touches);

// Points of the step before are added where a pair that still touches lists fewer than it did, up to four. A point
// stays for as long as its two places are opposite to each other, and no new one is near.
class ContactPersistence {
 public:
  void keep_points(const std::vector<Contact>& before, const Collider& collider, std::vector<Touch>& touches);
  // Of the contacts before, with which points were kept last.
  ContactPairs& pairs() { return pairs_; }

 private:
  ContactPairs pairs_;
  std::vector<Touch> kept_;
};

}  // namespace delassus
