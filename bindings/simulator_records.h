// Python's view of step records: copies of the data that the next step overwrites, seen through arrays that keep them
// alive.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>

#include "door.h"
#include "simulator/island_linearization.h"
#include "simulator/step_record.h"

namespace delassus {

namespace nb = nanobind;
using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;

// Numbers inside of what `owner` holds, as an array that keeps it alive; read-only where T is const. `stride`: numbers
// from one row to the next.
template <class T>
door::Array view(nb::handle owner, T* data, std::initializer_list<std::size_t> shape, std::int64_t stride) {
  static std::remove_const_t<T> nothing{};  // an array without numbers has an address too
  const std::int64_t strides[2] = {stride, 1};
  const nb::ndarray<nb::numpy, T> array(data ? data : &nothing, shape.size(), shape.begin(), owner, strides);
  return nb::borrow<door::Array>(nb::cast(array));
}
template <class T>
door::Array view(nb::handle owner, std::vector<T>& x) {
  return view(owner, x.data(), {x.size()}, 1);
}

// A getter of an array of a record's numbers.
template <class Record, class Number>
auto column_of(std::vector<Number> Record::*member) {
  return [member](nb::handle self) { return view(self, nb::cast<Record&>(self).*member); };
}

inline std::unique_ptr<StepRecord> recorded(const StepReport& r, const World& w) {
  auto record = std::make_unique<StepRecord>();
  record->read(r, w);
  return record;
}

// Many steps: of those that are kept, what a Trajectory shows.
struct RunRecord {
  std::size_t nq, nv, loop_rows;
  Numbers q, v, loop_forces;
  std::vector<ContactRow> contacts;
  Integers contact_counts, iterations, sleeping;
  std::vector<const char*> status;
  Numbers residual, loop_error, penetration;
  bool finite = true;  // velocities are

  void add(const StepReport& r, const World& w);
};

// Names of what derivatives of a step leave out.
std::vector<std::string> names_of(const StepGaps& gaps);

// Binds these, and the problem that a step solves first.
void bind_records(nb::module_& m);

}  // namespace delassus
