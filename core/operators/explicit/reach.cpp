#include "operators/explicit/reach.h"

#include <algorithm>

namespace delassus {

namespace {

class ReachFinder {
 public:
  ReachFinder(const EliminationPlan& plan, std::size_t links, const Limbs& tree)
      : plan_(plan), tree_(tree), step_of_(links, -1), touched_(links, 0), needed_(links, 0), leading_(links, 0) {}

  ReachPlan operator()(int rows) {
    mark();
    add_nodes();
    sort_depth_first();
    add_rows(rows);
    find_fronts();
    return std::move(reach_);
  }

 private:
  template <class F>
  void each_of_boundary(int s, F&& visit) const {
    const auto& at = plan_.storage[std::size_t(s)];
    const int parent = plan_.steps[std::size_t(s)].parent;
    bool met = parent < 0;
    for (int j = at.neighbour; j < at.neighbour + at.neighbours; ++j) {
      met = met || plan_.neighbours[std::size_t(j)].link == parent;
      visit(plan_.neighbours[std::size_t(j)].link);
    }
    if (!met) visit(parent);
  }
  bool passes(int link) const { return !touched_[std::size_t(link)] && leading_[std::size_t(link)] == 1; }

  // The closure of what rows touch, in the order of elimination, and how many lead to each link.
  void mark() {
    for (const auto& range : tree_.ranges) touched_[std::size_t(range.link)] = needed_[std::size_t(range.link)] = 1;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const int link = plan_.steps[s].link;
      step_of_[std::size_t(link)] = int(s);
      if (!needed_[std::size_t(link)]) continue;
      each_of_boundary(int(s), [&](int k) {
        needed_[std::size_t(k)] = 1;
        ++leading_[std::size_t(k)];
      });
    }
  }

  // Nodes, those eliminated last first, each with all links that are passed on its way.
  void add_nodes() {
    const std::size_t links = step_of_.size();
    node_of_.assign(links, -1);
    slot_of_.assign(links, -1);
    for (std::size_t s = plan_.steps.size(); s-- > 0;) {
      const int link = plan_.steps[s].link;
      if (!needed_[std::size_t(link)] || passes(link)) continue;
      node_of_[std::size_t(link)] = int(reach_.nodes.size());
      add_node(link);
    }
  }

  void add_node(int link) {
    ReachPlan::Node node{};
    node.pass = int(reach_.passes.size());
    node.part = int(reach_.parts.size());
    held_.clear();
    waiting_.clear();
    take_slot(link);
    pass(link);
    while (!waiting_.empty()) {
      const int k = waiting_.back();
      waiting_.pop_back();
      pass(k);
    }
    for (std::size_t slot = 1; slot < held_.size(); ++slot)
      if (!passes(held_[slot])) reach_.parts.push_back({int(slot), node_of_[std::size_t(held_[slot])]});
    for (const int k : held_) slot_of_[std::size_t(k)] = -1;
    node.past_pass = int(reach_.passes.size());
    node.past_part = int(reach_.parts.size());
    node.slots = int(held_.size());
    reach_.max_slots = std::max(reach_.max_slots, node.slots);
    reach_.nodes.push_back(node);
  }
  int take_slot(int link) {
    int& slot = slot_of_[std::size_t(link)];
    if (slot >= 0) return slot;
    slot = int(held_.size());
    held_.push_back(link);
    if (slot > 0 && passes(link)) waiting_.push_back(link);
    return slot;
  }
  void pass(int link) {
    const int s = step_of_[std::size_t(link)];
    const auto& at = plan_.storage[std::size_t(s)];
    const int parent = plan_.steps[std::size_t(s)].parent;
    ReachPlan::Pass p{s, slot_of_[std::size_t(link)], -1, int(reach_.slots.size())};
    for (int j = at.neighbour; j < at.neighbour + at.neighbours; ++j)
      reach_.slots.push_back(take_slot(plan_.neighbours[std::size_t(j)].link));
    if (parent >= 0) p.to = take_slot(parent);
    reach_.passes.push_back(p);
  }

  // Nodes depth first. All that a node leads to lies on its way to the root, so a front is short where loops are local.
  void sort_depth_first() {
    const int n = int(reach_.nodes.size());
    std::vector<std::vector<int>> children(static_cast<std::size_t>(n));
    std::vector<int> roots, order, place(static_cast<std::size_t>(n));
    for (int t = 0; t < n; ++t) {
      const auto& node = reach_.nodes[std::size_t(t)];
      int above = -1;
      for (int p = node.part; p < node.past_part; ++p) above = std::max(above, reach_.parts[std::size_t(p)].place);
      (above < 0 ? roots : children[std::size_t(above)]).push_back(t);
    }
    for (const int root : roots) {
      const int first = int(order.size());
      waiting_.assign(1, root);
      while (!waiting_.empty()) {
        const int t = waiting_.back();
        waiting_.pop_back();
        place[std::size_t(t)] = int(order.size());
        order.push_back(t);
        for (const int child : children[std::size_t(t)]) waiting_.push_back(child);
      }
      reach_.components.push_back({first, int(order.size()), 0, 0});
    }
    std::vector<ReachPlan::Node> nodes;
    for (const int t : order) nodes.push_back(reach_.nodes[std::size_t(t)]);
    reach_.nodes = std::move(nodes);
    for (auto& part : reach_.parts) part.place = place[std::size_t(part.place)];
    for (auto& t : node_of_) t = t < 0 ? t : place[std::size_t(t)];
  }

