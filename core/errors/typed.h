// An error that the core finds in the middle of its work; the bindings raise delassus.errors.<kind> with its message.
#pragma once

#include <stdexcept>
#include <string>

namespace delassus {

class TypedError : public std::runtime_error {
 public:
  TypedError(const char* kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  const char* kind() const { return kind_; }

 private:
  const char* kind_;
};

[[noreturn]] inline void fail(const char* kind, const std::string& message) { throw TypedError(kind, message); }

}  // namespace delassus
