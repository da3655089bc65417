#include "operators/explicit/limbs.h"

#include <algorithm>
#include <limits>

namespace delassus {

namespace {

constexpr int none = std::numeric_limits<int>::max();

// Rows of every link, and what links carry of them.
struct CarriedRows {
  using Source = Limbs::Source;
  std::vector<std::vector<Limbs::RowRange>> on;  // a link: its own, in the user's order
  std::vector<int> least, carried, branches;     // a link: the least row it carries, how many, on how many children

  template <class Real>
  CarriedRows(const Model<Real>& model, const ConstraintSet<Real>& set)
      : on(model.links.size()), least(on.size(), none), carried(on.size(), 0), branches(on.size(), 0) {
    const auto add = [&](Source source, int link, int index, int count, int row) {
      if (link >= 0) on[link].push_back({source, link, index, count, row});
    };
    for (const auto& group : set.groups)
      for (int p = group.first; p < group.first + group.count; ++p) {
        add(Source::point, group.link, p, 3, set.points[p].row);
        add(Source::other_point, group.other, p, 3, set.points[p].row);
      }
    for (const auto& b : set.blocks)
      for (int t = b.term; t < b.term + b.terms; ++t)
        add(Source::term, set.terms[t].link, set.terms[t].K, b.rows, b.row);
    for (std::size_t j = 0; j < set.joint_rows.size(); ++j) {
      const int link = model.dof_link[set.joint_rows[j].velocity];
      add(Source::joint, link, int(j), 1, set.joint_rows[j].row);
      add(Source::parent_of_joint, model.links[link].parent, int(j), 1, set.joint_rows[j].row);
    }
    for (auto& ranges : on)
      std::stable_sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    for (int i = int(on.size()) - 1; i >= 0; --i) {
      for (const auto& range : on[i]) {
        least[i] = std::min(least[i], range.at);
        carried[i] += range.count;
      }
      const int p = model.links[i].parent;
      if (p < 0 || carried[i] == 0) continue;
      least[p] = std::min(least[p], least[i]);
      carried[p] += carried[i];
      ++branches[p];
    }
  }
  // a link that only passes on what comes from one child
  bool passes(int i) const { return on[i].empty() && branches[i] == 1; }
};

// The limbs, those further out first, with their velocities; and which hang on which.
template <class Real>
std::vector<std::vector<int>> add_limbs(const Model<Real>& model, const Layout<Real>& layout, const CarriedRows& rows,
                                        Limbs& all) {
  const int n = int(model.links.size());
  std::vector<int> limb_of(n, -1), factor_of(n, -1), below(n, -1);
  for (std::size_t s = 0; s < layout.loose.steps.size(); ++s)
    if (const auto& step = layout.loose.steps[s]; step.free) factor_of[step.link] = layout.loose.storage[s].factor;
  for (int i = n - 1; i >= 0; --i) {
    if (rows.carried[i] == 0 || rows.passes(i)) continue;
    Limb limb{};
    limb.parent = limb.free = -1;
    limb.tip = i;
    limb.dof = int(all.velocity.size());
    int j = i;
    do {
      const auto& link = model.links[j];
      if (link.type == Joint::free) limb.free = factor_of[j];
      if (link.type == Joint::free) limb.dofs = int(all.velocity.size()) - limb.dof;
      // a free joint is eliminated along the world's axes, first to last
      for (int k = 0; k < link.nv; ++k) {
        all.velocity.push_back(link.type == Joint::free ? link.iv + k : link.iv + link.nv - 1 - k);
        all.link.push_back(j);
      }
      limb_of[j] = int(all.limbs.size());
      j = link.parent;
    } while (j >= 0 && rows.passes(j));
    if (limb.free < 0) limb.dofs = int(all.velocity.size()) - limb.dof;
    below[all.limbs.size()] = j;
    all.limbs.push_back(limb);
  }
  std::vector<std::vector<int>> hanging(all.limbs.size());
  for (std::size_t l = 0; l < all.limbs.size(); ++l) {
    if (below[l] >= 0) all.limbs[l].parent = limb_of[below[l]];
    if (all.limbs[l].parent >= 0) hanging[all.limbs[l].parent].push_back(int(l));
  }
  return hanging;
}

// Ranges of rows, as near to the user's order as they can be: a limb's own rows and those of each limb on it in the
// order of their least ones.
void order_rows(const CarriedRows& rows, std::vector<std::vector<int>> hanging, Limbs& all) {
  const auto least_of = [&](int l) { return rows.least[all.limbs[l].tip]; };
  const auto earlier = [&](int a, int b) { return least_of(a) < least_of(b); };
  std::vector<int> roots;
  for (std::size_t l = 0; l < all.limbs.size(); ++l)
    if (all.limbs[l].parent < 0) roots.push_back(int(l));
  std::sort(roots.begin(), roots.end(), earlier);
  int next = 0;
  for (const int l : roots) {
    all.limbs[l].first = next;
    next += rows.carried[all.limbs[l].tip];
  }
  all.row.resize(std::size_t(next));
  for (std::size_t l = all.limbs.size(); l-- > 0;) {
    Limb& limb = all.limbs[l];
    const auto& on = rows.on[limb.tip];
    limb.past = limb.first + rows.carried[limb.tip];
    std::sort(hanging[l].begin(), hanging[l].end(), earlier);
    limb.child = int(all.children.size());
    limb.children = int(hanging[l].size());
    int at = limb.first;
    const int own = on.empty() ? none : on.front().at;
    bool placed = false;
    auto place_own = [&] {
      limb.own = at;
      for (const auto& range : on) {
        for (int r = 0; r < range.count; ++r) all.row[at + r] = range.at + r;
        all.ranges.push_back(range);
        all.ranges.back().at = at;
        at += range.count;
      }
      limb.own_past = at;
      placed = true;
    };
    for (const int c : hanging[l]) {
      if (!placed && own < least_of(c)) place_own();
      all.children.push_back(c);
      all.limbs[c].first = at;
      at += rows.carried[all.limbs[c].tip];
    }
    if (!placed) place_own();
  }
}

}  // namespace

template <class Real>
bool rows_act_on_single_links(const ConstraintSet<Real>& set) {
  bool single = set.joint_rows.empty();
  for (const auto& group : set.groups) single = single && group.other < 0;
  for (const auto& b : set.blocks) single = single && b.terms == 1;
  return single;
}

template <class Real>
Limbs find_limbs(const Model<Real>& model, const Layout<Real>& layout) {
  const auto& set = layout.set;
  Limbs all;
  all.single_link = rows_act_on_single_links(set);
  const CarriedRows rows(model, set);
  auto hanging = add_limbs(model, layout, rows, all);
  order_rows(rows, std::move(hanging), all);
  std::sort(all.ranges.begin(), all.ranges.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  for (const auto& limb : all.limbs)
    if (limb.parent < 0) all.trees.push_back({limb.first, limb.past, 0, 0});
  std::sort(all.trees.begin(), all.trees.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  int range = 0;
  for (auto& t : all.trees) {
    t.range = range;
    while (range < int(all.ranges.size()) && all.ranges[std::size_t(range)].at < t.past) ++range;
    t.past_range = range;
  }
  all.ordered = all.single_link && all.rows() == set.rows;
  for (int r = 0; r < all.rows(); ++r) all.ordered = all.ordered && all.row[std::size_t(r)] == r;
  return all;
}

template bool rows_act_on_single_links(const ConstraintSet<double>&);
template bool rows_act_on_single_links(const ConstraintSet<float>&);
template Limbs find_limbs(const Model<double>&, const Layout<double>&);
template Limbs find_limbs(const Model<float>&, const Layout<float>&);

}  // namespace delassus
