// Damping and compliance of an operator that Python holds, stored only here, and a record of which results are up to
// date.
//
//     G = J M⁻¹ Jᵀ + compliance,    (G + damping)⁻¹ where damping + compliance > 0 in every row,
//                                   or damping is square blocks that with compliance are invertible
//
// The operator itself keeps only what its sweeps use of them.
#pragma once

#include <atomic>
#include <vector>

#include "door.h"
#include "operators/accuracy.h"
#include "operators/block_index.h"

namespace delassus {

// Base: Held, of one state or of a batch.
template <class T, class Base>
struct Damped : Base {
  std::vector<T> compliance{}, damping{};  // one number per row, of a batch per state and row
  std::vector<T> blocks{};                 // damping as blocks, of a batch one state after the other
  bool damped = false;                     // whether damping was ever set
  bool by_blocks = false;                  // whether that was blocks
  bool invertible = false;                 // whether damping + compliance is positive in every row, or invertible
  std::atomic<bool> fresh{false};          // whether the numbers are those of a configuration
  std::atomic<bool> factored{false};  // whether the factor of the inverse is that of these numbers and this damping
  std::size_t version = 0;            // another one whenever the numbers or the factor change
  std::size_t numbers = 0;            // another one whenever G itself changes
  Accuracy<T> accuracy{};             // of a solution, unless another is asked for

  // Nothing is known from here on, whatever comes of the update that follows.
  void forget() {
    door::Occupied occupied(this->busy, "this operator");
    fresh = factored = false;
  }
  // The numeric work at q without the factor of the inverse; false: the mass matrix is singular.
  bool update(const T* q) {
    this->work([&] {
      factored = false;
      ++version, ++numbers;
      fresh = this->core->update(q);
    });
    return fresh;
  }

  void set_compliance(const T* values, std::size_t count) {
    this->work([&] {
      ++numbers;
      compliance.assign(values, values + count);
      this->core->set_compliance(values);
      judge_and_factor();
    });
  }
  void set_damping(const T* values, std::size_t count) {
    this->work([&] {
      damping.assign(values, values + count);
      damped = true;
      by_blocks = false;
      judge_and_factor();
    });
  }
  // Where numbers of blocks are, made when it is asked for first.
  const BlockIndex& block_index() {
    const BlockIndex* index = nullptr;
    this->work([&] { index = this->core->block_index(); });
    return *index;
  }
  // Blocks that are invertible with compliance (operators_blocks.h).
  void set_block_damping(const T* values, std::size_t count) {
    this->work([&] {
      blocks.assign(values, values + count);
      damped = by_blocks = true;
      judge_and_factor();
    });
  }
  // The factor of the inverse anew: after update, and after whoever used the operator with another damping.
  void factor() {
    this->work([&] { factor_now(); });
  }

  // Short work keeps the interpreter's lock: to release it and take it back costs more than a tenth of a microsecond,
  // as much as half a product with few rows. Up to this sum of rows and velocities a product takes less than about 1
  // µs.
  static constexpr std::size_t short_work = 128;
  template <class F>
  void work_briefly(F&& f) {
    if (this->rows() + this->nv() > short_work) return this->work(f);
    door::Occupied occupied(this->busy, "this operator");
    this->watch.run(f);
  }

 private:
  void judge_and_factor() {
    invertible = damped;
    for (std::size_t k = 0; k < damping.size() && !by_blocks; ++k)
      invertible = invertible && damping[k] + (k < compliance.size() ? compliance[k] : T(0)) > 0;
    factor_now();
  }
  void factor_now() {
    factored = false;
    ++version;
    if (!fresh || !invertible) return;
    if (by_blocks)
      this->core->set_block_damping(blocks.data());
    else
      this->core->set_damping(damping.data());
    factored = true;
  }
};

}  // namespace delassus
