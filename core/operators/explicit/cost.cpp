#include "operators/explicit/cost.h"

#include <algorithm>

#include "dynamics/per_link.h"

namespace delassus {

namespace {

constexpr double written = 6.5e-4;  // µs an entry of the result takes, in both triangles
constexpr double refined = 1.35;    // what the work of `columns` is multiplied by for a refinement of lcaba_osim

// start, common, own [µs]: see cost.h
struct Coefficients {
  double start, common, own;
};
constexpr std::array<Coefficients, all_matrix_methods.size()> matrix_coefficients{{
    {1.8, 2.4e-4, 9.01e-4},    // ltl
    {1.38, 2.46e-4, 5.37e-4},  // kjr
    {1.47, 2.44e-4, 1.25e-3},  // efpa
    {1.49, 2.45e-4, 1.07e-3},  // pv-osim
    {1.46, 2.45e-4, 9.97e-4},  // pv-osimr
    {1.35, 2.33e-4, 5.59e-4},  // oscm
    {1.48, 2.43e-4, 5.26e-4},  // columns
}};
constexpr std::array<Coefficients, all_inverse_methods.size()> inverse_coefficients{{
    {1.6, 2.64e-4, 1.65e-3},  // caba-osim
    {1.6, 2.41e-4, 1.42e-3},  // caba-osimf
    {1.7, 2.27e-4, 1.35e-3},  // pv-osimf
    {2.1, 2.4e-4, 9.92e-4},   // ltl
    {2.6, 2.64e-4, 9.0e-4},   // lcaba-osim
    {2.3, 1.72e-4, 8.8e-4},   // lcaba
}};

class Counter {
 public:
  explicit Counter(int lanes) : lanes_(lanes) {}
  int packs(int rows) const { return (rows + lanes_ - 1) / lanes_; }
  // rows and packs of columns from them on, or from `from` on
  double triangle(int rows) const {
    double sum = 0;
    for (int i = 0; i < rows; i += 6) sum += std::min(6, rows - i) * packs(rows - i);
    return sum;
  }
  double block(int rows, int columns) const { return double(rows) * packs(columns); }
  // factor and inverse, whose blocks pay where there are many (dense.h)
  double cholesky(double b) const { return b * b * b / ((b < 192 ? 2 : 5) * lanes_) + 20 * b; }

  // products at the tip of a limb
  double meetings(const Limbs& tree, const Limb& limb, bool direct_too) const {
    double sum = limb.own < limb.own_past
                     ? triangle(limb.own_past - limb.own) + block(limb.own_past - limb.own, limb.past - limb.own_past)
                     : 0;
    for (int c = limb.child; c < limb.child + limb.children; ++c) {
      const auto& child = tree.limbs[tree.children[c]];
      sum += block(child.rows(), limb.past - child.past);
      if (direct_too && child.children == 0 && child.rows() <= 6) sum += triangle(child.rows());
    }
    return 6 * sum;
  }

