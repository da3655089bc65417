#include "simulator/step_linearization.h"

#include <algorithm>

#include "dense/product.h"

namespace delassus {

namespace {

using Numbers = std::vector<double>;

double* sized(Numbers& x, std::size_t count) {
  x.resize(std::max(x.size(), count));
  return x.data();
}

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

}  // namespace

StepLinearization::StepLinearization(World& world, int controls)
    : world_(world), n_(world.v.size()), controls_(std::size_t(controls)) {}

StepReport StepLinearization::update(const StepForces& forces) {
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
  row_kinks_ = false;
  if (report.islands == 0) return report;  // all sleep

  // how contacts move
  if (motions_.looks(world_.collider(), touches) && !world_.look_again()) {
    report.collided = false;
    return report;
  }
  report.collided = motions_.find(world_.description().model, world_.collider(), world_.contacts_before(), touches);
  if (!report.collided) return report;
  gaps_.contacts = !motions_.all_known();

  islands_ = world_.islands();
  for (Island* island : islands_) {
    gaps_.add(island->linearize(motions_, world_.memory.contacts.data()).gaps());
    find_modes(*island);
  }
  const auto moves = [](const Touch& t) { return dot(t.surface, t.surface) + dot(t.surface_spin, t.surface_spin) > 0; };
  gaps_.moved_bodies = !world_.description().mocap_bodies.empty() || std::any_of(touches.begin(), touches.end(), moves);
  return report;
}

void StepLinearization::find_modes(Island& island) {
  const ContactModes& modes = island.linearization().modes();
  const auto& contacts = island.linearized_contacts();
  const auto& kinks = modes.kinks();
  for (std::size_t k = 0; k < contacts.size(); ++k) {
    modes_[std::size_t(contacts[k])] = char(modes.modes()[k]);
    kinks_[std::size_t(contacts[k])] = kinks[k];
  }
  for (std::size_t k = contacts.size(); k < kinks.size(); ++k) row_kinks_ = row_kinks_ || kinks[k];
}

void StepLinearization::tangents(const double* dq, const double* dv, const double* dtau, const double* dcontrol,
                                 const double* dfriction, int columns, double* next_dq, double* next_dv) {
  const std::size_t k = std::size_t(columns), count = n_ * k;
  sized(zero_, count);
  std::fill_n(zero_.data(), count, 0.0);
  if (!dq) dq = zero_.data();
  if (!dv) dv = zero_.data();

  // forces on joints
  double* df = sized(force_, count);
  for (std::size_t e = 0; e < count; ++e)
    df[e] = (dtau ? dtau[e] : 0.0) + rates_.by_q[e / k] * dq[e] + rates_.by_v[e / k] * dv[e];
  if (dcontrol)
    for (const auto& u : rates_.by_control)
      for (std::size_t c = 0; c < k; ++c)
        df[std::size_t(u.velocity) * k + c] += u.rate * dcontrol[std::size_t(u.control) * k + c];
  if (!others_.by_q.empty()) {
    add_product(others_.by_q, n_, n_, false, dq, k, df);
    add_product(others_.by_v, n_, n_, false, dv, k, df);
    if (dcontrol) add_product(others_.by_control, n_, controls_, false, dcontrol, k, df);
  }

  // what sleeps stays where it is
  std::copy_n(dq, count, next_dq);
  std::fill_n(next_dv, count, 0.0);
  for (Island* island : islands_) {
    const auto& ranges = island->part().ranges;
    const auto& contacts = island->linearized_contacts();
    const std::size_t own = std::size_t(island->part().world.model.nv) * k;
    for (auto* x : {&part_q_, &part_v_, &part_f_, &end_q_, &end_v_}) sized(*x, own);
    for (const auto& r : ranges) {
      const std::size_t from = std::size_t(r.whole_v) * k, to = std::size_t(r.v) * k, size = std::size_t(r.nv) * k;
      std::copy_n(dq + from, size, part_q_.data() + to);
      std::copy_n(dv + from, size, part_v_.data() + to);
      std::copy_n(df + from, size, part_f_.data() + to);
    }
    double* dmu = nullptr;
    if (dfriction) {
      dmu = sized(part_mu_, contacts.size() * k);
      for (std::size_t i = 0; i < contacts.size(); ++i)
        std::copy_n(dfriction + std::size_t(contacts[i]) * k, k, dmu + i * k);
    }
    island->linearization().tangents(part_q_.data(), part_v_.data(), part_f_.data(), dmu, columns, end_q_.data(),
                                     end_v_.data());
    for (const auto& r : ranges) {
      const std::size_t from = std::size_t(r.v) * k, to = std::size_t(r.whole_v) * k, size = std::size_t(r.nv) * k;
      std::copy_n(end_q_.data() + from, size, next_dq + to);
      std::copy_n(end_v_.data() + from, size, next_dv + to);
    }
  }
}

void StepLinearization::adjoints(const double* next_q_bar, const double* next_v_bar, int columns, double* q_bar,
                                 double* v_bar, double* tau_bar, double* control_bar, double* friction_bar) {
  const std::size_t k = std::size_t(columns), count = n_ * k;
  sized(zero_, count);
  std::fill_n(zero_.data(), count, 0.0);
  if (!next_q_bar) next_q_bar = zero_.data();
  if (!next_v_bar) next_v_bar = zero_.data();
  std::copy_n(next_q_bar, count, q_bar);
  std::fill_n(v_bar, count, 0.0);
  std::fill_n(tau_bar, count, 0.0);
  std::fill_n(friction_bar, contacts_ * k, 0.0);
  for (Island* island : islands_) {
    const auto& ranges = island->part().ranges;
    const auto& contacts = island->linearized_contacts();
    const std::size_t own = std::size_t(island->part().world.model.nv) * k;
    for (auto* x : {&part_q_, &part_v_, &part_f_, &end_q_, &end_v_}) sized(*x, own);
    for (const auto& r : ranges) {
      const std::size_t from = std::size_t(r.whole_v) * k, to = std::size_t(r.v) * k, size = std::size_t(r.nv) * k;
      std::copy_n(next_q_bar + from, size, end_q_.data() + to);
      std::copy_n(next_v_bar + from, size, end_v_.data() + to);
    }
    double* mu_bar = sized(part_mu_, contacts.size() * k);
    island->linearization().adjoints(end_q_.data(), end_v_.data(), columns, part_q_.data(), part_v_.data(),
                                     part_f_.data(), mu_bar);
    for (std::size_t i = 0; i < contacts.size(); ++i)
      std::copy_n(mu_bar + i * k, k, friction_bar + std::size_t(contacts[i]) * k);
    for (const auto& r : ranges) {
      const std::size_t from = std::size_t(r.v) * k, to = std::size_t(r.whole_v) * k, size = std::size_t(r.nv) * k;
      std::copy_n(part_q_.data() + from, size, q_bar + to);
      std::copy_n(part_v_.data() + from, size, v_bar + to);
      std::copy_n(part_f_.data() + from, size, tau_bar + to);
    }
  }

  // forces on joints
  for (std::size_t e = 0; e < count; ++e) {
    q_bar[e] += rates_.by_q[e / k] * tau_bar[e];
    v_bar[e] += rates_.by_v[e / k] * tau_bar[e];
  }
  std::fill_n(control_bar, controls_ * k, 0.0);
  for (const auto& u : rates_.by_control)
    for (std::size_t c = 0; c < k; ++c)
      control_bar[std::size_t(u.control) * k + c] += u.rate * tau_bar[std::size_t(u.velocity) * k + c];
  if (!others_.by_q.empty()) {
    add_product(others_.by_q, n_, n_, true, tau_bar, k, q_bar);
    add_product(others_.by_v, n_, n_, true, tau_bar, k, v_bar);
    add_product(others_.by_control, n_, controls_, true, tau_bar, k, control_bar);
  }
}

}  // namespace delassus
