// The Delassus operator G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹, no matrix formed.
//
//   G λ        forces Jᵀλ on links and joints → M⁻¹ by elimination → accelerations of the rows: one backward, one forward sweep
//   (G + ε)⁻¹  = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹, by the matrix inversion lemma: the same sweeps on another factor
//
// "Matrix-Free Delassus Operations", sections IV and V. The lemma cancels when ε is small; `solve` refines with G itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "constraints/constraints.h"
#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"
#include "dynamics/solve.h"
#include "operators/elimination.h"

namespace delassus {

// Memory of one column, or of a pack of columns, on its way through the sweeps.
template <class C>
struct Passage {
  std::vector<Vec6<C>> f, a;        // a link
  std::vector<C> u, nu;             // a velocity
  std::vector<C> in, out;           // a row or a velocity, whichever are more
  std::vector<C> rest, part, best;  // a row: residual, correction, best solution so far

  void resize(std::size_t links, std::size_t velocities, std::size_t rows) {
    f.resize(links), a.resize(links);
    u.resize(velocities), nu.resize(velocities);
    const std::size_t most = rows > velocities ? rows : velocities;
    in.resize(most), out.resize(most);
    rest.resize(rows), part.resize(rows), best.resize(rows);
  }
  std::size_t bytes() const { return (f.size() + a.size()) * sizeof(Vec6<C>) + (u.size() + nu.size() + 2 * in.size() + 3 * rest.size()) * sizeof(C); }
};

template <class T>
class Delassus {
 public:
  using Real = real_of<T>;
  using Columns = LinkPack<T>;

  Delassus(const Model<Real>& model, ConstraintSet<Real> constraints) : model_(model), set_(std::move(constraints)), w_(model) {
    std::vector<int> parent, velocities;
    for (const auto& link : model.links) parent.push_back(link.parent), velocities.push_back(link.nv);
    std::vector<std::vector<int>> groups;
    for (const auto& c : set_.constraints) {
      std::vector<int> group;
      for (int t = 0; t < c.terms; ++t) group.push_back(set_.terms[c.term + t].link);
      if (group.size() > 1) groups.push_back(std::move(group));
    }
    loose_ = plan_elimination(parent, velocities, {});
    coupled_ = plan_elimination(parent, velocities, groups);
    for (const auto& c : set_.constraints)
      for (int t = 0; t < c.terms; ++t)
        for (int s = 0; s < c.terms; ++s)
          if (const int block = s == t ? -1 : coupled_.find(set_.terms[c.term + t].link, set_.terms[c.term + s].link); block >= 0)
            products_.push_back({c.term + t, c.term + s, block, c.row, c.rows});
    K_.resize(set_.K_size);
    mass_.resize(model.links.size(), std::size_t(model.nv), loose_);
    damped_.resize(model.links.size(), std::size_t(model.nv), coupled_);
    compliance_.resize(std::size_t(set_.rows));
    shift_.resize(std::size_t(set_.rows));
    factored_.resize(std::size_t(set_.rows));
    one_.resize(model.links.size(), std::size_t(model.nv), std::size_t(set_.rows));
    many_.resize(model.links.size(), std::size_t(model.nv), std::size_t(set_.rows));
  }

  int rows() const { return set_.rows; }
  const EliminationPlan& plan() const { return coupled_; }
  std::size_t bytes() const {
    return K_.size() * sizeof(Vec6<T>) + mass_.bytes() + damped_.bytes() + one_.bytes() + many_.bytes() + 3 * shift_.size() * sizeof(T) +
           w_.S.size() * sizeof(Vec6<T>) + model_.links.size() * (sizeof(Pose<T>) + sizeof(Inertia<T>));
  }

