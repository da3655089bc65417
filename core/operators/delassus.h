// The Delassus operator G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹, no matrix formed.
//
//   G λ        forces Jᵀλ on links and joints → M⁻¹ by elimination → accelerations of the rows: one backward,
//              one forward sweep
//   (G + ε)⁻¹  = R − R J (M + Jᵀ R J)⁻¹ Jᵀ R,   R = (C + ε)⁻¹,
//       by the matrix inversion lemma: the same sweeps on another factor
//   (G + D)⁻¹  likewise with square blocks D, one for each constraint, and with two factors where they are not
//   symmetric
//
// "Matrix-Free Delassus Operations", sections IV and V. Made of
//
//   elimination.h, substitution.h   factors of M and of M + Jᵀ R J, and solutions with them
//   points.h, terms.h               rows: their forces on links, accelerations and stiffness
//   block_damping.h, block_elimination.h   the same with blocks
//   refinement.h                    the lemma cancels when ε is small; `solve` refines with G itself
//
// Sweeps visit only links that carry a constraint and those they hang on; all others, the idle ones, are eliminated
// once a configuration. T is a number, or a pack of states.
#pragma once

#include <limits>
#include <memory>

#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"
#include "operators/block_damping.h"
#include "operators/block_stiffness.h"
#include "operators/damping.h"
#include "operators/diagonal.h"
#include "operators/scratch.h"

namespace delassus {

template <class T>
class Delassus {
 public:
  using Real = real_of<T>;
  static constexpr bool has_fallbacks = true;
  static constexpr double most_coupled = 0.9;  // of the pairs that touch: above, a plan of their own does not pay

  Delassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout, std::shared_ptr<Scratch<T>> scratch)
      : model_(model),
        layout_(std::move(layout)),
        set_(layout_->set),
        scratch_(std::move(scratch)),
        w_(model),
        points_(*layout_),
        terms_(*layout_),
        refinement_(scratch_->refinement),
        damping_(model, *layout_) {
    loose_strips_.resize(model, layout_->loose);
    if (!layout_->same_strips) coupled_strips_.resize(model, layout_->coupled);
    mass_.resize(std::size_t(model.nv), layout_->loose);
    kept_.resize(std::size_t(layout_->loose.kept));
    for (auto* x : {&compliance_, &diagonal_}) x->resize(std::size_t(set_.rows));
  }
  Delassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
      : Delassus(model, layout, std::make_shared<Scratch<T>>(model, *layout)) {}
  Delassus(const Model<Real>& model, ConstraintSet<Real> constraints)
      : Delassus(model, std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<T>)) {}

  int rows() const { return set_.rows; }
  const Layout<Real>& layout() const { return *layout_; }
  // What explicit algorithms read: placements, K of terms, the factors of M and of M + Jᵀ R J, and R.
  const Placement<T>& placement() const { return w_; }
  const Vec6<T>* terms() const { return terms_.K(); }
  const Factor<T>& mass_factor() const { return mass_; }
  const Factor<T>& damped_factor() const { return damping_.factor; }
  const T* stiffness() const { return damping_.stiffness.data(); }
  const StripPlacement<T>& coupled_strips() const { return layout_->same_strips ? loose_strips_ : coupled_strips_; }
  SweepBuffers<T>& buffers() { return scratch_->one; }
  // without what is shared
  std::size_t own_bytes() const {
    return w_.bytes() + loose_strips_.bytes() + coupled_strips_.bytes() + points_.bytes() + terms_.bytes() +
           mass_.bytes() + kept_.size() * sizeof(Sym6<T>) + (compliance_.size() + diagonal_.size()) * sizeof(T) +
           damping_.bytes() + (aside_ ? aside_->bytes() : 0) + (blocks_ ? blocks_->bytes() : 0) +
           (block_damping_ ? block_damping_->bytes() : 0);
  }
  std::size_t bytes() const { return own_bytes() + scratch_->bytes(); }

  // Threads that share large eliminations of blocks; null: none. Results do not depend on them.
  void share(Team* team) { team_ = team; }

  // ---- configuration
  // Takes axes of points anew from the layout, whose owner may change these and the places of points; update comes
  // next.
  void read_points() { points_.read_axes(); }
  // Takes inertias and armature anew from the model, whose owner may change these; update comes next. Whether joints of
  // a free link have armature at all stays as it was.
  void read_model() {
    w_.read_inertias(model_);
    loose_strips_.read_armature(model_, layout_->loose);
    if (!layout_->same_strips) coupled_strips_.read_armature(model_, layout_->coupled);
  }

  // All numeric work that depends on q alone. Returns whether M is regular.
  bool update(const T* q) {
    place(q);
    prepare();
    return factorize();
  }
  // Its parts: kinematics and rows,
  void place(const T* q) {
    kinematics(model_, w_, q);
    diagonal_known_ = false;
    if (blocks_) blocks_->started = false;
    loose_strips_.take_motions(layout_->loose, w_);
    if (!layout_->same_strips) coupled_strips_.take_motions(layout_->coupled, w_);
    points_.place(w_);
    terms_.place(model_, w_, q);
  }
  // inertias, and elimination of the idle links,
  void prepare() {
    const auto& plan = layout_->loose;
    world_inertias(w_);
    loose_strips_.take_inertias(layout_->loose, w_);
    if (!layout_->same_strips) coupled_strips_.take_inertias(layout_->coupled, w_);
    norm_known_ = false;
    if (blocks_) blocks_->started = false;
    if (plan.idle == 0) return;
    for (const int i : plan.idle_holders) scratch_->H[i] = Sym6<T>{};
    for (const auto& holder : plan.inertia_holders) scratch_->H[holder.link] = Sym6<T>{};
    eliminate(mass_elimination(), 0, plan.idle);
    for (const auto& holder : plan.inertia_holders)
      if (holder.kept >= 0) kept_[holder.kept] = scratch_->H[holder.link];
  }
  // the rest of M.
  bool factorize() {
    const auto& plan = layout_->loose;
    diagonal_known_ = false;
    for (const auto& holder : plan.inertia_holders) start_link(holder);
    eliminate(mass_elimination(), plan.idle, int(plan.steps.size()));
    const auto Dinv = [&](int k) { return mass_.Dinv[k]; };
    const auto free_Dinv = [&](int tree, int k) { return mass_.Dinv[model_.links[model_.roots[tree]].iv + k]; };
    return is_surely_regular(layout_->pivot_bound, mass_.Dinv.data()) ||
           is_regular(model_, w_, scratch_->composite.data(), Dinv, free_Dinv);
  }

  // ---- compliance and damping
  void set_compliance(const T* compliance) {
    T largest{};
    for (int r = 0; r < set_.rows; ++r) {
      compliance_[r] = compliance[r];
      largest = larger_of(largest, compliance[r]);
    }
    compliant_ = false;
    for (int l = 0; l < lanes_of<T>; ++l) compliant_ = compliant_ || lane(largest, l) != 0;
  }

  // Numeric work that depends on damping: factor of M + Jᵀ R J. Damping plus compliance is positive in every row. Where
  // it is so small against G that the lemma would cancel to nothing, the factor has a larger one, and refinement makes
  // up for it; not if it is to be `exact`.
  void set_damping(const T* damping, bool exact = false) {
    auto &shifts = damping_.shift, &stiffness = damping_.stiffness;
    T least = constant<T>(std::numeric_limits<Real>::max()), largest{};
    for (int r = 0; r < set_.rows; ++r) {
      const T shift = compliant_ ? compliance_[r] + damping[r] : damping[r];
      shifts[r] = shift;
      stiffness[r] = Real(1) / shift;
      least = least < shift ? least : shift;
      largest = larger_of(largest, shift);
    }
    damping_.largest_shift = largest;
    bool small = false;
    for (int l = 0; l < lanes_of<T>; ++l)
      small = small || !(lane(least, l) >= layout_->bound * least_damping_share<Real>);
    if (small && !exact) limit_stiffness(least_damping_share<Real>);
    damping_.fallbacks.reached = Fallback::none;
    factorize_damped();
  }
  // Puts damping and its factor aside, and takes up what was put aside before: nothing at first, until set_damping. Who
  // calls it twice finds them as they were; an update in between ends both.
  void exchange_damping() {
    if (!aside_) aside_ = std::make_unique<Damping<T>>(model_, *layout_);
    std::swap(damping_, *aside_);
  }

  // ---- blocks of stiffness B, a square one for each constraint, symmetric or not: the factor of M + Jᵀ B J
  // One after the other in the order of constraints, row-major; a row on a joint alone has but its diagonal entry.
  const BlockIndex& block_index() { return blocks().rows.index(); }
  void set_blocks(const T* B) {
    auto& b = blocks();
    const bool other_plan = plan_blocks(b, B);
    if (!b.factor || other_plan) {
      if (!b.factor) b.factor.emplace();
      b.factor->resize(std::size_t(model_.nv), block_plan());
    }
    if (b.by_active)
      factorize_blocks(B, b.active.plan(), b.active.places(), *b.factor);
    else
      factorize_blocks(B, *b.factor);
  }
  // Y ← J (M + Jᵀ B J)⁻¹ Jᵀ X, or with the transposed matrix.
  void respond_to_blocks(const T* X, int columns, T* Y, bool transposed) {
    by_column_packs(scratch_->columns, X, set_.rows, columns, Y, set_.rows,
                    [&](auto* x, auto* y) { respond_to_blocks(x, y, transposed); });
  }
  template <class C>
  void respond_to_blocks(const C* x, C* y, bool transposed) {
    auto& buffers = buffers_of<C>();
    sweep(block_plan(), *blocks().factor, transposed, buffers, x);
    project(buffers, y);
  }
  // A ← some rows and columns of J (M + Jᵀ B J)⁻¹ Jᵀ, count × count (selected_response.h).
  void respond_among(const int* rows, int count, T* A) {
    auto& b = blocks();
    const auto& plan = block_plan();
    b.selected.choose(points_, terms_, plan, rows, count);
    b.selected.respond(plan, substitution(plan, b.factor->left, b.factor->right, scratch_->many), A);
  }
  int block_determinant_sign() { return determinant_sign(block_plan(), *blocks().factor); }

  // ---- blocks of damping D, likewise, and solutions with them
  // Factor of M + Jᵀ B J, B = (C + D)⁻¹ block by block, which is invertible (block_inverse.h). Small ones as in
  // set_damping.
  void set_block_damping(const T* D) {
    if (!block_damping_)
      block_damping_ = std::make_unique<BlockDamping<T>>(block_index(), std::size_t(model_.nv), layout_->coupled);
    const T stiffest = block_damping_->set(D, compliant_ ? compliance_.data() : nullptr);
    bool small = false;
    for (int l = 0; l < lanes_of<T>; ++l)
      small = small || !(lane(stiffest, l) * (layout_->bound * least_damping_share<Real>) <= 1);
    if (small) block_damping_->limit(T(norm() * least_damping_share<Real>));
    factorize_blocks(block_damping_->stiffness.data(), block_damping_->factor);
  }
  // X ← (G + D)⁻¹ Y, or (G + D)⁻ᵀ Y, and errors of either, as solve and backward_error have them.
  T solve_blocks(const T* Y, int columns, T* X, bool transposed, const Accuracy<Real>& wanted = {}) {
    T worst{};
    BlockDamped damped{*this, transposed};
    by_column_packs(scratch_->columns, Y, set_.rows, columns, X, set_.rows,
                    [&](auto* y, auto* x) { worst = larger_of(worst, refinement_.solve(damped, y, x, wanted)); });
    return worst;
  }
  void block_backward_error(const T* Y, const T* X, int columns, bool transposed, T* errors) {
    BlockDamped damped{*this, transposed};
    refinement_.find_errors(damped, Y, X, columns, errors);
  }

  // ---- G and its inverse
  // Y ← G X. X, Y: rows × columns, row-major, apart.
  void apply(const T* X, int columns, T* Y) {
    by_column_packs(scratch_->columns, X, set_.rows, columns, Y, set_.rows, [&](auto* x, auto* y) {
      multiply(x, y);
      if (compliant_)
        for (int r = 0; r < set_.rows; ++r) y[r] += x[r] * compliance_[r];
    });
  }

  // X ← (G + ε)⁻¹ Y, as exact as asked for. Returns the largest normwise backward error of a column, or the goal where
  // that is met; zero if nothing was refined.
  T solve(const T* Y, int columns, T* X, const Accuracy<Real>& wanted = {}) {
    T worst{};
    by_column_packs(scratch_->columns, Y, set_.rows, columns, X, set_.rows,
                    [&](auto* y, auto* x) { worst = larger_of(worst, refinement_.solve(*this, y, x, wanted)); });
    return worst;
  }

  // Takes the memory of what refinement falls back to.
  void reserve_fallbacks() { refinement_.reserve(*this); }

  // Normwise backward errors of columns, of a pack of states one a lane. After set_damping.
  void backward_error(const T* Y, const T* X, int columns, T* errors) {
    refinement_.find_errors(*this, Y, X, columns, errors);
  }

  // Diagonal of G, found once a configuration; where a row acts on two links of one tree, without what passes between
  // these. Inverse inertias of links, base to tips, O(n + m). After update.
  void diagonal(T* d) {
    if (!diagonal_known_)
      find_diagonal<T>({*layout_, w_, mass_, points_, terms_, scratch_->H.data(), scratch_->one.u.data()},
                       diagonal_.data());
    diagonal_known_ = true;
    for (int r = 0; r < set_.rows; ++r) d[r] = diagonal_[r] + compliance_[r];
  }

  // ---- J, Jᵀ and M⁻¹ by themselves: Y ← J X, Jᵀ X, M⁻¹ X
  void jacobian(const T* X, int columns, T* Y) {
    by_column_packs(scratch_->columns, X, model_.nv, columns, Y, set_.rows, [&](auto* x, auto* y) {
      using C = std::remove_cvref_t<decltype(*y)>;
      auto& b = buffers_of<C>();
      const auto& plan = layout_->loose;
      for (std::size_t s = plan.steps.size(); s-- > std::size_t(plan.idle);) {
        const auto& step = plan.steps[s];
        Vec6<C> a{};
        if (step.parent >= 0) a = b.m[step.parent];
        for (int k = step.iv; k < step.iv + step.nv; ++k) {
          a += w_.S[k] * x[k];
          b.u[k] = x[k];
        }
        b.m[step.link] = a;
      }
      project(b, y);
    });
  }
  void jacobian_transpose(const T* X, int columns, T* Y) {
    by_column_packs(scratch_->columns, X, set_.rows, columns, Y, model_.nv, [&](auto* x, auto* y) {
      using C = std::remove_cvref_t<decltype(*y)>;
      auto& b = buffers_of<C>();
      for (auto& f : b.m) f = Vec6<C>{};
      for (int k = 0; k < model_.nv; ++k) y[k] = C{};
      add_link_forces<true>(x, b);
      for (const auto& j : set_.joint_rows) y[j.velocity] += x[j.row] * j.coefficient;
      for (const auto& step : layout_->loose.steps) {
        for (int k = step.iv; k < step.iv + step.nv; ++k) y[k] += dot(w_.S[k], b.m[step.link]);
        if (step.parent >= 0) b.m[step.parent] += b.m[step.link];
      }
    });
  }
  void mass_inverse(const T* X, int columns, T* Y) {
    by_column_packs(scratch_->columns, X, model_.nv, columns, Y, model_.nv, [&](auto* x, auto* y) {
      using C = std::remove_cvref_t<decltype(*y)>;
      auto& b = buffers_of<C>();
      for (auto& f : b.m) f = Vec6<C>{};
      for (int k = 0; k < model_.nv; ++k) b.u[k] = x[k];
      const auto& plan = layout_->loose;
      substitute<true, Load::joints>(substitution(plan, mass_, b), 0, int(plan.steps.size()));
      for (int k = 0; k < model_.nv; ++k) y[k] = b.u[k];
    });
  }

  // ---- constrained dynamics
  // (M + Jᵀ R J)⁻¹ (Jᵀ λ − f) with f of all links and forces u on all joints: the way in of idle links, whose forces do
  // not change with λ; the others there and back, and J times what results to y; the way back of the former.
  // Accelerations of joints replace forces. After prepare and set_damping. Loads are those of the coupled plan, which
  // begins as the other one does.
  void collect_idle(SweepBuffers<T>& b, const Loads<T>& loads) {
    const auto& plan = layout_->coupled;
    std::fill(b.m.begin(), b.m.end(), Vec6<T>{});
    collect<true, Load::all>(substitution(plan, mass_, b, &loads), 0, plan.idle);
  }
  void respond(SweepBuffers<T>& b, const Loads<T>& loads, const T* lambda, T* y) {
    const auto& plan = layout_->coupled;
    add_link_forces<false>(lambda, b);
    for (const auto& j : set_.joint_rows) b.u[j.velocity] += lambda[j.row] * j.coefficient;
    substitute<true, Load::all>(substitution(plan, damping_.factor, b, &loads), plan.idle, int(plan.steps.size()));
    project(b, y);
  }
  void spread_idle(SweepBuffers<T>& b, const Loads<T>& loads) {
    const auto& plan = layout_->coupled;
    spread<true, Load::all>(substitution(plan, mass_, b, &loads), 0, plan.idle);
  }

  // M⁻¹ of the same forces, in two halves: u and, of a free link, D⁻¹ L⁻¹ f; then accelerations. After update. Loads
  // are those of the loose plan.
  void collect_all(SweepBuffers<T>& b, const Loads<T>& loads) {
    const auto& plan = layout_->loose;
    std::fill(b.m.begin(), b.m.end(), Vec6<T>{});
    collect<true, Load::all>(substitution(plan, mass_, b, &loads), 0, int(plan.steps.size()));
  }
  void spread_all(SweepBuffers<T>& b, const Loads<T>& loads) {
    const auto& plan = layout_->loose;
    spread<true, Load::all>(substitution(plan, mass_, b, &loads), 0, int(plan.steps.size()));
  }

  // ---- what refinement.h needs: one column or a pack of them
  // y ← J M⁻¹ Jᵀ x, y may be x
  template <class C>
  void multiply(const C* x, C* y) {
    auto& b = buffers_of<C>();
    sweep(layout_->loose, mass_, b, x);
    project(b, y);
  }
  // x ← R (y − J (M + Jᵀ R J)⁻¹ Jᵀ R y)
  template <class C>
  void invert(const C* y, C* x) {
    auto& b = buffers_of<C>();
    const T* R = damping_.stiffness.data();
    for (int r = 0; r < set_.rows; ++r) x[r] = y[r] * R[r];
    sweep(layout_->coupled, damping_.factor, b, static_cast<const C*>(x));
    project(b, x);
    for (int r = 0; r < set_.rows; ++r) x[r] = (y[r] - x[r]) * R[r];
  }
  DiagonalShift<T> shift() const { return {damping_.shift.data()}; }
  const T& largest_shift() const { return damping_.largest_shift; }
  Fallbacks<T>& fallbacks() { return damping_.fallbacks; }
  // ‖J M⁻¹ Jᵀ‖ from below, once a configuration
  const T& norm() {
    if (!norm_known_) norm_ = estimate_norm<T>(*this, scratch_->refinement.correction.data());
    norm_known_ = true;
    return norm_;
  }
  void raise_damping(Real share) {
    limit_stiffness(share);
    factorize_damped();
  }

 private:
  // G + D or its transposed, as refinement.h needs it.
  struct BlockDamped {
    static constexpr bool has_fallbacks = true;
    Delassus& G;
    bool transposed;

    int rows() const { return G.rows(); }
    template <class C>
    void multiply(const C* x, C* y) {
      G.multiply(x, y);
    }
    // x ← B (y − J (M + Jᵀ B J)⁻¹ Jᵀ B y), all of them transposed or none
    template <class C>
    void invert(const C* y, C* x) {
      auto& D = *G.block_damping_;
      auto& b = G.template buffers_of<C>();
      C* w = D.template memory<C>().data();
      const BlockShift<T> B(D.index, D.stiffness, transposed);
      for (int r = 0; r < rows(); ++r) w[r] = B(y, r);
      G.sweep(G.layout_->coupled, D.factor, transposed, b, static_cast<const C*>(w));
      G.project(b, w);
      for (int r = 0; r < rows(); ++r) w[r] = y[r] - w[r];
      for (int r = 0; r < rows(); ++r) x[r] = B(static_cast<const C*>(w), r);
    }
    BlockShift<T> shift() const { return {G.block_damping_->index, G.block_damping_->shift, transposed}; }
    const T& largest_shift() const { return G.block_damping_->largest_shift; }
    const T& norm() { return G.norm(); }
    Fallbacks<T, false>& fallbacks() { return G.block_damping_->fallbacks[transposed]; }
    void raise_damping(Real share) {
      auto& D = *G.block_damping_;
      D.limit(T(norm() * share));
      G.factorize_blocks(D.stiffness.data(), D.factor);
    }
  };

  // made when they are asked for first
  BlockStiffness<T>& blocks() {
    if (!blocks_) blocks_ = std::make_unique<BlockStiffness<T>>(model_, *layout_);
    return *blocks_;
  }
  template <class C>
  SweepBuffers<C>& buffers_of() {
    if constexpr (std::is_same_v<C, T>)
      return scratch_->one;
    else
      return scratch_->many;
  }
  Elimination<T> mass_elimination() {
    return {model_, layout_->loose, w_, loose_strips_, nullptr, scratch_->H.data(), nullptr, mass_};
  }
  // Idle links come first and alike in both plans: either factor goes with them.
  template <class C>
  Substitution<T, C> substitution(const EliminationPlan& plan, const Factor<T>& factor, SweepBuffers<C>& b,
                                  const Loads<T>* loads = nullptr) {
    return substitution(plan, factor, factor, b, loads);
  }
  template <class C>
  Substitution<T, C> substitution(const EliminationPlan& plan, const Factor<T>& there, const Factor<T>& back,
                                  SweepBuffers<C>& b, const Loads<T>* loads = nullptr) {
    const auto& strips = &plan == &layout_->loose ? loose_strips_ : coupled_strips();
    return {plan, w_, strips, there, back, b.m.data(), b.u.data(), scratch_->strip_u.data(), loads};
  }

  // What a link holds before an elimination: what idle links handed down.
  void start_link(const EliminationPlan::Holder& holder) {
    scratch_->H[holder.link] = holder.kept >= 0 ? kept_[holder.kept] : Sym6<T>{};
  }

  // R of a damping that is at least this share of ‖G‖.
  void limit_stiffness(Real share) {
    const T floor = norm() * share;
    for (int r = 0; r < set_.rows; ++r) damping_.stiffness[r] = Real(1) / larger_of(damping_.shift[r], floor);
  }

  // The factor of M + Jᵀ R J.
  void factorize_damped() {
    const auto& plan = layout_->coupled;
    auto& H = scratch_->H;
    auto& coupling = scratch_->coupling;
    auto& joints = scratch_->joint_stiffness;
    const T* R = damping_.stiffness.data();
    for (const auto& holder : layout_->pointless) start_link(holder);
    for (auto& block : coupling) block = Mat6<T>{};
    points_.stiffen(R, H.data(), coupling.data(), [&](const EliminationPlan::Holder& holder) { start_link(holder); });
    terms_.stiffen(R, H.data(), coupling.data());
    for (auto& stiffness : joints) stiffness = T{};
    for (const auto& j : set_.joint_rows) joints[j.velocity] += R[j.row] * (j.coefficient * j.coefficient);
    const T* joint_stiffness = joints.empty() ? nullptr : joints.data();
    eliminate(
        Elimination<T>{model_, plan, w_, coupled_strips(), joint_stiffness, H.data(), coupling.data(), damping_.factor},
        plan.idle, int(plan.steps.size()));
  }

  // Of the blocks that were set: whether links whose contacts are all open are planned for as if they did not touch.
  // Whether it is another plan than before.
  bool plan_blocks(BlockStiffness<T>& b, const T* B) {
    if (!layout_->coupled.large()) return false;
    b.rows.find_coupling_groups(B, b.couples);
    std::size_t pairs = 0, coupled = 0;
    for (std::size_t g = 0; g < b.couples.size(); ++g) pairs += set_.groups[g].other >= 0, coupled += b.couples[g] != 0;
    const bool before = std::exchange(b.by_active, double(coupled) <= most_coupled * double(pairs));
    const bool made = b.by_active && b.active.make(*layout_, b.couples);
    return made || before != b.by_active;
  }
  const EliminationPlan& block_plan() { return blocks().by_active ? blocks().active.plan() : layout_->coupled; }

  // H without blocks: own inertias, what idle links handed down, armature of free joints.
  void start_blocks(BlockStiffness<T>& b) const {
    const auto& plan = layout_->coupled;
    for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s) {
      const auto& step = plan.steps[s];
      Sym6<T> H = articulated(w_.inertia[step.link]);
      if (step.free) add_free(H, w_.pose[step.link].R, &model_.armature[step.iv]);
      b.start[step.link] = Mat6<T>{};
      add(b.start[step.link], H);
    }
    for (const auto& holder : plan.inertia_holders)
      if (holder.kept >= 0) add(b.start[holder.link], kept_[holder.kept]);
    b.started = true;
  }
  // The factor of M + Jᵀ B J, in the order of all couplings or of some.
  void factorize_blocks(const T* B, BlockFactor<T>& factor) {
    factorize_blocks(B, layout_->coupled, layout_->places(), factor);
  }
  void factorize_blocks(const T* B, const EliminationPlan& plan, const typename Layout<Real>::Places& places,
                        BlockFactor<T>& factor) {
    auto& b = blocks();
    b.resize(plan);
    if (!b.started) start_blocks(b);
    for (std::size_t s = std::size_t(plan.idle); s < plan.steps.size(); ++s) {
      const int link = plan.steps[s].link;
      b.H[link].down = b.start[link];
      if (!plan.steps[s].free) b.H[link].up = b.start[link];  // nobody reads that of a free link
    }
    // columns of a large elimination are worked on at once, and do not ask each other what is zero
    if (plan.large()) std::fill(b.coupling.begin(), b.coupling.end(), Twin6<T>{});
    std::fill(b.used.begin(), b.used.end(), char(plan.large()));
    for (auto& x : b.joint_stiffness) x = T{};
    const Couplings<T> coupling{b.coupling.data(), b.used.data()};
    b.rows.stiffen(points_, terms_, B, places, b.H.data(), coupling, b.joint_stiffness.data());
    const BlockElimination<T> elimination{model_, plan, w_, b.joint_stiffness.data(), b.H.data(), coupling, factor};
    if (plan.large())
      eliminate_by_columns(elimination, plan.idle, int(plan.steps.size()), b.progress, team_);
    else
      eliminate(elimination, plan.idle, int(plan.steps.size()));
  }

  // M⁻¹ or (M + Jᵀ R J)⁻¹ with the forces of the rows: f = Σ Kᵀ λ, u = Σ c λ; accelerations stay in the buffers
  template <class C>
  void sweep(const EliminationPlan& plan, const Factor<T>& factor, SweepBuffers<C>& b, const C* lambda) {
    sweep(plan, factor, factor, b, lambda);
  }
  // (M + Jᵀ B J)⁻¹, or the transposed
  template <class C>
  void sweep(const EliminationPlan& plan, const BlockFactor<T>& F, bool transposed, SweepBuffers<C>& b,
             const C* lambda) {
    sweep(plan, transposed ? F.right : F.left, transposed ? F.left : F.right, b, lambda);
  }
  // the same with a factor for each direction
  template <class C>
  void sweep(const EliminationPlan& plan, const Factor<T>& there, const Factor<T>& back, SweepBuffers<C>& b,
             const C* lambda) {
    const int first = plan.idle, last = int(plan.steps.size());
    for (const int i : std::is_same_v<C, T> ? plan.lane_holders : plan.holders) b.m[i] = Vec6<C>{};
    add_link_forces<true>(lambda, b);
    const auto both = substitution(plan, there, back, b);
    if (set_.joint_rows.empty()) {
      substitute<false, Load::rows>(both, first, last);
    } else {
      for (auto& u : b.u) u = C{};
      for (const auto& j : set_.joint_rows) b.u[j.velocity] += lambda[j.row] * j.coefficient;
      substitute<true, Load::rows>(both, first, last);
    }
  }
  // f += Σ Kᵀ λ; with `replace` the first points on a link find nothing there
  template <bool replace, class C>
  void add_link_forces(const C* lambda, SweepBuffers<C>& b) const {
    points_.template add_forces<replace>(lambda, b.m.data());
    terms_.add_forces(lambda, b.m.data());
  }
  // accelerations of the rows: Σ K a + Σ c ν̇
  template <class C>
  void project(const SweepBuffers<C>& b, C* rows) const {
    points_.project(b.m, rows);
    terms_.project(b.m.data(), rows);
    for (const auto& j : set_.joint_rows) rows[j.row] = b.u[j.velocity] * j.coefficient;
  }

  const Model<Real>& model_;
  std::shared_ptr<const Layout<Real>> layout_;
  const ConstraintSet<Real>& set_;
  std::shared_ptr<Scratch<T>> scratch_;
  Placement<T> w_;
  StripPlacement<T> loose_strips_, coupled_strips_;
  Points<T> points_;
  Terms<T> terms_;
  Refinement<T> refinement_;
  Factor<T> mass_;             // of M
  std::vector<Sym6<T>> kept_;  // a link: what idle links handed down
  std::vector<T> compliance_;  // a row: C
  Damping<T> damping_;         // R and the factor of M + Jᵀ R J
  std::unique_ptr<Damping<T>> aside_;
  std::unique_ptr<BlockStiffness<T>> blocks_;
  std::unique_ptr<BlockDamping<T>> block_damping_;  // B and the factor of M + Jᵀ B J
  Team* team_ = nullptr;
  std::vector<T> diagonal_;  // a row: of J M⁻¹ Jᵀ
  T norm_{};
  bool norm_known_ = false, diagonal_known_ = false, compliant_ = false;
};

}  // namespace delassus
