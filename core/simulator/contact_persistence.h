// Contacts as they are found, made fit for a step: sides in order, and points of the step before kept where faces rest
// on each other, which collision detection lists as one point or as four by a rounding.
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