  // Numeric work: kinematics, rows, factor of M. Returns whether M is regular.
  bool update(const T* q) {
    kinematics(model_, w_, q);
    evaluate(model_, set_, w_, q, K_.data());
    world_inertias(w_);
    for (std::size_t i = 0; i < model_.links.size(); ++i) mass_.H[i] = articulated(w_.inertia[int(i)]);
    for (int k = 0; k < model_.nv; ++k) mass_.pivot[k] = constant<T>(model_.armature[k]);
    eliminate_all(model_, loose_, w_.S, mass_);
    norm_ = norm();
    return is_regular(model_, w_, [&](int k) { return mass_.Dinv[k]; });
  }

  void set_compliance(const T* compliance) {
    for (int r = 0; r < set_.rows; ++r) compliance_[r] = compliance[r];
  }

  // Numeric work that depends on damping: factor of M + Jᵀ R J. Damping plus compliance is positive in every row. Where it is so small against G
  // that the lemma would cancel to nothing, the factor has a larger one, and refinement makes up for it.
  void set_damping(const T* damping) {
    const T least = norm_ * (1400 * std::numeric_limits<Real>::epsilon());
    for (int r = 0; r < set_.rows; ++r) {
      shift_[r] = compliance_[r] + damping[r];
      factored_[r] = larger(shift_[r], least);
    }
    for (std::size_t i = 0; i < model_.links.size(); ++i) damped_.H[i] = articulated(w_.inertia[int(i)]);
    for (auto& block : damped_.coupling) block = Mat6<T>{};
    for (int k = 0; k < model_.nv; ++k) damped_.pivot[k] = constant<T>(model_.armature[k]);

    // Jᵀ R J: on the links themselves, between links, on joints
    for (const auto& c : set_.constraints)
      for (int t = 0; t < c.terms; ++t) {
        const auto& term = set_.terms[c.term + t];
        for (int r = 0; r < c.rows; ++r) downdate(damped_.H[term.link], K_[term.K + r], Real(-1) / factored_[c.row + r]);
      }
    for (const auto& p : products_)
      for (int r = 0; r < p.rows; ++r)
        add_outer(damped_.coupling[p.block], K_[set_.terms[p.first].K + r] * (Real(1) / factored_[p.row + r]), K_[set_.terms[p.second].K + r]);
    for (const auto& j : set_.joint_rows) damped_.pivot[j.velocity] += j.coefficient * j.coefficient / factored_[j.row];
    eliminate_all(model_, coupled_, w_.S, damped_);
  }

  // Y ← G X. X, Y: rows × columns, row-major.
  void apply(const T* X, int columns, T* Y) {
    pass(X, set_.rows, columns, Y, set_.rows, [&](auto& p) { apply_to(p, p.in, p.out); });
  }

  // X ← (G + ε)⁻¹ Y, refined until the normwise backward error is below `tolerance`, at most `most` times. Returns how often.
  int solve(const T* Y, int columns, T* X, int most, Real tolerance) {
    int taken = 0;
    pass(Y, set_.rows, columns, X, set_.rows, [&](auto& p) {
      const int n = refined(p, most, tolerance);
      taken = n > taken ? n : taken;
    });
    return taken;
  }

