// What a call reports, and what a constructor throws.
//
// Constructors allocate and may throw one of the exceptions below. All other functions of classes that compute are
// noexcept, allocate nothing, and report a Status; whatever is not Status::ok leaves outputs without meaning, but the
// object as usable as before.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

#if defined(_WIN32)
#define DELASSUS_API
#else
#define DELASSUS_API __attribute__((visibility("default")))
#endif

namespace delassus {
inline namespace v0 {

using Vec3 = std::array<double, 3>;
/// Unit quaternion (w, x, y, z).
using Quat = std::array<double, 4>;

/// How a call ended.
enum class [[nodiscard]] Status : int {
  ok = 0,
  wrong_size,      ///< an argument has another length than its comment says
  not_finite,      ///< an argument holds NaN or infinity
  not_normalized,  ///< a quaternion in q is not of length 1 (to 1e-6)
  out_of_range,    ///< a number that must be positive or not negative is not, or a body index does not exist
  overlapping,     ///< an output shares memory with an input or another output
  stale,           ///< no update(q) has succeeded yet, or the last one failed
  no_inverse,      ///< damping + compliance is not positive in every row, so G + damping has no inverse
  singular,        ///< the mass matrix is singular here
  inaccurate,      ///< no solution within the tolerance; the report has the error reached
  overflow,        ///< the result is not finite: numbers overflowed, or the points of a Distance coincide
  capacity,        ///< a world has no room for so many contacts
  failed,          ///< out of memory, or an error inside the library
};

/// The status in words, with the way out; never null, static storage.
[[nodiscard]] DELASSUS_API const char* describe(Status status) noexcept;

/// Base of all exceptions of this library. The message names the argument, what was expected, and what it got.
class DELASSUS_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// An argument of a constructor does not make sense.
class DELASSUS_API ArgumentError : public Error {
 public:
  using Error::Error;
  ~ArgumentError() override;
};

/// A model that no mechanism can have: an unknown parent, an unphysical inertia, a joint that moves nothing.
class DELASSUS_API ModelError : public Error {
 public:
  using Error::Error;
  ~ModelError() override;
};

/// A file cannot be read, or is not what delassus.save_model of the Python package writes.
class DELASSUS_API LoadError : public Error {
 public:
  using Error::Error;
  ~LoadError() override;
};

/// Version of the library that is running, such as "0.1.0"; DELASSUS_VERSION is that of the headers.
[[nodiscard]] DELASSUS_API const char* version() noexcept;

/// Instruction set the library was compiled for, as given to -march; "" for the compiler's default.
[[nodiscard]] DELASSUS_API const char* architecture() noexcept;

}  // namespace v0
}  // namespace delassus
