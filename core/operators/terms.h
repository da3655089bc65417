// Rows with terms: K of every link they act on, one Vec6 per row.
//
//   force f_i += Σ K_iᵀ λ,   projection y = Σ K_i a_i,   stiffness H_ij += K_iᵀ R K_j
#pragma once

#include <vector>

#include "operators/blocks.h"
#include "operators/layout.h"

namespace delassus {

template <class T>
class Terms {
 public:
  using Real = real_of<T>;

  explicit Terms(const Layout<Real>& layout) : layout_(layout), set_(layout.set), K_(layout.set.K_size) {}
  std::size_t bytes() const { return K_.size() * sizeof(Vec6<T>); }
  const Vec6<T>* K() const { return K_.data(); }

  void place(const Model<Real>& model, const Placement<T>& w, const T* q) { evaluate(model, set_, w, q, K_.data()); }

  // visit(row, link, K) of every row of every term
  template <class F>
  void each(F&& visit) const {
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) visit(b.row + r, term.link, K_[term.K + r]);
      }
  }

  template <class C>
  void add_forces(const C* lambda, Vec6<C>* m) const {
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        Vec6<C> f = m[term.link];
        for (int r = 0; r < b.rows; ++r) f += K_[term.K + r] * lambda[b.row + r];
        m[term.link] = f;
      }
  }

  template <class C>
  void project(const Vec6<C>* m, C* rows) const {
    for (const int r : layout_.summed) rows[r] = C{};
    each([&](int row, int link, const Vec6<T>& K) { rows[row] += dot(K, m[link]); });
  }

  void stiffen(const T* stiffness, Sym6<T>* H, Mat6<T>* coupling) const {
    each([&](int row, int link, const Vec6<T>& K) { downdate(H[link], K, -stiffness[row]); });
    for (const auto& p : layout_.products)
      for (int r = 0; r < p.rows; ++r)
        add_outer(coupling[p.block], column(K_[set_.terms[p.second].K + r]),
                  K_[set_.terms[p.first].K + r] * stiffness[p.row + r]);
  }

 private:
  const Layout<Real>& layout_;
  const ConstraintSet<Real>& set_;
  std::vector<Vec6<T>> K_;  // a row of a term
};

}  // namespace delassus
