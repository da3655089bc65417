#include "operators/block_inverse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace delassus {

template <class Real>
bool invert_block(int n, const Real* S, Real* B, int* exchanged) {
  const auto row = [n, B](int r) { return B + std::size_t(r) * n; };
  std::copy_n(S, std::size_t(n) * n, B);
  for (int k = 0; k < n; ++k) {
    // the largest pivot of column k
    int p = k;
    for (int r = k + 1; r < n; ++r)
      if (std::abs(row(r)[k]) > std::abs(row(p)[k])) p = r;
    exchanged[k] = p;
    if (!(std::abs(row(p)[k]) > 0)) return false;
    if (p != k) std::swap_ranges(row(k), row(k) + n, row(p));

    // row k over its pivot, and away from all others; column k becomes that of the inverse
    const Real inverse = 1 / row(k)[k];
    row(k)[k] = 1;
    for (int c = 0; c < n; ++c) row(k)[c] *= inverse;
    for (int r = 0; r < n; ++r) {
      if (r == k) continue;
      const Real l = row(r)[k];
      row(r)[k] = 0;
      for (int c = 0; c < n; ++c) row(r)[c] -= l * row(k)[c];
    }
  }
  // rows exchanged of S are columns exchanged of its inverse
  for (int k = n; k-- > 0;)
    if (exchanged[k] != k)
      for (int r = 0; r < n; ++r) std::swap(row(r)[k], row(r)[exchanged[k]]);
  return true;
}

template <class Real>
bool is_well_conditioned(int n, const Real* S, const Real* B) {
  constexpr Real largest_condition = Real(0.01) / std::numeric_limits<Real>::epsilon();
  const auto at = [n](int r, int c) { return std::size_t(r) * n + c; };
  std::vector<Real> row(std::size_t(n), 0), column(std::size_t(n), 0);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) row[r] = std::max(row[r], std::abs(S[at(r, c)]));
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) column[c] = std::max(column[c], std::abs(S[at(r, c)]) / row[r]);
  Real forward = 0, backward = 0;
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) {
      const Real s = S[at(r, c)] / row[r] / column[c], b = B[at(r, c)] * column[r] * row[c];
      forward += s * s;
      backward += b * b;
    }
  return std::sqrt(forward) * std::sqrt(backward) <= largest_condition;
}

template <class Real>
void invert_block_limited(int n, const Real* S, Real floor, Real* B, Real* memory) {
  Real *A = memory, *V = memory + std::size_t(n) * n;
  const auto at = [n](int r, int c) { return std::size_t(r) * n + c; };
  // A ← S V / size with orthogonal columns, V a product of rotations; A and V by columns
  Real size = 0;
  for (std::size_t k = 0; k < at(n, 0); ++k) size = std::max(size, std::abs(S[k]));
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) A[at(c, r)] = S[at(r, c)] / size, V[at(c, r)] = Real(r == c);
  constexpr int max_sweeps = 30;
  for (int sweep = 0, turned = 1; turned && sweep < max_sweeps; ++sweep) {
    turned = 0;
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < n; ++j) {
        Real a = 0, b = 0, d = 0;
        for (int k = 0; k < n; ++k) {
          a += A[at(i, k)] * A[at(i, k)];
          b += A[at(j, k)] * A[at(j, k)];
          d += A[at(i, k)] * A[at(j, k)];
        }
        if (!(std::abs(d) > std::numeric_limits<Real>::epsilon() * std::sqrt(a * b))) continue;
        turned = 1;
        const Real z = (b - a) / (2 * d), t = std::copysign(Real(1), z) / (std::abs(z) + std::sqrt(1 + z * z));
        const Real c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Real* M : {A, V})
          for (int k = 0; k < n; ++k) {
            Real &x = M[at(i, k)], &y = M[at(j, k)];
            const Real was = x;
            x = c * was - s * y;
            y = s * was + c * y;
          }
      }
  }
  // B = Σ v max(σ, floor)⁻¹ uᵀ,   u = S v / σ
  std::fill_n(B, at(n, 0), Real(0));
  for (int k = 0; k < n; ++k) {
    Real squares = 0;
    for (int r = 0; r < n; ++r) squares += A[at(k, r)] * A[at(k, r)];
    const Real sigma = std::sqrt(squares), weight = 1 / (sigma * std::max(sigma * size, floor));
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < n; ++c) B[at(r, c)] += V[at(k, r)] * A[at(k, c)] * weight;
  }
}

#define DELASSUS_BLOCK_INVERSE(Real)                                \
  template bool invert_block(int, const Real*, Real*, int*);        \
  template bool is_well_conditioned(int, const Real*, const Real*); \
  template void invert_block_limited(int, const Real*, Real, Real*, Real*);
DELASSUS_BLOCK_INVERSE(double)
DELASSUS_BLOCK_INVERSE(float)

}  // namespace delassus
