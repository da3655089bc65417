// Solutions of (G + ε) x = y as exact as asked for, from an approximate inverse and products with G.
//
//   residual         r = y − (G + ε) x
//   backward error   ‖r‖ / (‖G + ε‖ ‖x‖ + ‖y‖), in 2-norms: unit-free, and small also where rows are redundant
//   refinement       x ← x + (G + ε)⁻¹ r as long as that brings the backward error down
//   fallbacks        flexible GMRES with a factor of larger damping (krylov.h), then a dense factor (dense_factor.h)
//
// An operator A that is refined has
//
//   rows()                        multiply(x, y): y ← G x            invert(y, x): x ≈ (G + ε)⁻¹ y
//   shift(): what multiply leaves      largest_shift(): largest ε      norm(): ‖G‖ from below
//       out; (x, r) is row r of ε x        that any row has in all
//   has_fallbacks; if so fallbacks(), and raise_damping(share): from now on invert has a damping of at least this
//       share of ‖G‖
//
// x, y of multiply and invert are one column, numbers of type T, or a pack of columns. ε is a diagonal, or square
// blocks that need not be symmetric (block_damping.h). Used by the matrix-free operator (delassus.h) and by those with
// a matrix (explicit/operator.h).
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "operators/accuracy.h"
#include "operators/dense_factor.h"
#include "operators/krylov.h"
#include "operators/strips.h"

namespace delassus {

// The least damping, as a share of ‖G‖, with which factors keep some digits.
template <class Real>
inline constexpr Real least_damping_share = 1400 * std::numeric_limits<Real>::epsilon();

template <class T>
inline T larger_of(const T& a, const T& b) {
  return a > b ? a : b;
}

// ε of a number per row, as shift() has it.
template <class T>
struct DiagonalShift {
  const T* values;
  template <class C>
  C operator()(const C* x, int r) const {
    return x[r] * values[r];
  }
};

// ‖r‖², ‖ε x‖², ‖y‖² of r = y − (G + ε) x; ε the largest of all rows, so that squares are of one unit.
template <class T, class C>
struct ResidualNorms {
  using Real = real_of<T>;
  T shift;
  C rr{}, xx{}, yy{};

  // the backward error of a lane, where `size` is ‖G + ε‖; infinite where x is no number
  Real error(const T& size, int k) const {
    const int l = lanes_of<T> == 1 ? 0 : k;
    const Real scale = lane(size, l) / lane(shift, l) * std::sqrt(lane(xx, k)) + std::sqrt(lane(yy, k));
    if (scale > 0) return std::sqrt(lane(rr, k)) / scale;
    return lane(rr, k) == 0 ? Real(0) : std::numeric_limits<Real>::infinity();
  }
  // whether the squares are far from the ends of the range of numbers: y is neither zero nor tiny nor huge
  bool representable(int k) const {
    constexpr Real room = sizeof(Real) == 8 ? Real(1e100) : Real(1e10);
    return lane(yy, k) * room >= 1 && lane(yy, k) <= room;
  }
};

// ‖G‖ from below by a few power iterations; x is memory of a number a row.
template <class T, class A>
T estimate_norm(A& G, T* x) {
  using Real = real_of<T>;
  const int rows = G.rows();
  T norm{};
  for (int r = 0; r < rows; ++r) x[r] = constant<T>(Real(1) + Real(0.1) * Real(r % 7));
  for (int n = 0; n < 4; ++n) {
    T before = constant<T>(std::numeric_limits<Real>::min()), after{};
    for (int r = 0; r < rows; ++r) before += x[r] * x[r];
    const T scale = Real(1) / square_root(before);
    for (int r = 0; r < rows; ++r) x[r] = x[r] * scale;
    G.multiply(static_cast<const T*>(x), x);
    for (int r = 0; r < rows; ++r) after += x[r] * x[r];
    norm = larger_of(norm, square_root(after));
  }
  return norm;
}

// Memory of one column or of a pack of them, a row each.
template <class C>
struct RefinementBuffers {
  std::vector<C> residual, correction, best;  // best: solution so far

