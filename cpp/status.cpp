#include "data.h"

namespace delassus::inline v0 {

Error::~Error() = default;
ArgumentError::~ArgumentError() = default;
ModelError::~ModelError() = default;
LoadError::~LoadError() = default;

const char* describe(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::wrong_size:
      return "an argument has the wrong length: compare it with nq, nv, nbody or rows of the object";
    case Status::not_finite:
      return "an argument holds NaN or infinity";
    case Status::not_normalized:
      return "a quaternion in q is not of length 1: divide it by its length, or use Model::integrate";
    case Status::out_of_range:
      return "a number is out of range: damping and compliance must not be negative, columns must be positive, a body "
             "must exist";
    case Status::overlapping:
      return "an output shares memory with an input or another output: give it memory of its own";
    case Status::stale:
      return "the operator has no numbers: call update(q), and look at what it returns";
    case Status::no_inverse:
      return "there is no inverse: set damping or compliance that is positive in every row";
    case Status::singular:
      return "the mass matrix is singular here: give light bodies mass, or joints armature";
    case Status::inaccurate:
      return "no solution within the tolerance: raise damping or the tolerance, or use Refinement::full";
    case Status::overflow:
      return "the result is not finite: numbers overflowed, or the points of a Distance coincide";
    case Status::capacity:
      return "there are more contacts than a step takes";
    case Status::failed:
      return "out of memory, or an error inside the library";
  }
  return "unknown status";
}

const char* describe(DynamicsOutcome outcome) noexcept {
  constexpr const char* words[] = {"solved", "infeasible_least_squares", "iteration_limit", "stalled", "redundant"};
  return words[int(outcome)];
}

const char* describe(ContactOutcome outcome) noexcept {
  constexpr const char* words[] = {"solved", "iteration_limit", "stalled", "infeasible", "approximate"};
  return words[int(outcome)];
}

const char* version() noexcept { return DELASSUS_VERSION; }
const char* architecture() noexcept { return DELASSUS_BUILT_FOR; }

}  // namespace delassus::inline v0
