// Bounds on the speeds of links, from those of their joints, root first: no point of a link that is r from its origin
// is faster than linear + r angular.
#pragma once

#include <vector>

#include "model/model.h"

namespace delassus {

struct LinkSpeed {
  double linear, angular;  // of the origin [m/s]; of turning [rad/s]
};

class LinkSpeeds {
 public:
  explicit LinkSpeeds(const Model<double>& model);

  // Of links from `first` up to `end`, whole trees; stays until the next call.
  const std::vector<LinkSpeed>& find(const double* q, const double* v, int first, int end);

 private:
  const Model<double>& model_;
  std::vector<double> lengths_;    // per link: from its parent [m]
  std::vector<LinkSpeed> speeds_;  // per link
};

}  // namespace delassus