  // Y ← J X, Jᵀ X, M⁻¹ X
  void jacobian(const T* X, int columns, T* Y) {
    pass(X, model_.nv, columns, Y, set_.rows, [&](auto& p) {
      using C = std::remove_cvref_t<decltype(p.u[0])>;
      for (std::size_t i = 0; i < model_.links.size(); ++i) {
        const auto& link = model_.links[i];
        Vec6<C> a{};
        if (link.parent >= 0) a = p.a[link.parent];
        for (int k = link.iv; k < link.iv + link.nv; ++k) a += w_.S[k] * p.in[k];
        p.a[i] = a;
      }
      for (int k = 0; k < model_.nv; ++k) p.nu[k] = p.in[k];
      project(p, p.out);
    });
  }
  void jacobian_transpose(const T* X, int columns, T* Y) {
    pass(X, set_.rows, columns, Y, model_.nv, [&](auto& p) {
      resolve(p, p.in);
      for (int i = int(model_.links.size()) - 1; i >= 0; --i) {
        const auto& link = model_.links[i];
        for (int k = link.iv; k < link.iv + link.nv; ++k) p.out[k] = p.u[k] + dot(w_.S[k], p.f[i]);
        if (link.parent >= 0) p.f[link.parent] += p.f[i];
      }
    });
  }
  void mass_inverse(const T* X, int columns, T* Y) {
    pass(X, model_.nv, columns, Y, model_.nv, [&](auto& p) {
      using C = std::remove_cvref_t<decltype(p.u[0])>;
      for (auto& f : p.f) f = Vec6<C>{};
      for (int k = 0; k < model_.nv; ++k) p.u[k] = p.in[k];
      substitute(model_, loose_, w_.S, mass_, p.f.data(), p.u.data(), p.a.data(), p.out.data());
    });
  }

 private:
  struct Product {
    int first, second, block, row, rows;  // terms, their coupling, their constraint's rows
  };

  // One or several columns through `work`, which reads p.in and fills p.out.
  template <class F>
  void pass(const T* X, int from, int columns, T* Y, int to, F&& work) {
    constexpr int width = link_lanes<T>;
    if (columns == 1) {
      for (int r = 0; r < from; ++r) one_.in[r] = X[r];
      work(one_);
      for (int r = 0; r < to; ++r) Y[r] = one_.out[r];
      return;
    }
    for (int first = 0; first < columns; first += width) {
      const int count = columns - first < width ? columns - first : width;
      for (int r = 0; r < from; ++r) many_.in[r] = load_columns<T>(X + std::size_t(r) * columns + first, count);
      work(many_);
      for (int r = 0; r < to; ++r) store_columns<T>(Y + std::size_t(r) * columns + first, many_.out[r], count);
    }
  }

  // forces of the rows on links and joints: f = Σ Kᵀ λ, u = Σ c λ
  template <class C>
  void resolve(Passage<C>& p, const std::vector<C>& lambda) const {
    for (auto& f : p.f) f = Vec6<C>{};
    for (auto& u : p.u) u = C{};
    for (const auto& c : set_.constraints)
      for (int t = 0; t < c.terms; ++t) {
        const auto& term = set_.terms[c.term + t];
        Vec6<C> f = p.f[term.link];
        for (int r = 0; r < c.rows; ++r) f += K_[term.K + r] * lambda[c.row + r];
        p.f[term.link] = f;
      }
    for (const auto& j : set_.joint_rows) p.u[j.velocity] += lambda[j.row] * j.coefficient;
  }

  // accelerations of the rows: Σ K a + Σ c ν
  template <class C>
  void project(const Passage<C>& p, std::vector<C>& rows) const {
    for (int r = 0; r < set_.rows; ++r) rows[r] = C{};
    for (const auto& c : set_.constraints)
      for (int t = 0; t < c.terms; ++t) {
        const auto& term = set_.terms[c.term + t];
        for (int r = 0; r < c.rows; ++r) rows[c.row + r] += dot(K_[term.K + r], p.a[term.link]);
      }
    for (const auto& j : set_.joint_rows) rows[j.row] += p.nu[j.velocity] * j.coefficient;
  }

  template <class C>
  void apply_to(Passage<C>& p, const std::vector<C>& x, std::vector<C>& y) const {
    resolve(p, x);
    substitute(model_, loose_, w_.S, mass_, p.f.data(), p.u.data(), p.a.data(), p.nu.data());
    project(p, y);
    for (int r = 0; r < set_.rows; ++r) y[r] += x[r] * compliance_[r];
  }

