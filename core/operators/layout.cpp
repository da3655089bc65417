#include "operators/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace delassus {

namespace {

// A bound of tr J M⁻¹ Jᵀ. The energy of all links is at least that of the links a row acts on, so of a row with K on
// them G_rr ≤ Σ K I⁻¹ Kᵀ ≤ Σ |K_lin|²/m + |K_ang about the centre|² / λ_min(I), with I the link's own inertia.
constexpr double unknown = std::numeric_limits<double>::infinity();

// 1/m and 1/λ_min of a link; λ_min ≥ det I / (tr I / 2)²
template <class Real>
double find_lightness(const Inertial<Real>& link) {
  return link.mass > 0 ? 1 / double(link.mass) : unknown;
}
template <class Real>
double find_ease(const Inertial<Real>& link) {
  const auto& I = link.inertia;
  const double xx = I.xx, xy = I.xy, xz = I.xz, yy = I.yy, yz = I.yz, zz = I.zz;
  const double det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz),
               trace = xx + yy + zz;
  return det > 0 && trace > 0 ? trace * trace / (4 * det) : unknown;
}

template <class Real>
class TraceBound {
 public:
  // lightness, ease: per link
  TraceBound(const Model<Real>& model, const ConstraintSet<Real>& set, std::span<const double> lightness,
             std::span<const double> ease)
      : model_(model), set_(set), lightness_(lightness), ease_(ease) {}

  Real operator()() const {
    double sum = 0;
    for (const auto& c : set_.constraints) sum += of(c);
    for (const auto& group : set_.groups)
      for (int k = 0; k < group.count * group.sides(); ++k)
        sum += 3 * row(k % group.sides() == 0 ? group.link : group.other, set_.locals[group.local + k], 1, 0);
    for (const auto& j : set_.joint_rows) sum += joint(j.velocity, double(j.coefficient));
    // rows that act on one link twice: (a + b)² ≤ 2 a² + 2 b²
    return Real(2 * sum);
  }

 private:
  // a row of velocity `lin` of a point and of rotation `ang`
  double row(int link, const Vec3<Real>& point, double lin, double ang) const {
    if (link < 0) return 0;
    const Vec3<Real> d = point - model_.links[link].inertial.center;
    const double turn = ang + lin * std::sqrt(double(dot(d, d)));
    return (lin > 0 ? lin * lin * lightness_[link] : 0) + (turn > 0 ? turn * turn * ease_[link] : 0);
  }
  double joint(int velocity, double coefficient) const {
    const int i = model_.dof_link[velocity];
    const auto& link = model_.links[i];
    double bound = model_.armature[velocity] > 0 ? 1 / double(model_.armature[velocity]) : unknown;
    if (link.type == Joint::free && velocity < link.iv + 3)
      bound = std::min(bound, row(i, {}, 1, 0));
    else if (link.type != Joint::slide)
      bound = std::min(bound, ease_[i] + (link.parent < 0 ? 0 : ease_[link.parent]));
    return coefficient * coefficient * bound;
  }

  // of rows that are neither a point's nor a joint's
  double of(const Constraint<Real>& c) const {
    double sum = 0;
    const bool open = c.kind == Kind::frame && c.slides();
    if (c.kind == Kind::coupling || c.kind == Kind::combination || open) return unknown;
    if (c.kind == Kind::center) return 3 * double(c.numbers[0]);
    if (c.block < 0) return 0;
    const int pushes = std::max(3 - (set_.blocks[c.block].row - c.row), 0);
    for (std::size_t b = 0; b < c.bodies.size(); ++b) {
      const auto& body = model_.bodies[c.bodies[b]];
      const Vec3<Real> point = body.placement.R * c.points[b] + body.placement.p;
      if (c.kind == Kind::links) {
        for (int r = 0; r < c.rows; ++r) {
          const Real* k = &c.matrix[6 * (b * c.rows + r)];
          auto length = [](const Real* x) { return std::hypot(double(x[0]), double(x[1]), double(x[2])); };
          sum += row(body.link, point, length(k), length(k + 3));
        }
      } else if (c.kind == Kind::contact) {
        for (int r = 0; r < c.rows; ++r) {
          const double scale = double(contact_scale(c, r));
          sum += row(body.link, point, r < 3 ? scale : 0, r < 3 ? 0 : scale);
        }
      } else {
        sum += std::min(c.rows, pushes) * row(body.link, point, 1, 0) +
               std::max(c.rows - 3, 0) * row(body.link, point, 0, 1);
      }
    }
    return sum;
  }

