// The rows of an island's step and the operator G = J M̂⁻¹ Jᵀ over them, kept as long as the same links touch.
//
// Rows come in this order:
//
//   loops         free multipliers
//   dry friction  |λ| ≤ loss dt
//   limits        λ ≥ 0, of the ends of ranges that are near
//   spans         tendons and turned balls: ends that are near, dry friction, values to keep, inertia (spans.h)
//   contacts      Coulomb's cone: normal, two tangents, and where there is torsional or rolling friction the rotation
//                 about the normal, and about the tangents
//
// The symbolic work (order, fill, memory) depends on which of these rows exist, and is cached by that. Positions,
// normals and friction of contacts may change from step to step. A system that is needed a second time stays in the
// cache. One that is not is reused as memory for the next: when bodies fall onto each other, the set of touching links
// is new in almost every step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "operators/layout.h"
#include "operators/verbs.h"
#include "simulator/compliant_map.h"
#include "simulator/contact.h"
#include "simulator/part.h"
#include "simulator/row_matrix.h"
#include "simulator/spans.h"
#include "solvers/contacts/sets.h"

namespace delassus {

// The data of a step that determine its rows, besides loops and dry friction, which are always present.
struct ActiveRows {
  std::vector<int> limit_ends;            // that are near: 2 k the lower, 2 k + 1 the upper one of limit k; in order
  std::vector<int> added_ends;            // of these, what `add_broken_limits` added last
  std::vector<int> span_rows;             // span_row_count k + SpanRow of span k, in order
  std::vector<Contact*> contacts;         // of the world; impulses to start from on entry, impulses on exit
  std::vector<std::array<int, 2>> links;  // of contacts, by the numbers of the part; −1: the ground
  std::vector<ContactFrame> frames;       // of contacts

  // From q and v and the spans there, with contacts given.
  void find(const WorldDescription& world, const double* q, const double* v, const SpanValues& spans);
  // Adds the ends that q⁺ is beyond by more than the tolerance, or will be with what v⁺ moves before the next step is
  // solved, dt (1 − remaining) v⁺. Whether there were any.
  bool add_broken_limits(const WorldDescription& world, const std::vector<double>& q, const std::vector<double>& v,
                         const std::vector<double>& remaining, double tolerance);
};

struct RowSystem {
  std::shared_ptr<Layout<double>> layout;
  std::unique_ptr<MovingOperator<double>> G;
  RowMatrix matrix;                      // of G, where rows are few
  ForceSets sets;                        // of impulses
  ForceSets position_sets;               // of corrections, which have no friction
  std::vector<int> contact_rows;         // per contact: its normal row
  std::vector<int> contact_points;       // per contact: which of the layout's points; −1: it is a constraint
  std::vector<int> contact_constraints;  // per contact: which of the layout's constraints; −1: it is a point
  std::vector<int> span_constraints;     // per row of spans: which of the layout's constraints
  std::vector<int> inertia_rows;         // of spans, in order
  std::vector<double> compliance;        // per row: 1 / a of inertia, else 0; empty: no span has any
  int first_limit = 0, first_span = 0, first_contact = 0;

  CompliantMap compliant;  // of rows with compliance

  std::size_t rows() const { return std::size_t(layout->set.rows); }
  // G for contact solvers: its matrix where that is whole, else the operator, with what compliance needs.
  ContactMap& map_or(ContactMap& of_operator) {
    if (inertia_rows.empty() || matrix.whole()) return matrix.map_or(of_operator);
    compliant.look_at(of_operator, inertia_rows, compliance);
    return compliant;
  }
  // The normal row of a contact.
  std::size_t normal_row(std::size_t contact) const { return std::size_t(contact_rows[contact]); }
};

// How many systems a cache keeps, and of these, how many that came up once only.
struct KeptSystems {
  std::size_t all = 24, unproven = 4;
};

class RowSystemCache {
 public:
  // whole: the world that contacts are of.
  RowSystemCache(const Model<double>& whole, const WorldPart& part, KeptSystems kept);