  void resize(std::size_t rows) {
    for (auto* v : {&residual, &correction, &best}) v->resize(rows);
  }
  std::size_t bytes() const { return 3 * residual.size() * sizeof(C); }
};

// Memory, which nothing is kept in between two calls.
template <class T>
struct RefinementMemory : RefinementBuffers<T> {
  RefinementBuffers<StripPack<T>> columns;   // empty where a pack of columns is one
  std::vector<T> unit;                       // a row: right-hand side of size one
  std::vector<T> x, y;                       // a row: one of several columns
  std::unique_ptr<FlexibleGmres<T>> krylov;  // where refinement was not enough

  void resize(std::size_t rows) {
    if (rows != unit.size()) krylov.reset();  // it is made for so many rows
    RefinementBuffers<T>::resize(rows);
    unit.resize(rows);
    if constexpr (strip_lanes<T> > 1) {
      columns.resize(rows);
      x.resize(rows);
      y.resize(rows);
    }
  }
  template <class C>
  RefinementBuffers<C>& buffers() {
    if constexpr (std::is_same_v<C, T>)
      return *this;
    else
      return columns;
  }
  std::size_t bytes() const {
    return RefinementBuffers<T>::bytes() + columns.bytes() + (unit.size() + x.size() + y.size()) * sizeof(T) +
           (krylov ? krylov->bytes() : 0);
  }
};

// What solutions needed since damping was set, and is kept for the next ones.
enum class Fallback { none, krylov, dense };
template <class T, bool symmetric = true>
struct Fallbacks {
  using Dense = DenseFactor<T, symmetric>;
  Fallback reached = Fallback::none;
  std::unique_ptr<Dense> dense;
  std::size_t bytes() const { return dense ? dense->bytes() : 0; }
};

template <class T>
class Refinement {
 public:
  using Real = real_of<T>;

  // Operators that never work at the same time may share the memory, which outlives them.
  explicit Refinement(RefinementMemory<T>& memory) : memory_(memory) {}

  // x ← (G + ε)⁻¹ y of one column or a pack of them. Returns the largest backward error of a column, or the goal where
  // that is met; zero if nothing was refined.
  template <class A, class C>
  T solve(A& G, const C* y, C* x, const Accuracy<Real>& wanted) {
    G.invert(y, x);
    if (wanted.refinements == 0) return T{};
    if constexpr (std::is_same_v<C, T>)
      return refine(G, y, x, wanted);
    else
      return refine_columns(G, y, x, wanted);
  }

  // Backward errors of the columns of X for Y, rows × columns; of a pack of states one a lane.
  template <class A>
  void find_errors(A& G, const T* Y, const T* X, int columns, T* errors) {
    const T size = size_of(G);
    T *x = memory_.best.data(), *y = memory_.correction.data();
    for (int c = 0; c < columns; ++c) {
      // both over the larger of ‖y‖ and ‖G + ε‖ ‖x‖, so that squares are numbers
      T largest{};
      for (int r = 0; r < G.rows(); ++r) {
        x[r] = X[std::size_t(r) * columns + c], y[r] = Y[std::size_t(r) * columns + c];
        largest = larger_of(largest, larger_of(larger_of(y[r], T(-y[r])), T(larger_of(x[r], T(-x[r])) * size)));
      }
      const T scale = Real(1) / (largest > T{} ? largest : constant<T>(1));
      for (int r = 0; r < G.rows(); ++r) x[r] *= scale, y[r] *= scale;
      const auto norms = find_residual(G, y, x, memory_.residual.data());
      for (int k = 0; k < lanes_of<T>; ++k) lane(errors[c], k) = norms.error(size, k);
    }
  }

 private:
  template <class C>
  using NormsOf = ResidualNorms<T, C>;
  using Norms = NormsOf<T>;

