// Constrained dynamics by Popov and Vereshchagin's recursion, each multiplier eliminated as soon as it can be
// (PV-early): O(n + m), exact, no damping. Rows that act on one link each.
//
// Where rows K a + l = 0 pass a velocity with motion s, that leaves −½ λᵀ K s D⁻¹ sᵀ Kᵀ λ, of rank one. The problem is
// now strictly concave in the part of λ along q = K s / |K s|, which is eliminated at once; the rest, along N ⊥ q, is
// passed on, and never has more than six components:
//
//   K' = K − K s D⁻¹ Uᵀ,   l' = l + K s D⁻¹ u,   r = K'ᵀ q,   σ = |K s|² / D
//   H ← H − U D⁻¹ Uᵀ + r σ⁻¹ rᵀ,   f ← f − U D⁻¹ u − r σ⁻¹ qᵀ l',   K ← Nᵀ K',   l ← Nᵀ l'
//   back:  λ = −q σ⁻¹ (rᵀ a + qᵀ l') + N λ_rest,   ν̇ = D⁻¹ (u + sᵀ Kᵀ λ − Uᵀ a)
//
// N comes from a reflection, so no singular values are needed; ball and free joints are processed one velocity at a
// time. More than six rows on a link are first reduced to independent ones by orthogonal transformations. Rows that no
// joint moves get no force and are dropped: since all transformations preserve lengths, their residual is the
// least-squares one. A row with compliance is strictly concave from the start and is eliminated on its own link. If
// rounding leaves too large a residual, the solve is repeated for that residual.
//
// Sathya et al., "Efficient constrained dynamics algorithms based on an equivalent LQR formulation using Gauss'
// principle of least constraint", 2024, with a reflection for its decomposition; "Constrained Articulated Body Dynamics
// Algorithms", section VII-B.
#pragma once

#include <limits>
#include <memory>

#include "dynamics/inertia.h"
#include "dynamics/kinematics.h"
#include "operators/explicit/rows.h"
#include "solvers/progress.h"
#include "solvers/single_state.h"

namespace delassus {

template <class T>
class PvEarly final : public SingleStateSolver<T> {
  using Base = SingleStateSolver<T>;
  using Base::model_, Base::layout_, Base::set_, Base::forcing_, Base::judge_, Base::compliance_;

