#include "operators/order.h"

#include <algorithm>
#include <limits>

namespace delassus {

namespace {

constexpr std::uint64_t absent = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t max_links = 8192;  // of which fill is counted: 8 MB

}  // namespace

void RankSet::clear(std::size_t bound) {
  words_.assign(bound / 64 + 1, 0);
  full_.assign(bound / 4096 + 1, 0);
}

int RankSet::below(int r) const {
  if (r <= 0) return -1;
  const auto highest = [](std::uint64_t word) { return 63 - std::countl_zero(word); };
  const auto under = [](int k) { return bit(k) - 1; };  // bits below
  const std::size_t word = std::min(at(r), words_.size() - 1);
  if (const std::uint64_t bits = words_[word] & (word == at(r) ? under(r) : ~std::uint64_t(0)))
    return int(64 * word) + highest(bits);
  for (std::size_t s = word / 64 + 1; s-- > 0;)
    if (const std::uint64_t bits = full_[s] & (s == word / 64 ? under(int(word)) : ~std::uint64_t(0))) {
      const std::size_t found = 64 * s + std::size_t(highest(bits));
      return int(64 * found) + highest(words_[found]);
    }
  return -1;
}

// Short runs of narrow strips cost more on the way in and out than they save: those are left out.
void EliminationOrder::find(const std::vector<PlannedLink>& planned, const LinkLists& groups, int lanes) {
  planned_ = &planned;
  find_active();
  couple(groups);
  order_by(false, lanes);
  if (!large() || planned.size() > max_links) return;
  const double products = products_;
  order_by(true, lanes);
  if (products_ >= products) order_by(false, lanes);
}

void EliminationOrder::order_by(bool fill, int lanes) {
  by_fill_ = fill;
  kept_out_.assign(planned_->size(), 0);
  do eliminate_all(lanes);
  while (lanes > 1 && leave_out_short_strips());
  // H_jk −= W_j D⁻¹ W_kᵀ for all pairs of neighbours
  products_ = 0;
  for (std::size_t s = 0; s < neighbours.size(); ++s) products_ += double(neighbours[s].size() * neighbours[s].size());
}

void EliminationOrder::start_fill() {
  fill_.clear(planned_->size());
  for (std::size_t i = 0; i < given_.size(); ++i)
    for (int k = given_[i].begin; k < given_[i].begin + given_[i].size; ++k)
      if (const int j = given_pool_[std::size_t(k)]; j > int(i)) fill_.couple(int(i), j);
}

void EliminationOrder::find_active() {
  const auto& planned = *planned_;
  active.assign(planned.size(), 0);
  for (std::size_t i = planned.size(); i-- > 0;) {
    active[i] = active[i] || planned[i].held;
    if (active[i] && planned[i].parent >= 0) active[std::size_t(planned[i].parent)] = 1;
  }
}

// Neighbours of every link by the groups, each once, with room for as many more.
void EliminationOrder::couple(const LinkLists& groups) {
  given_.assign(planned_->size(), {});
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const int i : groups[g]) given_[std::size_t(i)].capacity += 2 * int(groups[g].size() - 1);
  int end = 0;
  for (auto& list : given_) list.begin = end, end += list.capacity;
  given_pool_.resize(std::size_t(end));
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const int i : groups[g])
      for (const int j : groups[g]) {
        List& list = given_[std::size_t(i)];
        if (i != j) given_pool_[std::size_t(list.begin + list.size++)] = j;
      }
  marks_.assign(planned_->size(), 0);
  stamp_ = 0;
  for (auto& list : given_) {
    int* const members = given_pool_.data() + list.begin;
    ++stamp_;
    for (int k = 0; k < list.size; ++k)
      if (int& mark = marks_[std::size_t(members[k])]; mark != stamp_)
        mark = stamp_, members[list.degree++] = members[k];
    list.size = list.degree;
  }
}