  template <class A>
  static T size_of(A& G) {
    return larger_of(G.largest_shift(), G.norm());
  }
  static bool all_within(const T& errors, Real limit) {
    bool within = true;
    for (int k = 0; k < lanes_of<T>; ++k) within = within && lane(errors, k) <= limit;
    return within;
  }

  // r ← y − (G + ε) x
  template <class A, class C>
  static NormsOf<C> find_residual(A& G, const C* y, const C* x, C* r) {
    NormsOf<C> norms{G.largest_shift()};
    const auto shift = G.shift();
    G.multiply(x, r);
    for (int i = 0; i < G.rows(); ++i) {
      const C scaled = x[i] * norms.shift;
      r[i] = y[i] - r[i] - shift(x, i);
      norms.rr += r[i] * r[i];
      norms.xx += scaled * scaled;
      norms.yy += y[i] * y[i];
    }
    return norms;
  }

  // Corrects x as long as that helps, lane by lane; a correction that does not is taken back, and what meets the goal
  // stays as it is. The residual of x and its norms are there. Returns the errors; n: how many corrections were made.
  template <class A, class C>
  C correct(A& G, const C* y, C* x, const Accuracy<Real>& wanted, NormsOf<C> norms, int& n) {
    auto& b = memory_.template buffers<C>();
    C best = constant<C>(std::numeric_limits<Real>::infinity());
    for (n = 0;; ++n) {
      if (n > 0) norms = find_residual(G, y, static_cast<const C*>(x), b.residual.data());
      const bool go_on = keep_better(norms, size_of(G), G.rows(), x, wanted.goal, best);
      if (!go_on || n == wanted.refinements) return best;
      G.invert(static_cast<const C*>(b.residual.data()), b.correction.data());
      for (int i = 0; i < G.rows(); ++i) x[i] += b.correction[i];
    }
  }

  // Refines x and, where that is not enough, falls back. ‖G + ε‖ is at least ε, and is estimated only where that is not
  // enough. Returns the errors.
  template <class A>
  T refine(A& G, const T* y, T* x, const Accuracy<Real>& wanted, bool scaled = false) {
    const Norms norms = find_residual(G, y, static_cast<const T*>(x), memory_.residual.data());
    bool enough = true, representable = true;
    for (int k = 0; k < lanes_of<T>; ++k) {
      enough = enough && norms.error(norms.shift, k) <= wanted.goal;
      representable = representable && norms.representable(k);
    }
    if (!representable && !scaled) return refine_scaled(G, y, x, wanted);
    if (enough) return constant<T>(wanted.goal);
    int n = 0;
    T best = correct(G, y, x, wanted, norms, n);
    if constexpr (A::has_fallbacks) {
      if (!all_within(best, wanted.limit)) fall_back(G, y, x, wanted, best);
      // the best of several may be so by luck
      if ((n > 1 || !all_within(best, wanted.goal)) && !std::isinf(wanted.limit)) add_rounding(G, y, x, best);
    }
    return best;
  }

