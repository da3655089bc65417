// What the real-time path checks of its arguments, in the order in which it reports: sizes, overlap, numbers.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string_view>

#include "data.h"

namespace delassus::inline v0 {

using In = std::span<const double>;
using Out = std::span<double>;

inline const double* or_null(In x) { return x.empty() ? nullptr : x.data(); }

inline bool all_finite(In x) {
  double sum = 0;  // of zeros, but where a number is none or infinite
  for (const double value : x) sum += value * 0;
  return sum == 0;
}

inline bool overlap(In a, In b) {
  const std::less<const double*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// Reports the first thing that is wrong.
class Check {
 public:
  Status status = Status::ok;

  explicit operator bool() const { return status == Status::ok; }
  Check& size(In x, std::size_t n) { return require(x.size() == n, Status::wrong_size); }
  // An argument that may be left out.
  Check& size_or_none(In x, std::size_t n) { return x.empty() ? *this : size(x, n); }
  template <class... Inputs>
  Check& apart(In out, Inputs... in) {
    return (require(!overlap(out, in), Status::overlapping), ...);
  }
  Check& finite(In x) {
    if (status == Status::ok) require(all_finite(x), Status::not_finite);
    return *this;
  }
  // A configuration whose size is right.
  Check& configuration(const core::Model<double>& model, In q) {
    if (!finite(q)) return *this;
    for (const auto& link : model.links) {
      if (link.type != core::Joint::ball && link.type != core::Joint::free) continue;
      const double* c = q.data() + link.iq + (link.type == core::Joint::free ? 3 : 0);
      const double norm = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
      require(std::abs(norm - 1) <= quaternion_slack, Status::not_normalized);
    }
    return *this;
  }
  Check& require(bool right, Status otherwise) {
    if (status == Status::ok && !right) status = otherwise;
    return *this;
  }
};

// The status of work that left its result in `out`.
inline Status finished(In out) { return all_finite(out) ? Status::ok : Status::overflow; }

// The status of work, whatever it throws.
template <class F>
Status contained(F&& work) noexcept {
  try {
    return work();
  } catch (const TypedError& error) {
    return std::string_view(error.kind()) == "CapacityError" ? Status::capacity : Status::failed;
  } catch (...) {
    return Status::failed;
  }
}

}  // namespace delassus::inline v0
