#include "simulator/link_speeds.h"

#include <cmath>

namespace delassus {

namespace {

double norm(const double* x) { return std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]); }

}  // namespace

LinkSpeeds::LinkSpeeds(const Model<double>& model) : model_(model), speeds_(model.links.size()) {
  for (const auto& link : model.links) lengths_.push_back(std::sqrt(dot(link.placement.p, link.placement.p)));
}

const std::vector<LinkSpeed>& LinkSpeeds::find(const double* q, const double* v, int first, int end) {
  for (std::size_t i = std::size_t(first); i < std::size_t(end); ++i) {
    const auto& link = model_.links[i];
    const double* x = v + link.iv;
    LinkSpeed s{};
    if (link.parent >= 0) {
      const LinkSpeed& p = speeds_[std::size_t(link.parent)];
      const double slid = link.type == Joint::slide ? std::abs(q[link.iq]) : 0.0;
      s = {p.linear + p.angular * (lengths_[i] + slid), p.angular};
    }
    if (link.type == Joint::hinge)
      s.angular += std::abs(x[0]);
    else if (link.type == Joint::slide)
      s.linear += std::abs(x[0]);
    else if (link.type == Joint::ball)
      s.angular += norm(x);
    else
      s = {norm(x), norm(x + 3)};
    speeds_[i] = s;
  }
  return speeds_;
}

}  // namespace delassus
