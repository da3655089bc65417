// The Delassus operator G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹, no matrix formed.
//
//   G λ        forces Jᵀλ on links and joints → M⁻¹ by elimination → accelerations of the rows: one backward, one forward sweep
//   (G + ε)⁻¹  = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹, by the matrix inversion lemma: the same sweeps on another factor
//
// "Matrix-Free Delassus Operations", sections IV and V. Sweeps visit only links that carry a constraint and those they hang on. The lemma
// cancels when ε is small; `solve` refines with G itself.
#pragma once

#include <cmath>
#include <limits>
#include <memory>

#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"
#include "dynamics/solve.h"
#include "operators/layout.h"

namespace delassus {

// Memory of one column, or of a pack of columns, on its way through the sweeps.
template <class C>
struct Passage {
  std::vector<Vec6<C>> m;           // a link
  std::vector<C> u;                 // a velocity
  std::vector<C> rest, part, best;  // a row: residual, correction, best solution so far

  void resize(std::size_t links, std::size_t velocities, std::size_t rows) {
    m.resize(links);
    u.resize(velocities);
    rest.resize(rows), part.resize(rows), best.resize(rows);
  }
  std::size_t bytes() const { return m.size() * sizeof(Vec6<C>) + (u.size() + 3 * rest.size()) * sizeof(C); }
};

template <class T>
class Delassus {
 public:
  using Real = real_of<T>;
  using Columns = LinkPack<T>;

  Delassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout) : model_(model), layout_(std::move(layout)), set_(layout_->set), w_(model) {
    const std::size_t links = model.links.size(), nv = std::size_t(model.nv), rows = std::size_t(set_.rows);
    place_.resize(2 * set_.points.size());
    K_.resize(set_.K_size);
    mass_.resize(nv, layout_->loose);
    damped_.resize(nv, layout_->coupled);
    H_.resize(links);
    kept_.resize(std::size_t(layout_->loose.kept));
    coupling_.resize(layout_->coupled.blocks.size());
    size_.resize(std::size_t(w_.inertia.blocks()) * link_lanes<T>);
    composite_.resize(links);
    if (!set_.joint_rows.empty()) pivot_.resize(nv);
    compliance_.resize(rows);
    shift_.resize(rows);
    stiffness_.resize(rows);
    one_.resize(links, nv, rows);
    if constexpr (link_lanes<T> > 1) {
      many_.resize(links, nv, rows);
      in_.resize(std::max(rows, nv));
      out_.resize(std::max(rows, nv));
    }
  }
  Delassus(const Model<Real>& model, ConstraintSet<Real> constraints)
      : Delassus(model, std::make_shared<const Layout<Real>>(model, std::move(constraints))) {}

  int rows() const { return set_.rows; }
  const Layout<Real>& layout() const { return *layout_; }
  std::size_t bytes() const {
    return w_.bytes() + place_.size() * sizeof(Vec3<T>) + K_.size() * sizeof(Vec6<T>) + mass_.bytes() + damped_.bytes() +
           (H_.size() + kept_.size()) * sizeof(Sym6<T>) + coupling_.size() * sizeof(Mat6<T>) + composite_.size() * sizeof(Inertia<T>) +
           (size_.size() + pivot_.size() + 3 * shift_.size()) * sizeof(T) + one_.bytes() + many_.bytes() + (in_.size() + out_.size()) * sizeof(Columns);
  }

  // All numeric work that depends on q alone. Returns whether M is regular.
  bool update(const T* q) {
    place(q);
    prepare();
    return factorize();
  }

  // Its parts: kinematics and rows; inertias, and elimination of the links that no constraint reaches; the rest of M.
  void place(const T* q) {
    kinematics(model_, w_, q);
    place_points(set_, w_, place_.data());
    evaluate(model_, set_, w_, q, K_.data());
  }
  void prepare() {
    const auto& plan = layout_->loose;
    world_inertias(w_);
    norm_known_ = false;
    if (plan.idle == 0) return;
    for (const auto& step : plan.steps)
      if (step.holds_inertia) H_[step.link] = Sym6<T>{};
    eliminate_steps<T>(model_, plan, 0, plan.idle, w_, nullptr, H_.data(), nullptr, mass_);
    for (const auto& step : plan.steps)
      if (step.kept >= 0) kept_[step.kept] = H_[step.link];
  }
  bool factorize() {
    const auto& plan = layout_->loose;
    reset(plan);
    eliminate_steps<T>(model_, plan, plan.idle, int(plan.steps.size()), w_, nullptr, H_.data(), nullptr, mass_);
    const auto Dinv = [&](int k) { return mass_.Dinv[k]; };
    const auto free_Dinv = [&](int tree, int k) { return mass_.free[layout_->free_root[tree]].Dinv[k]; };
    return is_surely_regular(model_, w_, size_.data(), Dinv, free_Dinv) || is_regular(model_, w_, composite_.data(), Dinv, free_Dinv);
  }

