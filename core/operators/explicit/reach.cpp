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
    sort_by_component();
    add_rows(rows);
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
    node.touched = touched_[std::size_t(link)];
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

  // A node belongs with what it leads to.
  void sort_by_component() {
    const std::size_t n = reach_.nodes.size();
    std::vector<int> component(n), place(n);
    std::vector<std::vector<int>> members;
    for (std::size_t t = 0; t < n; ++t) {
      const auto& node = reach_.nodes[t];
      if (node.part == node.past_part) {
        component[t] = int(members.size());
        members.emplace_back();
      } else {
        component[t] = component[std::size_t(reach_.parts[std::size_t(node.part)].node)];
      }
      place[t] = int(members[std::size_t(component[t])].size());
      members[std::size_t(component[t])].push_back(int(t));
    }
    for (auto& part : reach_.parts) part.node = place[std::size_t(part.node)];
    std::vector<ReachPlan::Node> nodes;
    nodes.reserve(n);
    for (const auto& list : members) {
      ReachPlan::Component c{};
      c.node = int(nodes.size());
      for (std::size_t t = 0; t < list.size(); ++t) {
        nodes.push_back(reach_.nodes[std::size_t(list[t])]);
        reach_.products += double(nodes.back().past_part - nodes.back().part) * double(t + 1);
      }
      c.past_node = int(nodes.size());
      reach_.max_nodes = std::max(reach_.max_nodes, c.nodes());
      reach_.components.push_back(c);
    }
    reach_.nodes = std::move(nodes);
    for (auto& t : node_of_)
      if (t >= 0) {
        place_of_.push_back({component[std::size_t(t)], place[std::size_t(t)]});
        t = int(place_of_.size()) - 1;
      }
  }

  // Rows of components, those beside each other that touch the same links as one block.
  void add_rows(int rows) {
    struct Touch {
      int component, node, K;
    };
    std::vector<std::vector<Touch>> touches(static_cast<std::size_t>(rows));
    for (const auto& range : tree_.ranges) {
      const auto& at = place_of_[std::size_t(node_of_[std::size_t(range.link)])];
      for (int r = 0; r < range.count; ++r)
        touches[std::size_t(tree_.row[std::size_t(range.at + r)])].push_back({at.component, at.node, range.at + r});
    }
    std::vector<std::vector<int>> rows_of(reach_.components.size());
    for (std::size_t r = 0; r < touches.size(); ++r)
      if (!touches[r].empty()) rows_of[std::size_t(touches[r][0].component)].push_back(int(r));
    for (std::size_t c = 0; c < rows_of.size(); ++c) {
      auto& component = reach_.components[c];
      component.block = int(reach_.blocks.size());
      component.row = int(reach_.row.size());
      for (std::size_t k = 0; k < rows_of[c].size(); ++k) {
        const auto& now = touches[std::size_t(rows_of[c][k])];
        const auto continues = [&](const std::vector<Touch>& before) {
          return before.size() == now.size() && std::equal(now.begin(), now.end(), before.begin(), [](auto& a, auto& b) {
                   return a.node == b.node && a.K == b.K + 1;
                 });
        };
        reach_.row.push_back(rows_of[c][k]);
        if (k > 0 && continues(touches[std::size_t(rows_of[c][k - 1])])) {
          ++reach_.blocks.back().rows;
          continue;
        }
        ReachPlan::Block block{int(k), 1, int(reach_.terms.size()), 0};
        for (const auto& touch : now) reach_.terms.push_back({touch.node, touch.K});
        block.past_term = int(reach_.terms.size());
        reach_.blocks.push_back(block);
      }
      component.past_block = int(reach_.blocks.size());
      component.past_row = int(reach_.row.size());
      reach_.max_rows = std::max(reach_.max_rows, component.rows());
    }
    reach_.whole = reach_.components.size() == 1 && int(reach_.row.size()) == rows;
  }

  struct Place {
    int component, node;
  };
  const EliminationPlan& plan_;
  const Limbs& tree_;
  ReachPlan reach_;
  std::vector<int> step_of_;              // a link
  std::vector<char> touched_, needed_;    // a link: by rows; by what is reached
  std::vector<int> leading_;              // a link: how many lead to it
  std::vector<int> node_of_, slot_of_;    // a link; −1: none
  std::vector<int> held_, waiting_;       // links that have slots; those of them that are to be passed
  std::vector<Place> place_of_;
};

}  // namespace

ReachPlan find_reach(const EliminationPlan& plan, std::size_t links, const Limbs& tree, int rows) {
  return ReachFinder(plan, links, tree)(rows);
}

}  // namespace delassus
