#include "operators/explicit/limbs.h"

#include <algorithm>
#include <limits>

namespace delassus {

template <class Real>
bool rows_alone(const ConstraintSet<Real>& set) {
  bool alone = set.joint_rows.empty();
  for (const auto& group : set.groups) alone = alone && group.other < 0;
  for (const auto& b : set.blocks) alone = alone && b.terms == 1;
  return alone;
}

template <class Real>
Limbs find_limbs(const Model<Real>& model, const Layout<Real>& layout) {
  const auto& set = layout.set;
  const int n = int(model.links.size());
  Limbs all;
  all.alone = rows_alone(set);
  if (!all.alone) return all;

  // rows of every link, in the user's order
  std::vector<std::vector<Limbs::Place>> on(n);
  for (const auto& group : set.groups)
    for (int c = 0; c < group.count; ++c)
      on[group.link].push_back({group.link, group.first + c, 3, set.points[group.first + c].row});
  // the sign of `source` tells terms from points until they are sorted
  for (const auto& b : set.blocks)
    on[set.terms[b.term].link].push_back({set.terms[b.term].link, -1 - set.terms[b.term].K, b.rows, b.row});
  for (auto& places : on)
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.at < b.at; });

  // the least row that a link carries, and how many; links that carry some
  constexpr int none = std::numeric_limits<int>::max();
  std::vector<int> least(n, none), carried(n, 0), branches(n, 0);
  for (int i = n - 1; i >= 0; --i) {
    for (const auto& place : on[i]) {
      least[i] = std::min(least[i], place.at);
      carried[i] += place.count;
    }
    const int p = model.links[i].parent;
    if (p < 0 || carried[i] == 0) continue;
    least[p] = std::min(least[p], least[i]);
    carried[p] += carried[i];
    ++branches[p];
  }

  // limbs, those further out first
  std::vector<int> limb_of(n, -1), factor_of(n, -1), below(n, -1);
  for (std::size_t s = 0; s < layout.loose.steps.size(); ++s)
    if (const auto& step = layout.loose.steps[s]; step.free) factor_of[step.link] = layout.loose.storage[s].factor;
  for (int i = n - 1; i >= 0; --i) {
    if (carried[i] == 0) continue;
    if (on[i].empty() && branches[i] == 1) continue;
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
    } while (j >= 0 && on[j].empty() && branches[j] == 1);
    if (limb.free < 0) limb.dofs = int(all.velocity.size()) - limb.dof;
    below[all.limbs.size()] = j;
    all.limbs.push_back(limb);
  }
  std::vector<std::vector<int>> hanging(all.limbs.size());
  for (std::size_t l = 0; l < all.limbs.size(); ++l) {
    if (below[l] >= 0) all.limbs[l].parent = limb_of[below[l]];
    if (all.limbs[l].parent >= 0) hanging[all.limbs[l].parent].push_back(int(l));
  }

  // ranges of rows, as near to the user's order as they can be: a limb's own rows and those of each limb on it in the
  // order of their least ones
  const auto least_of = [&](int l) { return least[all.limbs[l].tip]; };
  std::vector<int> roots;
  for (std::size_t l = 0; l < all.limbs.size(); ++l)
    if (all.limbs[l].parent < 0) roots.push_back(int(l));
  std::sort(roots.begin(), roots.end(), [&](int a, int b) { return least_of(a) < least_of(b); });
  int next = 0;
  for (const int l : roots) {
    all.limbs[l].first = next;
    next += carried[all.limbs[l].tip];
  }
  all.row.resize(std::size_t(next));
  for (std::size_t l = all.limbs.size(); l-- > 0;) {
    Limb& limb = all.limbs[l];
    limb.past = limb.first + carried[limb.tip];
    std::sort(hanging[l].begin(), hanging[l].end(), [&](int a, int b) { return least_of(a) < least_of(b); });
    limb.child = int(all.children.size());
    limb.children = int(hanging[l].size());
    int at = limb.first;
    const int own = on[limb.tip].empty() ? none : on[limb.tip].front().at;
    bool placed = false;
    auto place_own = [&] {
      limb.own = at;
      for (const auto& place : on[limb.tip]) {
        for (int r = 0; r < place.count; ++r) all.row[std::size_t(at + r)] = place.at + r;
        if (place.source < 0)
          all.terms.push_back({place.link, -1 - place.source, place.count, at});
        else
          all.points.push_back({place.link, place.source, place.count, at});
        at += place.count;
      }
      limb.own_past = at;
      placed = true;
    };
    for (const int c : hanging[l]) {
      if (!placed && own < least_of(c)) place_own();
      all.children.push_back(c);
      all.limbs[c].first = at;
      at += carried[all.limbs[c].tip];
    }
    if (!placed) place_own();
  }
  all.ordered = next == set.rows;
  for (int r = 0; r < next; ++r) all.ordered = all.ordered && all.row[std::size_t(r)] == r;
  return all;
}

template bool rows_alone(const ConstraintSet<double>&);
template bool rows_alone(const ConstraintSet<float>&);
template Limbs find_limbs(const Model<double>&, const Layout<double>&);
template Limbs find_limbs(const Model<float>&, const Layout<float>&);

}  // namespace delassus