  void set_compliance(const T* compliance) {
    for (int r = 0; r < set_.rows; ++r) compliance_[r] = compliance[r];
  }

  // Numeric work that depends on damping: factor of M + Jᵀ R J. Damping plus compliance is positive in every row. Where it is so small against G
  // that the lemma would cancel to nothing, the factor has a larger one, and refinement makes up for it.
  void set_damping(const T* damping) {
    constexpr Real share = 1400 * std::numeric_limits<Real>::epsilon();
    T least = constant<T>(std::numeric_limits<Real>::max());
    for (int r = 0; r < set_.rows; ++r) {
      shift_[r] = compliance_[r] + damping[r];
      least = least < shift_[r] ? least : shift_[r];
    }
    bool small = false;
    for (int l = 0; l < lanes_of<T>; ++l) small = small || !(lane(least, l) >= layout_->bound * share);
    const T floor = small ? norm() * share : T{};
    for (int r = 0; r < set_.rows; ++r) stiffness_[r] = Real(1) / larger(shift_[r], floor);

    const auto& plan = layout_->coupled;
    reset(plan);
    for (auto& block : coupling_) block = Mat6<T>{};
    stiffen_points();
    stiffen_rows();
    for (auto& p : pivot_) p = T{};
    for (const auto& j : set_.joint_rows) pivot_[j.velocity] += stiffness_[j.row] * (j.coefficient * j.coefficient);
    eliminate_steps<T>(model_, plan, plan.idle, int(plan.steps.size()), w_, pivot_.empty() ? nullptr : pivot_.data(), H_.data(), coupling_.data(),
                       damped_);
  }

  // Y ← G X. X, Y: rows × columns, row-major, apart.
  void apply(const T* X, int columns, T* Y) {
    pass(X, set_.rows, columns, Y, set_.rows, [&](auto& p, auto* x, auto* y) { apply_to(p, x, y); });
  }

  // X ← (G + ε)⁻¹ Y, refined until the normwise backward error is below `tolerance`, at most `most` times. Returns how often.
  int solve(const T* Y, int columns, T* X, int most, Real tolerance) {
    int taken = 0;
    pass(Y, set_.rows, columns, X, set_.rows, [&](auto& p, auto* y, auto* x) {
      invert_to(p, y, x);
      if (most == 0) return;
      const int n = refine(p, y, x, most, tolerance);
      taken = n > taken ? n : taken;
    });
    return taken;
  }

  // Y ← J X, Jᵀ X, M⁻¹ X
  void jacobian(const T* X, int columns, T* Y) {
    pass(X, model_.nv, columns, Y, set_.rows, [&](auto& p, auto* x, auto* y) {
      using C = std::remove_cvref_t<decltype(*y)>;
      const auto& plan = layout_->loose;
      for (std::size_t s = plan.steps.size(); s-- > std::size_t(plan.idle);) {
        const auto& step = plan.steps[s];
        Vec6<C> a{};
        if (step.parent >= 0) a = p.m[step.parent];
        for (int k = step.iv; k < step.iv + step.nv; ++k) {
          a += w_.S[k] * x[k];
          p.u[k] = x[k];
        }
        p.m[step.link] = a;
      }
      project(p, y);
    });
  }
  void jacobian_transpose(const T* X, int columns, T* Y) {
    pass(X, set_.rows, columns, Y, model_.nv, [&](auto& p, auto* x, auto* y) {
      for (auto& f : p.m) f = std::remove_cvref_t<decltype(f)>{};
      for (int k = 0; k < model_.nv; ++k) y[k] = std::remove_cvref_t<decltype(*y)>{};
      add_forces(p, x);
      for (const auto& j : set_.joint_rows) y[j.velocity] += x[j.row] * j.coefficient;
      for (const auto& step : layout_->loose.steps) {
        for (int k = step.iv; k < step.iv + step.nv; ++k) y[k] += dot(w_.S[k], p.m[step.link]);
        if (step.parent >= 0) p.m[step.parent] += p.m[step.link];
      }
    });
  }
  void mass_inverse(const T* X, int columns, T* Y) {
    pass(X, model_.nv, columns, Y, model_.nv, [&](auto& p, auto* x, auto* y) {
      for (auto& f : p.m) f = std::remove_cvref_t<decltype(f)>{};
      for (int k = 0; k < model_.nv; ++k) p.u[k] = x[k];
      substitute<true>(layout_->loose, 0, int(layout_->loose.steps.size()), w_, mass_, p.m.data(), p.u.data());
      for (int k = 0; k < model_.nv; ++k) y[k] = p.u[k];
    });
  }