  // λ = R (y − J (M + Jᵀ R J)⁻¹ Jᵀ R y)
  template <class C>
  void invert_to(Passage<C>& p, const std::vector<C>& y, std::vector<C>& x) const {
    for (int r = 0; r < set_.rows; ++r) x[r] = y[r] / factored_[r];
    resolve(p, x);
    substitute(model_, coupled_, w_.S, damped_, p.f.data(), p.u.data(), p.a.data(), p.nu.data());
    project(p, x);
    for (int r = 0; r < set_.rows; ++r) x[r] = (y[r] - x[r]) / factored_[r];
  }

  // Solves for p.in, then refines p.out by its residual as long as that brings the backward error
  // ‖y − (G + ε) x‖ / (‖G + ε‖ ‖x‖ + ‖y‖) down, lane by lane; a correction that does not is taken back. Returns the corrections tried.
  template <class C>
  int refined(Passage<C>& p, int most, Real tolerance) const {
    constexpr int lanes = lanes_of<C>;
    invert_to(p, p.in, p.out);
    Real best[lanes];
    T largest = norm_;  // ‖G + C + ε‖, from below
    for (int r = 0; r < set_.rows; ++r) largest = larger(largest, shift_[r]);
    for (int n = 0; n <= most && most > 0; ++n) {
      apply_to(p, p.out, p.rest);
      C rr{}, xx{}, yy{};
      for (int r = 0; r < set_.rows; ++r) {
        p.rest[r] = p.in[r] - p.rest[r] - p.out[r] * (shift_[r] - compliance_[r]);
        rr += p.rest[r] * p.rest[r];
        xx += p.out[r] * p.out[r];
        yy += p.in[r] * p.in[r];
      }
      bool go_on = false;
      for (int k = 0; k < lanes; ++k) {
        const Real size = lane(largest, lanes_of<T> == 1 ? 0 : k) * std::sqrt(lane(xx, k)) + std::sqrt(lane(yy, k));
        const Real error = size > 0 ? std::sqrt(lane(rr, k)) / size : 0;
        const bool better = n == 0 || error < best[k];
        for (int r = 0; r < set_.rows; ++r) better ? lane(p.best[r], k) = lane(p.out[r], k) : lane(p.out[r], k) = lane(p.best[r], k);
        go_on |= better && error > tolerance;
        if (better) best[k] = error;
      }
      if (!go_on || n == most) return n;
      invert_to(p, p.rest, p.part);
      for (int r = 0; r < set_.rows; ++r) p.out[r] += p.part[r];
    }
    return 0;
  }

  static T larger(const T& a, const T& b) { return a > b ? a : b; }

  // ‖J M⁻¹ Jᵀ‖ from below by a few power iterations
  T norm() {
    T size{};
    for (int r = 0; r < set_.rows; ++r) one_.out[r] = constant<T>(Real(1) + Real(0.1) * Real(r % 7));
    for (int n = 0; n < 4; ++n) {
      T before = constant<T>(std::numeric_limits<Real>::min()), after{};
      for (int r = 0; r < set_.rows; ++r) before += one_.out[r] * one_.out[r];
      const T scale = Real(1) / square_root(before);
      for (int r = 0; r < set_.rows; ++r) one_.out[r] = one_.out[r] * scale;
      resolve(one_, one_.out);
      substitute(model_, loose_, w_.S, mass_, one_.f.data(), one_.u.data(), one_.a.data(), one_.nu.data());
      project(one_, one_.out);
      for (int r = 0; r < set_.rows; ++r) after += one_.out[r] * one_.out[r];
      size = larger(size, square_root(after));
    }
    return size;
  }

  const Model<Real>& model_;
  ConstraintSet<Real> set_;
  EliminationPlan loose_, coupled_;
  std::vector<Product> products_;
  Workspace<T> w_;
  std::vector<Vec6<T>> K_;
  Factor<T> mass_, damped_;
  std::vector<T> compliance_, shift_, factored_;  // a row: C, C + ε, what the factor has of it
  T norm_{};
  Passage<T> one_;
  Passage<Columns> many_;
};

}  // namespace delassus
