// Common parts of solvers for one state: the rows, the right-hand side (forcing.h), compliance, and the status of the
// result (judged.h). Solvers of packs of states have their own (constrained.h).
#pragma once

#include <memory>

#include "operators/explicit/limbs.h"
#include "solvers/forcing.h"
#include "solvers/judged.h"

namespace delassus {

template <class T>
class SingleStateSolver : public DynamicsSolver<T> {
  static_assert(lanes_of<T> == 1);

 public:
  SingleStateSolver(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : model_(model),
        layout_(std::move(layout)),
        set_(layout_->set),
        forcing_(model, set_),
        judge_(model, set_),
        compliance_(std::size_t(set_.rows)) {}

  bool suits_rows() const override { return rows_act_on_single_links(set_); }
  int rows() const override { return set_.rows; }
  std::size_t bytes() const override { return forcing_.bytes() + judge_.bytes() + compliance_.size() * sizeof(T); }
  void set_compliance(const T* compliance) override {
    std::copy(compliance, compliance + set_.rows, compliance_.begin());
    judge_.set_compliance(compliance);
  }

 protected:
  const Model<T>& model_;
  std::shared_ptr<const Layout<T>> layout_;
  const ConstraintSet<T>& set_;
  Forcing<T> forcing_;
  Judge<T> judge_;
  std::vector<T> compliance_;  // per row: C
};

}  // namespace delassus