 private:
  int lanes_;
};

double& own(Costs& costs, MatrixMethod method) { return costs.matrix[std::size_t(method)].own; }
double& own(Costs& costs, InverseMethod method) { return costs.inverse[std::size_t(method)].own; }

// What recursions do limb by limb.
void add_limbs(const Counter& count, const Limbs& tree, Costs& costs) {
  double blocks = 0;
  for (const auto& limb : tree.limbs) {
    const double p = count.packs(limb.rows()), v = limb.dofs, free = limb.free >= 0,
                 triangle = count.triangle(limb.rows());
    const bool direct = limb.children == 0 && limb.rows() <= 6;
    const double pv = 13 * p * v + 36 * p * free + triangle * (v + 6 * free);
    own(costs, MatrixMethod::pv_osim) += pv;
    own(costs, MatrixMethod::efpa) += 26 * p * v + 72 * p * free + count.meetings(tree, limb, false);
    own(costs, MatrixMethod::pv_osimr) +=
        direct ? pv : 19 * (v + 6 * free) + 72 + 72 * p + count.meetings(tree, limb, true);
    own(costs, MatrixMethod::kjr) += 90 * v + 200 * free;
    own(costs, MatrixMethod::oscm) += 90 * v + 200 * free;
    own(costs, InverseMethod::pv_osimf) += pv;
    // blocks of the free base are its branches
    if (limb.parent < 0 && (limb.free < 0 || limb.dofs > 0)) blocks += count.cholesky(limb.rows());
    if (limb.parent < 0 && limb.free >= 0 && limb.dofs == 0) {
      blocks += count.cholesky(limb.own_past - limb.own);
      for (int c = limb.child; c < limb.child + limb.children; ++c)
        blocks += count.cholesky(tree.limbs[tree.children[c]].rows());
    }
    if (limb.parent < 0 && limb.free >= 0) blocks += 6 * triangle + 60 * p;
  }
  own(costs, InverseMethod::pv_osimf) += blocks;
}

// Rows on several links: every pair of rows on links is added to the pair of rows.
void add_folding(const Limbs& tree, Costs& costs) {
  if (tree.single_link) return;
  double pairs = 0;
  for (const auto& t : tree.trees) pairs += double(t.past - t.first) * double(t.past - t.first);
  for (const auto method :
       {MatrixMethod::kjr, MatrixMethod::efpa, MatrixMethod::pv_osim, MatrixMethod::pv_osimr, MatrixMethod::oscm})
    own(costs, method) += pairs;
}

// Blocks of the inverse of M + Jᵀ R J, and what rows make of them.
void add_reach(const Counter& count, const EliminationPlan& plan, const ReachPlan& reach, Costs& costs) {
  double sum = 0;
  for (const auto& pass : reach.passes) sum += 100 + 40 * plan.storage[std::size_t(pass.step)].neighbours;
  for (const auto& component : reach.components) {
    int rows = 0;
    for (int t = component.node; t < component.past_node; ++t) {
      const auto& node = reach.nodes[std::size_t(t)];
      sum += 36.0 * (node.past_part - node.part) * (count.packs(6 * node.span) + count.packs(rows));
      for (int b = node.block; b < node.past_block; ++b) {
        const auto& block = reach.blocks[std::size_t(b)];
        const double links = block.past_term - block.term;
        rows = block.row + block.rows;
        sum += links *
               (36.0 * (node.past_front - node.front) * count.packs(block.rows) + 6 * count.block(block.rows, rows));
      }
    }
    sum += 2 * count.block(component.rows(), component.rows());
  }
  own(costs, InverseMethod::lcaba_osim) = sum;
}

// Small damping with rows that are independent asks for one refinement of all columns. `auto` does not know the damping
// and counts it, unless there are more rows than velocities, so that some depend on others.
void add_refinement(int rows, int velocities, Costs& costs) {
  if (rows <= velocities) own(costs, InverseMethod::lcaba_osim) += refined * own(costs, MatrixMethod::columns);
}

// What is done for pairs of links with rows, and the velocities between them.
void add_pairs(const Counter& count, const Limbs& tree, Costs& costs) {
  std::vector<double> below(tree.limbs.size() + 1, 0);
  for (std::size_t l = tree.limbs.size(); l-- > 0;) {
    const auto& limb = tree.limbs[l];
    below[l] = limb.dofs + (limb.parent >= 0 ? below[limb.parent] : 0);
  }
  std::vector<int> held;
  for (std::size_t l = 0; l < tree.limbs.size(); ++l)
    if (tree.limbs[l].own < tree.limbs[l].own_past) held.push_back(int(l));
  // a sample of many pairs stands for all
  const std::size_t step = std::max<std::size_t>(1, held.size() / 64);
  double pairs_kjr = 0, pairs_oscm = 0;
  for (std::size_t x = 0; x < held.size(); x += step) {
    const int k = held[x];
    const auto& limb = tree.limbs[k];
    const double p = count.packs(limb.own_past - limb.own);
    own(costs, MatrixMethod::oscm) += double(step) * (49 * below[k] + 36);
    for (std::size_t y = 0; y < held.size(); y += step) {
      const int j = held[y];
      if (tree.limbs[j].own > limb.own) continue;
      int a = j, b = k;
      while (a != b && a >= 0 && b >= 0) (a < b ? a : b) = tree.limbs[a < b ? a : b].parent;
      if (a < 0 || b < 0) continue;
      const double products = 6 * count.block(tree.limbs[j].own_past - tree.limbs[j].own, limb.own_past - limb.own);
      pairs_kjr += p * (13 * (below[k] + below[j] - 2 * below[a]) + 36) + products;
      pairs_oscm += 36 + 36 * p + products;
    }
  }
  own(costs, MatrixMethod::kjr) += pairs_kjr * double(step * step);
  own(costs, MatrixMethod::oscm) += pairs_oscm * double(step * step);
}

// What is done velocity by velocity: those that move rows, and how many packs of them; rows of several links may lie
// anywhere.
template <class Real>
void add_velocities(const Counter& count, const Model<Real>& model, const Layout<Real>& layout, Costs& costs) {
  constexpr int lanes = link_lanes<Real>;
  const int m = layout.set.rows;
  std::vector<int> depth(model.nv), moved(model.nv, 0);
  auto mark = [&](int k, int rows) {
    for (; k >= 0; k = model.dof_parent[k]) moved[k] += rows;
  };
  auto mark_link = [&](int i, int rows) { mark(model.links[i].iv + model.links[i].nv - 1, rows); };
  for (const auto& g : layout.set.groups) {
    mark_link(g.link, 3 * g.count);
    if (g.other >= 0) mark_link(g.other, 3 * g.count);
  }
  for (const auto& b : layout.set.blocks)
    for (int t = 0; t < b.terms; ++t) mark_link(layout.set.terms[b.term + t].link, b.rows);
  for (const auto& j : layout.set.joint_rows) mark(j.velocity, 1);
  double active = 0;
  for (int k = 0; k < model.nv; ++k) {
    const double d = depth[k] = model.dof_parent[k] < 0 ? 0 : depth[model.dof_parent[k]] + 1;
    const int rows = std::min(moved[k], m);
    own(costs, MatrixMethod::ltl) += 7 * d + d * (d / (2 * lanes) + 3) + count.packs(rows) * d + count.triangle(rows);
    active += rows > 0;
  }
  own(costs, MatrixMethod::ltl) += 75.0 * m;
  const int passes = (m + 3) / 4;  // four columns at once
  own(costs, MatrixMethod::columns) = passes * (26 * active + 12.0 * m);
}

}  // namespace

template <class Real>
Costs count_costs(const Model<Real>& model, const Layout<Real>& layout, const Limbs& tree, const ReachPlan& reach) {
  const Counter count(link_lanes<Real>);
  const int m = layout.set.rows;
  const double kinematics = 117.0 * double(model.links.size()), elimination = 90.0 * model.nv;
  Costs costs;
  add_limbs(count, tree, costs);
  add_folding(tree, costs);
  add_reach(count, layout.coupled, reach, costs);
  add_pairs(count, tree, costs);
  add_velocities(count, model, layout, costs);
  add_refinement(m, model.nv, costs);

  own(costs, InverseMethod::caba_osim) = own(costs, MatrixMethod::pv_osimr) + count.triangle(m);
  own(costs, InverseMethod::caba_osimf) = own(costs, MatrixMethod::pv_osimr) + count.triangle(m);
  own(costs, InverseMethod::ltl) = own(costs, MatrixMethod::ltl) + count.cholesky(m);
  own(costs, InverseMethod::lcaba) = 3 * own(costs, MatrixMethod::columns);

  auto price = [&](auto& list, const auto& coefficients, std::size_t ltl) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      list[k].common = kinematics + (k == ltl ? 0 : elimination);
      list[k].time = coefficients[k].start + coefficients[k].common * list[k].common +
                     coefficients[k].own * list[k].own + written * double(m) * double(m);
    }
  };
  price(costs.matrix, matrix_coefficients, std::size_t(MatrixMethod::ltl));
  price(costs.inverse, inverse_coefficients, std::size_t(InverseMethod::ltl));
  return costs;
}

template Costs count_costs(const Model<double>&, const Layout<double>&, const Limbs&, const ReachPlan&);
template Costs count_costs(const Model<float>&, const Layout<float>&, const Limbs&, const ReachPlan&);

}  // namespace delassus
