// The inside of models and constraints.
#pragma once

#include "core.h"
//
#include "delassus/delassus.hpp"

namespace delassus::inline v0 {

constexpr double quaternion_slack = 1e-6;  // how far a length may be off and still be taken for rounding

// Which set the forces of a constraint live in.
enum class ForceSet : int { free, cone, half_line, box };

// A constraint as the core takes it, and what its forces are.
struct ConstraintData {
  core::ConstraintDescription core;
  ForceSet set = ForceSet::free;
  double friction = 0;          // of a cone; of a box its bound
  bool open = false;            // a limit without a bound, which has no error
  std::vector<double> damping;  // a row: ε of proximal iterations; empty: it is to be found
};

struct ModelData {
  ModelDescription description;  // in order: bodies depth first, joints with their bodies
  core::Model<double> core;
  std::vector<double> neutral;
  std::vector<int> joint_q, joint_v;
  std::vector<Keyframe> keyframes;
  std::vector<ConstraintData> saved;
};

struct ConstraintsData {
  Model model;
  std::vector<ConstraintData> list{};
  std::vector<int> first_row{0};

  int rows() const { return first_row.back(); }
  void append(ConstraintData c) {
    first_row.push_back(rows() + c.core.rows);
    list.push_back(std::move(c));
  }
  core::ConstraintSet<double> set() const {
    std::vector<core::ConstraintDescription> descriptions;
    for (const auto& c : list) descriptions.push_back(c.core);
    return make_constraints(model.data().core, descriptions);
  }
};

// Checks a description and makes its model; `exact` numbers are taken as they are, not scaled to unit length.
std::shared_ptr<ModelData> make_model(const ModelDescription& description, bool exact);
// What delassus.save_model wrote.
std::shared_ptr<ModelData> read_model(const std::string& path);

// Names in quotes, some of them where there are many.
template <class Names>
std::string listed(const Names& names) {
  std::string text;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > 40) return text + ", …";
    text += (text.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  return text.empty() ? "none" : text;
}

}  // namespace delassus::inline v0
