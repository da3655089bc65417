// What the explicit algorithms are expected to take: a small linear model, so that one can be chosen before any is run.
//
//   time = start + common · C + own · V + m² · write      C: scalar operations of kinematics and elimination;
//       V: vector operations of the method itself;  m² entries of the result
//
// Counts come from the model and the constraints alone, multiply-adds, a register of rows (row_lanes) at once; of limbs
// with r rows and v velocities p = ⌈r / lanes⌉ packs:
//
//   C           117 a link, 90 a velocity (not for ltl)
//   pv-osim     limbs 13 p v, free base 36 p;  products: v for every row and pack of columns not before it
//   efpa        limbs 26 p v, free base 72 p;  products: 6 for every row and pack of columns that meet it
//   pv-osimr    limbs 19 v + 72 + 72 p, or as pv-osim where six rows or fewer end the tree;  products as efpa
//   kjr         kernel 90 v;  a pair of links with rows: 13 a velocity and pack on the way, 36 p, products
//   oscm        kernel 90 v;  a link with rows: 49 a velocity below it;  a pair: 36 + 36 p, products
//   columns     a pack of columns: 26 a velocity that moves rows, 12 a row
//   ltl         a velocity of depth d: 7 d for M, d (d / 2 lanes + 3) for its factor,
//               d for every pack of rows it moves;  75 a row;  products as pv-osim
//   folding     rows on several links: a number for every pair of rows on links of a tree, of all but ltl and columns
//   lcaba-osim  a passed link 100, and 40 a neighbour;  a node and link it leads to 36 for every pack of the front and
//               of rows so far;  a block of rows and link of it 36 for every link of the front and pack of it, 6 for
//               every row and pack of rows so far;  probes 2 for every row and pack;  a refinement 1.35 columns
//   inverses    as the matrix they start from; a Cholesky factor and inverse of b rows b³ / 2 lanes + 20 b,
//               from 192 rows on b³ / 5 lanes;  lcaba three times columns
//
// Coefficients [µs] were fitted by benchmarks/python/explicit.py, which measures all methods on the benchmark set and
// checks the choices; those of ltl, lcaba-osim and lcaba, of folding and of writing on mechanisms with loops too
// (`benchmarks/run loops`), where they choose a method within 1.2 times the best.
#pragma once

#include <array>

#include "operators/explicit/limbs.h"
#include "operators/explicit/reach.h"

namespace delassus {

enum class MatrixMethod { ltl, kjr, efpa, pv_osim, pv_osimr, oscm, columns };
enum class InverseMethod { caba_osim, caba_osimf, pv_osimf, ltl, lcaba_osim, lcaba };
inline constexpr std::array all_matrix_methods{MatrixMethod::ltl,     MatrixMethod::kjr,      MatrixMethod::efpa,
                                               MatrixMethod::pv_osim, MatrixMethod::pv_osimr, MatrixMethod::oscm,
                                               MatrixMethod::columns};
inline constexpr std::array all_inverse_methods{InverseMethod::caba_osim,  InverseMethod::caba_osimf,
                                                InverseMethod::pv_osimf,   InverseMethod::ltl,
                                                InverseMethod::lcaba_osim, InverseMethod::lcaba};

// Operations of a method, and its time.
struct Cost {
  double common = 0, own = 0, time = 0;
};

struct Costs {
  std::array<Cost, all_matrix_methods.size()> matrix{};
  std::array<Cost, all_inverse_methods.size()> inverse{};
  const Cost& operator()(MatrixMethod method) const { return matrix[std::size_t(method)]; }
  const Cost& operator()(InverseMethod method) const { return inverse[std::size_t(method)]; }
};

template <class Real>
Costs count_costs(const Model<Real>& model, const Layout<Real>& layout, const Limbs& tree, const ReachPlan& reach);

}  // namespace delassus