void EliminationOrder::eliminate_all(int lanes) {
  const auto& planned = *planned_;
  const std::size_t n = planned.size();
  links.clear();
  position.assign(n, -1);
  neighbours.clear();
  strips.clear();
  free_strips.clear();
  strip_.clear();
  lists_ = given_;
  pool_ = given_pool_;
  children_.assign(n, 0);
  for (const auto& link : planned)
    if (link.parent >= 0) ++children_[std::size_t(link.parent)];
  plain_.clear(2 * n);
  loose_.clear(2 * n);
  if (by_fill_) start_fill();
  leaves_ = std::bit_ceil(std::max(n, std::size_t(1)));
  tournament_.assign(2 * leaves_, absent);
  for (std::size_t i = 0; i < n; ++i)
    if (children_[i] == 0) refresh(int(i));
  while (links.size() < n)
    if (!take_strip(lanes) && !take_free_strip(lanes)) eliminate(int(n - 1 - (tournament_[1] & 0x7fffffff)));
}

// Those with one velocity and no neighbours go several at once: the parents of the last strip, lane for lane, if these
// may go, and others.
bool EliminationOrder::take_strip(int lanes) {
  if (lanes < 2) return false;
  const int n = int(planned_->size());
  const bool idle = !(tournament_[1] >> 62);
  std::vector<int>& members = strips.links;
  const std::size_t first = members.size();
  const auto taken = [&](int i) {
    return std::find(members.begin() + std::ptrdiff_t(first), members.end(), i) != members.end();
  };
  const auto may_go = [&](int i) {
    return position[std::size_t(i)] < 0 && children_[std::size_t(i)] == 0 && active[std::size_t(i)] != char(idle) &&
           lists_[std::size_t(i)].degree == 0 && (*planned_)[std::size_t(i)].nv == 1 && !kept_out_[std::size_t(i)];
  };
  for (const int i : strip_)
    if (const int p = (*planned_)[std::size_t(i)].parent; p >= 0 && may_go(p) && !taken(p)) members.push_back(p);
  if (strip_.empty() || members.size() - first != strip_.size())
    for (int r = plain_.below(2 * n); r >= (idle ? n : 0) && int(members.size() - first) < lanes; r = plain_.below(r))
      if (!taken(link(r))) members.push_back(link(r));
  if (members.size() - first < 2) {
    members.resize(first);
    strip_.clear();
    return false;
  }
  strips.close();
  strip_.assign(members.begin() + std::ptrdiff_t(first), members.end());
  for (const int i : strip_) eliminate(i);
  return true;
}

// Free links without neighbours, side by side.
bool EliminationOrder::take_free_strip(int lanes) {
  if (lanes < 2) return false;
  const int n = int(planned_->size());
  const bool idle = !(tournament_[1] >> 62);
  std::vector<int>& members = free_strips.links;
  const std::size_t first = members.size();
  for (int r = loose_.below(2 * n); r >= (idle ? n : 0) && int(members.size() - first) < lanes; r = loose_.below(r))
    members.push_back(link(r));
  if (members.size() - first < 2) {
    members.resize(first);
    return false;
  }
  free_strips.close();
  for (std::size_t k = first; k < members.size(); ++k) eliminate(members[k]);
  return true;
}

void EliminationOrder::eliminate(int i) {
  const int p = (*planned_)[std::size_t(i)].parent;
  position[std::size_t(i)] = int(links.size());
  links.push_back(i);
  refresh(i);

  // its neighbours
  const List& own = lists_[std::size_t(i)];
  meeting_.clear();
  for (int k = own.begin; k < own.begin + own.size; ++k)
    if (const int j = pool_[std::size_t(k)]; position[std::size_t(j)] < 0) meeting_.push_back(j);
  std::sort(meeting_.begin(), meeting_.end());
  neighbours.add(meeting_);

  // fill: what was next to i is next to each other and to its parent
  if (!meeting_.empty()) {
    for (const int j : meeting_) --lists_[std::size_t(j)].degree;
    if (p >= 0 && !std::binary_search(meeting_.begin(), meeting_.end(), p)) meeting_.push_back(p);
    if (meeting_.size() > 1)
      for (std::size_t k = join_hub() ? 1 : 0; k < meeting_.size(); ++k) join(meeting_[k]);
    for (const int j : meeting_) refresh(j);
    if (by_fill_) {
      fill_.eliminate(i, neighbours[neighbours.size() - 1], meeting_);
      for (const int j : fill_.changed()) refresh(j);
    }
  }
  if (p >= 0 && --children_[std::size_t(p)] == 0) refresh(p);
}