  // The same of a pack of columns, side by side; those that this is not enough for go on one by one. Returns the
  // largest error.
  template <class A, class C>
  T refine_columns(A& G, const C* y, C* x, const Accuracy<Real>& wanted) {
    const auto norms = find_residual(G, y, static_cast<const C*>(x), memory_.columns.residual.data());
    bool enough = true, representable[lanes_of<C>], zero[lanes_of<C>];
    for (int k = 0; k < lanes_of<C>; ++k) {
      representable[k] = norms.representable(k);
      zero[k] = !representable[k] && is_zero(y, k, G.rows());
      enough = enough && (zero[k] || (representable[k] && norms.error(norms.shift, k) <= wanted.goal));
    }
    // a factor that is not finite makes NaN of zero, too
    const auto clear = [&] {
      for (int k = 0; k < lanes_of<C>; ++k)
        if (zero[k])
          for (int i = 0; i < G.rows(); ++i) lane(x[i], k) = 0;
    };
    T worst = wanted.goal;
    if (enough) {
      clear();
      return worst;
    }
    int n = 0;
    C best = correct(G, y, x, wanted, norms, n);
    clear();
    bool lucky = n > 1, alone[lanes_of<C>];
    for (int k = 0; k < lanes_of<C>; ++k) {
      if (zero[k]) lane(best, k) = 0;
      const bool beyond = A::has_fallbacks && !(lane(best, k) <= wanted.limit);
      alone[k] = !zero[k] && (beyond || !representable[k]);
      lucky = lucky || !(lane(best, k) <= wanted.goal);
    }
    if (A::has_fallbacks && lucky && !std::isinf(wanted.limit)) add_rounding(G, y, x, best);
    for (int k = 0; k < lanes_of<C>; ++k) {
      if (zero[k]) continue;
      if (alone[k]) {
        for (int i = 0; i < G.rows(); ++i) memory_.x[i] = lane(x[i], k), memory_.y[i] = lane(y[i], k);
        lane(best, k) = refine(G, static_cast<const T*>(memory_.y.data()), memory_.x.data(), wanted);
        for (int i = 0; i < G.rows(); ++i) lane(x[i], k) = memory_.x[i];
      }
      worst = larger_of(worst, T(lane(best, k)));
    }
    return worst;
  }
  template <class C>
  static bool is_zero(const C* y, int k, int rows) {
    for (int i = 0; i < rows; ++i)
      if (lane(y[i], k) != 0) return false;
    return true;
  }

  // The same for y of a size whose squares are no numbers, with y / max |y|, state by state; or for no y at all.
  template <class A>
  T refine_scaled(A& G, const T* y, T* x, const Accuracy<Real>& wanted) {
    T size{};
    for (int r = 0; r < G.rows(); ++r) size = larger_of(size, larger_of(y[r], T(-y[r])));
    const T scale = size > T{} ? size : constant<T>(1);
    T* unit = memory_.unit.data();
    for (int r = 0; r < G.rows(); ++r) unit[r] = y[r] / scale;
    G.invert(static_cast<const T*>(unit), x);
    const T errors = refine(G, static_cast<const T*>(unit), x, wanted, true);
    for (int r = 0; r < G.rows(); ++r) x[r] *= scale;
    return errors;
  }

  // Keeps what is better than the best so far, takes back what is not, or what came after the goal was met: `best` are
  // the errors of the former, infinite where there is none. What is not a number is never better. Returns whether some
  // lane gained and is not there yet.
  template <class C>
  bool keep_better(const NormsOf<C>& norms, const T& size, int rows, C* x, Real goal, C& best) {
    auto& kept = memory_.template buffers<C>().best;
    bool go_on = false;
    for (int k = 0; k < lanes_of<C>; ++k) {
      const Real e = norms.error(size, k);
      if (e < lane(best, k) && !(lane(best, k) <= goal)) {
        for (int i = 0; i < rows; ++i) lane(kept[i], k) = lane(x[i], k);
        go_on = go_on || e > goal;
        lane(best, k) = e;
      } else if (!std::isinf(lane(best, k))) {
        for (int i = 0; i < rows; ++i) lane(x[i], k) = lane(kept[i], k);
      }
    }
    return go_on;
  }

  // Residuals are rounded too: they are measured once more, of x / 3 and y / 3, and what differs counts twice.
  template <class A, class C>
  void add_rounding(A& G, const C* y, const C* x, C& best) {
    constexpr Real third = Real(1) / 3;
    const auto shift = G.shift();
    auto& b = memory_.template buffers<C>();
    C *first = b.best.data(), *part = b.correction.data(), *again = b.residual.data();
    find_residual(G, y, x, first);
    for (int r = 0; r < G.rows(); ++r) part[r] = x[r] * third;
    G.multiply(static_cast<const C*>(part), again);
    NormsOf<C> change{G.largest_shift()};
    for (int r = 0; r < G.rows(); ++r) {
      const C scaled = x[r] * change.shift;
      const C d = first[r] - (y[r] * third - again[r] - shift(static_cast<const C*>(part), r)) * Real(3);
      change.rr += d * d;
      change.xx += scaled * scaled;
      change.yy += y[r] * y[r];
    }
    const T size = size_of(G);
    for (int k = 0; k < lanes_of<C>; ++k) lane(best, k) += 2 * change.error(size, k);
  }

