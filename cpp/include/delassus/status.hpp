// Statuses that calls report, and exceptions that constructors throw.
//
// Constructors allocate and may throw one of the exceptions below. All other functions of classes that compute are
// noexcept, allocate nothing, and report a Status; if it is not Status::ok, outputs are meaningless, but the
// object remains usable.
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

/// Outcome of a call.
enum class [[nodiscard]] Status : int {
  ok = 0,
  wrong_size,      ///< the length of an argument differs from that in its comment
  not_finite,      ///< an argument holds NaN or infinity
  not_normalized,  ///< a quaternion in q does not have length 1 (to 1e-6)
  out_of_range,    ///< a number has the wrong sign, or a body index does not exist
  overlapping,     ///< an output shares memory with an input or another output
  stale,           ///< no update(q) has succeeded yet, or the last one failed
  no_inverse,      ///< damping + compliance is not positive in every row, so G + damping has no inverse
  singular,        ///< the mass matrix is singular here
  inaccurate,      ///< no solution within the tolerance; the report has the error reached
  overflow,        ///< the result is not finite: numbers overflowed, or the points of a Distance coincide
  capacity,        ///< too many contacts for a world
  failed,          ///< out of memory, or an error inside the library
};

/// The status in words, with a remedy; never null, static storage.
[[nodiscard]] DELASSUS_API const char* describe(Status status) noexcept;

/// Base of all exceptions of this library. The message names the argument, the expected and the given value.
class DELASSUS_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// An argument of a constructor is invalid.
class DELASSUS_API ArgumentError : public Error {
 public:
  using Error::Error;
  ~ArgumentError() override;
};

/// An impossible model: an unknown parent, an unphysical inertia, a joint that moves no inertia.
class DELASSUS_API ModelError : public Error {
 public:
  using Error::Error;
  ~ModelError() override;
};

/// A file cannot be read, or was not written by delassus.save_model of the Python package.
class DELASSUS_API LoadError : public Error {
 public:
  using Error::Error;
  ~LoadError() override;
};

/// Version of the running library, such as "0.1.0"; DELASSUS_VERSION is that of the headers.
[[nodiscard]] DELASSUS_API const char* version() noexcept;

/// Instruction set the library was compiled for, as given to -march; "" for the compiler's default.
[[nodiscard]] DELASSUS_API const char* architecture() noexcept;

}  // namespace v0
}  // namespace delassus
