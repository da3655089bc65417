#include "operators/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace delassus {

namespace {

// A bound of tr J M⁻¹ Jᵀ. The energy of all links is at least that of the links a row acts on, so of a row with K on
// them G_rr ≤ Σ K I⁻¹ Kᵀ ≤ Σ |K_lin|²/m + |K_ang about the centre|² / λ_min(I), with I the link's own inertia.
template <class Real>
class TraceBound {
 public:
  TraceBound(const Model<Real>& model, const ConstraintSet<Real>& set) : model_(model), set_(set) {}

  Real operator()() const {
    double sum = 0;
    for (const auto& c : set_.constraints) sum += of(c);
    // rows that act on one link twice: (a + b)² ≤ 2 a² + 2 b²
    return Real(2 * sum);
  }

 private:
  static constexpr double unknown = std::numeric_limits<double>::infinity();

  // 1/m and 1/λ_min of a link; λ_min ≥ det I / (tr I / 2)²
  double lightness(int link) const {
    const double m = model_.links[link].inertial.mass;
    return m > 0 ? 1 / m : unknown;
  }
  double ease(int link) const {
    const auto& I = model_.links[link].inertial.inertia;
    const double xx = I.xx, xy = I.xy, xz = I.xz, yy = I.yy, yz = I.yz, zz = I.zz;
    const double det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz),
                 trace = xx + yy + zz;
    return det > 0 && trace > 0 ? trace * trace / (4 * det) : unknown;
  }
  // a row of velocity `lin` of a point and of rotation `ang`
  double row(int link, const Vec3<Real>& point, double lin, double ang) const {
    if (link < 0) return 0;
    const Vec3<Real> d = point - model_.links[link].inertial.center;
    const double turn = ang + lin * std::sqrt(double(dot(d, d)));
    return (lin > 0 ? lin * lin * lightness(link) : 0) + (turn > 0 ? turn * turn * ease(link) : 0);
  }
  double joint(int velocity, double coefficient) const {
    const int i = model_.dof_link[velocity];
    const auto& link = model_.links[i];
    double bound = model_.armature[velocity] > 0 ? 1 / double(model_.armature[velocity]) : unknown;
    if (link.type == Joint::free && velocity < link.iv + 3)
      bound = std::min(bound, row(i, {}, 1, 0));
    else if (link.type != Joint::slide)
      bound = std::min(bound, ease(i) + (link.parent < 0 ? 0 : ease(link.parent)));
    return coefficient * coefficient * bound;
  }

  double of(const Constraint<Real>& c) const {
    double sum = 0;
    if (c.kind == Kind::joint) {
      for (std::size_t r = 0; r < c.joints.size(); ++r) sum += joint(c.joints[r], double(c.numbers[r]));
      return sum;
    }
    if (c.kind == Kind::coupling) return unknown;
    if (c.kind == Kind::center) return 3 * double(c.numbers[0]);
    for (std::size_t b = 0; b < c.bodies.size(); ++b) {
      const auto& body = model_.bodies[c.bodies[b]];
      const Vec3<Real> point = body.placement.R * c.points[b] + body.placement.p;
      if (c.kind == Kind::links) {
        for (int r = 0; r < c.rows; ++r) {
          const Real* k = &c.matrix[6 * (b * c.rows + r)];
          auto length = [](const Real* x) { return std::hypot(double(x[0]), double(x[1]), double(x[2])); };
          sum += row(body.link, point, length(k), length(k + 3));
        }
      } else {
        sum +=
            std::min(c.rows, 3) * row(body.link, point, 1, 0) + std::max(c.rows - 3, 0) * row(body.link, point, 0, 1);
      }
    }
    return sum;
  }

  const Model<Real>& model_;
  const ConstraintSet<Real>& set_;
};

// A bound of SᵀIᶜS + armature for every velocity, Iᶜ being the inertia of all that the joint carries: with m its mass
// and C its moments about the tree's origin, from which the joint is at most r away, 2 (m r² + tr C) of a turn and m of
// a push.
template <class Real>
std::vector<Real> bound_pivots(const Model<Real>& model) {
  const std::size_t n = model.links.size();
  std::vector<double> reach(n, 0), mass(n), trace(n);
  auto length = [](const Vec3<Real>& x) { return std::sqrt(double(dot(x, x))); };
  for (std::size_t i = 0; i < n; ++i) {
    const auto& link = model.links[i];
    if (link.parent >= 0 && !link.carriage) reach[i] = reach[link.parent] + length(link.placement.p);
    if (link.type == Joint::slide && link.parent >= 0 && !link.carriage)
      reach[i] = std::numeric_limits<double>::infinity();
    const auto& own = link.inertial;
    mass[i] = own.mass;
    trace[i] = own.inertia.xx + own.inertia.yy + own.inertia.zz;
    if (own.mass > 0) trace[i] += 2 * own.mass * std::pow(reach[i] + length(own.center), 2);
  }
  for (std::size_t i = n; i-- > 0;)
    if (const int p = model.links[i].parent; p >= 0) mass[p] += mass[i], trace[p] += trace[i];

  std::vector<Real> bounds(std::size_t(model.nv));
  for (std::size_t i = 0; i < n; ++i) {
    const auto& link = model.links[i];
    const double armature = *std::max_element(&model.armature[link.iv], &model.armature[link.iv] + link.nv);
    const double turn = 2 * (mass[i] * reach[i] * reach[i] + trace[i]);
    for (int k = 0; k < link.nv; ++k) {
      const bool push = link.type == Joint::slide || (link.type == Joint::free && k < 3);
      bounds[link.iv + k] = Real((push ? mass[i] : turn) + armature);
    }
  }
  return bounds;
}

}  // namespace