  const Model<Real>& model_;
  const ConstraintSet<Real>& set_;
  std::span<const double> lightness_, ease_;
};

// A bound of SᵀIᶜS + armature for every velocity, Iᶜ being the inertia of all that the joint carries: with m its mass
// and C its moments about the tree's origin, from which the joint is at most r away, 2 (m r² + tr C) of a turn and m of
// a push. reach, mass, trace: memory, one per link.
template <class Real>
void bound_pivots(const Model<Real>& model, std::vector<double>& reach, std::vector<double>& mass,
                  std::vector<double>& trace, std::vector<Real>& bounds) {
  const std::size_t n = model.links.size();
  std::fill(reach.begin(), reach.end(), 0.0);
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

  for (std::size_t i = 0; i < n; ++i) {
    const auto& link = model.links[i];
    const double armature = *std::max_element(&model.armature[link.iv], &model.armature[link.iv] + link.nv);
    const double turn = 2 * (mass[i] * reach[i] * reach[i] + trace[i]);
    for (int k = 0; k < link.nv; ++k) {
      const bool push = link.type == Joint::slide || (link.type == Joint::free && k < 3);
      bounds[link.iv + k] = Real((push ? mass[i] : turn) + armature);
    }
  }
}

}  // namespace

template <class Real>
Layout<Real>::Layout(const Model<Real>& model, ConstraintSet<Real> constraints, int lanes)
    : set(std::move(constraints)) {
  LayoutMaker<Real>(model, lanes).make(*this);
}

template <class Real>
LayoutMaker<Real>::LayoutMaker(const Model<Real>& model, int lanes)
    : model_(model), lanes_(lanes), pivot_bound_(std::size_t(model.nv)) {
  for (const auto& link : model.links) {
    bool bare = true;
    for (int k = link.iv; k < link.iv + link.nv; ++k) bare = bare && model.armature[k] == 0;
    bare_links_.push_back({link.parent, link.iv, link.nv, link.type == Joint::free, bare, false, false, false, false});
  }
  for (auto* x : {&lightness_, &ease_, &reach_, &mass_, &trace_}) x->resize(model.links.size());
  read_model();
}

template <class Real>
void LayoutMaker<Real>::read_model() {
  for (std::size_t i = 0; i < model_.links.size(); ++i) {
    lightness_[i] = find_lightness(model_.links[i].inertial);
    ease_[i] = find_ease(model_.links[i].inertial);
  }
  bound_pivots(model_, reach_, mass_, trace_, pivot_bound_);
}

template <class Real>
void LayoutMaker<Real>::find_bounds(Layout<Real>& layout) const {
  layout.bound = TraceBound<Real>(model_, layout.set, lightness_, ease_)();
  layout.pivot_bound = pivot_bound_;
}

template <class Real>
void LayoutMaker<Real>::make(Layout<Real>& layout) {
  find_links(layout.set);
  plan(layout);
  find_touching(layout);
  find_products(planner_, layout.coupled, layout.set, layout.products);
  find_summed(layout);
  find_bounds(layout);
}

// Which links constraints act on, and which of these they couple.
template <class Real>
void LayoutMaker<Real>::find_links(const ConstraintSet<Real>& set) {
  links_ = bare_links_;
  groups_.clear();
  for (const auto& group : set.groups) {
    links_[group.link].held = links_[group.link].pointed = true;
    if (group.other < 0) continue;
    links_[group.other].held = links_[group.other].pointed = true;
    groups_.add(std::array{group.link, group.other});
  }
  for (const auto& b : set.blocks) {
    for (int t = 0; t < b.terms; ++t) {
      groups_.links.push_back(set.terms[b.term + t].link);
      links_[groups_.links.back()].held = true;
    }
    groups_.close();
  }
  for (auto& link : links_) link.stiff = link.held;
  for (const auto& j : set.joint_rows) {
    links_[model_.dof_link[j.velocity]].held = true;
    links_[model_.dof_link[j.velocity]].pushed = true;
  }
}