 public:
  PvEarly(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : Base(model, std::move(layout)),
        w_(model),
        terms_(set_.K_size),
        bias_(std::size_t(set_.rows)),
        even_(std::size_t(set_.rows), T(1)),
        steps_(std::size_t(model.nv)),
        bundles_(model.links.size()),
        H_(model.links.size()),
        f_(model.links.size()),
        a_(model.links.size()) {
    if (rows_act_on_single_links(set_)) rows_.tree = find_limbs(model, *layout_);
    rows_.resize();
    slot_.assign(std::size_t(rows_.tree.rows()), -1);
    for (const auto& limb : rows_.tree.limbs) {
      bundles_[limb.tip].first = limb.own;
      bundles_[limb.tip].past = limb.own_past;
    }
    // room for the rows of a link: its own, and at most six of each child
    std::vector<int> max_rows(model.links.size());
    std::size_t room = 0, turns = 0;
    for (int i = int(max_rows.size()) - 1; i >= 0; --i) {
      auto& b = bundles_[i];
      max_rows[i] += b.past - b.first;
      if (model.links[i].parent >= 0) max_rows[model.links[i].parent] += std::min(max_rows[i], 6);
      b.at = int(room);
      room += std::size_t(max_rows[i]);
      b.turn = int(turns);
      if (max_rows[i] > 6) turns += 6 * std::size_t(max_rows[i]);
    }
    K_.resize(room);
    l_.resize(room);
    x_.resize(room);
    turns_.resize(turns);
    std::vector<char> moved(std::size_t(set_.rows), 0);
    for (const int r : rows_.tree.row) moved[std::size_t(r)] = 1;
    for (int r = 0; r < set_.rows; ++r)
      if (!moved[std::size_t(r)]) idle_.push_back(r);
  }

  std::size_t bytes() const override {
    return Base::bytes() + w_.bytes() + rows_.bytes() + steps_.size() * sizeof(Step) +
           bundles_.size() * (sizeof(Bundle) + sizeof(Sym6<T>) + 2 * sizeof(Vec6<T>)) +
           (terms_.size() + K_.size()) * sizeof(Vec6<T>) +
           (2 * bias_.size() + l_.size() + x_.size() + turns_.size()) * sizeof(T) +
           (slot_.size() + idle_.size()) * sizeof(int);
  }

  // As DynamicsSolver says; there is nothing to iterate on, nor to start from.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T*, int, T tolerance,
             T* lambda, T* vdot, Report<T>* report, T* history) override {
    kinematics(model_, w_, q);
    world_inertias(w_);
    evaluate(model_, set_, w_, q, terms_.data());
    rows_.place(model_, set_, w_, terms_.data());
    forcing_.find(model_, set_, w_, q, v, external, gamma);
    find_scale();

    std::copy(forcing_.bias.begin(), forcing_.bias.end(), bias_.begin());
    std::fill(lambda, lambda + set_.rows, T{});
    std::fill(vdot, vdot + model_.nv, T{});
    for (std::size_t i = 0; i < f_.size(); ++i) f_[i] = Vec6<T>{} - forcing_.motions.f[int(i)];
    Progress<T> progress(set_.rows, 1, tolerance, report, history);
    eliminate_and_move(tau, lambda, vdot);
    if (set_.rows > 0) progress.end_iteration();
    // the same once more for what rounding has left, f of the dynamics and r of the constraints
    judge_.refine({w_, terms_.data(), forcing_.forces, tau, forcing_.bias.data(), nullptr}, even_.data(), false, vdot,
                  lambda, tolerance, report, history, Judge<T>::endless, [&](const T* f, const T* r) {
                    for (auto& force : f_) force = Vec6<T>{};
                    for (int i = 0; i < set_.rows; ++i) bias_[i] = -r[i];
                    eliminate_and_move(f, lambda, vdot);
                  });
  }

 private:
  static constexpr T share =
      sizeof(T) == 8 ? T(4e-11) : T(2.5e-5);  // of what a row is like: below is rounding; two thirds of the digits

  // Data of a velocity for the backward substitution.
  struct Step {
    Vec6<T> U, r;  // r, qᵀ l' and σ⁻¹ of the multiplier that went with it
    T Dinv, u, value, inverse;
    T Ks[6], w[6];  // a row before it; reflection 1 − 2 w wᵀ
    int count;      // rows before it
    bool one;       // whether a multiplier went with it
  };
  // Rows at a link: its own that have no compliance, then those that its children hand on.
  struct Bundle {
    int first = 0, past = 0;  // own, in the order of the limbs
    int at = 0, count = 0;    // where they are kept, how many
    int turn = 0, kept = -1;  // reflections of more than six, how many rows those left; −1: none were needed
    int handed = 0, out = 0;  // where and how many rows it handed to its parent
  };

  // Adds the forces and accelerations that the biases, the forces on links and those on joints ask for.
  void eliminate_and_move(const T* tau, T* lambda, T* vdot) {
    for (std::size_t i = 0; i < bundles_.size(); ++i) {
      H_[i] = articulated(w_.inertia[int(i)]);
      take_rows(int(i));
    }
    for (int i = int(bundles_.size()) - 1; i >= 0; --i) eliminate_link(i, tau);
    for (const int r : idle_)
      if (compliance_[r] > 0) lambda[r] -= bias_[r] / compliance_[r];
    for (std::size_t i = 0; i < bundles_.size(); ++i) move_link(int(i), lambda, vdot);
  }

