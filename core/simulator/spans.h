// Spans are scalars x with ẋ = Σ c_k ν_k. This file computes x and c at a state, and which spans have rows in a step.
//
//   tendon     x = ℓ(q), c = dℓ/dq, by MuJoCo
//   relation   x = (ℓ₁ − r₁) − p(ℓ₂ − r₂), c = dℓ₁/dq − p' dℓ₂/dq
//   ball       x = θ, the angle of its rotation, c = its axis in the body's axes
//
// A span has up to five rows, each Σ ± c_k ν_k: its lower and upper limits where they are near, its dry friction, the
// equality x = 0 of a relation, and its inertia (span_inertia.h).
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/description.h"
#include "simulator/mujoco_mirror.h"

namespace delassus {

// Rows of span k are numbered span_row_count k + one of these.
enum SpanRow : int { span_lower, span_upper, span_friction, span_value, span_armature, span_row_count };
inline std::size_t span_of(int row) { return std::size_t(row / span_row_count); }
inline int span_row_kind(int row) { return row % span_row_count; }

// Values of all spans of a world.
struct SpanValues {
  std::vector<double> x;             // per span
  std::vector<double> coefficients;  // those of one span after those of another
  std::vector<int> first;            // per span: where its coefficients start
};

SpanValues make_span_values(const std::vector<Span>& spans);

// ẋ of span k at velocities v.
double span_rate(const std::vector<Span>& spans, const SpanValues& values, std::size_t k, const double* v);

// At q, after the mirror found tendons there; null where no span is of a tendon.
void find_spans(const std::vector<Span>& spans, const double* q, const MujocoMirror* mirror, SpanValues& values);

}  // namespace delassus
