// The Delassus matrix G = J M⁻¹ Jᵀ + C and its damped inverse (G + ε)⁻¹ as dense matrices, by every published
// algorithm.
//
// Kinematics and articulated inertias are those of the matrix-free operator (delassus.h); each algorithm has a file in
// explicit/, with its equation, cost and source. All take any rows, except the inverses by caba_osim, caba_osimf and
// pv_osimf: these need rows that act on one link each.
#pragma once

#include <limits>
#include <memory>

#include "operators/delassus.h"
#include "operators/explicit/caba_osimf.h"
#include "operators/explicit/columns.h"
#include "operators/explicit/efpa.h"
#include "operators/explicit/kjr.h"
#include "operators/explicit/lcaba.h"
#include "operators/explicit/lcaba_osim.h"
#include "operators/explicit/ltl.h"
#include "operators/explicit/oscm.h"
#include "operators/explicit/pv_osimf.h"
#include "operators/explicit/symmetric.h"
#include "operators/verbs.h"

namespace delassus {

template <class T>
class ExplicitDelassus final : public MatrixMaker<T> {
 public:
  using Real = real_of<T>;

  ExplicitDelassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout);
  ExplicitDelassus(const Model<Real>& model, ConstraintSet<Real> constraints)
      : ExplicitDelassus(model, std::make_shared<const Layout<Real>>(model, std::move(constraints), strip_lanes<T>)) {}

  int rows() const override { return set_.rows; }
  const Layout<Real>& layout() const { return G_.layout(); }
  std::size_t bytes() const override;

  // Whether a method can do these constraints: some inverses refuse rows on more than one link, and rows of joints.
  bool supports(MatrixMethod) const override { return true; }
  bool supports(InverseMethod method) const override {
    return rows_.tree.single_link || method == InverseMethod::ltl || method == InverseMethod::lcaba_osim ||
           method == InverseMethod::lcaba;
  }

  // What a method is expected to take (explicit/cost.h), and the supported ones that take the least.
  const Cost& cost(MatrixMethod method) const override { return costs_(method); }
  const Cost& cost(InverseMethod method) const override { return costs_(method); }
  MatrixMethod best_matrix() const { return best_matrix_; }
  InverseMethod best_inverse() const { return best_inverse_; }

  // The operator whose kinematics and factors these are; up to date after any method but ltl.
  Delassus<T>& matrix_free() { return G_; }

  void set_compliance(const T* compliance) override;
  const T* compliance() const override { return compliance_.data(); }

  // G at q, rows × rows, row-major, both triangles. Returns whether M is regular. Memory that only some methods need is
  // taken when they first run.
  bool matrix(MatrixMethod method, const T* q, T* G) override;

  // (G + ε)⁻¹ at q for a damping ε, one number per row; damping plus compliance is positive in every row. Where the
  // lemma behind caba_osim, caba_osimf and pv_osimf would leave fewer than nine digits (three in single precision), the
  // matrix by pv_osim is inverted instead; where even that has no positive pivots, columns are solved and refined.
  bool inverse(InverseMethod method, const T* q, const T* damping, T* X) override;

 private:
  // Memory of a method, taken when it first runs.
  template <class Work>
  Work& taken(std::unique_ptr<Work>& work) {
    if (!work) {
      work = std::make_unique<Work>();
      work->resize(rows_);
    }
    return *work;
  }
  void find_lemma_limit();
  void place_rows() {
    if (rows_.G.empty()) rows_.resize();
    rows_.place(model_, set_, G_.placement(), G_.terms());
  }
  void write_single_link_rows(T* X);
  const std::vector<T>& identity();
  void factor_by_ltl(const T* q);
  bool form_by_ltl(const T* q);
  bool inverse_by_ltl(const T* q, const T* damping, Real least, T* X);
  bool inverse_by_lcaba_osim(const T* q, const T* damping, Real least, T* X);
  bool inverse_by_cholesky(const T* damping, Real least, T* X);
  bool inverse_by_columns(const T* damping, T* X);
  void inverse_of_matrix(T* X);

  const Model<Real>& model_;
  Delassus<T> G_;
  const ConstraintSet<Real>& set_;
  RowWork<T> rows_;
  ReachPlan reach_;
  std::vector<T> compliance_, shift_, zero_, size_,
      identity_;  // a row: C, C + ε, nothing; a link: of the inertia it carries
  std::unique_ptr<LtlWork<T>> ltl_;
  std::unique_ptr<KjrWork<T>> kjr_;
  std::unique_ptr<EfpaWork<T>> efpa_;
  std::unique_ptr<PvOsimrWork<T>> pv_osimr_;
  std::unique_ptr<OscmWork<T>> oscm_;
  std::unique_ptr<PvOsimfWork<T>> pv_osimf_;
  std::unique_ptr<LcabaOsimWork<T>> lcaba_osim_;
  DenseWork<T> dense_;
  std::vector<T> matrix_;  // rows a room apart: G + ε, then its inverse, where columns do not do
  Costs costs_;
  MatrixMethod best_matrix_;
  InverseMethod best_inverse_;
  Real lemma_limit_;  // damping plus compliance below which caba_osim and caba_osimf lose digits
};

