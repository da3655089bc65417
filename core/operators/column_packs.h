// Several right-hand sides at once, in the lanes of registers: the sweeps for one (substitution.h), with a pack of
// columns in place of every number that depends on the right-hand side.
#pragma once

#include <vector>

#include "dynamics/solve.h"
#include "operators/strips.h"

namespace delassus {

// Memory of a pack of columns on its way in and out.
template <class T>
struct ColumnPacks {
  std::vector<StripPack<T>> in, out;

  void resize(std::size_t rows) {
    in.resize(rows);
    out.resize(rows);
  }
  std::size_t bytes() const { return (in.size() + out.size()) * sizeof(StripPack<T>); }
};

// Y ← work(X): X has `from` rows, Y has `to`, both row-major. work(x, y) is called on one column as it stands, or on
// packs of columns; the last pack may have empty lanes.
template <class T, class F>
inline void by_column_packs(ColumnPacks<T>& packs, const T* X, int from, int columns, T* Y, int to, F&& work) {
  using Columns = StripPack<T>;
  constexpr int width = strip_lanes<T>;
  if (columns == 1) {
    work(X, Y);
    return;
  }
  if constexpr (width > 1)
    for (int first = 0; first < columns; first += width) {
      const int count = columns - first < width ? columns - first : width;
      for (int r = 0; r < from; ++r) packs.in[r] = load_columns<Columns>(X + std::size_t(r) * columns + first, count);
      work(static_cast<const Columns*>(packs.in.data()), packs.out.data());
      for (int r = 0; r < to; ++r) store_columns<Columns>(Y + std::size_t(r) * columns + first, packs.out[r], count);
    }
}

}  // namespace delassus
