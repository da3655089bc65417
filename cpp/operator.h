// The inside of an operator, which a contact solver works with too.
#pragma once

#include "check.h"

namespace delassus::inline v0 {

struct DelassusOperator::Impl {
  Constraints constraints;
  Model model;
  std::unique_ptr<Operator<double>> core;
  std::vector<double> compliance, damping;  // a row
  std::vector<double> units, products;      // columns of to_matrix
  bool full;                                // whether there is memory for Refinement::full
  bool damped = false;                      // whether damping was ever set
  bool invertible = false;                  // whether damping + compliance is positive in every row
  bool fresh = false;                       // whether the numbers are those of a configuration
  bool factored = false;                    // whether the factor of the inverse is that of these numbers

  static constexpr int columns = 16;  // of to_matrix at once: packs of the core are as wide or narrower

  Impl(const Constraints& constraints, const OperatorOptions& options);

  std::size_t rows() const { return compliance.size(); }
  std::size_t nv() const { return std::size_t(model.nv()); }

  Status update(In q);
  // New numbers of rows; what depends on them.
  Status take_rows(In values, std::vector<double>& rows) const;
  Status take_number(double value, std::vector<double>& rows) const;
  Status damp(Status taken);
  Status comply(Status taken);
  void factor();

  // A linear map of the core from columns of one length to columns of another.
  template <class F>
  Status map(In x, std::size_t from, Out y, std::size_t to, int columns, F&& work) noexcept {
    Check check;
    check.require(columns > 0, Status::out_of_range);
    if (check)
      check.size(x, from * std::size_t(columns))
          .size(y, to * std::size_t(columns))
          .apart(y, x)
          .require(fresh, Status::stale)
          .finite(x);
    if (!check) return check.status;
    return contained([&] {
      work();
      return finished(y);
    });
  }

 private:
  void judge_damping();
};

}  // namespace delassus::inline v0
