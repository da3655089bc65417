#include "simulator/step_linearization.h"

#include <algorithm>

#include "simulator/sweep_memory.h"

namespace delassus {

namespace {

using Numbers = std::vector<double>;

// y += A x or Aᵀ x; A: rows × inner, x and y × columns, row-major
void add_product(const Numbers& A, std::size_t rows, std::size_t inner, bool transposed, const double* x,
                 std::size_t columns, double* y) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < inner; ++j) {
      const double a = A[i * inner + j];
      if (a == 0) continue;
      const double* from = x + (transposed ? i : j) * columns;
      double* to = y + (transposed ? j : i) * columns;
      for (std::size_t c = 0; c < columns; ++c) to[c] += a * from[c];
    }
}

// Of a tree, from the whole to its island, and back.
void take(const double* whole, const WorldPart::Range& r, std::size_t columns, Numbers& part) {
  std::copy_n(whole + std::size_t(r.whole_v) * columns, std::size_t(r.nv) * columns,
              part.data() + std::size_t(r.v) * columns);
}
void give(const Numbers& part, const WorldPart::Range& r, std::size_t columns, double* whole) {
  std::copy_n(part.data() + std::size_t(r.v) * columns, std::size_t(r.nv) * columns,
              whole + std::size_t(r.whole_v) * columns);
}

}  // namespace

StepLinearization::StepLinearization(World& world, int controls)
    : world_(world), n_(world.v.size()), controls_(std::size_t(controls)) {}

StepReport StepLinearization::update(const StepForces& forces, double smoothing) {
  islands_.clear();
  gaps_ = {};
  StepReport report;
  report.collided = world_.find_force_rates(forces.control, int(controls_), rates_, others_);
  if (!report.collided) return report;
  report = world_.step(forces);
  if (!report.collided || !report.regular) return report;
  const auto& touches = world_.touches();
  contacts_ = world_.memory.contacts.size();
  modes_.assign(contacts_, ContactModes::open);
  kinks_.assign(contacts_, 0);
  row_kinks_ = correction_kink_ = redundant_ = false;
  if (report.islands == 0) return report;  // all sleep

  // how contacts move
  report.collided = (!motions_.looks(world_.collider(), touches) || world_.look_again()) &&
                    motions_.find(world_.description().model, world_.collider(), world_.contacts_before(), touches);
  if (!report.collided) {
    world_.undo_step();
    return report;
  }
  gaps_.contacts = !motions_.all_known();

  islands_ = world_.islands();
  for (Island* island : islands_) {
    gaps_.add(island->linearize(motions_, world_.memory.contacts.data(), smoothing).gaps());
    find_modes(*island);
  }
  const auto moves = [](const Touch& t) { return dot(t.surface, t.surface) + dot(t.surface_spin, t.surface_spin) > 0; };
  gaps_.moved_bodies = !world_.description().mocap_bodies.empty() || std::any_of(touches.begin(), touches.end(), moves);
  return report;
}

void StepLinearization::find_modes(Island& island) {
  const IslandLinearization& linear = island.linearization();
  const auto& contacts = island.linearized_contacts();
  for (std::size_t k = 0; k < contacts.size(); ++k) {
    modes_[std::size_t(contacts[k])] = char(linear.modes()[k]);
    kinks_[std::size_t(contacts[k])] = linear.kinks()[k];
  }
  row_kinks_ = row_kinks_ || linear.row_kinks();
  correction_kink_ = correction_kink_ || linear.correction_kink();
  redundant_ = redundant_ || linear.redundant();
}

void StepLinearization::tangents(const Direction& d, double* next_dq, double* next_dv) {
  const std::size_t k = std::size_t(d.columns), count = n_ * k;
  sized(zero_, count, 1);
  std::fill_n(zero_.data(), count, 0.0);
  const double *dq = d.q ? d.q : zero_.data(), *dv = d.v ? d.v : zero_.data();

  // forces on joints
  double* df = sized(force_, count, 1);
  for (std::size_t e = 0; e < count; ++e)
    df[e] = (d.tau ? d.tau[e] : 0.0) + rates_.by_q[e / k] * dq[e] + rates_.by_v[e / k] * dv[e];
  if (d.control)
    for (const auto& u : rates_.by_control)
      for (std::size_t c = 0; c < k; ++c)
        df[std::size_t(u.velocity) * k + c] += u.rate * d.control[std::size_t(u.control) * k + c];
  if (!others_.by_q.empty()) {
    add_product(others_.by_q, n_, n_, false, dq, k, df);
    add_product(others_.by_v, n_, n_, false, dv, k, df);
    if (d.control) add_product(others_.by_control, n_, controls_, false, d.control, k, df);
  }

  // what sleeps stays where it is
  std::copy_n(dq, count, next_dq);
  std::fill_n(next_dv, count, 0.0);
  for (Island* island : islands_) {
    const auto& ranges = island->part().ranges;
    const auto& contacts = island->linearized_contacts();
    const std::size_t own = std::size_t(island->part().world.model.nv) * k;
    for (auto* x : {&part_q_, &part_v_, &part_f_, &end_q_, &end_v_}) sized(*x, own, 1);
    for (const auto& r : ranges) {
      take(dq, r, k, part_q_);
      take(dv, r, k, part_v_);
      take(df, r, k, part_f_);
    }
    const auto of_contacts = [&](const double* from, Numbers& to) -> const double* {
      if (!from) return nullptr;
      sized(to, contacts.size() * k, 1);
      for (std::size_t i = 0; i < contacts.size(); ++i)
        std::copy_n(from + std::size_t(contacts[i]) * k, k, to.data() + i * k);
      return to.data();
    };
    island->linearization().tangents({part_q_.data(), part_v_.data(), part_f_.data(), of_contacts(d.friction, part_mu_),
                                      of_contacts(d.restitution, part_e_), d.columns},
                                     end_q_.data(), end_v_.data());
    for (const auto& r : ranges) {
      give(end_q_, r, k, next_dq);
      give(end_v_, r, k, next_dv);
    }
  }
}

