#include "worlds/worlds.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>

#include "errors/typed.h"

namespace delassus {

namespace {

constexpr double step_operations = 2e4;  // that a step counts for between two looks at the clock

bool is_finite(const double* x, std::size_t n) {
  double sum = 0;  // x − x is zero for a finite number, NaN otherwise
  for (std::size_t i = 0; i < n; ++i) sum += x[i] - x[i];
  return sum == 0;
}

// Some numbers of a result.
struct Part {
  double* at;
  std::size_t count;
};

// The derivatives if all of them exist and are finite; else NaN.
bool keep_finite(bool derived, std::initializer_list<Part> parts) {
  const bool finite =
      derived && std::all_of(parts.begin(), parts.end(), [](const Part& p) { return is_finite(p.at, p.count); });
  for (const Part& p : parts)
    if (!finite) std::fill_n(p.at, p.count, std::numeric_limits<double>::quiet_NaN());
  return finite;
}

bool any(const double* x, std::size_t n) {
  return std::any_of(x, x + n, [](double number) { return number != 0; });
}

// To the last bit.
bool same(const double* a, const double* b, std::size_t n) {
  return n == 0 || std::memcmp(a, b, n * sizeof(double)) == 0;
}

void take(const Rows<double>& from, std::size_t k, std::vector<double>& to) {
  to.assign(from[k], from[k] + from.width);
}

}  // namespace

Worlds::Worlds(std::shared_ptr<const WorldDescription> description, const CollisionSource& collisions,
               const MirrorSource& mirror, WorldStart start, ParameterSource parameters, int controls,
               int sensor_values, int count, int threads)
    : count_(count),
      description_(std::move(description)),
      start_(std::move(start)),
      team_(threads),
      source_(std::move(parameters)),
      numbers_(std::size_t(count), 0),
      memories_(std::size_t(count)),
      graphs_(std::size_t(count), 0) {
  const auto& m = description_->model;
  const std::size_t n = std::size_t(count), nv = std::size_t(m.nv), bodies = m.bodies.size();
  q = {n, std::size_t(m.nq)}, v = {n, nv}, time = {n, 1};
  hidden = {n, start_.hidden.size()}, mocap = mocap_goal = {n, start_.mocap.size()};
  control = {n, std::size_t(controls)}, tau = {n, nv}, external = {n, 6 * bodies};
  status = {n, 1, not_stepped}, contacts = unsolved = {n, 1}, residual = penetration = {n, 1};
  contact_forces = {n, 3 * bodies}, row_forces = {n, nv};
  sensors = {n, std::size_t(sensor_values)};
  for (int k = 0; k < count; ++k) reset(k);
  for (int t = 0; t < team_.size(); ++t) {
    engines_.push_back(std::make_unique<Engine>(*description_, collisions, mirror));
    if (const auto& failure = engines_.back()->world.failure(); !failure.empty()) failure_ = failure;
  }
}

void Worlds::reset(int world) {
  const std::size_t k = std::size_t(world);
  std::copy(start_.hidden.begin(), start_.hidden.end(), hidden[k]);
  for (auto* poses : {&mocap, &mocap_goal}) std::copy(start_.mocap.begin(), start_.mocap.end(), (*poses)[k]);
  for (auto* x : {&time, &residual, &penetration, &contact_forces, &row_forces}) std::fill_n((*x)[k], x->width, 0.0);
  *status[k] = not_stepped, *contacts[k] = *unsolved[k] = 0;
  memories_[k] = {};
}

Rows<double>& Worlds::parameter(Parameter which) {
  Rows<double>& rows = parameters_[which];
  const auto& own = source_.values[which];
  if (rows.numbers.empty()) {
    rows = {std::size_t(count_), own.size()};
    for (std::size_t k = 0; k < std::size_t(count_); ++k) std::copy(own.begin(), own.end(), rows[k]);
    accepted_[which] = rows;
  }
  return rows;
}

bool Worlds::changed(Parameter which) const {
  const auto &written = parameters_[which].numbers, &accepted = accepted_[which].numbers;
  return !same(written.data(), accepted.data(), written.size());
}

void Worlds::accept_parameters() {
  for (std::size_t k = 0; k < std::size_t(count_); ++k) {
    bool changed = false;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const double* const written = parameters_[p][k];
      const std::size_t n = parameters_[p].width;
      if (same(written, accepted_[p][k], n)) continue;
      std::copy_n(written, n, accepted_[p][k]);
      changed = true;
    }
    if (changed) numbers_[k] = ++changes_;
  }
}