  // The system of these rows, made if there is none, its points where contacts are now, and spans as they are. G is to
  // be updated.
  RowSystem& find(const ActiveRows& rows, const SpanValues& spans);
  // The part's numbers were changed: inertias, armature, friction loss. Systems take them when they come up again.
  void read_numbers();
  int size() const { return int(systems_.size()); }
  std::uint64_t hash() const { return hash_; }  // of the rows that were looked for last

 private:
  // A system, and the key it was made for: active limits, then the links of every contact.
  struct Kept {
    std::vector<int> key;
    std::size_t last_use = 0;
    bool proven = false;      // it came up again
    std::size_t numbers = 0;  // which of the part's numbers it has
    RowSystem system;
  };

  void find_key(const ActiveRows& rows);
  Kept* look_up();
  Kept& make_room();
  void make(RowSystem& s, const ActiveRows& rows, const SpanValues& spans);
  void read_numbers(RowSystem& s) const;
  void take_limits(const ActiveRows& rows, ConstraintSet<double>& set) const;
  void take_spans(const ActiveRows& rows, RowSystem& s);
  void soften_inertia(RowSystem& s, const ActiveRows& rows) const;
  void take_contacts(const ActiveRows& rows, RowSystem& s);
  void add_sets(RowSystem& s, const ActiveRows& rows) const;
  void set_spans(RowSystem& s, const ActiveRows& rows, const SpanValues& spans) const;
  void add_plain_contact(int link, int other, RowSystem& s);
  void add_contact(const Touch& t, RowSystem& s);
  void place_points(RowSystem& s, const ActiveRows& rows) const;

  const Model<double>& whole_;
  const WorldPart& part_;
  KeptSystems kept_;
  LayoutMaker<double> maker_;
  ConstraintSet<double> always_;  // rows of loops and dry friction
  std::vector<std::unique_ptr<Kept>> systems_;
  std::vector<std::uint64_t> hashes_;  // of these
  std::vector<int> key_;               // of the rows that are looked for
  std::uint64_t hash_ = 0;
  std::vector<PointRows<double>> points_;  // of loops, then of contacts
  std::vector<int> numbers_;               // per one of these: which of the layout's points
  std::size_t uses_ = 0, numbers_read_ = 0;
};

// Errors of loops and of values that spans keep, distances to limits and gaps of contacts [m or rad], one per row; zero
// where there is none. After G was updated at q.
void find_row_errors(const WorldDescription& world, const RowSystem& s, const ActiveRows& rows, const SpanValues& spans,
                     const double* q, std::vector<double>& error);

// Calls work(row) for every row whose impulse only pushes: ends of limits and of spans, normals of contacts.
template <class F>
void for_each_push(const RowSystem& s, const ActiveRows& rows, F&& work) {
  for (std::size_t r = std::size_t(s.first_limit); r < std::size_t(s.first_contact); ++r) {
    const int kind =
        int(r) < s.first_span ? int(span_lower) : span_row_kind(rows.span_rows[r - std::size_t(s.first_span)]);
    if (kind == span_lower || kind == span_upper) work(r);
  }
  for (const int row : s.contact_rows) work(std::size_t(row));
}

// g += max(φ − slop, 0) / dt of limits and normals: a gap may close within the step. A contact with an impulse > 0 in
// the previous step counts as touching up to twice the slop, since the gaps of a patch fluctuate by rounding.
void allow_approach(const StepOptions& options, const RowSystem& s, const ActiveRows& rows,
                    const std::vector<double>& error, const std::vector<double>& impulses, std::vector<double>& g);

// Velocities that impulses of rows give: M̂⁻¹ Jᵀ λ.
class ImpulseResponse {
 public:
  explicit ImpulseResponse(std::size_t nv) : forces_(nv, 0.0), velocity_(nv, 0.0) {}

  // Stays as it is until the next call.
  const std::vector<double>& of(RowSystem& s, const double* lambda);
  // x += M̂⁻¹ Jᵀ λ
  void add(RowSystem& s, const double* lambda, std::vector<double>& x);
  // Jᵀ λ of the last call.
  const std::vector<double>& forces() const { return forces_; }

 private:
  std::vector<double> forces_, velocity_;  // per velocity
};

}  // namespace delassus
