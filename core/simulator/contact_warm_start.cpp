#include "simulator/contact_warm_start.h"

#include <algorithm>

namespace delassus {

namespace {

constexpr double same_point_distance = 0.02;  // points of a pair nearer than that are the same [m]

// The number in the whole of an end of a limit of the part.
std::size_t whole_end(const WorldPart& part, int end) {
  return 2 * std::size_t(part.limits[std::size_t(end / 2)]) + std::size_t(end % 2);
}
// The same of a row of a span.
std::size_t whole_span_row(const WorldPart& part, int row) {
  return span_row_count * std::size_t(part.spans[span_of(row)]) + std::size_t(span_row_kind(row));
}

}  // namespace

void StepMemory::clear_rows(std::size_t rows, std::size_t limit_count, std::size_t span_count, std::size_t trees) {
  row_impulses.assign(rows, 0.0);
  row_corrections.assign(rows, 0.0);
  limits.assign(2 * limit_count, {0.0, 0.0});
  spans.assign(span_row_count * span_count, {0.0, 0.0});
  penalties.assign(trees, {});
}

void match_contacts(const std::vector<Touch>& touches, const std::vector<Contact>& before, ContactPairs& pairs,
                    std::vector<Contact>& contacts) {
  contacts.clear();
  std::size_t from = 0;
  PairRange range;
  for (std::size_t k = 0; k < touches.size(); ++k) {
    const Touch& t = touches[k];
    if (k == 0 || !same_pair(touches[k - 1], t)) {
      range = pairs.find(t, from);
      if (range.begin < range.end) from = range.begin;
    }
    // points keep their order: the nearest from where the last one was found on, else of those before
    const Contact* best = nullptr;
    double nearest = same_point_distance * same_point_distance;
    const auto look = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Vec3<double> d = before[i].touch.local[0] - t.local[0];
        if (dot(d, d) < nearest) nearest = dot(d, d), best = &before[i], from = i;
      }
    };
    if (range.begin < range.end) {
      const std::size_t last = from;
      look(last, range.end);
      if (!best) look(range.begin, last);
    }
    contacts.push_back(best ? Contact{t, best->impulse, best->correction, best->turn, true}
                            : Contact{t, {}, {}, {}, false});
    if (k + 1 < touches.size() && !same_pair(touches[k + 1], t) && range.begin < range.end) from = range.end;
  }
}

void WarmStart::recall(const WorldPart& part, const RowSystem& s, const ActiveRows& rows, const StepMemory& before,
                       const std::vector<int>& trees) {
  impulses.assign(s.rows(), 0.0);
  corrections.assign(s.rows(), 0.0);
  penalties = {};
  warm = false;
  if (before.penalties.empty()) return;
  // penalties of the first tree that has any
  for (const int tree : trees) {
    const Penalties& known = before.penalties[std::size_t(tree)];
    if (penalties.velocities == 0) penalties.velocities = known.velocities;
    if (penalties.positions == 0) penalties.positions = known.positions;
  }
  // loops and dry friction
  warm = s.first_contact > 0;
  for (std::size_t r = 0; r < part.rows.size(); ++r) {
    impulses[r] = before.row_impulses[std::size_t(part.rows[r])];
    corrections[r] = before.row_corrections[std::size_t(part.rows[r])];
  }
  // limits
  for (std::size_t k = 0; k < rows.limit_ends.size(); ++k) {
    const auto& known = before.limits[whole_end(part, rows.limit_ends[k])];
    const std::size_t row = std::size_t(s.first_limit) + k;
    impulses[row] = known[0], corrections[row] = known[1];
  }
  // spans
  for (std::size_t k = 0; k < rows.span_rows.size(); ++k) {
    const auto& known = before.spans[whole_span_row(part, rows.span_rows[k])];
    const std::size_t row = std::size_t(s.first_span) + k;
    impulses[row] = known[0], corrections[row] = known[1];
  }
  // contacts
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    const Contact& c = *rows.contacts[k];
    warm = warm || c.known;
    const std::size_t row = s.normal_row(k);
    for (int r = 0; r < c.touch.rows; ++r)
      impulses[row + std::size_t(r)] =
          dot(rows.frames[k][std::size_t(r % 3)], r < 3 ? c.impulse : c.turn) / row_scale(c.touch, r);
    corrections[row] = std::max(0.0, dot(rows.frames[k][0], c.correction));
  }
}

void WarmStart::resume(const RowSystem& s, const ActiveRows& rows, const std::vector<double>& found_impulses,
                       const std::vector<double>& found_corrections, Penalties found_penalties) {
  const std::size_t first_limit = std::size_t(s.first_limit), first_span = std::size_t(s.first_span);
  const auto& added = rows.added_ends;
  for (std::size_t r = 0, from = 0; r < s.rows(); ++r) {
    const bool limit = first_limit <= r && r < first_span;
    const bool is_new = limit && std::binary_search(added.begin(), added.end(), rows.limit_ends[r - first_limit]);
    impulses[r] = is_new ? 0.0 : found_impulses[from];
    corrections[r] = is_new ? 0.0 : found_corrections[from];
    if (!is_new) ++from;
  }
  penalties = found_penalties;
  warm = true;
}

void remember(const WorldPart& part, const ActiveRows& rows, const std::vector<double>& impulses,
              const std::vector<double>& corrections, Penalties penalties, const std::vector<int>& trees,
              StepMemory& after) {
  for (std::size_t r = 0; r < part.rows.size(); ++r) {
    after.row_impulses[std::size_t(part.rows[r])] = impulses[r];
    after.row_corrections[std::size_t(part.rows[r])] = corrections[r];
  }
  const std::size_t first_limit = part.rows.size(), first_span = first_limit + rows.limit_ends.size(),
                    first_contact = first_span + rows.span_rows.size();
  for (std::size_t k = 0; k < rows.limit_ends.size(); ++k)
    after.limits[whole_end(part, rows.limit_ends[k])] = {impulses[first_limit + k], corrections[first_limit + k]};
  for (std::size_t k = 0; k < rows.span_rows.size(); ++k)
    after.spans[whole_span_row(part, rows.span_rows[k])] = {impulses[first_span + k], corrections[first_span + k]};
  for (const int tree : trees) after.penalties[std::size_t(tree)] = penalties;
  std::size_t row = first_contact;
  for (std::size_t k = 0; k < rows.contacts.size(); ++k) {
    Contact& c = *rows.contacts[k];
    const auto& f = rows.frames[k];
    c.impulse = c.turn = {};
    c.correction = f[0] * corrections[row];
    for (int r = 0; r < c.touch.rows; ++r)
      (r < 3 ? c.impulse : c.turn) += f[std::size_t(r % 3)] * (row_scale(c.touch, r) * impulses[row + std::size_t(r)]);
    row += std::size_t(c.touch.rows);
  }
}

}  // namespace delassus