  // Rows in the order in which the last of their links is taken up, those beside each other that touch the same links
  // as one block. Until fronts are found, places are nodes.
  void add_rows(int rows) {
    std::vector<std::vector<ReachPlan::Term>> touches(static_cast<std::size_t>(rows));
    for (const auto& range : tree_.ranges)
      for (int r = 0; r < range.count; ++r)
        touches[std::size_t(tree_.row[std::size_t(range.at + r)])].push_back(
            {node_of_[std::size_t(range.link)], range.at + r});
    std::vector<std::vector<int>> completed(reach_.nodes.size());
    for (std::size_t r = 0; r < touches.size(); ++r) {
      int last = -1;
      for (const auto& touch : touches[r]) last = std::max(last, touch.place);
      if (last >= 0) completed[std::size_t(last)].push_back(int(r));
    }
    for (auto& component : reach_.components) {
      component.row = int(reach_.row.size());
      for (int t = component.node; t < component.past_node; ++t) {
        auto& node = reach_.nodes[std::size_t(t)];
        node.block = int(reach_.blocks.size());
        for (const int r : completed[std::size_t(t)]) {
          add_row(touches, r, int(reach_.row.size()) - component.row, int(reach_.blocks.size()) > node.block);
          reach_.row.push_back(r);
        }
        node.past_block = int(reach_.blocks.size());
      }
      component.past_row = int(reach_.row.size());
      reach_.max_rows = std::max(reach_.max_rows, component.rows());
    }
  }
  void add_row(const std::vector<std::vector<ReachPlan::Term>>& touches, int r, int at, bool follows) {
    const auto& now = touches[std::size_t(r)];
    if (follows) {
      const auto& before = touches[std::size_t(reach_.row.back())];
      const auto next = [](const auto& a, const auto& b) { return a.place == b.place && a.K == b.K + 1; };
      if (std::equal(now.begin(), now.end(), before.begin(), before.end(), next)) {
        ++reach_.blocks.back().rows;
        return;
      }
    }
    reach_.blocks.push_back({at, 1, int(reach_.terms.size()), int(reach_.terms.size() + now.size())});
    reach_.terms.insert(reach_.terms.end(), now.begin(), now.end());
  }

  // Who is in the front when, and in which place.
  void find_fronts() {
    const std::size_t n = reach_.nodes.size();
    std::vector<int> last(n), free_places, front, place(n);
    for (std::size_t t = 0; t < n; ++t) {
      last[t] = int(t);
      for (int p = reach_.nodes[t].part; p < reach_.nodes[t].past_part; ++p)
        last[std::size_t(reach_.parts[std::size_t(p)].place)] = int(t);
    }
    int next = 0;
    for (std::size_t t = 0; t < n; ++t) {
      auto& node = reach_.nodes[t];
      if (front.empty()) next = 0, free_places.clear();  // another component
      if (free_places.empty()) {
        place[t] = next++;
      } else {
        const auto lowest = std::min_element(free_places.begin(), free_places.end());
        place[t] = *lowest;
        free_places.erase(lowest);
      }
      node.place = place[t];
      front.push_back(int(t));
      node.front = int(reach_.fronts.size());
      for (const int k : front) {
        reach_.fronts.push_back(place[std::size_t(k)]);
        node.span = std::max(node.span, place[std::size_t(k)] + 1);
      }
      node.past_front = int(reach_.fronts.size());
      for (int p = node.part; p < node.past_part; ++p) {
        int& k = reach_.parts[std::size_t(p)].place;
        k = place[std::size_t(k)];
      }
      for (int b = node.block; b < node.past_block; ++b)
        for (int k = reach_.blocks[std::size_t(b)].term; k < reach_.blocks[std::size_t(b)].past_term; ++k)
          reach_.terms[std::size_t(k)].place = place[std::size_t(reach_.terms[std::size_t(k)].place)];
      reach_.max_span = std::max(reach_.max_span, node.span);
      reach_.max_front = std::max(reach_.max_front, int(front.size()));
      const auto gone = [&](int k) { return last[std::size_t(k)] <= int(t); };
      for (const int k : front)
        if (gone(k)) free_places.push_back(place[std::size_t(k)]);
      std::erase_if(front, gone);
    }
  }

  const EliminationPlan& plan_;
  const Limbs& tree_;
  ReachPlan reach_;
  std::vector<int> step_of_;            // a link
  std::vector<char> touched_, needed_;  // a link: by rows; by what is reached
  std::vector<int> leading_;            // a link: how many lead to it
  std::vector<int> node_of_, slot_of_;  // a link; −1: none
  std::vector<int> held_, waiting_;     // links that have slots; those of them that are to be passed
};

}  // namespace

ReachPlan find_reach(const EliminationPlan& plan, std::size_t links, const Limbs& tree, int rows) {
  return ReachFinder(plan, links, tree)(rows);
}

}  // namespace delassus
