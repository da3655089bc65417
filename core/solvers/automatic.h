// Constrained dynamics by the loop-constrained articulated-body algorithm, with the dense factor of both equations as
// fallback for states where the certificate rejects the result.
#pragma once

#include "solvers/constrained.h"
#include "solvers/repair.h"

namespace delassus {

template <class T>
class Automatic final : public DynamicsSolver<T> {
  static_assert(lanes_of<T> == 1);

 public:
  Automatic(const Model<T>& model, std::shared_ptr<const Layout<T>> layout)
      : fast_(model, layout),
        repair_(model, layout),
        affordable_(Repair<T>::affordable(*layout, model.nv)),
        compliance_(std::size_t(layout->set.rows)) {}

  bool suits_rows() const override { return fast_.suits_rows(); }
  int rows() const override { return fast_.rows(); }
  std::size_t bytes() const override { return fast_.bytes() + repair_.bytes() + compliance_.size() * sizeof(T); }
  void set_compliance(const T* compliance) override {
    fast_.set_compliance(compliance);
    std::copy(compliance, compliance + rows(), compliance_.begin());
  }
  void reserve() override {
    if (affordable_) repair_.reserve();
  }
  void give_way(bool yes) override {
    fast_.give_way(yes);
    repair_.give_way(yes);
  }

  // As DynamicsSolver says.
  void solve(const T* q, const T* v, const T* tau, const T* external, const T* gamma, const T* damping,
             int max_iterations, T tolerance, T* lambda, T* vdot, Report<T>* report, T* history) override {
    fast_.solve(q, v, tau, external, gamma, damping, max_iterations, tolerance, lambda, vdot, report, history);
    if (affordable_ && Repair<T>::needed(*report))
      repair_.solve({q, v, tau, external, gamma, damping, compliance_.data()}, max_iterations, tolerance, lambda, vdot,
                    report, history);
  }

 private:
  ConstrainedDynamics<T> fast_;
  Repair<T> repair_;
  bool affordable_;
  std::vector<T> compliance_;
};

}  // namespace delassus