template <class Real>
Layout<Real>::Layout(const Model<Real>& model, ConstraintSet<Real> constraints, int lanes)
    : set(std::move(constraints)) {
  std::vector<PlannedLink> links;
  for (const auto& link : model.links) {
    bool bare = true;
    for (int k = link.iv; k < link.iv + link.nv; ++k) bare = bare && model.armature[k] == 0;
    links.push_back({link.parent, link.iv, link.nv, link.type == Joint::free, bare, false, false, false, false});
  }
  std::vector<std::vector<int>> groups;
  for (const auto& group : set.groups) {
    links[group.link].held = links[group.link].pointed = true;
    if (group.other < 0) continue;
    links[group.other].held = links[group.other].pointed = true;
    groups.push_back({group.link, group.other});
  }
  for (const auto& b : set.blocks) {
    std::vector<int> group;
    for (int t = 0; t < b.terms; ++t) {
      group.push_back(set.terms[b.term + t].link);
      links[group.back()].held = true;
    }
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  std::vector<char> stiff;
  stiff.reserve(links.size());
  for (const auto& link : links) stiff.push_back(link.held);
  for (const auto& j : set.joint_rows) {
    links[model.dof_link[j.velocity]].held = true;
    links[model.dof_link[j.velocity]].pushed = true;
  }
  loose = plan_elimination(links, {}, lanes);
  for (std::size_t i = 0; i < links.size(); ++i) links[i].stiff = stiff[i];
  coupled = plan_elimination(links, groups, lanes);

  const auto members = [](const EliminationPlan& plan) {
    std::vector<int> all;
    for (const auto& strip : plan.strips) {
      all.push_back(-1);
      for (int l = 0; l < strip.count; ++l) all.push_back(plan.steps[strip.step + l].link);
    }
    return all;
  };
  same_strips = members(loose) == members(coupled);
  std::map<std::pair<int, int>, int> block_of;
  for (std::size_t b = 0; b < coupled.blocks.size(); ++b) block_of[coupled.blocks[b]] = coupled.slots[b];
  std::vector<int> kept(links.size(), -1);
  for (const auto& holder : coupled.inertia_holders) {
    kept[holder.link] = holder.kept;
    if (!links[holder.link].pointed) pointless.push_back(holder);
  }
  for (const auto& group : set.groups) {
    Touching t{-1, false, {kept[group.link], group.other < 0 ? -1 : kept[group.other]}};
    if (group.other >= 0) {
      const auto found = block_of.find({group.link, group.other});
      t.flipped = found == block_of.end();
      t.block = t.flipped ? block_of.at({group.other, group.link}) : found->second;
    }
    touching.push_back(t);
  }
  for (const auto& b : set.blocks)
    for (int t = 0; t < b.terms; ++t)
      for (int s = 0; s < b.terms; ++s)
        if (const auto found = block_of.find({set.terms[b.term + t].link, set.terms[b.term + s].link});
            found != block_of.end())
          products.push_back({b.term + t, b.term + s, found->second, b.row, b.rows});

  std::vector<char> written(std::size_t(set.rows), 0);
  for (const auto& point : set.points) std::fill_n(written.begin() + point.row, 3, 1);
  for (const auto& j : set.joint_rows) written[j.row] = 1;
  for (int r = 0; r < set.rows; ++r)
    if (!written[r]) summed.push_back(r);
  bound = TraceBound<Real>(model, set)();
  pivot_bound = bound_pivots(model);
}

template <class Real>
std::size_t Layout<Real>::bytes() const {
  return loose.bytes() + coupled.bytes() + touching.size() * sizeof(Touching) +
         pointless.size() * sizeof(EliminationPlan::Holder) + products.size() * sizeof(Product) +
         summed.size() * sizeof(int) + pivot_bound.size() * sizeof(Real) + set.groups.size() * sizeof(PointGroup) +
         set.points.size() * sizeof(Point<Real>) + set.locals.size() * sizeof(Vec3<Real>) +
         set.blocks.size() * sizeof(Block) + set.terms.size() * sizeof(Term) +
         set.joint_rows.size() * sizeof(JointRow<Real>);
}

template struct Layout<double>;
template struct Layout<float>;

}  // namespace delassus