  Vec6<T> own_row(int r) const {
    Vec6<T> k;
    for (int c = 0; c < 6; ++c) entry(k, c) = rows_.K[std::size_t(c) * rows_.room + std::size_t(r)];
    return k;
  }
  void find_scale() {
    scale_ = T{};
    for (int r = 0; r < rows_.tree.rows(); ++r) {
      const Vec6<T> k = own_row(r);
      scale_ = std::max(scale_, dot(k, k));
    }
    scale_ *= share * share;
  }
  // A compliant row: λ = C⁻¹ (b − K a), a spring on the link.
  void take_rows(int i) {
    auto& b = bundles_[i];
    b.count = 0;
    b.kept = -1;
    for (int r = b.first; r < b.past; ++r) {
      const Vec6<T> k = own_row(r);
      const int user = rows_.tree.row[std::size_t(r)];
      const T C = compliance_[user];
      slot_[r] = C > 0 ? -1 : b.count;
      if (C > 0) {
        downdate(H_[i], k, T(-1 / C));
        f_[i] -= k * (bias_[user] / C);
      } else {
        K_[b.at + b.count] = k;
        l_[b.at + b.count++] = bias_[user];
      }
    }
  }

  // More than six rows: reflections that leave an upper triangle of the independent ones, largest column first.
  void turn_rows(Bundle& b) {
    Vec6<T>* K = &K_[b.at];
    T* l = &l_[b.at];
    const int n = b.count;
    b.kept = 0;
    for (; b.kept < 6; ++b.kept) {
      const int k = b.kept;
      T largest{};
      int column = 0;
      for (int c = 0; c < 6; ++c) {
        T square{};
        for (int r = k; r < n; ++r) square += entry(K[r], c) * entry(K[r], c);
        if (square > largest) largest = square, column = c;
      }
      if (!(largest > scale_)) break;
      // w ∝ x ± |x| e
      T* w = &turns_[b.turn + k * n];
      const T size = std::sqrt(largest), first = entry(K[k], column);
      const T over = 1 / std::sqrt(2 * size * (size + std::abs(first)));
      for (int r = k; r < n; ++r) w[r] = entry(K[r], column) * over;
      w[k] += (first < 0 ? -size : size) * over;
      Vec6<T> along{};
      T value{};
      for (int r = k; r < n; ++r) along += K[r] * w[r], value += l[r] * w[r];
      for (int r = k; r < n; ++r) K[r] -= along * (2 * w[r]), l[r] -= value * (2 * w[r]);
    }
  }

  void eliminate_link(int i, const T* tau) {
    const auto& link = model_.links[i];
    auto& b = bundles_[i];
    if (b.count > 6) turn_rows(b);
    int count = b.kept < 0 ? b.count : b.kept;
    Sym6<T> H = H_[i];
    Vec6<T> f = f_[i];
    Vec6<T> K[6];
    T l[6];
    for (int r = 0; r < count; ++r) K[r] = K_[b.at + r], l[r] = l_[b.at + r];
    for (int k = link.iv + link.nv - 1; k >= link.iv; --k)
      count = eliminate_velocity(steps_[k], w_.S[k], model_.armature[k], tau ? tau[k] : T{}, H, f, K, l, count);
    b.out = count;
    if (link.parent < 0) return;
    auto& below = bundles_[link.parent];
    H_[link.parent] += H;
    f_[link.parent] += f;
    b.handed = below.at + below.count;
    for (int r = 0; r < count; ++r) K_[b.handed + r] = K[r], l_[b.handed + r] = l[r];
    below.count += count;
  }