template <class T>
ExplicitDelassus<T>::ExplicitDelassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
    : model_(model), G_(model, std::move(layout)), set_(G_.layout().set) {
  rows_.tree = find_limbs(model, G_.layout());
  if (rows_.tree.single_link) rows_.resize();
  compliance_.resize(std::size_t(set_.rows));
  shift_.resize(std::size_t(set_.rows));
  zero_.resize(std::size_t(set_.rows));
  size_.resize((model.links.size() + link_lanes<T> - 1) / link_lanes<T> * link_lanes<T>);
  reach_ = find_reach(G_.layout().coupled, model.links.size(), rows_.tree, set_.rows);
  costs_ = count_costs(model, G_.layout(), rows_.tree, reach_);
  const auto least = [this](const auto& methods) {
    auto best = methods.back();
    for (const auto method : methods)
      if (supports(method) && cost(method).time < cost(best).time) best = method;
    return best;
  };
  best_matrix_ = least(all_matrix_methods);
  best_inverse_ = least(all_inverse_methods);
  find_lemma_limit();
}

// The lemma loses as many digits as pivots of M + Jᵀ R J are smaller than what was added up for them, which grows as 1
// / ε: measured where joints are bent, each by its own angle.
template <class T>
void ExplicitDelassus<T>::find_lemma_limit() {
  constexpr Real damping = Real(1e-2);
  lemma_limit_ = std::numeric_limits<Real>::infinity();
  if (!supports(InverseMethod::caba_osim) || set_.rows == 0) return;
  std::vector<T> q(std::size_t(model_.nq)), one(std::size_t(set_.rows), constant<T>(damping));
  for (const auto& link : model_.links)
    if (link.type == Joint::ball || link.type == Joint::free)
      q[link.iq + (link.type == Joint::free ? 3 : 0)] = constant<T>(1);
    else
      q[link.iq] = constant<T>(link.reference + Real(0.6) * Real(std::sin(1.7 * (link.iq + 1))));
  if (!G_.update(q.data())) return;
  G_.set_damping(one.data());
  place_rows();
  const T growth = pivot_growth(model_, G_, rows_, size_.data());
  Real worst = 0;
  for (int l = 0; l < lanes_of<T>; ++l) worst = std::max(worst, lane(growth, l));
  if (std::isfinite(worst)) lemma_limit_ = damping * worst / lemma_growth<Real>;
}

template <class T>
std::size_t ExplicitDelassus<T>::bytes() const {
  const auto of = [](const auto& work) { return work ? work->bytes() : 0; };
  return G_.bytes() + rows_.bytes() + reach_.bytes() + dense_.bytes() + matrix_.size() * sizeof(T) + of(ltl_) +
         of(kjr_) + of(efpa_) + of(pv_osimr_) + of(oscm_) + of(pv_osimf_) + of(lcaba_osim_) +
         (compliance_.size() + shift_.size() + zero_.size() + size_.size() + identity_.size()) * sizeof(T);
}

template <class T>
void ExplicitDelassus<T>::set_compliance(const T* compliance) {
  for (int r = 0; r < set_.rows; ++r) compliance_[r] = compliance[r];
  G_.set_compliance(compliance);
}

template <class T>
const std::vector<T>& ExplicitDelassus<T>::identity() {
  const std::size_t m = std::size_t(set_.rows);
  if (identity_.empty()) {
    identity_.resize(m * m);
    for (std::size_t r = 0; r < m; ++r) identity_[r * m + r] = constant<T>(1);
  }
  return identity_;
}

// The factor of M by LTL, and the upper triangle of J M⁻¹ Jᵀ in its memory.
template <class T>
void ExplicitDelassus<T>::factor_by_ltl(const T* q) {
  if (!ltl_) ltl_ = std::make_unique<LtlWork<T>>(model_, set_);
  factor_ltl(model_, set_, *ltl_, q);
}
template <class T>
bool ExplicitDelassus<T>::form_by_ltl(const T* q) {
  return form_ltl(model_, G_.layout(), *ltl_) || G_.update(q);
}