// The parameters of a world into an engine, where it has others.
void Worlds::tune(Engine& engine, std::size_t k) const {
  const std::size_t numbers = k < numbers_.size() ? numbers_[k] : 0;
  if (engine.numbers == numbers) return;
  ParameterRow row;
  for (std::size_t p = 0; p < row.size(); ++p)
    row[p] = numbers == 0 || accepted_[p].numbers.empty() ? source_.values[p].data() : accepted_[p][k];
  engine.take(source_, row);
  engine.numbers = numbers;
}

Worlds::Loan::Loan(Worlds& all, Engine& from, std::size_t k) : all_(all), engine_(from.world), k_(k) {
  World& engine = engine_;
  all.tune(from, k);
  take(all.q, k, engine.q), take(all.v, k, engine.v), take(all.hidden, k, engine.hidden);
  take(all.mocap, k, engine.mocap), take(all.mocap_goal, k, engine.mocap_goal);
  take(all.row_forces, k, engine.row_forces);
  engine.time = *all.time[k];
  std::swap(engine.memory, all.memories_[k]);
}

Worlds::Loan::~Loan() {
  const auto give = [&](const std::vector<double>& from, Rows<double>& to) {
    std::copy(from.begin(), from.end(), to[k_]);
  };
  give(engine_.q, all_.q), give(engine_.v, all_.v), give(engine_.hidden, all_.hidden);
  give(engine_.mocap, all_.mocap), give(engine_.mocap_goal, all_.mocap_goal);
  give(engine_.row_forces, all_.row_forces);
  *all_.time[k_] = engine_.time;
  std::swap(engine_.memory, all_.memories_[k_]);
}

// work(engine, i) for i = 0 … n − 1, by whichever thread is free.
template <class Work>
void Worlds::each(int n, Work&& work) {
  failure_.clear(), failed_ = -1;
  std::atomic<int> next{0};
  team_.each(std::min(team_.size(), n), [&](int thread) {
    for (int i = next++; i < n; i = next++) work(*engines_[std::size_t(thread)], i);
  });
}