  // Returns how many rows travel on.
  int eliminate_velocity(Step& step, const Vec6<T>& s, T armature, T tau, Sym6<T>& H, Vec6<T>& f, Vec6<T>* K, T* l,
                         int count) {
    eliminate_pivot(H, s, armature, step.U, step.Dinv);
    step.u = tau + dot(s, f);
    f -= step.U * (step.Dinv * step.u);
    step.count = count;
    step.one = false;
    T square{};
    for (int r = 0; r < count; ++r) {
      step.Ks[r] = dot(K[r], s);
      square += step.Ks[r] * step.Ks[r];
      K[r] -= step.U * (step.Dinv * step.Ks[r]);
      l[r] += step.Ks[r] * (step.Dinv * step.u);
    }
    if (!(square > scale_ * dot(s, s))) return count;

    // w ∝ q ± e
    const T size = std::sqrt(square), over = 1 / std::sqrt(2 * size * (size + std::abs(step.Ks[0])));
    for (int r = 0; r < count; ++r) step.w[r] = step.Ks[r] * over;
    step.w[0] += (step.Ks[0] < 0 ? -size : size) * over;
    Vec6<T> along{};
    T value{};
    for (int r = 0; r < count; ++r) along += K[r] * step.w[r], value += l[r] * step.w[r];
    for (int r = 0; r < count; ++r) K[r] -= along * (2 * step.w[r]), l[r] -= value * (2 * step.w[r]);

    step.one = true;
    step.r = K[0];
    step.value = l[0];
    step.inverse = 1 / (square * step.Dinv);
    downdate(H, step.r, T(-step.inverse));
    f -= step.r * (step.inverse * step.value);
    for (int r = 1; r < count; ++r) K[r - 1] = K[r], l[r - 1] = l[r];
    return count - 1;
  }

  // Adds accelerations and multipliers of a link.
  void move_link(int i, T* lambda, T* vdot) {
    const auto& link = model_.links[i];
    const auto& b = bundles_[i];
    Vec6<T> a{};
    T x[6]{};
    if (link.parent >= 0) {
      a = a_[link.parent];
      for (int r = 0; r < b.out; ++r) x[r] = x_[b.handed + r];
    }
    for (int k = link.iv; k < link.iv + link.nv; ++k) {
      const Step& step = steps_[k];
      if (step.one) {
        for (int r = step.count - 1; r > 0; --r) x[r] = x[r - 1];
        x[0] = -step.inverse * (dot(step.r, a) + step.value);
        reflect(step.w, step.count, x);
      }
      T u = step.u - dot(step.U, a);
      for (int r = 0; r < step.count; ++r) u += step.Ks[r] * x[r];
      const T nu = step.Dinv * u;
      vdot[k] += nu;
      a += w_.S[k] * nu;
    }
    a_[i] = a;

    T* all = x_.data() + b.at;
    const int known = b.kept < 0 ? b.count : b.kept;
    for (int r = 0; r < b.count; ++r) all[r] = r < known ? x[r] : T{};
    for (int k = b.kept - 1; k >= 0; --k) reflect(&turns_[b.turn + k * b.count + k], b.count - k, all + k);
    for (int r = b.first; r < b.past; ++r) {
      const int user = rows_.tree.row[std::size_t(r)];
      lambda[user] += slot_[r] < 0 ? -(bias_[user] + dot(own_row(r), a)) / compliance_[user] : all[slot_[r]];
    }
  }
  static void reflect(const T* w, int n, T* x) {
    T along{};
    for (int r = 0; r < n; ++r) along += w[r] * x[r];
    for (int r = 0; r < n; ++r) x[r] -= 2 * along * w[r];
  }

  Placement<T> w_;
  RowWork<T> rows_;  // K of rows where they act
  std::vector<Vec6<T>> terms_;
  std::vector<T> bias_;          // a row: γ or residual
  std::vector<T> even_;          // a row: one, the metric in which contradictory rows are met
  std::vector<Step> steps_;      // a velocity
  std::vector<Bundle> bundles_;  // a link
  std::vector<Sym6<T>> H_;       // a link
  std::vector<Vec6<T>> f_, a_;   // forces, accelerations
  std::vector<Vec6<T>> K_;       // rows of all bundles; l and multipliers likewise
  std::vector<T> l_, x_, turns_;
  std::vector<int> slot_,
      idle_;  // a row in the order of the limbs: which it is of its bundle, −1: it went there; rows that act on nothing
  T scale_;  // |K s|² of rounding, for |s| = 1
};

}  // namespace delassus