// Adds all that meet to the neighbours of j, and drops those that are gone.
void EliminationOrder::join(int j) {
  List& list = lists_[std::size_t(j)];
  reserve(list, list.size + int(meeting_.size()));
  int* const members = pool_.data() + list.begin;
  int size = 0;
  marks_[std::size_t(j)] = ++stamp_;
  for (int k = 0; k < list.size; ++k)
    if (const int other = members[k]; position[std::size_t(other)] < 0)
      marks_[std::size_t(other)] = stamp_, members[size++] = other;
  for (const int k : meeting_)
    if (marks_[std::size_t(k)] != stamp_) members[size++] = k;
  list.size = list.degree = size;
}

// The same for one that has many more neighbours than all the others together, whose lists are gone through instead;
// it is put first of those that meet. False: there is none.
bool EliminationOrder::join_hub() {
  const auto size = [&](int j) { return lists_[std::size_t(j)].size; };
  const auto hub = std::max_element(meeting_.begin(), meeting_.end(), [&](int a, int b) { return size(a) < size(b); });
  int others = 8;
  for (const int j : meeting_) others += size(j);
  others -= size(*hub);
  if (size(*hub) <= 4 * others) return false;
  std::swap(*hub, meeting_.front());
  const int j = meeting_.front();
  List& list = lists_[std::size_t(j)];
  reserve(list, list.size + int(meeting_.size()));
  for (std::size_t k = 1; k < meeting_.size(); ++k) {
    const List& other = lists_[std::size_t(meeting_[k])];
    const auto begin = pool_.begin() + other.begin, end = begin + other.size;
    if (std::find(begin, end, j) != end) continue;
    pool_[std::size_t(list.begin + list.size++)] = meeting_[k];
    ++list.degree;
  }
  return true;
}

void EliminationOrder::reserve(List& list, int size) {
  if (size <= list.capacity) return;
  const std::size_t begin = pool_.size();
  list.capacity = 2 * size;
  pool_.resize(begin + std::size_t(list.capacity));
  std::copy_n(pool_.begin() + list.begin, list.size, pool_.begin() + std::ptrdiff_t(begin));
  list.begin = int(begin);
}

// Whether a link may go now, and before which others.
void EliminationOrder::refresh(int i) {
  const auto& planned = (*planned_)[std::size_t(i)];
  const std::size_t n = planned_->size();
  const bool waits = position[std::size_t(i)] < 0 && children_[std::size_t(i)] == 0;
  const std::uint64_t degree = std::uint64_t(lists_[std::size_t(i)].degree);
  const std::uint64_t weight = by_fill_ ? 2 * std::uint64_t(fill_.of(i)) + (degree > 0) : degree;
  const std::uint64_t key =
      waits ? std::uint64_t(active[std::size_t(i)]) << 62 | weight << 31 | (n - 1 - std::size_t(i)) : absent;
  std::size_t k = leaves_ + std::size_t(i);
  if (tournament_[k] == key) return;
  tournament_[k] = key;
  for (k /= 2; k > 0; k /= 2) {
    const std::uint64_t lower = std::min(tournament_[2 * k], tournament_[2 * k + 1]);
    if (tournament_[k] == lower) break;
    tournament_[k] = lower;
  }
  if (degree > 0) return;
  if (planned.nv == 1 && !kept_out_[std::size_t(i)]) waits ? plain_.insert(rank(i)) : plain_.erase(rank(i));
  if (planned.free && planned.bare && !planned.pushed) waits ? loose_.insert(rank(i)) : loose_.erase(rank(i));
}

bool EliminationOrder::joins(std::size_t t) const {
  if (t + 1 >= strips.size() || strips[t].size() != strips[t + 1].size()) return false;
  const auto now = strips[t], next = strips[t + 1];
  for (std::size_t l = 0; l < now.size(); ++l)
    if ((*planned_)[std::size_t(now[l])].parent != next[l]) return false;
  return position[std::size_t(next[0])] == position[std::size_t(now.back())] + 1 &&
         active[std::size_t(now[0])] == active[std::size_t(next[0])];
}

bool EliminationOrder::leave_out_short_strips() {
  bool changed = false;
  for (std::size_t t = 0; t < strips.size();) {
    std::size_t end = t + 1;
    while (end < strips.size() && joins(end - 1)) ++end;
    const int run = int(end - t), width = int(strips[t].size());
    if (8 * run * width < 10 * run + 24)
      for (; t < end; ++t)
        for (const int i : strips[t]) kept_out_[std::size_t(i)] = 1, changed = true;
    t = end;
  }
  return changed;
}

}  // namespace delassus
