#include "simulator/loop_elimination.h"

#include <algorithm>

#include "dense/product.h"
#include "dense/vectors.h"

namespace delassus {

ContactProblem LoopElimination::eliminate(const RowMatrix& matrix, const ForceSets& sets, const double* g, int loops,
                                          LoopClosure& closure) {
  loops_ = loops;
  others_ = sets.rows - loops;
  const std::size_t rows = std::size_t(sets.rows), l = std::size_t(loops_), c = std::size_t(others_);
  const double* G = matrix.numbers();

  // W = (G_ll + ε)⁻¹ G_lc
  W_.resize(l * c);
  for (std::size_t r = 0; r < l; ++r) std::copy_n(G + r * rows + l, c, W_.data() + r * c);
  closure.solve(others_, W_.data());

  // G_cc − G_cl W, g_c − Wᵀ g_l
  G_.resize(c * c);
  g_.resize(c);
  for (std::size_t r = 0; r < c; ++r) std::copy_n(G + (l + r) * rows + l, c, G_.data() + r * c);
  dense::subtract_product<double>(others_, others_, loops_, {G + l * rows, std::ptrdiff_t(rows), 1}, W_.data(), others_,
                                  G_.data(), others_);
  std::copy_n(g + l, c, g_.data());
  for (std::size_t r = 0; r < l; ++r)
    for (std::size_t k = 0; k < c; ++k) g_[k] -= W_[r * c + k] * g[r];

  // sets of the other rows, by their numbers among themselves
  sets_.rows = others_;
  sets_.cones.clear();
  sets_.intervals.clear();
  for (const auto& cone : sets.cones) sets_.cones.push_back({cone.row - loops_, cone.friction, cone.rows});
  for (const auto& i : sets.intervals)
    if (i.row >= loops_) sets_.intervals.push_back({i.row - loops_, i.lower, i.upper});

  map_.look_at(G_.data(), others_, matrix.diagonal().data() + loops_);
  return {map_, g_.data(), sets_};
}

void LoopElimination::recover(const RowMatrix& matrix, const double* g, LoopClosure& closure, double* lambda,
                              double* sigma) {
  // g + G_c λ_c, which the loops' own impulses answer
  const int rows = loops_ + others_;
  with_.resize(std::size_t(rows));
  l_.assign(std::size_t(rows), 0.0);
  dense::multiply_vector(rows, others_, matrix.numbers() + loops_, rows, lambda + loops_, with_.data());
  for (int r = 0; r < rows; ++r) with_[std::size_t(r)] += g[r];
  closure.close(with_.data(), l_.data(), sigma);
  std::copy_n(l_.data(), loops_, lambda);
}

}  // namespace delassus