 private:
  static T larger(const T& a, const T& b) { return a > b ? a : b; }

  // What links hold before an elimination: what idle links handed down.
  void reset(const EliminationPlan& plan) {
    for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s) {
      const auto& step = plan.steps[s];
      if (step.holds_inertia) H_[step.link] = step.kept >= 0 ? kept_[step.kept] : Sym6<T>{};
    }
  }

  // Jᵀ R J of points: those of equal stiffness r in their three rows are point masses r at p, whatever their axes, and add up; else row by row.
  void stiffen_points() {
    T uneven{};
    for (const auto& point : set_.points) {
      const T *r = &stiffness_[point.row], a = r[1] - r[0], b = r[2] - r[0];
      uneven += a * a + b * b;
    }
    bool even = true;
    for (int l = 0; l < lanes_of<T>; ++l) even = even && lane(uneven, l) == 0;

    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      const auto& touching = layout_->touching[g];
      if (even)
        stiffen_evenly(group, touching);
      else
        for (int c = group.first; c < group.first + group.count; ++c)
          for (int r = 0; r < 3; ++r) {
            const Vec3<T> n = Vec3<T>{} + set_.points[c].axes[r];
            const Vec6<T> K{n, cross(place_[2 * c], n)}, L{n, cross(place_[2 * c + 1], n)};
            const T stiffness = stiffness_[set_.points[c].row + r];
            downdate(H_[group.link], K, -stiffness);
            if (touching.block < 0) continue;
            downdate(H_[group.other], L, -stiffness);
            add_outer(coupling_[touching.block], column(touching.flipped ? K : L), (touching.flipped ? L : K) * -stiffness);
          }
    }
  }
  void stiffen_evenly(const PointGroup& group, const typename Layout<Real>::Touching& touching) {
    // on each link m = Σ r, h = Σ r p, I = Σ r (p·p − p pᵀ); between them −[m, −h₁×; h₂×, Σ r (p₁·p₂ − p₁ p₂ᵀ)], rows of the second
    const bool two = touching.block >= 0;
    const int a = touching.flipped;
    T m{};
    Vec3<T> h[2]{};
    Sym3<T> P[2]{};
    Mat3<T> Q{};
    for (int c = group.first; c < group.first + group.count; ++c) {
      const T r = stiffness_[set_.points[c].row];
      const Vec3<T> p = place_[2 * c + a], rp = p * r;
      m += r;
      h[0] += rp;
      add_outer(P[0], p, rp);
      if (!two) continue;
      const Vec3<T> o = place_[2 * c + 1 - a], ro = o * r;
      h[1] += ro;
      add_outer(P[1], o, ro);
      Q.x += p * ro.x;
      Q.y += p * ro.y;
      Q.z += p * ro.z;
    }
    auto mass = [&](int k) {
      const Sym3<T>& A = P[k];
      return Inertia<T>{m, h[k], {A.yy + A.zz, -A.xy, -A.xz, A.xx + A.zz, -A.yz, A.xx + A.yy}};
    };
    add(H_[a ? group.other : group.link], mass(0));
    if (!two) return;
    add(H_[a ? group.link : group.other], mass(1));
    const T trace = Q.x.x + Q.y.y + Q.z.z, o{};
    auto put = [&](int k, T a0, T a1, T a2, T a3, T a4, T a5) {
      Column<T> c{};
      c[0] = a0, c[1] = a1, c[2] = a2, c[3] = a3, c[4] = a4, c[5] = a5;
      add(coupling_[touching.block].column[k], c);
    };
    put(0, -m, o, o, o, -h[1].z, h[1].y);
    put(1, o, -m, o, h[1].z, o, -h[1].x);
    put(2, o, o, -m, -h[1].y, h[1].x, o);
    put(3, o, h[0].z, -h[0].y, Q.x.x - trace, Q.x.y, Q.x.z);
    put(4, -h[0].z, o, h[0].x, Q.y.x, Q.y.y - trace, Q.y.z);
    put(5, h[0].y, -h[0].x, o, Q.z.x, Q.z.y, Q.z.z - trace);
  }

  // Jᵀ R J of rows with terms: on the links themselves, between links
  void stiffen_rows() {
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) downdate(H_[term.link], K_[term.K + r], -stiffness_[b.row + r]);
      }
    for (const auto& p : layout_->products)
      for (int r = 0; r < p.rows; ++r)
        add_outer(coupling_[p.block], column(K_[set_.terms[p.second].K + r]), K_[set_.terms[p.first].K + r] * stiffness_[p.row + r]);
  }
  static Column<T> column(const Vec6<T>& v) {
    Column<T> c{};
    for (int k = 0; k < 6; ++k) c[k] = entry(v, k);
    return c;
  }

  // One column as it is, or several in packs, through work(passage, from, to).
  template <class F>
  void pass(const T* X, int from, int columns, T* Y, int to, F&& work) {
    constexpr int width = link_lanes<T>;
    if (columns == 1) {
      work(one_, X, Y);
      return;
    }
    if constexpr (width > 1)
      for (int first = 0; first < columns; first += width) {
        const int count = columns - first < width ? columns - first : width;
        for (int r = 0; r < from; ++r) in_[r] = load_columns<T>(X + std::size_t(r) * columns + first, count);
        work(many_, static_cast<const Columns*>(in_.data()), out_.data());
        for (int r = 0; r < to; ++r) store_columns<T>(Y + std::size_t(r) * columns + first, out_[r], count);
      }
  }

  // M⁻¹ or (M + Jᵀ R J)⁻¹ with the forces of the rows: f = Σ Kᵀ λ, u = Σ c λ; accelerations stay in the passage
  template <class C>
  void sweep(const EliminationPlan& plan, const Factor<T>& factor, Passage<C>& p, const C* lambda) const {
    const int first = plan.idle, last = int(plan.steps.size());
    for (const int i : plan.holders) p.m[i] = Vec6<C>{};
    add_forces(p, lambda);
    if (set_.joint_rows.empty()) {
      substitute<false>(plan, first, last, w_, factor, p.m.data(), p.u.data());
    } else {
      for (auto& u : p.u) u = C{};
      for (const auto& j : set_.joint_rows) p.u[j.velocity] += lambda[j.row] * j.coefficient;
      substitute<true>(plan, first, last, w_, factor, p.m.data(), p.u.data());
    }
  }

  // f += Σ Kᵀ λ
  template <class C>
  void add_forces(Passage<C>& p, const C* lambda) const {
    for (const auto& group : set_.groups) {
      Vec6<C> f{}, g{};
      for (int c = group.first; c < group.first + group.count; ++c) {
        const auto& point = set_.points[c];
        const C* l = lambda + point.row;
        const Vec3<C> force = point.axes[0] * l[0] + point.axes[1] * l[1] + point.axes[2] * l[2];
        f.lin += force;
        f.ang += cross(place_[2 * c], force);
        if (group.other >= 0) g.ang += cross(place_[2 * c + 1], force);
      }
      p.m[group.link] += f;
      if (group.other < 0) continue;
      g.lin = f.lin;
      p.m[group.other] -= g;
    }
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        Vec6<C> f = p.m[term.link];
        for (int r = 0; r < b.rows; ++r) f += K_[term.K + r] * lambda[b.row + r];
        p.m[term.link] = f;
      }
  }

  // accelerations of the rows: Σ K a + Σ c ν
  template <class C>
  void project(const Passage<C>& p, C* rows) const {
    for (const auto& group : set_.groups) {
      const Vec6<C> a = p.m[group.link];
      Vec6<C> b{};
      if (group.other >= 0) b = p.m[group.other];
      for (int c = group.first; c < group.first + group.count; ++c) {
        const auto& point = set_.points[c];
        Vec3<C> v = a.lin + cross(a.ang, place_[2 * c]);
        if (group.other >= 0) v -= b.lin + cross(b.ang, place_[2 * c + 1]);
        for (int r = 0; r < 3; ++r) rows[point.row + r] = dot(point.axes[r], v);
      }
    }
    for (const int r : layout_->summed) rows[r] = C{};
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) rows[b.row + r] += dot(K_[term.K + r], p.m[term.link]);
      }
    for (const auto& j : set_.joint_rows) rows[j.row] += p.u[j.velocity] * j.coefficient;
  }

  // y ← J M⁻¹ Jᵀ x, y may be x
  template <class C>
  void apply_loose(Passage<C>& p, const C* x, C* y) const {
    sweep(layout_->loose, mass_, p, x);
    project(p, y);
  }
  template <class C>
  void apply_to(Passage<C>& p, const C* x, C* y) const {
    apply_loose(p, x, y);
    for (int r = 0; r < set_.rows; ++r) y[r] += x[r] * compliance_[r];
  }

  // λ = R (y − J (M + Jᵀ R J)⁻¹ Jᵀ R y)
  template <class C>
  void invert_to(Passage<C>& p, const C* y, C* x) const {
    for (int r = 0; r < set_.rows; ++r) x[r] = y[r] * stiffness_[r];
    sweep(layout_->coupled, damped_, p, x);
    project(p, x);
    for (int r = 0; r < set_.rows; ++r) x[r] = (y[r] - x[r]) * stiffness_[r];
  }

  // Refines x by its residual as long as that brings the backward error ‖y − (G + ε) x‖ / (‖G + ε‖ ‖x‖ + ‖y‖) down, lane by lane; a correction
  // that does not is taken back. ‖G + ε‖ is at least ε, and is estimated only where that is not enough. Returns the corrections tried.
  template <class C>
  int refine(Passage<C>& p, const C* y, C* x, int most, Real tolerance) {
    constexpr int lanes = lanes_of<C>;
    T shift{};
    for (int r = 0; r < set_.rows; ++r) shift = larger(shift, shift_[r]);
    Real best[lanes];
    for (int n = 0;; ++n) {
      apply_to(p, x, p.rest.data());
      C rr{}, xx{}, yy{};
      for (int r = 0; r < set_.rows; ++r) {
        p.rest[r] = y[r] - p.rest[r] - x[r] * (shift_[r] - compliance_[r]);
        rr += p.rest[r] * p.rest[r];
        xx += x[r] * x[r];
        yy += y[r] * y[r];
      }
      auto error = [&](const T& size, int k) {
        const Real all = lane(size, lanes_of<T> == 1 ? 0 : k) * std::sqrt(lane(xx, k)) + std::sqrt(lane(yy, k));
        return all > 0 ? std::sqrt(lane(rr, k)) / all : Real(0);
      };
      bool enough = n == 0;
      for (int k = 0; k < lanes; ++k) enough = enough && error(shift, k) <= tolerance;
      if (enough) return 0;
      const T size = larger(shift, norm());

      bool go_on = false;
      for (int k = 0; k < lanes; ++k) {
        const Real e = error(size, k);
        const bool better = n == 0 || e < best[k];
        for (int r = 0; r < set_.rows; ++r) better ? lane(p.best[r], k) = lane(x[r], k) : lane(x[r], k) = lane(p.best[r], k);
        go_on = go_on || (better && e > tolerance);
        if (better) best[k] = e;
      }
      if (!go_on || n == most) return n;
      invert_to(p, p.rest.data(), p.part.data());
      for (int r = 0; r < set_.rows; ++r) x[r] += p.part[r];
    }
  }

  // ‖J M⁻¹ Jᵀ‖ from below by a few power iterations, once a configuration
  const T& norm() {
    if (norm_known_) return norm_;
    norm_ = T{};
    T* x = one_.part.data();
    for (int r = 0; r < set_.rows; ++r) x[r] = constant<T>(Real(1) + Real(0.1) * Real(r % 7));
    for (int n = 0; n < 4; ++n) {
      T before = constant<T>(std::numeric_limits<Real>::min()), after{};
      for (int r = 0; r < set_.rows; ++r) before += x[r] * x[r];
      const T scale = Real(1) / square_root(before);
      for (int r = 0; r < set_.rows; ++r) x[r] = x[r] * scale;
      apply_loose(one_, x, x);
      for (int r = 0; r < set_.rows; ++r) after += x[r] * x[r];
      norm_ = larger(norm_, square_root(after));
    }
    norm_known_ = true;
    return norm_;
  }

  const Model<Real>& model_;
  std::shared_ptr<const Layout<Real>> layout_;
  const ConstraintSet<Real>& set_;
  Placement<T> w_;
  std::vector<Vec3<T>> place_;           // two a point
  std::vector<Vec6<T>> K_;               // a row of a term
  Factor<T> mass_, damped_;
  std::vector<Sym6<T>> H_, kept_;        // a link: what it holds during an elimination; what idle links handed down
  std::vector<Mat6<T>> coupling_;        // two links
  std::vector<T> size_;                  // a link: of the inertia it carries
  std::vector<Inertia<T>> composite_;    // a link: with all it carries
  std::vector<T> pivot_;                 // a velocity: stiffness of joint rows
  std::vector<T> compliance_, shift_, stiffness_;  // a row: C, C + ε, R
  T norm_{};
  bool norm_known_ = false;
  Passage<T> one_;
  Passage<Columns> many_;
  std::vector<Columns> in_, out_;        // a row or a velocity, whichever are more
};

}  // namespace delassus
