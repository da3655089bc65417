#include "operators/explicit.h"

#include "operators/explicit/columns.h"
#include "operators/explicit/lcaba.h"
#include "operators/explicit/operator.h"
#include "operators/explicit/pv_osim.h"
#include "operators/explicit/symmetric.h"

namespace delassus {

template <class T>
ExplicitDelassus<T>::ExplicitDelassus(const Model<Real>& model, std::shared_ptr<const Layout<Real>> layout)
    : model_(model), G_(model, std::move(layout)), set_(G_.layout().set) {
  rows_.tree = find_limbs(model, G_.layout());
  rows_.resize();
  compliance_.resize(std::size_t(set_.rows));
  shift_.resize(std::size_t(set_.rows));
  zero_.resize(std::size_t(set_.rows));
  costs_ = count_costs(model, G_.layout(), rows_.tree);
  const auto least = [this](const auto& methods) {
    auto best = methods[0];
    bool found = false;
    for (const auto method : methods) {
      if (!supports(method) || (found && cost(method) >= cost(best))) continue;
      best = method;
      found = true;
    }
    return best;
  };
  best_matrix_ = least(all_matrix_methods);
  best_inverse_ = least(all_inverse_methods);
}

template <class T>
std::size_t ExplicitDelassus<T>::bytes() const {
  return G_.bytes() + rows_.bytes() + dense_.bytes() + (ltl_ ? ltl_->bytes() : 0) + (compliance_.size() + shift_.size() + zero_.size() + identity_.size()) * sizeof(T);
}

template <class T>
void ExplicitDelassus<T>::set_compliance(const T* compliance) {
  for (int r = 0; r < set_.rows; ++r) compliance_[r] = compliance[r];
  G_.set_compliance(compliance);
}

template <class T>
LtlWork<T>& ExplicitDelassus<T>::ltl_memory() {
  if (!ltl_) ltl_ = std::make_unique<LtlWork<T>>(model_, set_);
  return *ltl_;
}

template <class T>
DenseWork<T>& ExplicitDelassus<T>::dense_memory() {
  if (dense_.room == 0) dense_.resize(set_.rows);
  return dense_;
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

// The upper triangle of J M⁻¹ Jᵀ in the memory of ltl.
template <class T>
bool ExplicitDelassus<T>::ltl_upper(const T* q) {
  return ltl(model_, set_, ltl_memory(), q) || G_.update(q);
}

template <class T>
bool ExplicitDelassus<T>::matrix(MatrixMethod method, const T* q, T* G) {
  if (method == MatrixMethod::ltl) {
    const bool regular = ltl_upper(q);
    write_symmetric<T>(ltl_->G.data(), ltl_->room, nullptr, set_.rows, 1, compliance_.data(), G);
    return regular;
  }
  const bool regular = G_.update(q);
  if (method == MatrixMethod::columns) {
    columns(G_, identity(), G);
    return regular;
  }
  const Articulated<T> A(G_.placement(), G_.mass_factor());
  rows_.place(set_, G_.placement(), G_.terms());
  pv_osim(rows_, A);
  write_symmetric<T>(rows_.G.data(), rows_.room, &rows_.tree, set_.rows, 1, compliance_.data(), G);
  return regular;
}

template <class T>
bool ExplicitDelassus<T>::inverse(InverseMethod method, const T* q, const T* damping, T* X) {
  for (int r = 0; r < set_.rows; ++r) shift_[r] = compliance_[r] + damping[r];
  if (method == InverseMethod::ltl) {
    const bool regular = ltl_upper(q);
    auto& work = dense_memory();
    T* A = ltl_->G.data();
    for (int r = 0; r < set_.rows; ++r) A[std::size_t(r) * ltl_->room + r] += shift_[r];
    factor_dense(A, set_.rows, ltl_->room, work);
    for (std::size_t e = 0; e < ltl_->G.size(); ++e) A[e] = T{};
    add_inverse(work, set_.rows, A, ltl_->room);
    write_symmetric<T>(A, ltl_->room, nullptr, set_.rows, 1, zero_.data(), X);
    return regular;
  }
  const bool regular = G_.update(q);
  G_.set_damping(damping);
  lcaba(G_, identity(), X);
  return regular;
}

template class ExplicitDelassus<double>;
template class ExplicitDelassus<float>;
template class DenseDelassus<double, DenseSolve::inverse>;
template class DenseDelassus<float, DenseSolve::inverse>;
template class DenseDelassus<double, DenseSolve::cholesky>;
template class DenseDelassus<float, DenseSolve::cholesky>;

}  // namespace delassus
