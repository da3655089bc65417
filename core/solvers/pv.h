// Constrained dynamics by Popov and Vereshchagin's recursion (PV): O(n + m² d + m³) for depth d, three sweeps. Rows
// that act on one link each.
//
//   backward  U, D, u as articulated bodies;   K_p = K (1 − S D⁻¹ Uᵀ),   L_p = L + K S D⁻¹ Sᵀ Kᵀ,
//             l_p = l + K S D⁻¹ u
//   ground    (L + C + ε) λ = b − l
//   forward   ν̇ = D⁻¹ (u + Sᵀ Kᵀ λ − Uᵀ a_p),   a = a_p + S ν̇
//
// ε is Tikhonov regularisation: it pulls λ towards zero and leaves a residual of ε λ in the constraints. It cannot be
// zero if rows are dependent; prox_pv.h removes its effect.
//
// Popov, Vereshchagin, Zenkevich, 1978; "Constrained Articulated Body Dynamics Algorithms", section II-G and
// algorithm 4.
#pragma once

#include <memory>

#include "operators/delassus.h"
#include "operators/explicit/pv_osim.h"
#include "solvers/dual.h"
#include "solvers/single_state.h"

namespace delassus {

// The recursion, whatever is done with its dual.
template <class T>
class PvSweeps : public SingleStateSolver<T> {
  using Base = SingleStateSolver<T>;
  using Base::model_, Base::set_, Base::forcing_, Base::judge_, Base::compliance_;

 public:
  PvSweeps(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : Base(model, layout),
        G_(model, std::move(layout)),
        rows_(find_rows(model, G_.layout())),
        strips_(G_.layout().loose),
        dual_(set_.rows, rows_.tree.row),
        step_(std::size_t(set_.rows)) {}

  std::size_t bytes() const override {
    return Base::bytes() + G_.bytes() + rows_.bytes() + strips_.bytes() + dual_.bytes() + step_.size() * sizeof(T);
  }

  // As DynamicsSolver says.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    auto& p = G_.buffers();
    Loads<T> loads{forcing_.motions, strips_};
    G_.update(q);
    forcing_.find(model_, set_, G_.placement(), q, v, external, gamma);

    // backward
    for (int k = 0; k < model_.nv; ++k) p.u[k] = tau ? tau[k] : T{};
    loads.take_forces(G_.layout().loose);
    G_.collect_all(p, loads);
    rows_.place(model_, set_, G_.placement(), G_.terms());
    pv_osim(rows_, Articulated<T>(G_.placement(), G_.mass_factor()));
    add_affine(p, dual_.target());

    dual_.solve(rows_.G.data(), rows_.room, forcing_.bias.data(), compliance_.data(), damping, max_iterations,
                tolerance, lambda, report, history);

    // forward
    push(p, dual_.forces());
    G_.spread_all(p, loads);
    std::copy(p.u.begin(), p.u.end(), vdot);

    // the same for the residuals, f of the dynamics as forces on joints and r of the constraints
    judge_.refine({G_.placement(), G_.terms(), forcing_.forces, tau, forcing_.bias.data(), nullptr}, damping,
                  this->gives_way_, vdot, lambda, tolerance, report, history, max_iterations,
                  [&](const T* f, const T* r) {
                    for (int b = 0; b < loads.links.f.blocks(); ++b) loads.links.f.block(b) = Vec6<LinkPack<T>>{};
                    loads.take_forces(G_.layout().loose);
                    std::copy(f, f + model_.nv, p.u.begin());
                    G_.collect_all(p, loads);
                    T* l = dual_.target();
                    add_affine(p, l);
                    std::copy(r, r + set_.rows, step_.begin());
                    for (std::size_t i = 0; i < rows_.tree.row.size(); ++i)
                      step_[std::size_t(rows_.tree.row[i])] -= l[i];
                    dual_.invert(step_.data(), step_.data());
                    push(p, dual_.inverted());
                    G_.spread_all(p, loads);
                    for (int i = 0; i < set_.rows; ++i) lambda[i] += step_[i];
                    for (int k = 0; k < model_.nv; ++k) vdot[k] += p.u[k];
                  });
  }

 private:
  static RowWork<T> find_rows(const Model<T>& model, const Layout<T>& layout) {
    RowWork<T> rows;
    if (rows_act_on_single_links(layout.set)) rows.tree = find_limbs(model, layout);
    rows.resize();
    return rows;
  }

  // l = Σ K S D⁻¹ u
  void add_affine(const SweepBuffers<T>& p, T* l) const {
    const std::size_t room = rows_.room;
    auto add = [&](const Limb& limb, const T* y, const T& u) {
      for (int r = limb.first; r < limb.past; r += row_lanes<T>)
        store_rows(l + r, RowPack<T>(load_rows(l + r) + load_rows(y + r) * u));
    };
    for (const auto& limb : rows_.tree.limbs) {
      for (int t = limb.dof; t < limb.base(); ++t)
        add(limb, rows_.Z.data() + std::size_t(t) * room, p.u[rows_.tree.velocity[t]]);
      if (limb.free < 0) continue;
      const Vec6<T> x = p.m[rows_.tree.link[limb.base()]];
      for (int c = 0; c < 6; ++c) add(limb, rows_.Y.data() + std::size_t(limb.base() + c) * room, entry(x, c));
    }
  }
  // u += Sᵀ Kᵀ λ; of a free joint D⁻¹ L⁻¹ Kᵀ λ
  void push(SweepBuffers<T>& p, const T* lambda) const {
    const std::size_t room = rows_.room;
    auto times = [&](const Limb& limb, const T* y) {
      RowPack<T> sum{};
      for (int r = limb.first; r < limb.past; r += row_lanes<T>) sum += load_rows(y + r) * load_rows(lambda + r);
      return sum_rows<T>(sum);
    };
    for (const auto& limb : rows_.tree.limbs) {
      for (int t = limb.dof; t < limb.base(); ++t)
        p.u[rows_.tree.velocity[t]] += times(limb, rows_.Y.data() + std::size_t(t) * room);
      if (limb.free < 0) continue;
      Vec6<T>& x = p.m[rows_.tree.link[limb.base()]];
      for (int c = 0; c < 6; ++c) entry(x, c) += times(limb, rows_.Z.data() + std::size_t(limb.base() + c) * room);
    }
  }

  Delassus<T> G_;
  RowWork<T> rows_;
  StripMotions<T> strips_;
  Dual<T> dual_;
  std::vector<T> step_;  // a row: δλ
};

template <class T>
class Pv final : public PvSweeps<T> {
 public:
  using PvSweeps<T>::PvSweeps;

  // One solution, from zero, whatever `max_iterations` and λ say.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping, int,
             T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    std::fill(lambda, lambda + this->rows(), T{});
    PvSweeps<T>::solve(q, v, tau, external, gamma, damping, 1, tolerance, lambda, vdot, report, history);
  }
};

}  // namespace delassus
