// G with a compliance C on the diagonal of some rows, as a contact solver sees it. These are the rows of tendon inertia
// (span_inertia.h).
//
// The operator has C in its products and in (G + ε)⁻¹. Its factor with block damping does not: R' = J (M + Jᵀ B' J)⁻¹
// Jᵀ is the response of J M⁻¹ Jᵀ without C. With N = 1 + C B on these rows, whose blocks are scalars, and 1 on the
// others,
//
//   (1 + G B)⁻¹ G = N⁻¹ (R' N⁻¹ + C),   B' = B N⁻¹
//
// and det(1 + G B) = det(1 + J M⁻¹ Jᵀ B') det N.
#pragma once

#include <vector>

#include "solvers/contacts/map.h"

namespace delassus {

class CompliantMap final : public ContactMap {
 public:
  // rows, compliance: of which rows, in order, and C per row of all; they and the operator's map outlive their use
  // here.
  void look_at(ContactMap& map, const std::vector<int>& rows, const std::vector<double>& compliance) {
    map_ = &map, soft_ = &rows, C_ = &compliance;
  }
  int rows() const override { return map_->rows(); }
  void apply(const double* x, double* y) override { map_->apply(x, y); }
  void diagonal(double* d) override { map_->diagonal(d); }
  void set_damping(const double* damping) override { map_->set_damping(damping); }
  void solve(const double* y, double* x) override { map_->solve(y, x); }
  const BlockIndex* block_index(const ForceSets& sets) override { return index_ = map_->block_index(sets); }
  void set_blocks(const double* B) override;
  void respond(const double* x, double* y) override;
  bool has_transposed_response() const override { return map_->has_transposed_response(); }
  void respond_transposed(const double* x, double* y) override;
  void respond_among(const int* rows, int count, double* A) override;
  int determinant_sign() override { return map_->determinant_sign(); }  // det N > 0: B of these rows is not negative
  bool sharpen() override { return map_->sharpen(); }

 private:
  ContactMap* map_ = nullptr;
  const std::vector<int>* soft_ = nullptr;
  const std::vector<double>* C_ = nullptr;
  const BlockIndex* index_ = nullptr;
  template <class Respond>
  void respond_by(const double* x, double* y, Respond&& respond);

  std::vector<double> B_, N_, x_;  // B'; N and N⁻¹ x, per row
};

}  // namespace delassus