template <class T>
bool ExplicitDelassus<T>::matrix(MatrixMethod method, const T* q, T* G) {
  if (method == MatrixMethod::ltl) {
    factor_by_ltl(q);
    const bool regular = form_by_ltl(q);
    write_symmetric<T>(ltl_->G.data(), ltl_->room, nullptr, set_.rows, 1, compliance_.data(), G);
    return regular;
  }
  const bool regular = G_.update(q);
  if (method == MatrixMethod::columns) {
    columns(G_, identity(), G);
    return regular;
  }
  const Articulated<T> A(G_.placement(), G_.mass_factor());
  place_rows();
  if (method == MatrixMethod::kjr)
    kjr(rows_, taken(kjr_), A);
  else if (method == MatrixMethod::efpa)
    efpa(rows_, taken(efpa_), A);
  else if (method == MatrixMethod::pv_osim)
    pv_osim(rows_, A);
  else if (method == MatrixMethod::pv_osimr)
    pv_osimr(rows_, taken(pv_osimr_), A, false);
  else
    oscm(rows_, taken(oscm_), A);
  if (rows_.tree.single_link)
    write_symmetric<T>(rows_.G.data(), rows_.room, &rows_.tree, set_.rows, 1, compliance_.data(), G);
  else
    fold_symmetric<T>(rows_.G.data(), rows_.room, rows_.tree, set_.rows, compliance_.data(), G);
  return regular;
}

// By columns, refined: for those who ask, and where another method would have lost its digits. The operator has its
// placements.
template <class T>
bool ExplicitDelassus<T>::inverse_by_columns(const T* damping, T* X) {
  const bool regular = G_.factorize();
  G_.set_damping(damping);
  if (!lcaba(G_, identity(), X)) inverse_of_matrix(X);
  return regular;
}

// The inverse of the matrix itself: G + ε column by column, its Cholesky factor and inverse. A diagonal that rounding
// would make negative is raised by as little as a backward error hides. The operator is up to date, the shift is there.
template <class T>
void ExplicitDelassus<T>::inverse_of_matrix(T* X) {
  const int m = set_.rows;
  const std::size_t room = row_room<T>(m);
  if (dense_.room == 0) dense_.resize(m);
  matrix_.assign(std::size_t(m) * room, T{});
  G_.apply(identity().data(), m, X);
  const T floor = longest_row(static_cast<const T*>(X), m, std::size_t(m)) * least_damping_share<Real>;
  for (int i = 0; i < m; ++i) {
    for (int j = i; j < m; ++j) matrix_[std::size_t(i) * room + j] = (X[i * m + j] + X[j * m + i]) * Real(0.5);
    const T damping = shift_[i] - compliance_[i];  // compliance is part of G
    matrix_[std::size_t(i) * room + i] += damping > floor ? damping : floor;
  }
  factor_dense(matrix_.data(), m, room, dense_);
  std::fill(matrix_.begin(), matrix_.end(), T{});
  add_inverse(dense_, m, matrix_.data(), room);
  write_symmetric<T>(matrix_.data(), room, nullptr, m, 1, zero_.data(), X);
}

// The matrix by PV-OSIM, its Cholesky factor and inverse. The operator has its placements, the shift is there.
template <class T>
bool ExplicitDelassus<T>::inverse_by_cholesky(const T* damping, Real least, T* X) {
  const bool regular = G_.factorize();
  const int n = rows_.tree.rows();
  if (dense_.room == 0) dense_.resize(set_.rows);
  place_rows();
  pv_osim(rows_, Articulated<T>(G_.placement(), G_.mass_factor()));
  for (int r = 0; r < n; ++r)
    rows_.G[std::size_t(r) * rows_.room + std::size_t(r)] += shift_[rows_.tree.row[std::size_t(r)]];
  factor_dense(rows_.G.data(), n, rows_.room, dense_);
  if (!keeps_positive(dense_, n, least)) return inverse_by_columns(damping, X);
  rows_.clear();
  add_inverse(dense_, n, rows_.G.data(), rows_.room);
  write_single_link_rows(X);
  return regular;
}

// The inverse of the rows that act on something, and of those that touch nothing, which have only their damping.
template <class T>
void ExplicitDelassus<T>::write_single_link_rows(T* X) {
  for (auto& s : shift_) s = Real(1) / s;
  for (const int r : rows_.tree.row) shift_[r] = T{};
  write_symmetric<T>(rows_.G.data(), rows_.room, &rows_.tree, set_.rows, 1, shift_.data(), X);
}

