// What the explicit algorithms cost: a small linear model, so that one can be chosen before any is run.
//
// A cost is Σ coefficient · count over the counts below, in µs. Counts come from the model and the constraints alone; packs are registers of rows (row_lanes).
// benchmarks/python/explicit.py measures all methods on the benchmark set, compares, and fits the coefficients anew.
#pragma once

#include <array>

#include "operators/explicit/limbs.h"

namespace delassus {

enum class MatrixMethod { ltl, kjr, efpa, pv_osim, pv_osimr, oscm, columns };
enum class InverseMethod { caba_osim, caba_osimf, pv_osimf, ltl, lcaba };
inline constexpr std::array all_matrix_methods{MatrixMethod::ltl, MatrixMethod::kjr, MatrixMethod::efpa, MatrixMethod::pv_osim, MatrixMethod::pv_osimr, MatrixMethod::oscm,
                                               MatrixMethod::columns};
inline constexpr std::array all_inverse_methods{InverseMethod::caba_osim, InverseMethod::caba_osimf, InverseMethod::pv_osimf, InverseMethod::ltl, InverseMethod::lcaba};

struct Costs {
  std::array<double, all_matrix_methods.size()> matrix{};
  std::array<double, all_inverse_methods.size()> inverse{};
  double operator()(MatrixMethod method) const { return matrix[std::size_t(method)]; }
  double operator()(InverseMethod method) const { return inverse[std::size_t(method)]; }
};

template <class Real>
Costs count_costs(const Model<Real>& model, const Layout<Real>& layout, const Limbs& tree);

}  // namespace delassus
