// Checks of blocks of damping, one square block for each constraint, at the door.
#pragma once

#include <cstdio>
#include <string>

#include "constraints/constraints.h"
#include "door.h"
#include "operators/block_index.h"
#include "operators/block_inverse.h"
#include "operators/layout.h"

namespace delassus::door {

// Refuses blocks D, one state after the other, that the elimination cannot take: rows on joints alone have numbers on
// their diagonal only, and every block is invertible with compliance C on its diagonal. `name` is the argument that
// came last.
template <class T>
void check_blocks(const BlockIndex& index, const Layout<T>& layout, std::size_t states, const T* D, const T* C,
                  const char* name) {
  const std::size_t rows = index.of_row.size();
  const auto where = [&](int constraint, std::size_t state) {
    return "constraint " + std::to_string(constraint) + (states > 1 ? " in state " + std::to_string(state) : "");
  };
  std::vector<char> on_joint(rows);
  for (const auto& j : layout.set.joint_rows) on_joint[std::size_t(j.row)] = 1;

  std::vector<T> S, B;
  std::vector<int> exchanged;
  for (std::size_t state = 0; state < states; ++state, D += index.size, C += rows) {
    int constraint = 0;
    for (std::size_t first = 0; first < rows; first += std::size_t(index.count[first]), ++constraint) {
      const int n = index.count[first];
      const T* block = D + index.of_row[first];
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c)
          if (r != c && block[r * n + c] != 0 && (on_joint[first + std::size_t(r)] || on_joint[first + std::size_t(c)]))
            raise("ArgumentError",
                  std::string(name) + ": rows that act on joints alone take a diagonal block, but that of " +
                      where(constraint, state) + " has " + std::to_string(block[r * n + c]) + " at [" +
                      std::to_string(r) + ", " + std::to_string(c) + "]. Set what is off its diagonal to zero.");
      S.assign(block, block + n * n);
      B.resize(S.size());
      exchanged.resize(std::size_t(n));
      for (int r = 0; r < n; ++r) S[std::size_t(r * n + r)] += C[first + std::size_t(r)];
      if (!invert_block(n, static_cast<const T*>(S.data()), B.data(), exchanged.data()) ||
          !is_well_conditioned(n, static_cast<const T*>(S.data()), static_cast<const T*>(B.data())))
        raise(
            "ArgumentError",
            std::string(name) +
                ": expected blocks of damping that, with compliance on their diagonals, are invertible, but that of " +
                where(constraint, state) +
                " is singular to working precision. Add to its diagonal, for instance 1e-6.");
    }
  }
}

}  // namespace delassus::door