// Worlds of one contact graph after each other: the memory of their system is warm then.
void Worlds::sort_by_graph(const std::vector<int>& which) {
  order_.resize(which.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto key = [&](int i) {
    const int k = which[std::size_t(i)];
    return std::pair(graphs_[std::size_t(k)], k);
  };
  std::sort(order_.begin(), order_.end(), [&](int a, int b) { return key(a) < key(b); });
}

void Worlds::step(const std::vector<int>& which, int steps) {
  sort_by_graph(which);
  each(int(order_.size()), [&](Engine& engine, int i) {
    const std::size_t k = std::size_t(which[std::size_t(order_[std::size_t(i)])]);
    const Loan loan(*this, engine, k);
    step(engine.world, k, steps);
    graphs_[k] = engine.world.graph();
    note(engine.world, k);
  });
}

void Worlds::step(World& w, std::size_t k, int steps) {
  const StepForces forces{tau[k], control[k], any(external[k], external.width) ? external[k] : nullptr};
  for (int s = 0; s < steps; ++s) {
    poll(step_operations);
    StepReport report;
    note_step(k, try_step(w, k, report, [&] { return w.step(forces); }), report);
    if (*status[k] >= unstable) return;
  }
}

// How a step of world k ended; from `unstable` on the world is as it was before.
template <class Step>
std::int32_t Worlds::try_step(World& w, std::size_t k, StepReport& report, Step&& step) {
  try {
    report = step();
  } catch (const TypedError& error) {
    note_failure(int(k), error.what());
    report.collided = false;
  }
  if (!report.collided) {
    if (!w.failure().empty()) note_failure(int(k), w.failure());
    return failed;
  }
  if (!report.regular) return singular;
  if (w.is_finite()) return step_status_number(report);
  w.undo_step();
  return unstable;
}

void Worlds::note_step(std::size_t k, std::int32_t ended, const StepReport& report) {
  *status[k] = ended;
  *unsolved[k] += ended != 0;
  if (ended >= unstable) return;
  *residual[k] = report.contacts.residuals.natural;
  *penetration[k] = report.penetration;
}

// A step of each of these worlds and its derivatives, of which `derive` takes some: derive(engine, row), false where
// they are not finite; with a null engine there are none.
template <class Derive>
void Worlds::differentiate(const std::vector<int>& which, const StepInputs& inputs, const StepsAfter& after,
                           Derive&& derive) {
  sort_by_graph(which);
  after.found.assign(which.size(), {});
  each(int(order_.size()), [&](Engine& engine, int i) {
    const std::size_t row = std::size_t(order_[std::size_t(i)]), k = std::size_t(which[row]);
    poll(2 * step_operations);
    const Loan loan(*this, engine, k);
    World& w = engine.world;
    if (!engine.linearization) engine.linearization = std::make_unique<StepLinearization>(w, int(control.width));
    StepLinearization& linear = *engine.linearization;
    const StepForces forces{inputs.tau ? inputs.tau + row * tau.width : tau[k],
                            inputs.control ? inputs.control + row * control.width : control[k],
                            any(external[k], external.width) ? external[k] : nullptr};
    StepReport report;
    StepFound& found = after.found[row];
    found.status = try_step(w, k, report, [&] { return linear.update(forces, 0.0); });
    std::copy(w.q.begin(), w.q.end(), after.q + row * q.width);
    std::copy(w.v.begin(), w.v.end(), after.v + row * v.width);
    found.derived = derive(found.status < unstable ? &engine : nullptr, row);
    if (found.status < unstable) {
      const auto& kinks = linear.contact_kinks();
      found.gaps = linear.gaps(), found.redundant = linear.redundant();
      found.kinks = linear.row_kinks() || linear.correction_kink() ||
                    std::any_of(kinks.begin(), kinks.end(), [](char kink) { return kink != 0; });
    }

    // a step is kept as a whole, or not at all
    if (inputs.advance) {
      graphs_[k] = w.graph();
      note_step(k, found.status, report);
      note(w, k);
    } else {
      if (found.status < unstable) w.undo_step();
      take(row_forces, k, w.row_forces);
    }
  });
}

void Worlds::linearize(const std::vector<int>& which, const StepInputs& inputs, const StepsAfter& after, double* A,
                       double* B) {
  const std::size_t n = v.width, nu = control.width;
  if (unit_q_.empty() && unit_u_.empty()) {
    for (auto* x : {&unit_q_, &unit_v_}) x->assign(n * 2 * n, 0.0);
    unit_u_.assign(nu * nu, 0.0);
    for (std::size_t k = 0; k < n; ++k) unit_q_[k * 2 * n + k] = unit_v_[k * 2 * n + n + k] = 1;
    for (std::size_t k = 0; k < nu; ++k) unit_u_[k * nu + k] = 1;
  }
  differentiate(which, inputs, after, [&](Engine* engine, std::size_t row) {
    double *const a = A + row * 4 * n * n, *const b = B + row * 2 * n * nu;
    if (engine) {
      StepLinearization& linear = *engine->linearization;
      linear.tangents({unit_q_.data(), unit_v_.data(), nullptr, nullptr, nullptr, nullptr, int(2 * n)}, a,
                      a + 2 * n * n);
      if (nu > 0)
        linear.tangents({nullptr, nullptr, nullptr, unit_u_.data(), nullptr, nullptr, int(nu)}, b, b + n * nu);
    }
    return keep_finite(engine != nullptr, {{a, 4 * n * n}, {b, 2 * n * nu}});
  });
}

void Worlds::adjoints(const std::vector<int>& which, const StepInputs& inputs, const double* q_bar, const double* v_bar,
                      const StepsAfter& after, const StepAdjoints& to) {
  const std::size_t n = v.width, nu = control.width;
  differentiate(which, inputs, after, [&](Engine* engine, std::size_t row) {
    const std::size_t at = row * n;
    if (engine) {
      StepLinearization& linear = *engine->linearization;
      engine->friction_bar.resize(std::max(engine->friction_bar.size(), linear.contacts()));
      linear.adjoints(q_bar ? q_bar + at : nullptr, v_bar ? v_bar + at : nullptr,
                      {to.q + at, to.v + at, to.tau + at, to.control + row * nu, engine->friction_bar.data(), nullptr,
                       nullptr, nullptr, 1});
    }
    return keep_finite(engine != nullptr,
                       {{to.q + at, n}, {to.v + at, n}, {to.tau + at, n}, {to.control + row * nu, nu}});
  });
}

void Worlds::start_sensing(const SensingSource& source) {
  sensing_ = source;
  sensor_numbers_.assign(std::size_t(count_), 0);
  for (auto& engine : engines_) engine->sensing = std::make_unique<Sensing>(sensing_);
}

std::vector<int> Worlds::unsensed_parameters() const {
  std::vector<int> found;
  for (int k = 0; k < count_; ++k)
    if (sensor_numbers_[std::size_t(k)] != numbers_[std::size_t(k)]) found.push_back(k);
  return found;
}

void Worlds::set_sensor_model(int world, const void* model) {
  const std::size_t k = std::size_t(world);
  if (sensor_models_.numbers.empty()) sensor_models_ = {std::size_t(count_), Sensing::numbers_size(sensing_)};
  Sensing::copy_numbers(sensing_, model, sensor_models_[k]);
  sensor_numbers_[k] = numbers_[k];
}

void Worlds::sense(const std::vector<int>& which) {
  each(int(which.size()), [&](Engine& engine, int i) {
    poll(step_operations);
    const std::size_t k = std::size_t(which[std::size_t(i)]);
    const Loan loan(*this, engine, k);
    engine.record.read({}, engine.world);
    engine.sensing->use_numbers(numbers_[k] == 0 ? nullptr : sensor_models_[k]);
    if (!engine.sensing->read(engine.record, {tau[k], control[k], external[k]}, sensors[k]))
      note_failure(int(k), engine.sensing->failure());
  });
}

// Contacts of the last step, and their forces on each body.
void Worlds::note(const World& w, std::size_t k) {
  const double over = 1 / description_->options.timestep;
  double* const forces = contact_forces[k];
  std::fill_n(forces, contact_forces.width, 0.0);
  *contacts[k] = std::int32_t(w.memory.contacts.size());
  for (int side = 0; side < 2; ++side)
    for (const Contact& c : w.memory.contacts) {
      double* const f = forces + 3 * c.touch.body[side];
      const Vec3<double> force = c.impulse * (side == 0 ? over : -over);
      f[0] += force.x, f[1] += force.y, f[2] += force.z;
    }
}

void Worlds::note_failure(int k, const std::string& what) {
  const std::lock_guard lock(failing_);
  if (failed_ >= 0 && failed_ <= k) return;
  failed_ = k;
  failure_ = "world " + std::to_string(k) + ": " + what;
}

// What a world has at first besides q and v.
void Worlds::begin(World& w) const {
  w.hidden = start_.hidden;
  w.mocap = w.mocap_goal = start_.mocap;
  std::fill(w.row_forces.begin(), w.row_forces.end(), 0.0);
  w.time = 0;
  w.memory = {};
}

void Worlds::roll(const Motions& m) {
  const std::size_t T = std::size_t(m.steps);
  const auto row = [](const double* block, std::size_t k, std::size_t width) {
    return block ? block + k * width : nullptr;
  };
  each(m.worlds, [&](Engine& engine, int i) {
    const std::size_t k = std::size_t(i);
    World& w = engine.world;
    tune(engine, k);
    w.q.assign(m.q + k * q.width, m.q + (k + 1) * q.width);
    w.v.assign(m.v + k * v.width, m.v + (k + 1) * v.width);
    begin(w);
    m.unsolved[k] = 0, m.unstable[k] = -1;
    for (std::size_t s = 0; s < T; ++s) {
      poll(step_operations);
      const std::size_t at = k * T + s;
      if (m.unstable[k] < 0) {
        const StepReport report =
            w.step({row(m.tau, at, tau.width), row(m.control, at, control.width), row(m.external, at, external.width)});
        if (!report.collided) {
          note_failure(i, w.failure());
          return;
        }
        m.unsolved[k] += !report.solved();
        if (!report.regular || !w.is_finite()) m.unstable[k] = std::int64_t(s);
      }
      std::copy(w.q.begin(), w.q.end(), m.q_after + at * q.width);
      std::copy(w.v.begin(), w.v.end(), m.v_after + at * v.width);
    }
  });
}

}  // namespace delassus
