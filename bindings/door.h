// The door between Python and the core: arrays in, arrays out, every check, typed errors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <initializer_list>
#include <string>
#include <vector>

#include "errors/typed.h"
#include "spatial/scalar.h"
#include "unlocked.h"

namespace delassus::door {

namespace nb = nanobind;
using Shape = std::initializer_list<std::size_t>;

// Raises delassus.errors.<kind>(message).
[[noreturn]] inline void raise(const char* kind, const std::string& message) {
  nb::object type = nb::module_::import_("delassus.errors").attr(kind);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

// To be registered once: errors of the core, as Python's. The exception of a signal's handler is set already.
inline void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
  } catch (const TypedError& typed) {
    nb::object type = nb::module_::import_("delassus.errors").attr(typed.kind());
    PyErr_SetString(type.ptr(), typed.what());
  }
}

[[noreturn]] inline void raise_singular(const char* what) {
  raise("SingularError", std::string(what) +
                             ": the mass matrix is singular to working precision: in this pose some joint moves "
                             "nothing that other joints do not "
                             "move already (two hinges on one axis, say). Remove one, or give them armature.");
}

template <class T>
constexpr const char* dtype_name = sizeof(T) == 8 ? "float64" : "float32";

template <class T>
bool has_shape(const T& array, Shape shape) {
  if (array.ndim() != shape.size()) return false;
  std::size_t axis = 0;
  for (std::size_t n : shape)
    if (array.shape(axis++) != n) return false;
  return true;
}

inline nb::tuple shape_tuple(Shape shape) {
  nb::list list;
  for (std::size_t n : shape) list.append(n);
  return nb::tuple(list);
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
  // x − x is zero for a finite number, NaN otherwise
  using P = Pack<T, 8>;
  P sums{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    P part;
    __builtin_memcpy(&part, x + i, sizeof(P));
    sums += part - part;
  }
  T sum{};
  for (; i < n; ++i) sum += x[i] - x[i];
  for (int k = 0; k < 8; ++k) sum += sums[k];
  return sum == T{};
}

// A read-only argument: contiguous, of the wanted type and shape, finite.
template <class T>
struct Input {
  using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
  Array array;
  const T* data = nullptr;
  const char* name;

  Input(nb::handle value, const char* name_, Shape shape, bool optional = false) : name(name_) {
    if (optional && value.is_none()) return;
    if (!nb::try_cast(value, array, false) || !has_shape(array, shape)) {
      nb::object conformed =
          nb::module_::import_("delassus._door").attr("conform")(value, name, shape_tuple(shape), dtype_name<T>);
      array = nb::cast<Array>(conformed, false);
    }
    data = array.data();
    if (!all_finite(data, array.size())) raise_not_finite();
  }

  [[noreturn]] void raise_not_finite() const {
    std::size_t i = 0;
    while (i < array.size() && std::isfinite(data[i])) ++i;
    raise("NotFiniteError", std::string(name) + ": every number must be finite, but the entry at flat index " +
                                std::to_string(i) + " is " + std::to_string(data[i]) + ". Check what computed it.");
  }
};

// A result: a new array, or the caller's `out` if it fits exactly.
template <class T>
struct Output {
  using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
  nb::object object;
  Array array;
  T* data;

  Output(nb::handle out, Shape shape) {
    if (out.is_none()) {
      object = nb::module_::import_("numpy").attr("empty")(shape_tuple(shape), dtype_name<T>);
    } else {
      object = nb::borrow(out);
    }
    if (!nb::try_cast(object, array, false) || !has_shape(array, shape))
      nb::module_::import_("delassus._door").attr("refuse_out")(object, shape_tuple(shape), dtype_name<T>);
    data = array.data();
  }

  // Refuses a result that lies across an argument: the same array is fine where the function says so, a shifted one
  // never.
  template <class... Inputs>
  void apart_from(const Inputs&... inputs) const {
    (..., [&](const auto& in) {
      const T *begin = data, *end = data + array.size();
      if (in.data && in.data != begin && in.data < end && begin < in.data + in.array.size())
        raise("ArgumentError", "out: it shares part of its memory with " + std::string(in.name) +
                                   ". Give an array of its own, or that very array.");
    }(inputs));
  }

  // the result, if it is finite
  nb::object finite(const char* what) const {
    if (!all_finite(data, array.size()))
      raise("SingularError",
            std::string(what) +
                ": the result is not finite: numbers overflowed, or in this pose a joint moves no inertia. "
                "Check the size of the arguments; give such a joint some armature.");
    return object;
  }
  // the result, if the mass matrix it comes from was regular
  nb::object regular(bool is, const char* what) const {
    if (!is) raise_singular(what);
    return finite(what);
  }
};

// Marks a workspace as in use for as long as it lives; a second user is told so.
class Occupied {
 public:
  explicit Occupied(std::atomic<bool>& busy, const char* what = "this Workspace") : busy_(busy) {
    if (busy_.exchange(true))
      raise("BusyError", std::string(what) + " is in use by another thread. Give each thread one of its own.");
  }
  ~Occupied() { busy_.store(false); }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;

 private:
  std::atomic<bool>& busy_;
};

}  // namespace delassus::door
