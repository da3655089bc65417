// The border between Python and the core: converts arrays both ways, makes all checks, raises typed errors.
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

inline nb::tuple shape_tuple(Shape shape) {
  nb::list list;
  for (std::size_t n : shape) list.append(n);
  return nb::tuple(list);
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
  // x − x is zero for a finite number, NaN otherwise; several sums at once, none waits for another
  constexpr int width = 32 / int(sizeof(T)), several = 4;
  using P = Pack<T, width>;
  P sums[several]{};
  std::size_t i = 0;
  for (; i + several * width <= n; i += several * width)
#pragma GCC unroll 4
    for (int k = 0; k < several; ++k) {
      P part;
      __builtin_memcpy(&part, x + i + k * width, sizeof(P));
      sums[k] += part - part;
    }
  T sum{};
  for (; i < n; ++i) sum += x[i] - x[i];
  const P all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int k = 0; k < width; ++k) sum += all[k];
  return sum == T{};
}

// Results, named for the stubs: a NumPy array, and one or None.
struct Array : nb::object {
  NB_OBJECT_DEFAULT(Array, nb::object, "numpy.typing.NDArray[typing.Any]", PyObject_CheckBuffer)
};
struct MaybeArray : nb::object {
  NB_OBJECT_DEFAULT(MaybeArray, nb::object, "numpy.typing.NDArray[typing.Any] | None", PyObject_CheckBuffer)
  MaybeArray(const Array& array) : nb::object(array) {}
  static MaybeArray none() { return nb::borrow<MaybeArray>(Py_None); }
};

// What NumPy offers and every result needs, looked up once. Two threads may look at the same time: they find the same.
inline PyObject* of_numpy(std::atomic<PyObject*>& kept, const char* name, const char* argument = nullptr) {
  PyObject* found = kept.load(std::memory_order_acquire);
  if (!found) {
    nb::object object = nb::module_::import_("numpy").attr(name);
    if (argument) object = object(argument);
    found = object.release().ptr();  // for as long as the process lives
    kept.store(found, std::memory_order_release);
  }
  return found;
}
inline constinit std::atomic<PyObject*> numpy_empty{nullptr}, numpy_ndarray{nullptr};
template <class T>
inline constinit std::atomic<PyObject*> numpy_dtype{nullptr};

// Whether it is a NumPy array, and not of a class derived from it.
inline bool is_ndarray(nb::handle x) {
  return reinterpret_cast<PyObject*>(Py_TYPE(x.ptr())) == of_numpy(numpy_ndarray, "ndarray");
}

// numpy.empty(shape, dtype)
template <class T>
Array new_array(Shape shape) {
  nb::object sizes = shape.size() == 1 ? nb::steal<nb::object>(PyLong_FromSize_t(*shape.begin())) : shape_tuple(shape);
  PyObject* arguments[] = {sizes.ptr(), of_numpy(numpy_dtype<T>, "dtype", dtype_name<T>)};
  PyObject* array = PyObject_Vectorcall(of_numpy(numpy_empty, "empty"), arguments, 2, nullptr);
  if (!array) throw nb::python_error();
  return nb::steal<Array>(array);
}

// Numbers of type T in C order that some Python object lends by the buffer protocol, for as long as this lives.
template <class T>
class Lent {
 public:
  Lent() = default;
  Lent(Lent&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Lent& operator=(Lent&&) = delete;
  ~Lent() { PyBuffer_Release(&view_); }

  // Whether the object lends an array of this shape.
  bool borrow(nb::handle from, Shape shape, bool writeable = false) {
    if (!PyObject_CheckBuffer(from.ptr())) return false;
    if (PyObject_GetBuffer(from.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT | (writeable ? PyBUF_WRITABLE : 0)) != 0) {
      PyErr_Clear();
      view_.obj = nullptr;
      return false;
    }
    if (fits(shape)) return true;
    PyBuffer_Release(&view_);
    return false;
  }
  // The same of an array that was just made: only its memory is asked for.
  void borrow_own(nb::handle from) {
    if (PyObject_GetBuffer(from.ptr(), &view_, PyBUF_WRITABLE) != 0) throw nb::python_error();
  }
  T* data() const { return static_cast<T*>(view_.buf); }
  std::size_t size() const { return std::size_t(view_.len) / sizeof(T); }

 private:
  bool fits(Shape shape) const {
    constexpr char letter = sizeof(T) == 8 ? 'd' : 'f';
    if (!view_.format || view_.format[0] != letter || view_.format[1] != 0) return false;
    if (std::size_t(view_.ndim) != shape.size()) return false;
    const Py_ssize_t* axis = view_.shape;
    for (std::size_t n : shape)
      if (std::size_t(*axis++) != n) return false;
    return true;
  }

  Py_buffer view_{};
};

// A read-only argument: contiguous, of the wanted type and shape, finite.
template <class T>
struct Input {
  Lent<T> array;
  const T* data = nullptr;
  const char* name;

  Input(nb::handle value, const char* name_, Shape shape, bool optional = false) : name(name_) {
    if (optional && value.is_none()) return;
    if (!array.borrow(value, shape)) {
      nb::object conformed =
          nb::module_::import_("delassus._door").attr("conform")(value, name, shape_tuple(shape), dtype_name<T>);
      if (!array.borrow(conformed, shape))
        raise("ArgumentTypeError", std::string(name) + ": expected numbers in memory.");
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
  Array object;
  Lent<T> array;
  T* data;

  Output(nb::handle out, Shape shape) {
    if (out.is_none()) {
      object = new_array<T>(shape);
      array.borrow_own(object);
    } else {
      object = nb::borrow<Array>(out);
      if (!PyObject_TypeCheck(out.ptr(), reinterpret_cast<PyTypeObject*>(of_numpy(numpy_ndarray, "ndarray"))) ||
          !array.borrow(out, shape, true))
        nb::module_::import_("delassus._door").attr("refuse_out")(object, shape_tuple(shape), dtype_name<T>);
    }
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
  Array finite(const char* what) const {
    if (!all_finite(data, array.size()))
      raise("SingularError",
            std::string(what) +
                ": the result is not finite: numbers overflowed, or in this pose a joint moves no inertia. "
                "Check the size of the arguments; give such a joint some armature.");
    return object;
  }
  // the result, if the mass matrix it comes from was regular
  Array regular(bool is, const char* what) const {
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

// A direction, or some side by side: arrays of (rows,) or of (rows, count).
struct Columns {
  int count;
  bool vector;

  Input<double> in(nb::handle value, const char* name, std::size_t rows) const {
    return vector ? Input<double>(value, name, {rows}, true)
                  : Input<double>(value, name, {rows, std::size_t(count)}, true);
  }
  Output<double> out(std::size_t rows) const {
    return vector ? Output<double>(nb::none(), {rows}) : Output<double>(nb::none(), {rows, std::size_t(count)});
  }
};

}  // namespace delassus::door
