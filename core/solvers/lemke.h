// Lemke's method for linear complementarity problems, mixed with equations: O(n³) to eliminate the equations, then
// O(m²) per pivot of the m complementary pairs.
//
//   w = M z + q;   w_i = 0, z_i free   for i ∈ F;   w_i ≥ 0, z_i ≥ 0, w_i z_i = 0   for all others
//
// Scaling: rows and columns times powers of two until the largest entry of each is near one; q likewise. Once for the
// elimination and again for the pairs, so that problems that differ only in their equations take the same pivots.
//
// Equations: Gaussian elimination of M_FF with row pivoting; what remains is a problem of the pairs alone, and z_F
// follows from its solution. Where M_FF is singular, columns without a pivot are put last. Such a variable l and a
// remaining equation e are eliminated together with a pair c for which M_ec and M_cl are not zero: e gives z_c, w_c
// gives z_l, and the pair goes on with w_c and z_c exchanged. Where there is no such pair, z_l = 0 and the equation is
// dropped: it depends on the others, or the residual will say that it contradicts them.
//
// Pivots: w = M z + d z₀ + q with d > 0. z₀ enters as far as w ≥ 0 needs; then the complement of what left enters,
// until z₀ leaves. Ties are broken lexicographically: the perturbation q + (ε, ε², …) of row i is read off the columns
// of those w that are not basic, so nothing is stored for it.
//
// Fallback: pivots may end on a ray, with nothing to leave; if M is copositive plus there is then no solution, else
// there may be one. They are then repeated with another d, and with M + δ for the pairs, δ = 1e-9, 1e-6, 1e-3. The
// basis of every attempt is solved anew from M itself where its residual asks for it; the z with the least residual is
// kept, and only the residual decides whether it is a solution.
//
// Cottle, Pang, Stone, "The Linear Complementarity Problem", chapters 2.3 and 4.4, 4.9.
#pragma once

#include <cstddef>
#include <vector>

namespace delassus {

// Whether z is a solution, and if not how the first attempt ended: complementary, but with a residual above the
// tolerance; on a ray; after too many pivots.
enum class Pivoting { solved, inaccurate, ray, limit };

// Pivots and attempts that it took, and the residual of z: z_i ≥ 0 holds exactly, so it is the largest |w_i| of
// equations and of z_i > 0, and of −w_i otherwise.
struct LemkeReport {
  Pivoting outcome;
  int pivots, attempts;
  double residual;
};

class Lemke {
 public:
  explicit Lemke(int capacity);
  int capacity() const { return capacity_; }
  std::size_t bytes() const;

  // M: n × n, row by row. free: n, null for none. z: n, always finite, apart from q. Solved if the residual is at most
  // tolerance times the largest |q|. max_pivots is per attempt; a negative value means 100 plus 10 per pair. Allocates
  // nothing.
  LemkeReport solve(int n, const bool* free, const double* M, const double* q, double* z, double tolerance = 1e-9,
                    int max_pivots = -1);

 private:
  double* row(int i) { return A_.data() + std::size_t(i) * std::size_t(n_ + 1); }
  double* line(int i) { return T_.data() + std::size_t(i) * std::size_t(m_ + 2); }
  void eliminate(bool with_pairs);
  void pair_up();
  Pivoting pivot(double delta, double spread, int max_pivots, int* pivots);
  bool leaves_before(int i, int k);
  void recover(double* z);
  double residual(const bool* free, const double* z) const;

  int capacity_, n_ = 0, m_ = 0;         // of the problem, of its pairs
  int rank_ = 0, paired_ = 0, out_ = 0;  // columns eliminated by a row, with a pair, and all that were to be
  const double *M_ = nullptr, *q_ = nullptr;
  double size_ = 1;                                       // of q, scaled
  std::vector<double> A_, T_;                             // [M | q], eliminated; [M | d | q] of the pairs
  std::vector<double> r_, c_, row_scale_, column_scale_;  // scales of rows and columns, the latter two of the pairs
  std::vector<double> p_, x_, trial_;                     // what leaves as the entering one grows, values by place, z
  std::vector<int> column_, basic_,
      place_;  // variable of a place; of a row of the dictionary; where it is there: its column, or −1 − its row
  std::vector<unsigned char> swapped_, active_;  // pairs that go on with w and z exchanged; F, and pairs with z > 0
};

}  // namespace delassus