  // Where the factor has lost its digits: Krylov iterations with a factor of larger damping and, where not even these
  // converge and rows are few, a dense factor. What was made is kept for the next right-hand sides. x, best: the best
  // solutions so far and their errors. Memory is made when it is needed first.
  template <class A>
  void fall_back(A& G, const T* y, T* x, const Accuracy<Real>& wanted, T& best) {
    const int rows = G.rows();
    const T size = size_of(G);
    auto& [reached, dense] = G.fallbacks();
    using Dense = typename std::remove_cvref_t<decltype(G.fallbacks())>::Dense;
    // what is hardly better than nothing is no start
    for (int k = 0; k < lanes_of<T>; ++k)
      if (!(lane(best, k) < Real(0.5))) {
        for (int i = 0; i < rows; ++i) lane(x[i], k) = 0;
        lane(best, k) = std::numeric_limits<Real>::infinity();
      }

    if (reached == Fallback::none) {
      G.raise_damping(std::sqrt(std::numeric_limits<Real>::epsilon()));
      reached = Fallback::krylov;
    }
    const auto damped_product = [&](const T* v, T* w) {
      const auto shift = G.shift();
      G.multiply(v, w);
      for (int i = 0; i < rows; ++i) w[i] += shift(v, i);
    };
    if (reached == Fallback::krylov) {
      if (!memory_.krylov) memory_.krylov = std::make_unique<FlexibleGmres<T>>(rows);
      improve(G, y, x, wanted, size, best, [&](const Norms& norms) {
        memory_.krylov->cycle(
            memory_.correction.data(), x, damped_product, [&](const T* v, T* z) { G.invert(v, z); },
            [&](const T& rr, const T* trial) {
              Norms then{norms.shift, rr, {}, norms.yy};
              for (int i = 0; i < rows; ++i) then.xx += trial[i] * trial[i] * (norms.shift * norms.shift);
              bool enough = true;
              for (int k = 0; k < lanes_of<T>; ++k) enough = enough && then.error(size, k) <= wanted.goal / 4;
              return enough;
            });
      });
      if (all_within(best, wanted.limit) || rows > Dense::max_rows) return;
      if (!dense) dense = std::make_unique<Dense>(rows);
      dense->factorize(damped_product, T(G.norm() * least_damping_share<Real>));
      reached = Fallback::dense;
    }
    improve(G, y, x, wanted, size, best,
            [&, &dense = dense](const Norms&) { dense->correct(memory_.correction.data(), x); });
  }
  // Steps from the best solutions so far until these are within the goal or no longer halve their errors; a step finds
  // their residual in `correction` and changes x.
  template <class A, class Step>
  void improve(A& G, const T* y, T* x, const Accuracy<Real>& wanted, const T& size, T& best, Step&& step) {
    constexpr int max_steps = 20;
    for (int n = 0;; ++n) {
      const T before = best * Real(0.5);
      const Norms norms = find_residual(G, y, static_cast<const T*>(x), memory_.residual.data());
      keep_better(norms, size, G.rows(), x, wanted.goal, best);
      bool gained = n == 0;
      for (int k = 0; k < lanes_of<T>; ++k)
        gained = gained || (lane(best, k) <= lane(before, k) && lane(best, k) > wanted.goal);
      if (!gained || all_within(best, wanted.goal) || n == max_steps) return;
      std::copy(memory_.residual.begin(), memory_.residual.end(), memory_.correction.begin());
      step(norms);
    }
  }

  RefinementMemory<T>& memory_;
};

}  // namespace delassus