// Of M, if links carry constraints otherwise than for the last layout, and of M + Jᵀ R J.
template <class Real>
void LayoutMaker<Real>::plan(Layout<Real>& layout) {
  const auto differs = [](const PlannedLink& now, PlannedLink last) {
    last.stiff = now.stiff;
    return now != last;
  };
  bool changed = loose_links_.size() != links_.size();
  for (std::size_t i = 0; i < links_.size() && !changed; ++i) changed = differs(links_[i], loose_links_[i]);
  if (changed) {
    loose_links_ = links_;
    for (auto& link : loose_links_) link.stiff = false;
    planner_.make(loose_links_, {}, lanes_, loose_);
  }
  layout.loose = loose_;
  planner_.make(links_, groups_, lanes_, layout.coupled);
  layout.links.clear();
  if (layout.coupled.large()) layout.links = links_;

  const auto member = [](const EliminationPlan& plan, const EliminationPlan::Strip& strip, int l) {
    return plan.steps[std::size_t(strip.step + l)].link;
  };
  const auto &loose = layout.loose, &coupled = layout.coupled;
  layout.same_strips = std::equal(loose.strips.begin(), loose.strips.end(), coupled.strips.begin(),
                                  coupled.strips.end(), [&](const auto& a, const auto& b) {
                                    bool same = a.count == b.count;
                                    for (int l = 0; l < a.count && same; ++l)
                                      same = member(loose, a, l) == member(coupled, b, l);
                                    return same;
                                  });
}

// Where points find the coupling of their links, and what these start with.
template <class Real>
void LayoutMaker<Real>::find_touching(Layout<Real>& layout) {
  layout.pointless.clear();
  layout.touching.clear();
  kept_.assign(links_.size(), -1);
  for (const auto& holder : layout.coupled.inertia_holders) {
    kept_[holder.link] = holder.kept;
    if (!links_[holder.link].pointed) layout.pointless.push_back(holder);
  }
  for (const auto& group : layout.set.groups) {
    typename Layout<Real>::Touching t{-1, false, {kept_[group.link], group.other < 0 ? -1 : kept_[group.other]}};
    if (group.other >= 0) find_coupling<Real>(planner_, layout.coupled, group, t);
    layout.touching.push_back(t);
  }
}

template <class Real>
void find_coupling(const EliminationPlanner& planner, const EliminationPlan& plan, const PointGroup& group,
                   typename Layout<Real>::Touching& touching) {
  touching.flipped = !planner.before(group.link, group.other);
  touching.block = plan.slots[planner.coupling(group.link, group.other)];
}

template <class Real>
void find_products(const EliminationPlanner& planner, const EliminationPlan& plan, const ConstraintSet<Real>& set,
                   std::vector<typename Layout<Real>::Product>& products) {
  products.clear();
  for (const auto& b : set.blocks)
    for (int t = 0; t < b.terms; ++t)
      for (int s = 0; s < b.terms; ++s)
        if (const int first = set.terms[b.term + t].link, second = set.terms[b.term + s].link;
            planner.before(first, second))
          products.push_back({b.term + t, b.term + s, plan.slots[planner.coupling(first, second)], b.row, b.rows});
}

template <class Real>
void LayoutMaker<Real>::find_summed(Layout<Real>& layout) {
  const auto& set = layout.set;
  layout.summed.clear();
  written_.assign(std::size_t(set.rows), 0);
  for (const auto& point : set.points) std::fill_n(written_.begin() + point.row, 3, 1);
  for (const auto& j : set.joint_rows) written_[j.row] = 1;
  for (int r = 0; r < set.rows; ++r)
    if (!written_[r]) layout.summed.push_back(r);
}

template <class Real>
std::size_t Layout<Real>::bytes() const {
  return loose.bytes() + coupled.bytes() + links.size() * sizeof(PlannedLink) + touching.size() * sizeof(Touching) +
         pointless.size() * sizeof(EliminationPlan::Holder) + products.size() * sizeof(Product) +
         summed.size() * sizeof(int) + pivot_bound.size() * sizeof(Real) + set.groups.size() * sizeof(PointGroup) +
         set.points.size() * sizeof(Point<Real>) + set.locals.size() * sizeof(Vec3<Real>) +
         set.blocks.size() * sizeof(Block) + set.terms.size() * sizeof(Term) +
         set.joint_rows.size() * sizeof(JointRow<Real>);
}

template void find_coupling<double>(const EliminationPlanner&, const EliminationPlan&, const PointGroup&,
                                    Layout<double>::Touching&);
template void find_coupling<float>(const EliminationPlanner&, const EliminationPlan&, const PointGroup&,
                                   Layout<float>::Touching&);
template void find_products<double>(const EliminationPlanner&, const EliminationPlan&, const ConstraintSet<double>&,
                                    std::vector<Layout<double>::Product>&);
template void find_products<float>(const EliminationPlanner&, const EliminationPlan&, const ConstraintSet<float>&,
                                   std::vector<Layout<float>::Product>&);
template struct Layout<double>;
template struct Layout<float>;
template class LayoutMaker<double>;
template class LayoutMaker<float>;

}  // namespace delassus