void StepLinearization::adjoints(const double* next_q_bar, const double* next_v_bar, const Bars& to) {
  const std::size_t k = std::size_t(to.columns), count = n_ * k, bodies = world_.description().model.bodies.size();
  sized(zero_, count, 1);
  std::fill_n(zero_.data(), count, 0.0);
  if (!next_q_bar) next_q_bar = zero_.data();
  if (!next_v_bar) next_v_bar = zero_.data();
  std::copy_n(next_q_bar, count, to.q);
  for (double* x : {to.v, to.tau, to.armature})
    if (x) std::fill_n(x, count, 0.0);
  for (double* x : {to.friction, to.restitution})
    if (x) std::fill_n(x, contacts_ * k, 0.0);
  if (to.inertial) std::fill_n(to.inertial, 10 * bodies * k, 0.0);
  for (Island* island : islands_) {
    const WorldPart& part = island->part();
    const auto& contacts = island->linearized_contacts();
    const std::size_t own = std::size_t(part.world.model.nv) * k, own_bodies = part.bodies.size();
    for (auto* x : {&part_q_, &part_v_, &part_f_, &end_q_, &end_v_, &part_armature_}) sized(*x, own, 1);
    for (const auto& r : part.ranges) {
      take(next_q_bar, r, k, end_q_);
      take(next_v_bar, r, k, end_v_);
    }
    for (auto* x : {&part_mu_, &part_e_}) sized(*x, contacts.size() * k, 1);
    std::fill_n(part_e_.data(), contacts.size() * k, 0.0);
    std::fill_n(part_armature_.data(), own, 0.0);
    sized(part_inertial_, 10 * own_bodies * k, 1);
    std::fill_n(part_inertial_.data(), 10 * own_bodies * k, 0.0);
    const bool asked = to.inertial != nullptr;
    island->linearization().adjoints(end_q_.data(), end_v_.data(), to.columns, part_q_.data(), part_v_.data(),
                                     part_f_.data(), part_mu_.data(),
                                     {asked ? part_inertial_.data() : nullptr, asked ? part_armature_.data() : nullptr,
                                      asked ? part_e_.data() : nullptr});
    for (std::size_t i = 0; i < contacts.size(); ++i) {
      std::copy_n(part_mu_.data() + i * k, k, to.friction + std::size_t(contacts[i]) * k);
      if (asked) std::copy_n(part_e_.data() + i * k, k, to.restitution + std::size_t(contacts[i]) * k);
    }
    for (const auto& r : part.ranges) {
      give(part_q_, r, k, to.q);
      give(part_v_, r, k, to.v);
      give(part_f_, r, k, to.tau);
      if (asked) give(part_armature_, r, k, to.armature);
    }
    for (std::size_t b = 0; asked && b < own_bodies; ++b)
      if (part.world.model.bodies[b].link >= 0)
        std::copy_n(part_inertial_.data() + 10 * b * k, 10 * k, to.inertial + 10 * std::size_t(part.bodies[b]) * k);
  }

  // forces on joints
  for (std::size_t e = 0; e < count; ++e) {
    to.q[e] += rates_.by_q[e / k] * to.tau[e];
    to.v[e] += rates_.by_v[e / k] * to.tau[e];
  }
  std::fill_n(to.control, controls_ * k, 0.0);
  for (const auto& u : rates_.by_control)
    for (std::size_t c = 0; c < k; ++c)
      to.control[std::size_t(u.control) * k + c] += u.rate * to.tau[std::size_t(u.velocity) * k + c];
  if (!others_.by_q.empty()) {
    add_product(others_.by_q, n_, n_, true, to.tau, k, to.q);
    add_product(others_.by_v, n_, n_, true, to.tau, k, to.v);
    add_product(others_.by_control, n_, controls_, true, to.tau, k, to.control);
  }
}

}  // namespace delassus