// The matrix by LTL, its Cholesky factor and inverse. Where pivots of M lose digits, by as much as they are smaller
// than its diagonal, the matrix is that of the operator, whose articulated inertias do not. The shift is there.
template <class T>
bool ExplicitDelassus<T>::inverse_by_ltl(const T* q, const T* damping, Real least, T* X) {
  constexpr Real max_growth = 800;  // up to here G is right to about 1e-12 of its norm; robots have at most 130
  const int m = set_.rows;
  factor_by_ltl(q);
  if (dense_.room == 0) dense_.resize(m);
  T* A = ltl_->G.data();
  bool exact = true, regular = true;
  for (int l = 0; l < lanes_of<T>; ++l) exact = exact && lane(ltl_->growth, l) <= max_growth;
  if (exact) {
    regular = form_by_ltl(q);
  } else {
    regular = G_.update(q);
    columns(G_, identity(), X);
    for (int i = 0; i < m; ++i)
      std::copy(X + std::size_t(i) * std::size_t(m + 1), X + std::size_t(i + 1) * std::size_t(m),
                A + std::size_t(i) * (ltl_->room + 1));
  }
  // compliance is part of the operator's matrix
  for (int r = 0; r < m; ++r) A[std::size_t(r) * ltl_->room + r] += exact ? shift_[r] : damping[r];
  factor_dense(A, m, ltl_->room, dense_);
  if (!keeps_positive(dense_, m, least)) {
    G_.place(q);
    G_.prepare();
    return inverse_by_columns(damping, X);
  }
  for (auto& a : ltl_->G) a = T{};
  add_inverse(dense_, m, A, ltl_->room);
  write_symmetric<T>(A, ltl_->room, nullptr, m, 1, zero_.data(), X);
  return regular;
}

// By all blocks of the inverse of M + Jᵀ R J, refined where the lemma has lost digits; where it has lost all of them,
// by LTL or columns, whichever is expected to be faster. The shift is there.
template <class T>
bool ExplicitDelassus<T>::inverse_by_lcaba_osim(const T* q, const T* damping, Real least, T* X) {
  const int m = set_.rows;
  if (rows_.room == 0) rows_.resize_K();
  if (!lcaba_osim_) lcaba_osim_ = std::make_unique<LcabaOsimWork<T>>(reach_, m);
  const bool regular = G_.update(q);
  if (m == 0) return regular;
  G_.set_damping(damping, true);
  rows_.place(model_, set_, G_.placement(), G_.terms());
  lcaba_osim(*lcaba_osim_, rows_, G_.layout().coupled, G_.placement(), G_.damped_factor(), G_.stiffness(), m, X);
  // in the mean over columns a tenth of what is good enough for each
  constexpr Real goal = 450 * std::numeric_limits<Real>::epsilon(), hopeless = Real(0.1);
  for (int refinements = 0; refinements <= 2; ++refinements) {
    if (refinements > 0) refine_inverse(G_, damping, X, *lcaba_osim_);
    const T error = probe_inverse(G_, damping, X, *lcaba_osim_);
    if (error <= goal) return regular;
    if (!(error <= hopeless)) break;
  }
  if (cost(InverseMethod::ltl).time < cost(InverseMethod::lcaba).time) return inverse_by_ltl(q, damping, least, X);
  return inverse_by_columns(damping, X);
}

template <class T>
bool ExplicitDelassus<T>::inverse(InverseMethod method, const T* q, const T* damping, T* X) {
  const int m = set_.rows;
  Real least = std::numeric_limits<Real>::max();
  for (int r = 0; r < m; ++r) {
    shift_[r] = compliance_[r] + damping[r];
    for (int l = 0; l < lanes_of<T>; ++l) least = std::min(least, lane(shift_[r], l));
  }
  if (method == InverseMethod::ltl) return inverse_by_ltl(q, damping, least, X);
  if (method == InverseMethod::lcaba_osim) return inverse_by_lcaba_osim(q, damping, least, X);

  G_.place(q);
  G_.prepare();
  if (method == InverseMethod::lcaba) return inverse_by_columns(damping, X);
  place_rows();
  if (method == InverseMethod::pv_osimf) {
    const bool regular = G_.factorize();
    if (!pv_osimf(rows_, taken(pv_osimf_), Articulated<T>(G_.placement(), G_.mass_factor()), shift_.data(), least))
      return inverse_by_cholesky(damping, least, X);
    write_single_link_rows(X);
    return regular;
  }

  // the lemma: R − R K Ω Kᵀ R
  if (!(least >= lemma_limit_)) return inverse_by_cholesky(damping, least, X);
  // against a bound that tells nothing the operator holds G itself, for which it needs M
  if (!(least >= G_.layout().bound * least_damping_share<Real>)) G_.factorize();
  G_.set_damping(damping);
  const T growth = pivot_growth(model_, G_, rows_, size_.data());
  const Articulated<T> A(G_.placement(), G_.damped_factor());
  const T* R = G_.stiffness();
  if (method == InverseMethod::caba_osim)
    caba_osim(rows_, taken(pv_osimr_), A, R, false);
  else
    caba_osimf(rows_, taken(pv_osimr_), A, R);
  write_symmetric<T>(rows_.G.data(), rows_.room, &rows_.tree, m, -1, R, X);
  if (!keeps_digits(growth, X, R, m)) return inverse_by_cholesky(damping, least, X);
  return is_surely_regular<T>(growth) || G_.factorize();
}

}  // namespace delassus
