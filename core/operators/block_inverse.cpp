#include "operators/block_inverse.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dense/lu.h"

namespace delassus {

template <class Real>
Real invert_block(int n, const Real* S, Real* B, BlockInverseMemory<Real>& memory) {
  constexpr Real largest_condition = Real(0.01) / std::numeric_limits<Real>::epsilon();
  auto& A = memory.A;
  int* pivots = memory.pivots.data();
  constexpr Real infinite = std::numeric_limits<Real>::infinity();
  const auto at = [n](int r, int c) { return std::size_t(r) * n + c; };
  std::copy_n(S, at(n, 0), A.begin());
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) B[at(r, c)] = Real(r == c);
  if (dense::factor_lu(n, A.data(), n, pivots) < n) return infinite;
  dense::solve_lu(n, static_cast<const Real*>(A.data()), n, static_cast<const int*>(pivots), n, B, n);

  // the largest number of a row, then of a column of rows so scaled
  Real *row = memory.scale.data(), *column = memory.scale.data() + n;
  for (int r = 0; r < n; ++r) {
    row[r] = 0;
    for (int c = 0; c < n; ++c) row[r] = std::max(row[r], std::abs(S[at(r, c)]));
  }
  for (int c = 0; c < n; ++c) {
    column[c] = 0;
    for (int r = 0; r < n; ++r) column[c] = std::max(column[c], std::abs(S[at(r, c)]) / row[r]);
  }
  Real forward = 0, backward = 0;
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) {
      const Real s = S[at(r, c)] / row[r] / column[c], b = B[at(r, c)] * column[r] * row[c];
      forward += s * s;
      backward += b * b;
    }
  const Real condition = std::sqrt(forward * backward);
  return condition <= largest_condition ? condition : infinite;
}

template <class Real>
void invert_block_limited(int n, const Real* S, Real floor, Real* B, BlockInverseMemory<Real>& memory) {
  auto& A = memory.A;
  auto& V = memory.V;
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
        for (auto* M : {&A, &V})
          for (int k = 0; k < n; ++k) {
            Real &x = (*M)[at(i, k)], &y = (*M)[at(j, k)];
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

template double invert_block(int, const double*, double*, BlockInverseMemory<double>&);
template float invert_block(int, const float*, float*, BlockInverseMemory<float>&);
template void invert_block_limited(int, const double*, double, double*, BlockInverseMemory<double>&);
template void invert_block_limited(int, const float*, float, float*, BlockInverseMemory<float>&);

}  // namespace delassus
