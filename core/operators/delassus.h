// The Delassus operator G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹, no matrix formed.
//
//   G λ        forces Jᵀλ on links and joints → M⁻¹ by elimination → accelerations of the rows: one backward,
//              one forward sweep
//   (G + ε)⁻¹  = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹,
//       by the matrix inversion lemma: the same sweeps on another factor
//
// "Matrix-Free Delassus Operations", sections IV and V. Sweeps visit only links that carry a constraint and those they
// hang on. The lemma cancels when ε is small; `solve` refines with G itself.
#pragma once

#include <cmath>
#include <limits>
#include <memory>

#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"
#include "dynamics/solve.h"
#include "operators/dense_factor.h"
#include "operators/points.h"
#include "operators/scratch.h"

namespace delassus {

template <class T>
class Delassus {
 public:
  using Real = real_of<T>;
  using Columns = StripPack<T>;

  Delassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout, std::shared_ptr<Scratch<T>> scratch)
      : model_(model), layout_(std::move(layout)), set_(layout_->set), scratch_(std::move(scratch)), w_(model) {
    const std::size_t nv = std::size_t(model.nv), rows = std::size_t(set_.rows);
    loose_strips_.resize(model, layout_->loose);
    if (!layout_->same_strips) coupled_strips_.resize(model, layout_->coupled);
    pack_points();
    K_.resize(set_.K_size);
    mass_.resize(nv, layout_->loose);
    damped_.resize(nv, layout_->coupled);
    kept_.resize(std::size_t(layout_->loose.kept));
    compliance_.resize(rows);
    shift_.resize(rows);
    stiffness_.resize(rows);
  }
  Delassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
      : Delassus(model, layout, std::make_shared<Scratch<T>>(model, *layout)) {}
  Delassus(const Model<Real>& model, ConstraintSet<Real> constraints)
      : Delassus(model, std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<T>)) {}

  int rows() const { return set_.rows; }
  const Layout<Real>& layout() const { return *layout_; }
  // What explicit algorithms read: placements, K of terms, the factors of M and of M + Jᵀ R J, and R.
  const Placement<T>& placement() const { return w_; }
  const Vec6<T>* terms() const { return K_.data(); }
  const Factor<T>& mass_factor() const { return mass_; }
  const Factor<T>& damped_factor() const { return damped_; }
  const T* stiffness() const { return stiffness_.data(); }
  const StripPlacement<T>& coupled_strips() const { return layout_->same_strips ? loose_strips_ : coupled_strips_; }
  Passage<T>& passage() { return scratch_->one; }
  // without what is shared
  std::size_t own_bytes() const {
    return w_.bytes() + loose_strips_.bytes() + coupled_strips_.bytes() + points_.size() * sizeof(PointPack<T>) +
           places_.size() * sizeof(Vec3<T>) + K_.size() * sizeof(Vec6<T>) + mass_.bytes() + damped_.bytes() +
           kept_.size() * sizeof(Sym6<T>) + 3 * shift_.size() * sizeof(T) + (dense_ ? dense_->bytes() : 0) +
           (aside_ ? aside_->bytes() : 0);
  }
  std::size_t bytes() const { return own_bytes() + scratch_->bytes(); }

  // Takes axes of points anew from the layout, whose owner may change these and the places of points; update comes
  // next.
  void read_points() {
    constexpr int lanes = strip_lanes<T>;
    if constexpr (lanes > 1)
      for (std::size_t g = 0; g < set_.groups.size(); ++g) {
        const auto& group = set_.groups[g];
        if (!packed(group)) continue;
        for (int c = 0; c < group.count; ++c) {
          const auto& point = set_.points[group.first + c];
          auto& pack = points_[first_pack_[g] + c / lanes];
          if (c % lanes == 0) {
            pack.count = 0;
            std::fill_n(pack.row, lanes, point.row);
          }
          pack.row[c % lanes] = point.row;
          lane(pack.full, c % lanes) = 1;
          for (int r = 0; r < 3; ++r) set_lane(pack.axes[r], c % lanes, point.axes[r]);
          ++pack.count;
        }
      }
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
    loose_strips_.take_motions(layout_->loose, w_);
    if (!layout_->same_strips) coupled_strips_.take_motions(layout_->coupled, w_);
    place_points();
    evaluate(model_, set_, w_, q, K_.data());
  }
  void prepare() {
    const auto& plan = layout_->loose;
    world_inertias(w_);
    loose_strips_.take_inertias(layout_->loose, w_);
    if (!layout_->same_strips) coupled_strips_.take_inertias(layout_->coupled, w_);
    norm_known_ = false;
    if (plan.idle == 0) return;
    for (const int i : plan.idle_holders) scratch_->H[i] = Sym6<T>{};
    for (const auto& holder : plan.inertia_holders) scratch_->H[holder.link] = Sym6<T>{};
    eliminate_steps<T>(model_, plan, 0, plan.idle, w_, loose_strips_, nullptr, scratch_->H.data(), nullptr, mass_);
    for (const auto& holder : plan.inertia_holders)
      if (holder.kept >= 0) kept_[holder.kept] = scratch_->H[holder.link];
  }
  bool factorize() {
    const auto& plan = layout_->loose;
    for (const auto& holder : plan.inertia_holders) reset(holder);
    eliminate_steps<T>(model_, plan, plan.idle, int(plan.steps.size()), w_, loose_strips_, nullptr, scratch_->H.data(),
                       nullptr, mass_);
    const auto Dinv = [&](int k) { return mass_.Dinv[k]; };
    const auto free_Dinv = [&](int tree, int k) { return mass_.Dinv[model_.links[model_.roots[tree]].iv + k]; };
    return is_surely_regular(layout_->most, mass_.Dinv.data()) ||
           is_regular(model_, w_, scratch_->composite.data(), Dinv, free_Dinv);
  }

  void set_compliance(const T* compliance) {
    T most{};
    for (int r = 0; r < set_.rows; ++r) {
      compliance_[r] = compliance[r];
      most = larger(most, compliance[r]);
    }
    compliant_ = false;
    for (int l = 0; l < lanes_of<T>; ++l) compliant_ = compliant_ || lane(most, l) != 0;
  }

  // Numeric work that depends on damping: factor of M + Jᵀ R J. Damping plus compliance is positive in every row. Where
  // it is so small against G that the lemma would cancel to nothing, the factor has a larger one, and refinement makes
  // up for it; not if it is to be `exact`.
  void set_damping(const T* damping, bool exact = false) {
    T least = constant<T>(std::numeric_limits<Real>::max());
    largest_shift_ = T{};
    for (int r = 0; r < set_.rows; ++r) {
      const T shift = compliant_ ? compliance_[r] + damping[r] : damping[r];
      shift_[r] = shift;
      stiffness_[r] = Real(1) / shift;
      least = least < shift ? least : shift;
      largest_shift_ = larger(largest_shift_, shift);
    }
    bool small = false;
    for (int l = 0; l < lanes_of<T>; ++l) small = small || !(lane(least, l) >= layout_->bound * small_share);
    if (small && !exact) limit_stiffness(small_share);
    fallback_ = Fallback::none;
    factorize_damped();
  }

  // As Operator says.
  void exchange_damping() {
    if (!aside_) {
      aside_ = std::make_unique<Aside>();
      aside_->factor.resize(std::size_t(model_.nv), layout_->coupled);
      aside_->shift.resize(shift_.size());
      aside_->stiffness.resize(stiffness_.size());
    }
    std::swap(damped_, aside_->factor);
    shift_.swap(aside_->shift);
    stiffness_.swap(aside_->stiffness);
    std::swap(largest_shift_, aside_->largest_shift);
    std::swap(fallback_, aside_->fallback);
    dense_.swap(aside_->dense);
  }

  // Y ← G X. X, Y: rows × columns, row-major, apart.
  void apply(const T* X, int columns, T* Y) {
    pass(X, set_.rows, columns, Y, set_.rows, [&](auto& p, auto* x, auto* y) { apply_to(p, x, y); });
  }

  // X ← (G + ε)⁻¹ Y, as exact as asked for. Returns the largest normwise backward error of a column, or the goal where
  // that is met; zero if nothing was refined.
  T solve(const T* Y, int columns, T* X, const Accuracy<Real>& wanted = {}) {
    T worst{};
    pass(Y, set_.rows, columns, X, set_.rows, [&](auto& p, auto* y, auto* x) {
      invert_to(p, y, x);
      if (wanted.refinements == 0) return;
      using C = std::remove_cvref_t<decltype(*x)>;
      if constexpr (std::is_same_v<C, T>) {
        worst = refine(p, y, x, wanted);
      } else {
        // columns whose error is not small enough are refined one by one
        const Residual<C> r = residual(p, y, x);
        for (int k = 0; k < lanes_of<C>; ++k) {
          worst = larger(worst, wanted.goal);
          if (r.representable(k) && r.error(largest_shift_, k) <= wanted.goal) continue;
          for (int i = 0; i < set_.rows; ++i) scratch_->column[i] = lane(x[i], k), scratch_->target[i] = lane(y[i], k);
          worst = larger(worst, refine(scratch_->one, scratch_->target.data(), scratch_->column.data(), wanted));
          for (int i = 0; i < set_.rows; ++i) lane(x[i], k) = scratch_->column[i];
        }
      }
    });
    return worst;
  }

  // Normwise backward errors ‖(G + ε) x − y‖ / (‖G + ε‖ ‖x‖ + ‖y‖) of columns, of a pack of states one a lane. After
  // set_damping.
  void backward_error(const T* Y, const T* X, int columns, T* errors) {
    const T size = larger(largest_shift_, norm());
    T *x = scratch_->best.data(), *y = scratch_->part.data();
    for (int c = 0; c < columns; ++c) {
      // both over the larger of ‖y‖ and ‖G + ε‖ ‖x‖, so that squares are numbers
      T largest{};
      for (int r = 0; r < set_.rows; ++r) {
        x[r] = X[std::size_t(r) * columns + c], y[r] = Y[std::size_t(r) * columns + c];
        largest = larger(largest, larger(larger(y[r], T(-y[r])), T(larger(x[r], T(-x[r])) * size)));
      }
      const T scale = Real(1) / (largest > T{} ? largest : constant<T>(1));
      for (int r = 0; r < set_.rows; ++r) x[r] *= scale, y[r] *= scale;
      const Residual<T> r = residual(scratch_->one, y, x);
      for (int k = 0; k < lanes_of<T>; ++k) lane(errors[c], k) = r.error(size, k);
    }
  }

  // (M + Jᵀ R J)⁻¹ (Jᵀ λ − f) with f of all links and forces u on all joints of a passage: the way in of links that no
  // constraint reaches, whose forces do not change with λ; the others there and back, and J times what results to y;
  // the way back of the former. Accelerations of joints replace forces. After prepare and set_damping. Loads are those
  // of the coupled plan, which begins as the other one does.
  void collect_idle(Passage<T>& p, const Loads<T>& loads) {
    const auto& plan = layout_->coupled;
    std::fill(p.m.begin(), p.m.end(), Vec6<T>{});
    collect<true, Load::all>(plan, 0, plan.idle, w_, coupled_strips(), mass_, p.m.data(), p.u.data(),
                             scratch_->x.data(), &loads);
  }
  void respond(Passage<T>& p, const Loads<T>& loads, const T* lambda, T* y) {
    const auto& plan = layout_->coupled;
    add_forces<false>(p, lambda);
    for (const auto& j : set_.joint_rows) p.u[j.velocity] += lambda[j.row] * j.coefficient;
    substitute<true, Load::all>(plan, plan.idle, int(plan.steps.size()), w_, coupled_strips(), damped_, p.m.data(),
                                p.u.data(), scratch_->x.data(), &loads);
    project(p, y);
  }
  // The same without other forces: y ← J (M + Jᵀ R J)⁻¹ Jᵀ λ
  void respond_alone(Passage<T>& p, const T* lambda, T* y) {
    sweep(layout_->coupled, coupled_strips(), damped_, p, lambda);
    project(p, y);
  }
  void spread_idle(Passage<T>& p, const Loads<T>& loads) {
    const auto& plan = layout_->coupled;
    spread<true, Load::all>(plan, 0, plan.idle, w_, coupled_strips(), mass_, p.m.data(), p.u.data(), scratch_->x.data(),
                            &loads);
  }

  // M⁻¹ of the same forces, in two halves: u and, of a free link, D⁻¹ L⁻¹ f; then accelerations. After update. Loads
  // are those of the loose plan.
  void collect_all(Passage<T>& p, const Loads<T>& loads) {
    std::fill(p.m.begin(), p.m.end(), Vec6<T>{});
    collect<true, Load::all>(layout_->loose, 0, int(layout_->loose.steps.size()), w_, loose_strips_, mass_, p.m.data(),
                             p.u.data(), scratch_->x.data(), &loads);
  }
  void spread_all(Passage<T>& p, const Loads<T>& loads) {
    spread<true, Load::all>(layout_->loose, 0, int(layout_->loose.steps.size()), w_, loose_strips_, mass_, p.m.data(),
                            p.u.data(), scratch_->x.data(), &loads);
  }

  // Diagonal of G; where a row acts on two links of one tree, without what passes between these. Inverse inertias Ω of
  // links, base to tips, O(n + m). After update.
  //
  //   Ωᵢ = Ω_p − S zᵀ − z Sᵀ,   z = Ω_p V − ½ (Vᵀ Ω_p V + D⁻¹) S,   V = U D⁻¹;   of a joint's velocity Vᵀ Ω_p V + D⁻¹
  void diagonal(T* d) {
    const auto& plan = layout_->loose;
    Sym6<T>* Omega = scratch_->H.data();
    T* of_joint = scratch_->one.u.data();
    for (std::size_t s = plan.steps.size(); s-- > std::size_t(plan.idle);) {
      const auto& step = plan.steps[s];
      Sym6<T> O{};
      if (step.free) {
        O = inverse(mass_.free[plan.places[s].factor]);
        for (int k = 0; k < 6; ++k) of_joint[step.iv + k] = mass_.Dinv[step.iv + k];
      } else {
        if (step.parent >= 0) O = Omega[step.parent];
        for (int k = step.iv; k < step.iv + step.nv; ++k) {
          const Vec6<T> S = w_.S[k], V = mass_.V[k], u = O * V;
          of_joint[k] = dot(V, u) + mass_.Dinv[k];
          subtract_pair(O, S, Vec6<T>(u - S * (of_joint[k] * Real(0.5))));
        }
      }
      Omega[step.link] = O;
    }
    auto felt = [&](int link, const Vec6<T>& K) { return dot(K, Omega[link] * K); };
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      each_point(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
        for (int r = 0; r < 3; ++r) {
          const Vec3<T> n = Vec3<T>{} + axes[r];
          d[row + r] = felt(group.link, {n, cross(p, n)});
          if (group.other >= 0) d[row + r] += felt(group.other, {n, cross(o, n)});
        }
      });
    }
    for (const int r : layout_->summed) d[r] = T{};
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) d[b.row + r] += felt(term.link, K_[term.K + r]);
      }
    for (const auto& j : set_.joint_rows) d[j.row] = of_joint[j.velocity] * (j.coefficient * j.coefficient);
    for (int r = 0; r < set_.rows; ++r) d[r] += compliance_[r];
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
      add_forces<true>(p, x);
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
      substitute<true, Load::joints>(layout_->loose, 0, int(layout_->loose.steps.size()), w_, loose_strips_, mass_,
                                     p.m.data(), p.u.data(), scratch_->x.data());
      for (int k = 0; k < model_.nv; ++k) y[k] = p.u[k];
    });
  }

 private:
  // The least damping, as a share of ‖G‖, with which the factors keep some digits.
  static constexpr Real small_share = 1400 * std::numeric_limits<Real>::epsilon();

  static T larger(const T& a, const T& b) { return a > b ? a : b; }

  // Whether the points of a group go in packs: of one state, three or more.
  static bool packed(const PointGroup& group) { return strip_lanes<T> > 1 && group.count > 2; }

  // Points group by group, in packs or by themselves.
  void pack_points() {
    constexpr int lanes = strip_lanes<T>;
    for (const auto& group : set_.groups) {
      first_pack_.push_back(int(points_.size()));
      first_place_.push_back(int(places_.size()));
      if (packed(group))
        points_.resize(points_.size() + std::size_t((group.count + lanes - 1) / lanes));
      else
        places_.resize(places_.size() + std::size_t(group.count * group.sides()));
    }
    first_pack_.push_back(int(points_.size()));
    read_points();
  }
  void place_points() {
    constexpr int lanes = strip_lanes<T>;
    for (std::size_t g = 0; g < set_.groups.size(); ++g)
      for (int b = 0; b < set_.groups[g].sides(); ++b) {
        const auto& group = set_.groups[g];
        const Pose<T> X = w_.pose[b == 0 ? group.link : group.other];
        for (int c = 0; c < group.count; ++c) {
          const Vec3<T> place = X * set_.locals[group.local + c * group.sides() + b];
          if (!packed(group))
            places_[first_place_[g] + c * group.sides() + b] = place;
          else if constexpr (lanes > 1)
            set_lane(points_[first_pack_[g] + c / lanes].place[b], c % lanes, place);
        }
      }
  }
  // visit(axes, place, place on the other link, row) of every point of a group; the ground has no place
  template <class F>
  void each_point(std::size_t g, F&& visit) const {
    const auto& group = set_.groups[g];
    if (!packed(group)) {
      const int step = group.sides();
      const Point<Real>* point = &set_.points[group.first];
      const Vec3<T>* place = &places_[first_place_[g]];
      for (int c = 0; c < group.count; ++c, ++point, place += step)
        visit(point->axes, place[0], place[step - 1], point->row);
      return;
    }
    if constexpr (strip_lanes<T> > 1)
      for (int c = first_pack_[g]; c < first_pack_[g + 1]; ++c) {
        const auto& pack = points_[c];
        for (int l = 0; l < pack.count; ++l) {
          const Vec3<T> axes[3] = {get_lane(pack.axes[0], l), get_lane(pack.axes[1], l), get_lane(pack.axes[2], l)};
          visit(axes, get_lane(pack.place[0], l), get_lane(pack.place[1], l), pack.row[l]);
        }
      }
  }
  // The numbers of the points of a pack, `r` after their first rows.
  static StripPack<T> of_points(const PointPack<T>& pack, const T* rows, int r) {
    return StripPack<T>{rows[pack.row[0] + r], rows[pack.row[1] + r], rows[pack.row[2] + r], rows[pack.row[3] + r]};
  }

  // What a link holds before an elimination: what idle links handed down.
  void reset(const EliminationPlan::Holder& holder) {
    scratch_->H[holder.link] = holder.kept >= 0 ? kept_[holder.kept] : Sym6<T>{};
  }

  // R of a damping that is at least this share of ‖G‖.
  void limit_stiffness(Real share) {
    const T floor = norm() * share;
    for (int r = 0; r < set_.rows; ++r) stiffness_[r] = Real(1) / larger(shift_[r], floor);
  }

  // The factor of M + Jᵀ R J.
  void factorize_damped() {
    const auto& plan = layout_->coupled;
    for (const auto& holder : layout_->pointless) reset(holder);
    for (auto& block : scratch_->coupling) block = Mat6<T>{};
    stiffen_points();
    stiffen_rows();
    for (auto& p : scratch_->pivot) p = T{};
    for (const auto& j : set_.joint_rows)
      scratch_->pivot[j.velocity] += stiffness_[j.row] * (j.coefficient * j.coefficient);
    eliminate_steps<T>(model_, plan, plan.idle, int(plan.steps.size()), w_, coupled_strips(),
                       scratch_->pivot.empty() ? nullptr : scratch_->pivot.data(), scratch_->H.data(),
                       scratch_->coupling.data(), damped_);
  }

  // Jᵀ R J of points: those of equal stiffness r in their three rows are point masses r at p, whatever their axes, and
  // add up; else row by row.
  void stiffen_points() {
    for (std::size_t g = 0; g < set_.groups.size(); ++g) {
      const auto& group = set_.groups[g];
      const auto& touching = layout_->touching[g];
      if (group.opens[0]) reset({group.link, touching.kept[0]});
      if (group.opens[1]) reset({group.other, touching.kept[1]});
      T uneven{};
      for (int c = 0; c < group.count; ++c) {
        const T *r = &stiffness_[set_.points[group.first + c].row], a = r[1] - r[0], b = r[2] - r[0];
        uneven += a * a + b * b;
      }
      bool even = true;
      for (int l = 0; l < lanes_of<T>; ++l) even = even && lane(uneven, l) == 0;
      if (even)
        stiffen_evenly(g);
      else
        each_point(g, [&](const auto* axes, const Vec3<T>& p, const Vec3<T>& o, int row) {
          for (int r = 0; r < 3; ++r) {
            const Vec3<T> n = Vec3<T>{} + axes[r];
            const Vec6<T> K{n, cross(p, n)}, L{n, cross(o, n)};
            const T stiffness = stiffness_[row + r];
            downdate(scratch_->H[group.link], K, -stiffness);
            if (touching.block < 0) continue;
            downdate(scratch_->H[group.other], L, -stiffness);
            add_outer(scratch_->coupling[touching.block], column(touching.flipped ? K : L),
                      (touching.flipped ? L : K) * -stiffness);
          }
        });
    }
  }
  // I = tr P − P on each link; between them −[m, −h₁×; h₂×, tr Q − Q], rows of the second
  void stiffen_evenly(std::size_t g) {
    using P = StripPack<T>;
    const auto& group = set_.groups[g];
    const auto& touching = layout_->touching[g];
    const bool two = touching.block >= 0;
    const int a = touching.flipped;
    PointSums<T> sums{};
    if (packed(group)) {
      if constexpr (strip_lanes<T> > 1) {
        PointSums<P> packs{};
        for (int c = first_pack_[g]; c < first_pack_[g + 1]; ++c)
          packs.add(of_points(points_[c], stiffness_.data(), 0) * points_[c].full, points_[c].place[a],
                    points_[c].place[1 - a], two);
        sum_lanes<T>(reinterpret_cast<const P(&)[28]>(packs), reinterpret_cast<T(&)[28]>(sums));
      }
    } else {
      each_point(g, [&](const auto*, const Vec3<T>& p, const Vec3<T>& o, int row) {
        sums.add(stiffness_[row], a ? o : p, a ? p : o, two);
      });
    }
    const T m = sums.m;
    const auto& h = sums.h;
    const auto& Q = sums.Q;
    auto mass = [&](int k) {
      const Sym3<T>& A = sums.P[k];
      return Inertia<T>{m, h[k], {A.yy + A.zz, -A.xy, -A.xz, A.xx + A.zz, -A.yz, A.xx + A.yy}};
    };
    add(scratch_->H[a ? group.other : group.link], mass(0));
    if (!two) return;
    add(scratch_->H[a ? group.link : group.other], mass(1));
    const T trace = Q.x.x + Q.y.y + Q.z.z;
    auto* A = scratch_->coupling[touching.block].column;
    for (int k = 0; k < 3; ++k) A[k][k] -= m;
    A[0][4] -= h[1].z, A[0][5] += h[1].y;
    A[1][3] += h[1].z, A[1][5] -= h[1].x;
    A[2][3] -= h[1].y, A[2][4] += h[1].x;
    A[3][1] += h[0].z, A[3][2] -= h[0].y;
    A[4][0] -= h[0].z, A[4][2] += h[0].x;
    A[5][0] += h[0].y, A[5][1] -= h[0].x;
    A[3][3] += Q.x.x - trace, A[3][4] += Q.x.y, A[3][5] += Q.x.z;
    A[4][3] += Q.y.x, A[4][4] += Q.y.y - trace, A[4][5] += Q.y.z;
    A[5][3] += Q.z.x, A[5][4] += Q.z.y, A[5][5] += Q.z.z - trace;
  }

  // Jᵀ R J of rows with terms: on the links themselves, between links
  void stiffen_rows() {
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) downdate(scratch_->H[term.link], K_[term.K + r], -stiffness_[b.row + r]);
      }
    for (const auto& p : layout_->products)
      for (int r = 0; r < p.rows; ++r)
        add_outer(scratch_->coupling[p.block], column(K_[set_.terms[p.second].K + r]),
                  K_[set_.terms[p.first].K + r] * stiffness_[p.row + r]);
  }
  static Column<T> column(const Vec6<T>& v) {
    Column<T> c{};
    for (int k = 0; k < 6; ++k) c[k] = entry(v, k);
    return c;
  }

  // One column as it is, or several in packs, through work(passage, from, to).
  template <class F>
  void pass(const T* X, int from, int columns, T* Y, int to, F&& work) {
    constexpr int width = strip_lanes<T>;
    if (columns == 1) {
      work(scratch_->one, X, Y);
      return;
    }
    if constexpr (width > 1)
      for (int first = 0; first < columns; first += width) {
        const int count = columns - first < width ? columns - first : width;
        for (int r = 0; r < from; ++r)
          scratch_->in[r] = load_columns<Columns>(X + std::size_t(r) * columns + first, count);
        work(scratch_->many, static_cast<const Columns*>(scratch_->in.data()), scratch_->out.data());
        for (int r = 0; r < to; ++r)
          store_columns<Columns>(Y + std::size_t(r) * columns + first, scratch_->out[r], count);
      }
  }

  // M⁻¹ or (M + Jᵀ R J)⁻¹ with the forces of the rows: f = Σ Kᵀ λ, u = Σ c λ; accelerations stay in the passage
  template <class C>
  void sweep(const EliminationPlan& plan, const StripPlacement<T>& strips, const Factor<T>& factor, Passage<C>& p,
             const C* lambda) {
    const int first = plan.idle, last = int(plan.steps.size());
    for (const int i : std::is_same_v<C, T> ? plan.lane_holders : plan.holders) p.m[i] = Vec6<C>{};
    add_forces<true>(p, lambda);
    if (set_.joint_rows.empty()) {
      substitute<false, Load::rows>(plan, first, last, w_, strips, factor, p.m.data(), p.u.data(), scratch_->x.data());
    } else {
      for (auto& u : p.u) u = C{};
      for (const auto& j : set_.joint_rows) p.u[j.velocity] += lambda[j.row] * j.coefficient;
      substitute<true, Load::rows>(plan, first, last, w_, strips, factor, p.m.data(), p.u.data(), scratch_->x.data());
    }
  }

  // Adds f of a group to its link, and its opposite with another moment to the other. If rows are alone, the first
  // group on a link finds nothing there.
  template <bool alone, class C>
  static void push(const PointGroup& group, const Vec6<C>& f, const Vec3<C>& moment, Vec6<C>* m) {
    if (alone && group.opens[0])
      m[group.link] = f;
    else
      m[group.link] += f;
    if (group.other < 0) return;
    const Vec6<C> g{f.lin, moment};
    if (alone && group.opens[1])
      m[group.other] = Vec6<C>{} - g;
    else
      m[group.other] -= g;
  }

  // Forces on a group's links and accelerations of its rows, a pack of points at once.
  template <bool alone>
  void add_packed_forces(std::size_t g, const T* lambda, Vec6<T>* m) const {
    using P = StripPack<T>;
    const auto& group = set_.groups[g];
    const bool two = group.other >= 0;
    Vec3<P> total{}, moment{}, other{};  // force, its moments on both links
    for (int c = first_pack_[g]; c < first_pack_[g + 1]; ++c) {
      const auto& pack = points_[c];
      const Vec3<P> force = pack.axes[0] * of_points(pack, lambda, 0) + pack.axes[1] * of_points(pack, lambda, 1) +
                            pack.axes[2] * of_points(pack, lambda, 2);
      total += force;
      moment += cross(pack.place[0], force);
      if (two) other += cross(pack.place[1], force);
    }
    const P packs[12] = {total.x, total.y, total.z, moment.x, moment.y, moment.z, other.x, other.y, other.z};
    T all[12];
    sum_lanes<T>(packs, all);
    const Vec3<T> force{all[0], all[1], all[2]};
    push<alone, T>(group, {force, {all[3], all[4], all[5]}}, {all[6], all[7], all[8]}, m);
  }
  void project_packed(std::size_t g, const Vec6<T>& a, const Vec6<T>& b, T* rows) const {
    using P = StripPack<T>;
    const bool two = set_.groups[g].other >= 0;
    const Vec3<T> lin = a.lin - b.lin;
    for (int c = first_pack_[g]; c < first_pack_[g + 1]; ++c) {
      const auto& pack = points_[c];
      Vec3<P> v = cross(a.ang, pack.place[0]) + lin;
      if (two) v -= cross(b.ang, pack.place[1]);
      for (int r = 0; r < 3; ++r) {
        const P y = dot(pack.axes[r], v);
        // last to first: empty lanes repeat the first one's row
        rows[pack.row[3] + r] = y[3];
        rows[pack.row[2] + r] = y[2];
        rows[pack.row[1] + r] = y[1];
        rows[pack.row[0] + r] = y[0];
      }
    }
  }

  // f += Σ Kᵀ λ
  template <bool alone, class C>
  void add_forces(Passage<C>& p, const C* lambda) const {
    for (std::size_t i = 0; i < set_.groups.size(); ++i) {
      const auto& group = set_.groups[i];
      const bool two = group.other >= 0;
      if constexpr (std::is_same_v<C, T> && strip_lanes<T> > 1)
        if (packed(group)) {
          add_packed_forces<alone>(i, lambda, p.m.data());
          continue;
        }
      Vec6<C> f{};
      Vec3<C> moment{};  // on the other link
      each_point(i, [&](const auto* axes, const Vec3<T>& place, const Vec3<T>& other, int row) {
        const C* l = lambda + row;
        const Vec3<C> force = axes[0] * l[0] + axes[1] * l[1] + axes[2] * l[2];
        f.lin += force;
        f.ang += cross(place, force);
        if (two) moment += cross(other, force);
      });
      push<alone>(group, f, moment, p.m.data());
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
    for (std::size_t i = 0; i < set_.groups.size(); ++i) {
      const auto& group = set_.groups[i];
      const bool two = group.other >= 0;
      const Vec6<C>&a = p.m[group.link], &b = two ? p.m[group.other] : p.m.back();
      if constexpr (std::is_same_v<C, T> && strip_lanes<T> > 1)
        if (packed(group)) {
          project_packed(i, a, b, rows);
          continue;
        }
      each_point(i, [&](const auto* axes, const Vec3<T>& place, const Vec3<T>& other, int row) {
        Vec3<C> v = a.lin + cross(a.ang, place);
        if (two) v -= b.lin + cross(b.ang, other);
        for (int r = 0; r < 3; ++r) rows[row + r] = dot(axes[r], v);
      });
    }
    for (const int r : layout_->summed) rows[r] = C{};
    for (const auto& b : set_.blocks)
      for (int t = 0; t < b.terms; ++t) {
        const auto& term = set_.terms[b.term + t];
        for (int r = 0; r < b.rows; ++r) rows[b.row + r] += dot(K_[term.K + r], p.m[term.link]);
      }
    for (const auto& j : set_.joint_rows) rows[j.row] = p.u[j.velocity] * j.coefficient;
  }

  // y ← J M⁻¹ Jᵀ x, y may be x
  template <class C>
  void apply_loose(Passage<C>& p, const C* x, C* y) {
    sweep(layout_->loose, loose_strips_, mass_, p, x);
    project(p, y);
  }
  template <class C>
  void apply_to(Passage<C>& p, const C* x, C* y) {
    apply_loose(p, x, y);
    if (compliant_)
      for (int r = 0; r < set_.rows; ++r) y[r] += x[r] * compliance_[r];
  }

  // λ = R (y − J (M + Jᵀ R J)⁻¹ Jᵀ R y)
  template <class C>
  void invert_to(Passage<C>& p, const C* y, C* x) {
    for (int r = 0; r < set_.rows; ++r) x[r] = y[r] * stiffness_[r];
    sweep(layout_->coupled, coupled_strips(), damped_, p, x);
    project(p, x);
    for (int r = 0; r < set_.rows; ++r) x[r] = (y[r] - x[r]) * stiffness_[r];
  }

  // ‖r‖², ‖ε x‖², ‖y‖² of r = y − (G + ε) x, which stays in the passage; ε the largest of all rows
  template <class C>
  struct Residual {
    T shift;
    C rr{}, xx{}, yy{};
    // ‖r‖ / (‖G + ε‖ ‖x‖ + ‖y‖) of a lane, for that size of G + ε
    Real error(const T& size, int k) const {
      const int l = lanes_of<T> == 1 ? 0 : k;
      const Real all = lane(size, l) / lane(shift, l) * std::sqrt(lane(xx, k)) + std::sqrt(lane(yy, k));
      return all > 0 ? std::sqrt(lane(rr, k)) / all : Real(0);
    }
    // whether the squares are far from the ends of the range of numbers: y is neither zero nor tiny nor huge
    bool representable(int k) const {
      constexpr Real room = sizeof(Real) == 8 ? Real(1e100) : Real(1e10);
      return lane(yy, k) * room >= 1 && lane(yy, k) <= room;
    }
  };
  template <class C>
  Residual<C> residual(Passage<C>& p, const C* y, const C* x) {
    Residual<C> sums{largest_shift_};
    apply_loose(p, x, p.rest.data());
    for (int r = 0; r < set_.rows; ++r) {
      const C scaled = x[r] * sums.shift;
      p.rest[r] = y[r] - p.rest[r] - x[r] * shift_[r];
      sums.rr += p.rest[r] * p.rest[r];
      sums.xx += scaled * scaled;
      sums.yy += y[r] * y[r];
    }
    return sums;
  }

  // Refines x by its residual as long as that brings the backward error down, state by state; a correction that does
  // not is taken back. ‖G + ε‖ is at least ε, and is estimated only where that is not enough. Returns the errors.
  T refine(Passage<T>& p, const T* y, T* x, const Accuracy<Real>& wanted, bool scaled = false) {
    T best = constant<T>(std::numeric_limits<Real>::infinity());
    int n = 0;
    for (;; ++n) {
      const Residual<T> r = residual(p, y, x);
      bool enough = n == 0, representable = true;
      for (int k = 0; k < lanes_of<T>; ++k) {
        enough = enough && r.error(r.shift, k) <= wanted.goal;
        representable = representable && r.representable(k);
      }
      if (!representable && !scaled) return refine_scaled(p, y, x, wanted);
      if (enough) return constant<T>(wanted.goal);
      const bool go_on = keep_better(r, larger(r.shift, norm()), x, wanted.goal, best);
      if (!go_on || n == wanted.refinements) break;
      invert_to(p, p.rest.data(), scratch_->part.data());
      for (int i = 0; i < set_.rows; ++i) x[i] += scratch_->part[i];
    }
    if (!all_within(best, wanted.limit)) fall_back(p, y, x, wanted, best);
    // the best of several may be so by luck
    if ((n > 1 || !all_within(best, wanted.goal)) && !std::isinf(wanted.limit)) add_rounding(p, y, x, best);
    return best;
  }
  // Residuals are rounded too: they are measured once more, of x / 3 and y / 3, and what differs counts twice.
  void add_rounding(Passage<T>& p, const T* y, const T* x, T& best) {
    constexpr Real third = Real(1) / 3;
    T *first = scratch_->best.data(), *part = scratch_->part.data();
    residual(p, y, x);
    std::copy(p.rest.begin(), p.rest.end(), first);
    for (int r = 0; r < set_.rows; ++r) part[r] = x[r] * third;
    apply_loose(p, part, p.rest.data());
    Residual<T> change{largest_shift_};
    for (int r = 0; r < set_.rows; ++r) {
      const T scaled = x[r] * largest_shift_, d = first[r] - (y[r] * third - p.rest[r] - part[r] * shift_[r]) * Real(3);
      change.rr += d * d;
      change.xx += scaled * scaled;
      change.yy += y[r] * y[r];
    }
    const T size = larger(largest_shift_, norm());
    for (int k = 0; k < lanes_of<T>; ++k) lane(best, k) += 2 * change.error(size, k);
  }
  // The same for y of a size whose squares are no numbers, with y / max |y|, state by state; or for no y at all.
  T refine_scaled(Passage<T>& p, const T* y, T* x, const Accuracy<Real>& wanted) {
    T size{};
    for (int r = 0; r < set_.rows; ++r) size = larger(size, larger(y[r], T(-y[r])));
    const T scale = size > T{} ? size : constant<T>(1);
    T* unit = scratch_->unit.data();
    for (int r = 0; r < set_.rows; ++r) unit[r] = y[r] / scale;
    invert_to(p, static_cast<const T*>(unit), x);
    const T errors = refine(p, unit, x, wanted, true);
    for (int r = 0; r < set_.rows; ++r) x[r] *= scale;
    return errors;
  }
  static bool all_within(const T& errors, Real limit) {
    bool within = true;
    for (int k = 0; k < lanes_of<T>; ++k) within = within && lane(errors, k) <= limit;
    return within;
  }

  // Keeps what is better than the best so far, takes back what is not: `best` are the errors of the former, infinite
  // where there is none. What is not a number is never better. Returns whether some state gained and is not there yet.
  bool keep_better(const Residual<T>& r, const T& size, T* x, Real goal, T& best) {
    bool go_on = false;
    for (int k = 0; k < lanes_of<T>; ++k) {
      const Real e = r.error(size, k);
      if (e < lane(best, k)) {
        for (int i = 0; i < set_.rows; ++i) lane(scratch_->best[i], k) = lane(x[i], k);
        go_on = go_on || e > goal;
        lane(best, k) = e;
      } else if (!std::isinf(lane(best, k))) {
        for (int i = 0; i < set_.rows; ++i) lane(x[i], k) = lane(scratch_->best[i], k);
      }
    }
    return go_on;
  }

  // Where the factor has lost its digits: Krylov iterations with a factor of larger damping and, where not even these
  // converge and rows are few, a dense factor. What was made is kept for the next right-hand sides. x, best: the best
  // solutions so far and their errors. Memory is made when it is needed first.
  void fall_back(Passage<T>& p, const T* y, T* x, const Accuracy<Real>& wanted, T& best) {
    const T size = larger(largest_shift_, norm());
    // what is hardly better than nothing is no start
    for (int k = 0; k < lanes_of<T>; ++k)
      if (!(lane(best, k) < Real(0.5))) {
        for (int i = 0; i < set_.rows; ++i) lane(x[i], k) = 0;
        lane(best, k) = std::numeric_limits<Real>::infinity();
      }

    if (fallback_ == Fallback::none) {
      limit_stiffness(std::sqrt(std::numeric_limits<Real>::epsilon()));
      factorize_damped();
      fallback_ = Fallback::krylov;
    }
    const auto damped_product = [&](const T* v, T* w) {
      apply_loose(p, v, w);
      for (int i = 0; i < set_.rows; ++i) w[i] += v[i] * shift_[i];
    };
    if (fallback_ == Fallback::krylov) {
      if (!scratch_->krylov) scratch_->krylov = std::make_unique<FlexibleGmres<T>>(set_.rows);
      improve(p, y, x, wanted, size, best, [&](const Residual<T>& r) {
        scratch_->krylov->cycle(
            scratch_->part.data(), x, damped_product, [&](const T* v, T* z) { invert_to(p, v, z); },
            [&](const T& rr, const T* trial) {
              Residual<T> then{r.shift, rr, {}, r.yy};
              for (int i = 0; i < set_.rows; ++i) then.xx += trial[i] * trial[i] * (r.shift * r.shift);
              bool enough = true;
              for (int k = 0; k < lanes_of<T>; ++k) enough = enough && then.error(size, k) <= wanted.goal / 4;
              return enough;
            });
      });
      if (all_within(best, wanted.limit) || set_.rows > DenseFactor<T>::max_rows) return;
      if (!dense_) dense_ = std::make_unique<DenseFactor<T>>(set_.rows);
      dense_->factorize(damped_product, T(norm() * small_share));
      fallback_ = Fallback::dense;
    }
    improve(p, y, x, wanted, size, best, [&](const Residual<T>&) { dense_->correct(scratch_->part.data(), x); });
  }
  // Steps from the best solutions so far until these are within the goal or no longer halve their errors; a step finds
  // their residual in scratch_->part and changes x.
  template <class Step>
  void improve(Passage<T>& p, const T* y, T* x, const Accuracy<Real>& wanted, const T& size, T& best, Step&& step) {
    constexpr int max_steps = 20;
    for (int n = 0;; ++n) {
      const T before = best * Real(0.5);
      const Residual<T> r = residual(p, y, x);
      keep_better(r, size, x, wanted.goal, best);
      bool gained = n == 0;
      for (int k = 0; k < lanes_of<T>; ++k)
        gained = gained || (lane(best, k) <= lane(before, k) && lane(best, k) > wanted.goal);
      if (!gained || all_within(best, wanted.goal) || n == max_steps) return;
      std::copy(p.rest.begin(), p.rest.end(), scratch_->part.begin());
      step(r);
    }
  }

  // ‖J M⁻¹ Jᵀ‖ from below by a few power iterations, once a configuration
  const T& norm() {
    if (norm_known_) return norm_;
    norm_ = T{};
    T* x = scratch_->part.data();
    for (int r = 0; r < set_.rows; ++r) x[r] = constant<T>(Real(1) + Real(0.1) * Real(r % 7));
    for (int n = 0; n < 4; ++n) {
      T before = constant<T>(std::numeric_limits<Real>::min()), after{};
      for (int r = 0; r < set_.rows; ++r) before += x[r] * x[r];
      const T scale = Real(1) / square_root(before);
      for (int r = 0; r < set_.rows; ++r) x[r] = x[r] * scale;
      apply_loose(scratch_->one, x, x);
      for (int r = 0; r < set_.rows; ++r) after += x[r] * x[r];
      norm_ = larger(norm_, square_root(after));
    }
    norm_known_ = true;
    return norm_;
  }

  const Model<Real>& model_;
  std::shared_ptr<const Layout<Real>> layout_;
  const ConstraintSet<Real>& set_;
  std::shared_ptr<Scratch<T>> scratch_;
  Placement<T> w_;
  StripPlacement<T> loose_strips_, coupled_strips_;
  std::vector<PointPack<T>> points_;
  std::vector<Vec3<T>> places_;                // points by themselves: on their link, and on the other if there is one
  std::vector<int> first_pack_, first_place_;  // a group of points; the first also one past the last
  std::vector<Vec6<T>> K_;                     // a row of a term
  Factor<T> mass_, damped_;
  std::vector<Sym6<T>> kept_;                      // a link: what idle links handed down
  std::vector<T> compliance_, shift_, stiffness_;  // a row: C, C + ε, R
  T norm_{}, largest_shift_{};
  bool norm_known_ = false, compliant_ = false;
  enum class Fallback {
    none,
    krylov,
    dense
  } fallback_ = Fallback::none;  // what solutions needed since damping was set
  std::unique_ptr<DenseFactor<T>> dense_;
  // All that belongs to a damping, of one that is put aside; memory is taken when that is first asked for.
  struct Aside {
    Factor<T> factor;
    std::vector<T> shift, stiffness;
    T largest_shift{};
    Fallback fallback = Fallback::none;
    std::unique_ptr<DenseFactor<T>> dense;
    std::size_t bytes() const { return factor.bytes() + 2 * shift.size() * sizeof(T) + (dense ? dense->bytes() : 0); }
  };
  std::unique_ptr<Aside> aside_;
};

}  // namespace delassus
