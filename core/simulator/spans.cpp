#include "simulator/spans.h"

#include <cmath>

namespace delassus {

namespace {

// θ and the axis of a unit quaternion (w, x, y, z); any axis where there is no rotation.
void find_ball(const double* quaternion, double& angle, double* axis) {
  const double sign = quaternion[0] < 0 ? -1 : 1;
  const double length =
      std::sqrt(quaternion[1] * quaternion[1] + quaternion[2] * quaternion[2] + quaternion[3] * quaternion[3]);
  angle = 2 * std::atan2(length, sign * quaternion[0]);
  for (int k = 0; k < 3; ++k) axis[k] = length > 0 ? sign * quaternion[1 + k] / length : k == 0;
}

}  // namespace

SpanValues make_span_values(const std::vector<Span>& spans) {
  SpanValues values;
  values.x.resize(spans.size());
  std::size_t size = 0;
  for (const Span& s : spans) values.first.push_back(int(size)), size += s.velocities.size();
  values.coefficients.resize(size);
  return values;
}

double span_rate(const std::vector<Span>& spans, const SpanValues& values, std::size_t k, const double* v) {
  const double* const c = values.coefficients.data() + values.first[k];
  const std::vector<int>& velocities = spans[k].velocities;
  double rate = 0;
  for (std::size_t j = 0; j < velocities.size(); ++j) rate += c[j] * v[velocities[j]];
  return rate;
}

void find_spans(const std::vector<Span>& spans, const double* q, const MujocoMirror* mirror, SpanValues& values) {
  for (std::size_t k = 0; k < spans.size(); ++k) {
    const Span& s = spans[k];
    double& x = values.x[k];
    double* const c = values.coefficients.data() + values.first[k];
    if (s.kind == Span::ball) {
      find_ball(q + s.coordinate, x, c);
      continue;
    }
    const double *length = mirror->tendon_lengths(), *J = mirror->tendon_jacobian();
    const auto slope = [&](int which, std::size_t v) {
      const int at = s.places[std::size_t(which)][v];
      return at < 0 ? 0.0 : J[at];
    };
    x = length[s.tendon_id[0]];
    for (std::size_t v = 0; v < s.velocities.size(); ++v) c[v] = slope(0, v);
    if (s.kind == Span::tendon) continue;
    // of the second by Horner's rule, with its derivative
    const auto& p = s.polynomial;
    const double y = s.tendon_id[1] < 0 ? 0 : length[s.tendon_id[1]] - s.rest[1];
    x -= s.rest[0] + ((((p[4] * y + p[3]) * y + p[2]) * y + p[1]) * y + p[0]);
    if (s.tendon_id[1] < 0) continue;
    const double rate = ((4 * p[4] * y + 3 * p[3]) * y + 2 * p[2]) * y + p[1];
    for (std::size_t v = 0; v < s.velocities.size(); ++v) c[v] -= rate * slope(1, v);
  }
}

}  // namespace delassus
